"""The driver contract, version 1: the commands that a driver reads as JSON lines, and its answers.

One command per line on stdin, one answer per line on stdout, in the same order. An answer repeats the command's ``id``
and has one of ``result`` (an object), ``error`` (``class``, ``code``, ``message``) or ``unsupported`` (a sentence).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

VERSION: Final = 1

CAPABILITIES: Final = MappingProxyType(
    {
        "producer": "sends records to a given partition and reports the outcome of each",
        "idempotence": "producers with enable.idempotence",
        "transactions": "producers with a transactional id",
        "send_offsets": "adds a consumer's positions to a transaction, with the group's generation (KIP-447)",
        "compression": "gzip, snappy, lz4 and zstd; `unsupported` for a codec that the library does not have",
        "null_values": "records whose value is null, sent and read apart from those with an empty one",
        "consumer": "reads assigned partitions from given offsets",
        "read_committed": "consumers with isolation.level=read_committed",
        "offset_reset": "consumers without a valid offset begin at auto.offset.reset, or report an error",
        "max_records": "`poll` can limit the number of records; the others are returned by the next one",
        "auto_commit": "members that commit by themselves, at the latest when they are closed",
        "seek": "consumers can move to another offset",
        "reassign": "a second `assign` replaces the partitions of the first one",
        "resubscribe": "a second `subscribe` replaces the topics of the first one",
        "groups": "consumers that subscribe to topics as members of a group of the classic protocol",
        "assignment": "members report the partitions that they have",
        "static_members": "members with a group.instance.id",
        "consumer_protocol": "members of groups with group.protocol=consumer (KIP-848)",
        "commit_offsets": "consumers commit their positions when asked to",
        "share_groups": "members of share groups that acknowledge each record (KIP-932)",
        "admin": "creates topics",
        "tls": "talks TLS, and checks certificates against a given authority",
        "sasl_plain": "authenticates with the mechanism PLAIN",
        "sasl_scram": "authenticates with the mechanisms SCRAM-SHA-256 and SCRAM-SHA-512",
        "sasl_oauthbearer": "authenticates with a token that it is given, by the mechanism OAUTHBEARER",
    }
)
"""Capabilities of a library: a driver lists those that it supports in its answer to `hello`."""

ERROR_CLASSES: Final = MappingProxyType(
    {
        "retriable": "the same call may succeed later",
        "abortable": "the transaction must be aborted; the producer can be used again afterwards",
        "fatal": "the producer or consumer can only be closed",
        "timeout": "the library gave up waiting; what became of the call is unknown",
        "other": "anything else",
    }
)


@dataclass(frozen=True)
class Command:
    """One command: what it does, its fields, and those of its result."""

    about: str
    fields: Mapping[str, str]
    result: Mapping[str, str]
    capability: str | None = None
    optional: Mapping[str, str] = field(default_factory=dict)
    """Fields that only some scenarios send, to libraries with the required capabilities."""


SECURITY: Final = MappingProxyType(
    {
        "tls_ca": "string",
        "sasl_mechanism": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
        "sasl_username": "string",
        "sasl_password": "string",
        "sasl_token": "string",
    }
)
"""A CA certificate's path as PEM: connections use TLS. The mechanism: they use SASL. Never both."""

