"""Decodes the coordinators' records into rows of `schemas.STATE`: committed offsets, groups, transactions, metadata.

These logs are small compared with the data, so their records are decoded one by one, with the broker's codecs.
"""

import base64
import dataclasses
import json
import struct
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pipeline.schemas import STATE, STATE_RECORDS
from protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment
from protocol.log_records import group, metadata, share_state, transaction
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord
from protocol.log_records.share_group import ShareGroupKind, ShareGroupRecord
from protocol.log_records.share_state import ShareKind, ShareRecord
from protocol.log_records.streams_group import StreamsKind, StreamsRecord
from protocol.records.errors import RecordsError
from protocol.types import uuid_text

_PLACE: Final = STATE_RECORDS[:-2]
_SECRETS: Final = frozenset({"salt", "stored_key", "server_key", "hmac"})
_INT16: Final = struct.Struct(">h")
_KINDS: Final[Mapping[str, frozenset[int]]] = {
    "__consumer_offsets": frozenset({0, 1, 2, *ConsumerKind, *ShareGroupKind, *StreamsKind}),
    "__transaction_state": frozenset({0}),
    "__share_group_state": frozenset(ShareKind),
}
_TYPES: Final = {ConsumerRecord: "consumer", ShareGroupRecord: "share", StreamsRecord: "streams"}
_LATER_KINDS: Final = 64
"""Above all record types that Kafka has or will have soon: ours, more than twice as many as today."""


def decode_state(records: pa.RecordBatch, kind: str, schema: pa.Schema) -> pa.RecordBatch | None:
    """Return the rows of one kind among these records; None if there are none.

    Args:
        records: with the columns `schemas.STATE_RECORDS`, and `damage` if damage is reported.
        kind: a key of `schemas.STATE`.
        schema: columns of that table, and `damage`.
    """
    rows = []
    for record in records.to_pylist():
        if record.get("damage") is not None:
            rows.append({**{name: record[name] for name in _PLACE}, "damage": record["damage"]})
            continue
        record_kind, row = _row(record)
        if record_kind == kind:
            rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=schema) if rows else None


def decode_all_state(records: pa.RecordBatch) -> dict[str, pa.RecordBatch]:
    """Return the rows of all kinds among valid records, each with the columns of `schemas.STATE`."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for record in records.to_pylist():
        kind, row = _row(record)
        rows.setdefault(kind, []).append(row)
    return {kind: pa.RecordBatch.from_pylist(each, schema=STATE[kind]) for kind, each in rows.items()}


def _row(record: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    kind, fields = read_record(record["topic"], record["key"], record["value"])
    return kind, {**{name: record[name] for name in _PLACE}, "is_tombstone": record["value"] is None, **fields}


def read_record(topic: str, key: bytes | None, value: bytes | None) -> tuple[str, Mapping[str, Any]]:
    """Return the kind and fields of an internal topic's record; `unknown` with what can be decoded."""
    reason: str | None = None
    record: Any = None
    try:
        if topic == "__consumer_offsets":
            record = group.decode(key, value)
            state_row = _of_a_group(record)
        elif topic == "__transaction_state":
            record = transaction.decode(key, value)
            state_row = _of_a_transaction(record)
        elif topic == "__share_group_state":
            record = share_state.decode(key, value)
            state_row = _of_a_share_group(record)
        else:
            record = metadata.decode(key, value)
            state_row = _of_the_metadata(record)
    except (RecordsError, struct.error, IndexError, ValueError, OverflowError) as error:
        state_row, reason = None, str(error) or type(error).__name__
    if state_row is not None:
        return state_row
    kind = _INT16.unpack_from(key)[0] if key is not None and len(key) >= _INT16.size else None
    if record is None and reason is None:
        reason = _unreadable(topic, kind, value)
    return "unknown", {"kind": kind, "reason": reason, "key": key, "value": value}


def _unreadable(topic: str, kind: int | None, value: bytes | None) -> str | None:
    """Return why an undecodable record is damaged; None if a later Kafka may know its type."""
    if topic == "__cluster_metadata":
        return None
    if kind is None:
        return "a key without a kind"
    known = _KINDS[topic]
    if kind in known:
        version = None if value is None or len(value) < _INT16.size else _INT16.unpack_from(value)[0]
        return f"a key of kind {kind}, a value of version {version}, and bytes that do not fit them"
    return f"a key of kind {kind}" if not 0 <= kind <= _LATER_KINDS or topic == "__transaction_state" else None


