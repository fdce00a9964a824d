"""Conversion of messages to plain values: dictionaries, lists, numbers and texts, with decoded record batches."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.log_records import group, transaction
from protocol.records.batch import BATCH_HEADER_SIZE, RecordBatch
from protocol.records.errors import RecordsError
from protocol.records.records import Record, parse_marker, read_records
from protocol.types import Message, uuid_text

Plain = Mapping[str, Any] | list[Any] | str | int | float | bool | None
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def plain(value: Any) -> Any:
    """Convert a message, or a part of one, to plain values; a field named ``records`` becomes its batches."""
    if isinstance(value, Message):
        return {name: _field(name, getattr(value, name)) for name in value.FIELDS}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    if isinstance(value, frozenset | set):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _field(name: str, value: Any) -> Any:
    if name != "records" or value is None:
        return plain(value)
    data = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else b"".join(map(bytes, value))
    return [plain_batch(batch) for batch in whole_batches(data)]


def whole_batches(data: bytes) -> list[RecordBatch]:
    """List the complete batches in the data; a fetch may truncate the last one."""
    at, complete = 0, []
    while len(data) - at >= BATCH_HEADER_SIZE:
        batch = RecordBatch(data, at)
        if not batch.is_complete:
            break
        complete.append(batch)
        at = batch.end
    return complete


def plain_batch(batch: RecordBatch) -> dict[str, Any]:
    """Convert a batch's header and records. Compressed bytes are left out: they depend on the compressor."""
    shown: dict[str, Any] = {
        name: getattr(batch, name)
        for name in (
            "base_offset",
            "last_offset_delta",
            "partition_leader_epoch",
            "attributes",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "record_count",
        )
    }
    shown["crc_ok"] = batch.crc_ok()
    if not batch.codec:
        shown["size"] = batch.size
    shown["base_timestamp_ms"], shown["max_timestamp_ms"] = batch.base_timestamp_ms, batch.max_timestamp_ms
    marker = parse_marker(batch)
    if marker is not None:
        shown["marker"] = {"committed": marker.committed, "coordinator_epoch": marker.coordinator_epoch}
        return shown
    try:
        shown["content"] = [_record(record) for record in read_records(batch)]
    except RecordsError as error:
        shown["content"] = f"unreadable: {error}"
    return shown


def _record(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": plain(record.key),
        "value": plain(record.value),
        "headers": [[name, plain(value)] for name, value in record.headers],
    }


def coordinator_records(topic: str, batch: RecordBatch) -> list[dict[str, Any]]:
    """Decode a batch of an internal topic, with the batch's producer if it has one."""
    about: dict[str, Any] = {}
    if batch.has_producer_id:
        about = {"producer_id": batch.producer_id, "producer_epoch": batch.producer_epoch}
    marker = parse_marker(batch)
    if marker is not None:
        return [{**about, "marker": "commit" if marker.committed else "abort"}]
    decode = group.decode if topic == OFFSETS else transaction.decode
    records: list[dict[str, Any]] = []
    for record in read_records(batch):
        decoded = decode(record.key, record.value)
        version = None if record.value is None else int.from_bytes(record.value[:2])
        kind = type(decoded).__name__
        records.append({**about, "kind": kind, "value_version": version, "is": plain(decoded)})
    return records
