"""Records of ``__share_group_state``: the state of share partitions (KIP-932, groups D.9).

A key is an int16 kind, the group id, the topic's id and the partition; a value is an int16 version, 0, and a flexible
struct. A null value is a tombstone, which has the key of a snapshot.
"""

import struct
from enum import IntEnum
from typing import Any
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records.flexible import shape_of, wire
from protocol.records.errors import MalformedRecordsError

_INT16 = struct.Struct(">h")
_PLACE = struct.Struct(">16si")
_VERSION = 0


class ShareKind(IntEnum):
    """Record kinds: the first number of a key."""

    SNAPSHOT = 0
    UPDATE = 1


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """Offsets with one delivery count and state (0 available, 2 acknowledged, 3 archiving, 4 archived)."""

    first_offset: int = wire("int64", 0)
    last_offset: int = wire("int64", 0)
    delivery_state: int = wire("int8", 0)
    delivery_count: int = wire("int16", 0)


@dataclass(frozen=True, slots=True)
class ShareSnapshot:
    """The whole state of a share partition (``ShareSnapshotValue``).

    ``create_timestamp_ms`` is the time of its content, ``write_timestamp_ms`` that of the record: they differ in a
    snapshot that repeats an older one.
    """

    snapshot_epoch: int = wire("int32", 0)
    state_epoch: int = wire("int32", 0)
    leader_epoch: int = wire("int32", 0)
    start_offset: int = wire("int64", 0)
    create_timestamp_ms: int = wire("int64", 0)
    write_timestamp_ms: int = wire("int64", 0)
    state_batches: tuple[RecordedBatch, ...] = wire(RecordedBatch, (), array=True)
    delivery_complete_count: int = wire("int32", -1, tag=0)


@dataclass(frozen=True, slots=True)
class ShareUpdate:
    """A change of the last snapshot (``ShareUpdateValue``); ``state_batches`` are merged into its batches."""

    snapshot_epoch: int = wire("int32", 0)
    leader_epoch: int = wire("int32", 0)
    start_offset: int = wire("int64", 0)
    state_batches: tuple[RecordedBatch, ...] = wire(RecordedBatch, (), array=True)
    delivery_complete_count: int = wire("int32", -1, tag=0)


ShareValue = ShareSnapshot | ShareUpdate
_VALUES: dict[ShareKind, Any] = {ShareKind.SNAPSHOT: ShareSnapshot, ShareKind.UPDATE: ShareUpdate}


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """One record about a share partition; ``value`` is ``None`` in a tombstone."""

    group_id: str
    topic_id: UUID
    partition: int
    value: ShareValue | None = None


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; the value of a tombstone is ``None``."""
    kind = ShareKind.UPDATE if isinstance(record.value, ShareUpdate) else ShareKind.SNAPSHOT
    group = record.group_id.encode()
    key = b"".join(
        (_INT16.pack(kind), _INT16.pack(len(group)), group, _PLACE.pack(record.topic_id.bytes, record.partition))
    )
    if record.value is None:
        return key, None
    parts = [_INT16.pack(_VERSION)]
    shape_of(_VALUES[kind], _VERSION).write(parts, record.value)
    return key, b"".join(parts)


def decode(key: bytes | None, value: bytes | None) -> ShareRecord | None:
    """Decode a record from key and value; ``None`` for an unknown kind or version, and for malformed bytes."""
    if key is None:
        return None
    try:
        return _decoded(key, value)
    except (MalformedRecordsError, LookupError, struct.error, ValueError):
        return None


def _decoded(key: bytes, value: bytes | None) -> ShareRecord | None:
    kind, size = _INT16.unpack_from(key)[0], _INT16.unpack_from(key, _INT16.size)[0]
    if kind not in _KNOWN:
        return None
    at = 2 * _INT16.size
    group_id = key[at : at + size].decode()
    topic_id, partition = _PLACE.unpack_from(key, at + size)
    if value is None:
        return ShareRecord(group_id, UUID(bytes=topic_id), partition)
    if _INT16.unpack_from(value)[0] != _VERSION:
        return None
    read, _ = shape_of(_VALUES[ShareKind(kind)], _VERSION).read(value, _INT16.size)
    return ShareRecord(group_id, UUID(bytes=topic_id), partition, read)


_KNOWN = frozenset(int(kind) for kind in ShareKind)
