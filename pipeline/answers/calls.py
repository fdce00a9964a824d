"""Calls: the decoded requests of a journal with their responses, and the faults found in them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

ANSWER_FAULTS: Final = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("id", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("group_id", pa.string()),
        pa.field("member_id", pa.string()),
        pa.field("what", pa.string()),
    ]
)
"""One row per contradiction; `kind` is the check that reports it, `id` the request whose response is wrong."""
ANSWER_PLACES: Final = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("era", pa.int64()),
        pa.field("id", pa.int64()),
        pa.field("topic", pa.string()),  # null: the partition has only an id in the response
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("end_offset", pa.int64()),  # an offset that the log must have reached; null: the response has none
    ]
)
"""One row per partition that a response contains, to be compared with the logs."""
COLUMNS: Final = (
    "run", "era", "id", "v", "ts_us", "duration_us", "at_ms", "cluster_id", "broker", "listener", "connection",
    "client_id", "principal", "api", "version", "outcome", "error", "faults", "request", "response",
)  # fmt: skip
"""The columns that are read from a journal."""
BULK: Final = frozenset({"Produce", "Fetch"})
"""APIs that are left to the SQL checks; they make up most of a journal."""
ZERO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
NONE: Final = "NONE"
_EMPTY_MS: Final = 600_000
"""Interval at which a coordinator deletes empty groups (`offsets.retention.check.interval.ms`)."""
Body = dict[str, Any]
_encoded: Final = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class Call:
    """A request and its response. Times are microseconds of the machine's clock; `at_ms` is the cluster's clock."""

    run: str
    era: int
    id: int
    start_us: int
    end_us: int
    at_ms: int
    cluster_id: str | None
    broker: int
    listener: str
    connection: int
    client_id: str | None
    principal: str | None
    api: str
    version: int
    is_answered: bool
    """Whether the broker itself produced a response: no fault was injected."""
    error: str | None
    """The first error in the response."""
    request: Body
    response: Body
    """Empty if there was no response."""

    @property
    def is_accepted(self) -> bool:
        """Return whether the response has no error."""
        return self.is_answered and self.error is None


class Fault(NamedTuple):
    """A contradiction: a row of `ANSWER_FAULTS` without the run."""

    id: int
    kind: str
    what: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    group_id: str | None = None
    member_id: str | None = None


def calls_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Call]:
    """Yield, in order, the calls in a journal that are judged one by one."""
    for rows in batches:
        for row in rows.to_pylist():
            if row["v"] is not None and row["api"] not in BULK and row["request"] is not None:
                yield _call(row)


def _call(row: Body) -> Call:
    answered = row["outcome"] == "answered" and row["response"] is not None and not row["faults"]
    return Call(
        row["run"], row["era"] or 0, row["id"], row["ts_us"], row["ts_us"] + max(row["duration_us"] or 0, 0),
        row["at_ms"] or 0, row["cluster_id"], row["broker"], row["listener"] or "", row["connection"], row["client_id"],
        row["principal"], row["api"], row["version"], answered, row["error"], json.loads(row["request"]),
        json.loads(row["response"]) if answered else {},
    )  # fmt: skip


def may_be_deleted(before: Call, after: Call, deletions: Iterable[Call]) -> bool:
    """Return whether a group may have been deleted between two calls: by one of these, or because it was empty."""
    return after.at_ms - before.at_ms >= _EMPTY_MS or any(
        each.start_us <= after.end_us and each.end_us >= before.start_us for each in deletions
    )


def listed(body: Any, name: str) -> list[Any]:
    """Return the elements of a list in a body; none if the list is null or missing."""
    items = body.get(name) if isinstance(body, dict) else None
    return items if isinstance(items, list) else []


def canonical(value: Any) -> str:
    """Return a value as text that is the same for equal values."""
    return _encoded(value)
