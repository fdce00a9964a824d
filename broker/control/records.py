"""Verbs that read and write records without a Kafka client."""

import base64
from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from typing import Any

from broker.clock import Slices
from broker.control.asked import Asked
from broker.control.log import log_of, partition_of, topic_of
from broker.control.partitioner import partition_for
from broker.control.problems import conflict, unprocessable
from broker.middleware.fields import shown_bytes
from broker.partition import ReplicatedPartition
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from protocol.records.control import parse_marker
from protocol.records.records import Record, build_batch, read_records
from storage.partition_log import PartitionLog

_COMMITTED = "read_committed"
_TEXT = {
    "description": 'a text, null, or {"base64": "..."}',
    "oneOf": [{"type": ["string", "null"]}, {"type": "object", "properties": {"base64": {"type": "string"}}}],
}
READ: dict[str, dict[str, Any]] = {
    "offset": {"type": "integer", "description": "first offset; negative: so many before the end"},
    "limit": {"type": "integer", "minimum": 0, "maximum": 10_000, "default": 100},
    "isolation": {"type": "string", "enum": ["read_uncommitted", _COMMITTED], "default": "read_uncommitted"},
}
WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "records": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": _TEXT,
                    "value": _TEXT,
                    "headers": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"key": {"type": "string"}, "value": _TEXT}},
                    },
                    "partition": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "by default as Java's clients pick it",
                    },
                    "timestamp_ms": {"type": "integer", "description": "by default the cluster's time"},
                },
                "additionalProperties": False,
            },
        }
    },
    "required": ["records"],
    "additionalProperties": False,
}


async def read(asked: Asked) -> dict[str, Any]:
    """Records of a partition; control records too, unless only committed ones are asked for."""
    found = partition_of(asked)
    isolation = asked.query.get("isolation", "read_uncommitted")
    if isolation not in (_COMMITTED, "read_uncommitted"):
        raise unprocessable(f"'isolation' is read_uncommitted or read_committed, not {isolation!r}", "isolation")
    limit = min(asked.number("limit", 100), 10_000)
    log = log_of(found)
    if log is None:
        raise conflict(f"no broker that holds {found.name} is running")
    bound = log.last_stable_offset if isolation == _COMMITTED else log.high_watermark
    offset = asked.number("offset", log.log_start_offset, least=-(2**63))
    start = max(bound + offset if offset < 0 else offset, log.log_start_offset)
    records: list[dict[str, Any]] = []
    aborted = _aborted(log) if isolation == _COMMITTED else {}
    slices = Slices()
    for batch in log.replay_from(start) if start < bound else ():
        if batch.base_offset >= bound or len(records) >= limit:
            break
        records += _told(found, batch, start, bound, aborted, committed=isolation == _COMMITTED)
        await slices.pause()
    return {"records": records[:limit], "high_watermark": log.high_watermark, "log_start_offset": log.log_start_offset}


def _aborted(log: PartitionLog) -> dict[int, list[tuple[int, int]]]:
    """Producer id -> ranges of offsets that were aborted."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for segment in log.segments:
        for each in segment.txn_index.entries:
            found[each.producer_id].append((each.first_offset, each.last_offset))
    return found


def _told(
    partition: ReplicatedPartition,
    batch: RecordBatch,
    start: int,
    bound: int,
    aborted: Mapping[int, list[tuple[int, int]]],
    *,
    committed: bool,
) -> list[dict[str, Any]]:
    if committed and (batch.is_control or _is_aborted(batch, aborted)):
        return []
    marker = parse_marker(batch) if batch.is_control else None
    shared = {
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "transactional": batch.is_transactional,
        "control": None if marker is None else "commit" if marker.committed else "abort",
    }
    return [
        {
            "offset": record.offset,
            "partition": partition.index,
            "timestamp_ms": record.timestamp_ms,
            "key": None if record.key is None else shown_bytes(record.key),
            "value": None if record.value is None else shown_bytes(record.value),
            "headers": [{"key": k, "value": None if v is None else shown_bytes(v)} for k, v in record.headers],
            "sequence": -1 if batch.base_sequence < 0 else batch.base_sequence + record.offset - batch.base_offset,
            **shared,
        }
        for record in read_records(batch)
        if start <= record.offset < bound
    ]


def _is_aborted(batch: RecordBatch, aborted: Mapping[int, list[tuple[int, int]]]) -> bool:
    ranges = aborted.get(batch.producer_id, ()) if batch.is_transactional else ()
    return any(first <= batch.base_offset <= last for first, last in ranges)


async def write(asked: Asked) -> dict[str, Any]:
    """Append records, each to its partition; told in the order given. Nothing is written if one of them is wrong."""
    asked.only("records")
    topic, given = topic_of(asked), asked.body.get("records")
    if not isinstance(given, list) or not given:
        raise unprocessable("'records' must be a list of records, such as [{'key': 'k', 'value': 'v'}]", "records")
    cluster, now_ms, turn = asked.cluster, asked.cluster.clock.now_ms(), count()
    places: list[tuple[int, int]] = []
    by_partition: dict[int, list[Record]] = defaultdict(list)
    for at, row in enumerate(given):
        record, partition = _record(row, f"records.{at}", now_ms)
        if partition is None:
            partition = partition_for(record.key, len(topic.partitions), turn)
        if partition not in topic.partitions:
            last = len(topic.partitions) - 1
            raise unprocessable(f"{topic.name!r} has partitions 0 to {last}", f"records.{at}.partition")
        rows = by_partition[partition]
        places.append((partition, len(rows)))
        rows.append(record._replace(offset=len(rows)))
    bases = {}
    for partition, rows in by_partition.items():
        hosted = cluster.partitions[topic.name, partition]
        try:
            info = hosted.append(hosted.state.leader, build_batch(rows), now_ms, all_in_sync=True)
        except KafkaError as error:
            raise conflict(
                f"{hosted.name} refuses: {error.code.name}, {error.message or 'no more is known'}"
            ) from error
        bases[partition] = info.base_offset
    return {"written": [{"partition": partition, "offset": bases[partition] + at} for partition, at in places]}


def _record(row: Any, where: str, now_ms: int) -> tuple[Record, int | None]:
    known = ("key", "value", "headers", "partition", "timestamp_ms")
    if not isinstance(row, Mapping):
        raise unprocessable(f"a record is an object, such as {{'key': 'k', 'value': 'v'}}, not {row!r}", where)
    for name in row:
        if name not in known:
            raise unprocessable(f"a record has no {name!r}; it has {', '.join(known)}", f"{where}.{name}")
    for name in ("partition", "timestamp_ms"):
        if name in row and (isinstance(row[name], bool) or not isinstance(row[name], int)):
            raise unprocessable(f"{name!r} must be a whole number, not {row[name]!r}", f"{where}.{name}")
    headers = row.get("headers", [])
    if not isinstance(headers, list) or not all(
        isinstance(h, Mapping) and isinstance(h.get("key"), str) for h in headers
    ):
        raise unprocessable("'headers' must be a list of {'key': ..., 'value': ...}", f"{where}.headers")
    pairs = [(header["key"], _bytes(header.get("value"), f"{where}.headers")) for header in headers]
    record = Record(
        0,
        row.get("timestamp_ms", now_ms),
        _bytes(row.get("key"), f"{where}.key"),
        _bytes(row.get("value"), f"{where}.value"),
        pairs,
    )
    return record, row.get("partition")


def _bytes(value: Any, where: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (KeyError, TypeError, ValueError):
        what = where.rpartition(".")[2]
        raise unprocessable(f'{what!r} needs a text, null or {{"base64": "..."}}, not {value!r}', where) from None
