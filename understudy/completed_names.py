"""`understudy completion names KIND`: prints the names of a kind on a running server, for completion in shells."""

from collections.abc import Mapping
from typing import Any

from control_api.verb import Verb
from understudy.errors import UnderstudyError
from understudy.transport import Transport

KINDS: Mapping[str, tuple[str, str, str]] = {
    "topic": ("topics list", "topics", "name"),
    "group": ("groups list", "groups", "group_id"),
    "transactional_id": ("transactions list", "transactions", "transactional_id"),
    "producer_id": ("producers list", "producers", "producer_id"),
    "broker": ("cluster", "brokers", "id"),
    "controller": ("cluster", "controllers", "id"),
    "fault": ("faults list", "faults", "id"),
    "snapshot": ("snapshots list", "snapshots", "id"),
    "user": ("users list", "users", "name"),
    "api": ("apis", "apis", "name"),
}
"""Kind -> the verb that lists its objects, the list in the response, and the field with the name."""


def kind_of_place(verb: Verb) -> str:
    """Return the kind that the first argument of a verb names; empty if a server cannot list it."""
    return verb.places[0] if verb.places and verb.places[0] in KINDS else ""


def names(kind: str, transport: Transport) -> list[str]:
    """Return the names; empty if no server answers, because an error would be useless in a completing shell."""
    verb, items, field = KINDS[kind]
    try:
        rows: list[dict[str, Any]] = transport.ask(verb, {})[items]
    except UnderstudyError:
        return []
    return [name for name in (str(row[field]) for row in rows) if name.isprintable()]
