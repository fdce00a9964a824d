"""Reads records by a unique identity (`--id`), to check exactly-once delivery record by record.

An identity is the key, a header or a field of a JSON value. The user names the input and output topics; only committed
records count.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pipeline.reading import read_segments
from pipeline.values.texts import sound

IDENTIFIED: Final = pa.schema(
    [
        pa.field("role", pa.string()),  # input, output
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("producer_id", pa.int64()),
        pa.field("id", pa.string()),  # null: the record has no identity
        pa.field("key", pa.string()),
    ]
)
"""One row per committed record of the input and output topics."""
PROCESSORS: Final = pa.schema([pa.field("group_id", pa.string())])
"""The consumer groups that the user named."""
NAMED_TOPICS: Final = pa.schema([pa.field("role", pa.string()), pa.field("topic", pa.string())])
"""The input and output topics that the user named, also those without any record."""
VIEWS: Final = ("inputs", "outputs", "input_commits")
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp_ms", "producer_id")
_OF_PATTERNS: Final = frozenset("*?[")
"""Characters of patterns, which no topic name contains."""

Extract = Callable[[Mapping[str, Any]], str | None]


class IdentityError(ValueError):
    """An invalid identity, or invalid topics for it; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a record's identity is, and the topics that it is read from and written to."""

    column: str
    """The column with the identity: `key`, `headers` or `value`."""
    extract: Extract
    inputs: Sequence[str]
    outputs: Sequence[str]
    groups: Sequence[str] = ()

    @property
    def named_topics(self) -> list[dict[str, str]]:
        """Return the rows of `NAMED_TOPICS`."""
        named = {"input": self.inputs, "output": self.outputs}
        return [{"role": role, "topic": topic} for role, topics in named.items() for topic in topics]


def parse(spec: str, inputs: Sequence[str], outputs: Sequence[str], groups: Sequence[str] = ()) -> Identity:
    """Parse an identity from the command line: `key`, `header:NAME` or `json:PATH`, such as `json:order.id`.

    Raises:
        IdentityError: the text is none of these, or inputs or outputs are missing or are patterns.
    """
    if not inputs or not outputs:
        raise IdentityError("--id needs --input TOPIC and --output TOPIC: where records come from and where they go")
    if pattern := next((each for each in (*inputs, *outputs) if set(each) & _OF_PATTERNS), None):
        raise IdentityError(f"{pattern} is a pattern: name each topic of --id, with an --input or --output of its own")
    if both := set(inputs) & set(outputs):
        raise IdentityError(f"the topic {min(both)} is an input and an output: --id compares two different topics")
    kind, _, rest = spec.partition(":")
    if spec == "key":
        return Identity("key", lambda row: _text(row["key"]), inputs, outputs, groups)
    if kind == "header" and rest:
        return Identity("headers", lambda row: _header(row["headers"], rest), inputs, outputs, groups)
    if kind == "json" and rest:
        path = rest.removeprefix("$.").split(".")
        return Identity("value", lambda row: _field(row["value"], path), inputs, outputs, groups)
    raise IdentityError(f"--id {spec}: give key, header:NAME or json:PATH, such as json:order.id")


def identified(path: str, identity: Identity) -> Iterator[pa.RecordBatch]:
    """Return the rows of `IDENTIFIED`. Each partition is read once, from its longest replica."""
    columns = (*_COLUMNS, *dict.fromkeys(("key", identity.column)))
    roles = {**dict.fromkeys(identity.inputs, "input"), **dict.fromkeys(identity.outputs, "output")}
    for batch in read_segments(path, columns=columns, topics=list(roles), isolation="read_committed", mode="skip"):
        rows = [
            {
                **{name: row[name] for name in _COLUMNS},
                "role": roles[row["topic"]],
                "id": identity.extract(row),
                "key": _text(row["key"]),
            }
            for row in batch.to_pylist()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=IDENTIFIED)


def _text(raw: bytes | None) -> str | None:
    """Decode bytes as UTF-8; invalid ones become hexadecimal digits."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.hex()


def _header(headers: Sequence[Mapping[str, Any]] | None, name: str) -> str | None:
    """Return the last header with a name, like Kafka's `Headers.lastHeader`."""
    values = [each["value"] for each in headers or () if each["key"] == name]
    return _text(values[-1]) if values else None


def _field(raw: bytes | None, path: Sequence[str]) -> str | None:
    """Return a field of a JSON value by its path of names and array indexes."""
    try:
        part: Any = json.loads(raw or b"null")
        for step in path:
            part = part[int(step)] if isinstance(part, list) else part[step]
        if part is None:
            return None
        return sound(part) if isinstance(part, str) else json.dumps(part, sort_keys=True)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