COMMANDS: Final[Mapping[str, Command]] = MappingProxyType(
    {
        "hello": Command(
            "Introduce the library. The first command.",
            {"protocol": "integer"},
            {"protocol": "integer", "library": "string", "version": "string", "capabilities": "list of strings"},
        ),
        "producer": Command(
            "Create a producer under a name.",
            {
                "name": "string",
                "bootstrap_servers": "string",
                "client_id": "string",
                "acks": "all, 1 or 0",
                "idempotent": "boolean",
                "transactional_id": "string or null",
                "transaction_timeout_ms": "integer",
                "delivery_timeout_ms": "integer",
                "request_timeout_ms": "integer",
                "retry_backoff_ms": "integer",
                "linger_ms": "integer",
                "max_in_flight": "integer",
                "compression": "none, gzip, snappy, lz4 or zstd",
            },
            {},
            "producer",
            SECURITY,
        ),
        "send": Command(
            "Hand records to the library; return without waiting for their outcome.",
            {"producer": "string", "topic": "string", "records": "list of {id, partition, value or null, key or null}"},
            {},
            "producer",
        ),
        "flush": Command(
            "Wait for the outcomes of all records sent so far; report each once, and how many records have none yet.",
            {"producer": "string", "timeout_ms": "integer"},
            {"outcomes": "list of {id, offset} or {id, error}", "pending": "integer"},
            "producer",
        ),
        "init_transactions": Command(
            "Get a producer id; what an earlier producer left open is ended.",
            {"producer": "string", "timeout_ms": "integer"},
            {},
            "transactions",
        ),
        "begin": Command("Begin a transaction.", {"producer": "string"}, {}, "transactions"),
        "send_offsets": Command(
            "Add the positions of a consumer to the transaction.",
            {"producer": "string", "consumer": "string", "timeout_ms": "integer"},
            {},
            "send_offsets",
        ),
        "commit": Command(
            "Commit the transaction.", {"producer": "string", "timeout_ms": "integer"}, {}, "transactions"
        ),
        "abort": Command("Abort the transaction.", {"producer": "string", "timeout_ms": "integer"}, {}, "transactions"),
        "consumer": Command(
            "Create a consumer under a name.",
            {
                "name": "string",
                "bootstrap_servers": "string",
                "client_id": "string",
                "group": "string or null",
                "instance_id": "string or null",
                "protocol": "classic or consumer",
                "isolation": "read_uncommitted or read_committed",
                "offset_reset": "earliest, latest or none",
                "auto_commit": "boolean",
                "session_timeout_ms": "integer",
                "heartbeat_interval_ms": "integer",
                "request_timeout_ms": "integer",
            },
            {},
            "consumer",
            SECURITY,
        ),
        "assign": Command(
            "Read these partitions from these offsets, without a group.",
            {"consumer": "string", "partitions": "list of {topic, partition, offset}"},
            {},
            "consumer",
        ),
        "subscribe": Command("Join the group.", {"consumer": "string", "topics": "list of strings"}, {}, "groups"),
        "poll": Command(
            "Return what has arrived, after waiting at most this long for a first record; the position is after them.",
            {"consumer": "string", "timeout_ms": "integer"},
            {"records": "list of {topic, partition, offset, key or null, value or null}", "errors": "list of errors"},
            "consumer",
            {"max_records": "integer"},
        ),
        "assignment": Command(
            "Return the partitions that the consumer has now.",
            {"consumer": "string"},
            {"partitions": "list of {topic, partition}"},
            "assignment",
        ),
        "seek": Command(
            "Move to an offset: the next `poll` returns nothing that was fetched before.",
            {"consumer": "string", "topic": "string", "partition": "integer", "offset": "integer"},
            {},
            "seek",
        ),
        "commit_offsets": Command(
            "Commit the positions, after the last records that `poll` returned, and wait for the answer.",
            {"consumer": "string", "timeout_ms": "integer"},
            {},
            "commit_offsets",
        ),
        "share_consumer": Command(
            "Create a member of a share group, with explicit acknowledgement.",
            {
                "name": "string",
                "bootstrap_servers": "string",
                "client_id": "string",
                "group": "string",
                "request_timeout_ms": "integer",
            },
            {},
            "share_groups",
        ),
        "acknowledge": Command(
            "Acknowledge records that were polled. `subscribe`, `poll` and `close` are those of a consumer.",
            {
                "consumer": "string",
                "type": "accept, release or reject",
                "records": "list of {topic, partition, offset}",
            },
            {},
            "share_groups",
        ),
        "commit_acknowledgements": Command(
            "Send the acknowledgements, and wait for the answer: an error, if one of them was refused.",
            {"consumer": "string", "timeout_ms": "integer"},
            {},
            "share_groups",
        ),
        "create_topic": Command(
            "Create a topic.",
            {"bootstrap_servers": "string", "topic": "string", "partitions": "integer", "timeout_ms": "integer"},
            {},
            "admin",
        ),
        "close": Command("Close a producer or consumer.", {"name": "string", "timeout_ms": "integer"}, {}),
        "quit": Command("End; the driver exits with code 0 after its answer.", {}, {}),
    }
)


