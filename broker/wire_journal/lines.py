"""A request as a line of the journal's files: format 1, as docs/journal.md has it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from broker.control.entries import decode, title, told_body
from broker.middleware.fields import errors
from broker.middleware.journal import Entry

VERSION = 1


class Peer(NamedTuple):
    """Of a connection, what a line tells."""

    listener: str
    host: str
    port: int
    principal: str
    software: str | None
    software_version: str | None


class Handed(NamedTuple):
    """A request as the loop hands it over. ``began_ns``: its arrival by the machine's stopwatch."""

    entry: Sequence[Any]
    began_ns: int
    peer: Sequence[Any]
    era: int


class About(NamedTuple):
    """What a line tells that is not the request's own.

    ``epoch_ns``: what to add to the stopwatch to have the time since 1970. ``topics``: names by id, as printed.
    """

    run: str
    cluster_id: str
    epoch_ns: int
    topics: Mapping[str, str]


def line(handed: Handed, about: About, lost: int) -> bytes:
    """The line, with its newline; before it, so many requests could not be written."""
    entry, peer = Entry(*handed.entry), Peer(*handed.peer)
    found = decode(entry)
    header = found.header
    codes = list(dict.fromkeys(errors(found.response)))
    told = {
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
        "request_bytes": entry.frame_bytes + 4,
        "response_bytes": entry.answer_bytes,
        "request": named(told_body(found.request, found.request_sizes, batches=True), about.topics),
        "response": named(told_body(found.response, found.response_sizes, batches=True), about.topics),
    }
    # A client's text may hold what is no character; it must not make the line unreadable.
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def named(body: dict[str, Any] | None, topics: Mapping[str, str]) -> dict[str, Any] | None:
    """The body, with the names of topics that it speaks of by their ids alone (KIP-516)."""
    for value in () if body is None else body.values():
        for item in value if isinstance(value, list) else ():
            if not isinstance(item, dict):
                break
            if "topic_id" not in item:
                named(item, topics)
                continue
            for field in ("name", "topic"):
                if field in item and not item[field]:
                    item[field] = topics.get(item["topic_id"], item[field])
    return body
