"""What a KRaft quorum writes around the metadata: leader changes in the log, and snapshots (KIP-595, KIP-630).

All of it are control records. A snapshot (``*.checkpoint``) is a header batch, batches of metadata values, and a footer
batch, with offsets that count from 0; ``bootstrap.checkpoint`` is one too.
"""

import struct
from collections.abc import Iterator, Sequence

from protocol.log_records.flexible import write_uvarint
from protocol.records.batch import RecordBatch, batches
from protocol.records.control import ControlType, control_key
from protocol.records.records import Record, build_batch, read_records

_VALUES_PER_BATCH = 1000


def leader_change_batch(leader_id: int, epoch: int, now_ms: int, *, base_offset: int = 0) -> bytearray:
    """The batch with which a leader begins its epoch (LeaderChangeMessage v0): the only voter elected itself."""
    voters = write_uvarint(2) + struct.pack(">i", leader_id) + b"\0"
    value = struct.pack(">hi", 0, leader_id) + voters + voters + b"\0"
    return _control(ControlType.LEADER_CHANGE, value, now_ms, base_offset, epoch)


def snapshot(values: Sequence[bytes], now_ms: int, *, last_contained_ms: int = 0) -> bytes:
    """A whole snapshot of metadata values (see :mod:`protocol.log_records.metadata`).

    ``last_contained_ms`` is the time of the last record that it stands for; 0 in a bootstrap snapshot.
    """
    header = struct.pack(">hq", 0, last_contained_ms) + b"\0"
    out = bytearray(_control(ControlType.SNAPSHOT_HEADER, header, now_ms, 0, 0))
    offset = 1
    for start in range(0, len(values), _VALUES_PER_BATCH):
        part = values[start : start + _VALUES_PER_BATCH]
        records = [Record(offset + index, now_ms, None, value) for index, value in enumerate(part)]
        out += build_batch(records, base_offset=offset, partition_leader_epoch=0)
        offset += len(part)
    out += _control(ControlType.SNAPSHOT_FOOTER, struct.pack(">h", 0) + b"\0", now_ms, offset, 0)
    return bytes(out)


def _control(kind: ControlType, value: bytes, now_ms: int, base_offset: int, epoch: int) -> bytearray:
    record = Record(base_offset, now_ms, control_key(kind), value)
    return build_batch([record], base_offset=base_offset, partition_leader_epoch=epoch, control=True)


def snapshot_values(contents: bytes) -> Iterator[bytes]:
    """The metadata values of a snapshot, in order. Raises RecordsError where a batch is damaged."""
    for batch in batches(contents):
        if not batch.is_control:
            yield from _values(batch)


def _values(batch: RecordBatch) -> Iterator[bytes]:
    for record in read_records(batch):
        if record.value is not None:
            yield record.value
