"""`understudy completion names KIND`: what a running server has of a kind, a line each, for completion in shells."""

from collections.abc import Mapping
from typing import Any

from understudy.control_api.verb import Verb
from understudy.errors import UnderstudyError
from understudy.transport import Transport

KINDS: Mapping[str, tuple[str, str, str]] = {
    "topic": ("topics list", "topics", "name"),
    "group": ("groups list", "groups", "group_id"),
    "transactional_id": ("transactions list", "transactions", "transactional_id"),
    "producer_id": ("producers list", "producers", "producer_id"),
    "broker": ("cluster", "brokers", "id"),
    "fault": ("faults list", "faults", "id"),
    "snapshot": ("snapshots list", "snapshots", "id"),
    "user": ("users list", "users", "name"),
    "api": ("apis", "apis", "name"),
}
"""Kind -> the verb that lists them, its list, and the field of the name."""


def kind_of_place(verb: Verb) -> str:
    """What the first argument of a verb names; empty: nothing that a server can list."""
    return verb.places[0] if verb.places and verb.places[0] in KINDS else ""


def names(kind: str, transport: Transport) -> list[str]:
    """The names; none where no server answers, since a shell that completes has no use for an error."""
    verb, items, field = KINDS[kind]
    try:
        rows: list[dict[str, Any]] = transport.ask(verb, {})[items]
    except UnderstudyError:
        return []
    return [name for name in (str(row[field]) for row in rows) if name.isprintable()]