def _of_a_group(record: Any) -> tuple[str, Mapping[str, Any]] | None:
    if isinstance(record, group.OffsetCommit):
        return "offsets", {
            "group_id": record.group_id,
            "committed_topic": record.topic,
            "committed_partition": record.partition,
            "committed_offset": record.offset,
            "committed_leader_epoch": record.leader_epoch,
            "metadata": record.metadata,
            "commit_timestamp_ms": record.commit_timestamp_ms,
            "expire_timestamp_ms": record.expire_timestamp_ms,
            "topic_id": None if record.topic_id is None else uuid_text(record.topic_id),
        }
    if isinstance(record, group.OffsetCommitTombstone):
        return "offsets", {
            "group_id": record.group_id,
            "committed_topic": record.topic,
            "committed_partition": record.partition,
        }
    if isinstance(record, group.GroupMetadata):
        is_of_consumers = record.protocol_type == CONSUMER_PROTOCOL_TYPE
        members = [_member(each, is_of_consumers=is_of_consumers) for each in record.members]
        return "groups", {**dataclasses.asdict(record), "members": members}
    if isinstance(record, group.GroupMetadataTombstone):
        return "groups", {"group_id": record.group_id}
    if isinstance(record, ConsumerRecord | ShareGroupRecord | StreamsRecord):
        return "group_records", {
            "group_id": record.group_id,
            "group_type": _TYPES[type(record)],
            "type": record.kind.name,
            "name": record.name or None,
            "record": None if record.value is None else json.dumps(_plain(record.value), separators=(",", ":")),
        }
    return None


def _member(member: group.GroupMember, *, is_of_consumers: bool) -> dict[str, Any]:
    """Return a member of a classic group with its assigned partitions."""
    row = dataclasses.asdict(member)
    assignment = read_assignment(member.assignment) if is_of_consumers else None
    if assignment is not None:
        places = [(topic, number) for topic, numbers in assignment.partitions.items() for number in numbers]
        row["assigned"] = [{"topic": topic, "partition": number} for topic, number in places]
        row["has_user_data"] = assignment.custom
    return row


def _of_a_share_group(record: ShareRecord | None) -> tuple[str, Mapping[str, Any]] | None:
    if record is None:
        return None
    return "share", {
        "group_id": record.group_id,
        "topic_id": uuid_text(record.topic_id),
        "shared_partition": record.partition,
        "type": None if record.value is None else type(record.value).__name__,
        "record": None if record.value is None else json.dumps(_plain(record.value), separators=(",", ":")),
    }


def _of_a_transaction(record: Any) -> tuple[str, Mapping[str, Any]] | None:
    if isinstance(record, transaction.TransactionTombstone):
        return "transactions", {"transactional_id": record.transactional_id}
    if record is None:
        return None
    partitions = None if record.partitions is None else sorted(record.partitions)
    return "transactions", {
        "transactional_id": record.transactional_id,
        "transaction_producer_id": record.producer_id,
        "transaction_producer_epoch": record.producer_epoch,
        "timeout_ms": record.timeout_ms,
        "state": record.state.text,
        "partitions": None if partitions is None else [{"topic": name, "partition": at} for name, at in partitions],
        "last_update_ms": record.last_update_ms,
        "start_ms": record.start_ms,
        "previous_producer_id": record.previous_producer_id,
        "next_producer_id": record.next_producer_id,
        "client_transaction_version": record.client_transaction_version,
    }


def _of_the_metadata(record: Any) -> tuple[str, Mapping[str, Any]] | None:
    if record is None:
        return None
    return "metadata", {"type": type(record).__name__, "record": json.dumps(_plain(record), separators=(",", ":"))}


def _plain(value: Any) -> Any:
    """Convert a record for JSON; of credentials only the size."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            name: {"size_bytes": len(inner)} if name in _SECRETS and inner is not None else _plain(inner)
            for name, inner in fields.items()
        }
    if isinstance(value, tuple | list | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, UUID):
        return uuid_text(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