_KINDS: Final = {"string": "string", "integer": "integer", "boolean": "boolean"}
_ROW: Final[Mapping[str, Mapping[str, Any]]] = {
    **{name: {"type": "integer"} for name in ("id", "partition", "offset")},
    "topic": {"type": "string"},
    **{name: {"type": ["string", "null"]} for name in ("key", "value")},
    "error": {"$ref": "#/$defs/error"},
}
"""What the rows in lists have."""


def _typed(kind: str) -> dict[str, Any]:
    """Return the JSON schema of a kind, as `Command` names it."""
    if kind in _KINDS:
        return {"type": _KINDS[kind]}
    if kind == "string or null":
        return {"type": ["string", "null"]}
    if kind == "list of errors":
        return {"type": "array", "items": {"$ref": "#/$defs/error"}}
    if kind.startswith("list of {"):
        rows = [each.replace(" or null", "").split(", ") for each in re.findall(r"{(.*?)}", kind)]
        items = [{"type": "object", "required": row, "properties": {name: _ROW[name] for name in row}} for row in rows]
        return {"type": "array", "description": kind, "items": items[0] if len(items) == 1 else {"oneOf": items}}
    if kind.startswith("list of"):
        return {"type": "array", "items": {"type": "string"}}
    return {"type": "string", "enum": kind.replace(" or ", ", ").split(", ")}


def _object(fields: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(fields),
        "properties": {name: _typed(kind) for name, kind in fields.items()},
    }


def reference() -> list[str]:
    """Return the table of commands in Markdown: fields, result, capability."""
    lines = ["| command | fields | result | capability |", "|---|---|---|---|"]
    for name, command in COMMANDS.items():
        optional = ["[those of TLS and SASL]"] if command.optional is SECURITY else [f"[{e}]" for e in command.optional]
        fields = ", ".join([*command.fields, *optional])
        result = "; ".join(f"`{each}`: {kind}" for each, kind in command.result.items()) or "`{}`"
        lines.append(f"| `{name}`: {command.about} | {fields} | {result} | {command.capability or ''} |")
    return lines


def schema() -> dict[str, Any]:
    """Return the JSON schema of commands, answers and each command's result, for tests and for code generators."""
    error = {
        "type": "object",
        "required": ["class", "code", "message"],
        "properties": {
            "class": {"enum": list(ERROR_CLASSES)},
            "code": {"type": ["string", "null"], "description": "Kafka's name of the error, if the library has it"},
            "message": {"type": "string"},
        },
    }
    commands = [
        {
            "title": name,
            "description": command.about,
            "type": "object",
            "required": ["id", "command", *command.fields],
            "properties": {
                "id": {"type": "integer"},
                "command": {"const": name},
                **{name: _typed(kind) for name, kind in {**command.fields, **command.optional}.items()},
            },
        }
        for name, command in COMMANDS.items()
    ]
    answer = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "result": {"type": "object"},
            "error": error,
            "unsupported": {"type": "string"},
        },
        "oneOf": [{"required": [each]} for each in ("result", "error", "unsupported")],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Understudy exam driver, version {VERSION}",
        "$defs": {
            "command": {"oneOf": commands},
            "answer": answer,
            "error": error,
            "results": {name: {"title": name, **_object(command.result)} for name, command in COMMANDS.items()},
        },
    }
