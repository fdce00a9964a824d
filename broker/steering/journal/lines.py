"""Formats a request as a line of the journal's files: format 1, documented in docs/debugging.md."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from broker.steering.journal.entries import body_as_json, decode, title, with_topic_names
from broker.steering.journal.ring import Entry
from protocol.paths import errors

VERSION = 1


class Peer(NamedTuple):
    """The fields of a line that describe the connection."""

    listener: str
    host: str
    port: int
    principal: str
    software: str | None
    software_version: str | None


class Handed(NamedTuple):
    """A request as the server sends it to the writer. ``began_ns``: its arrival by the machine's monotonic clock."""

    entry: Sequence[Any]
    began_ns: int
    peer: Sequence[Any]
    era: int


class About(NamedTuple):
    """The fields of a line that do not come from the request.

    ``epoch_ns``: added to ``began_ns``, it gives the time since 1970. ``topics``: topic id as printed -> name.
    """

    run: str
    cluster_id: str
    epoch_ns: int
    topics: Mapping[str, str]


def line(handed: Handed, about: About, lost: int) -> bytes:
    """Return the line of a request, with its newline. ``lost``: number of unwritten requests before it."""
    entry, peer = Entry(*handed.entry), Peer(*handed.peer)
    decoded = decode(entry)
    header = decoded.header
    codes = list(dict.fromkeys(errors(decoded.response)))
    fields = {
        "v": VERSION,
        "run": about.run,
        "era": handed.era,
        "id": entry.id,
        "lost": lost,
        "cluster_id": about.cluster_id,
        "ts_us": (handed.began_ns + about.epoch_ns) // 1000,
        "duration_us": entry.duration_us,
        "at_ms": entry.at_ms,
        "broker": entry.broker,
        "listener": peer.listener,
        "connection": entry.connection,
        "client": f"{peer.host}:{peer.port}",
        "principal": peer.principal,
        "client_id": None if header is None else header.client_id,
        "software": peer.software,
        "software_version": peer.software_version,
        "api_key": -1 if header is None else header.api_key,
        "api": "unreadable" if header is None else title(header.api_key),
        "version": -1 if header is None else header.api_version,
        "correlation_id": -1 if header is None else header.correlation_id,
        "outcome": entry.outcome,
        "error_codes": [int(code) for code in codes],
        "error": codes[0].name if codes else None,
        "faults": entry.fault.split(",") if entry.fault else [],
        "request_bytes": entry.frame_bytes + 4,  # with the size field
        "response_bytes": entry.answer_bytes,
        "request": with_topic_names(
            body_as_json(decoded.request, decoded.request_sizes, batches=True), about.topics.get
        ),
        "response": with_topic_names(
            body_as_json(decoded.response, decoded.response_sizes, batches=True), about.topics.get
        ),
    }
    # A client's strings may have invalid characters, which must not make the line unreadable.
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
