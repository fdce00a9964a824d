"""The views of a wire journal (`docs/debugging.md`), and the function that they need."""

import base64
import json
from struct import Struct, error
from typing import Final

VIEWS: Final = (
    "calls", "topic_names", "era", "deletions", "produces", "fetches", "commits", "group_clients", "deliveries",
    "producing", "effective_commits", "members", "granted", "listed", "assignments", "current_produces",
    "current_fetches", "answer_items",
)  # fmt: skip
"""Views, each of which may use the ones before it."""
_SHORT, _INT = Struct(">h"), Struct(">i")


def owned_partitions(shown: str | None) -> list[tuple[str, int]]:
    """Return the partitions in a member's assignment as recorded in the journal; none if it cannot be decoded.

    Layout: version, then topics with their partitions (ConsumerProtocolAssignment).
    """
    if not shown:
        return []
    raw = shown.encode()
    if shown.startswith("{"):
        try:
            raw = base64.b64decode(json.loads(shown)["base64"])
        except (ValueError, KeyError, TypeError):
            return []
    try:
        return list(_owned(raw))
    except (error, UnicodeDecodeError, IndexError):
        return []


def _owned(raw: bytes) -> list[tuple[str, int]]:
    (topics,) = _INT.unpack_from(raw, 2)
    at = 6  # after version and number of topics
    places: list[tuple[str, int]] = []
    for _ in range(topics):
        (size,) = _SHORT.unpack_from(raw, at)
        name = raw[at + 2 : at + 2 + size].decode()
        at += 2 + size
        (count,) = _INT.unpack_from(raw, at)
        places += [(name, _INT.unpack_from(raw, at + 4 + 4 * index)[0]) for index in range(count)]
        at += 4 + 4 * count  # int32s: their number, and each
    return places
