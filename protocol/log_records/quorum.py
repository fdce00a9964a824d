"""Control records of a KRaft quorum: leader changes and voters in the log, and snapshots (KIP-595, KIP-630, KIP-853).

A snapshot (``*.checkpoint``) is a header batch, batches of metadata values, and a footer
batch, with offsets that count from 0; ``bootstrap.checkpoint`` is one too.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from protocol.records.batch import RecordBatch, batches, checked_batches
from protocol.records.errors import RecordsError
from protocol.records.records import ControlType, Record, build_batch, control_key, read_records
from protocol.uvarint import read_uvarint, uvarint

_VALUES_PER_BATCH = 1000  # arbitrary: far below the size of the largest batch
_KEY = struct.Struct(">hh")  # version and type of a control record


class Voter(NamedTuple):
    """A voter of the quorum; ``endpoints`` are listener name, host and port."""

    id: int
    directory_id: UUID
    endpoints: tuple[tuple[str, str, int], ...] = ()


def leader_change_batch(
    leader_id: int,
    epoch: int,
    now_ms: int,
    *,
    base_offset: int = 0,
    voters: Sequence[int] = (),
    granting: Sequence[int] = (),
) -> bytearray:
    """Build the LeaderChangeMessage (v0) that starts a leader's epoch.

    ``granting`` are the voters that elected it; by default it is the only voter and elected itself.
    """
    both = (voters or (leader_id,), granting or (leader_id,))
    lists = (uvarint(len(ids) + 1) + b"".join(struct.pack(">iB", each, 0) for each in ids) for ids in both)
    value = struct.pack(">hi", 0, leader_id) + b"".join(lists) + b"\0"
    return _control(ControlType.LEADER_CHANGE, value, now_ms, base_offset, epoch)


def voters_batch(version: int, voters: Sequence[Voter], epoch: int, now_ms: int) -> bytearray:
    """Build the batch that records ``kraft.version`` and the voters (KRaftVersionRecord v0, VotersRecord v0)."""
    return build_batch(
        [
            Record(0, now_ms, control_key(ControlType.KRAFT_VERSION), struct.pack(">hhB", 0, version, 0)),
            Record(1, now_ms, control_key(ControlType.KRAFT_VOTERS), voters_value(voters)),
        ],
        base_offset=0,
        partition_leader_epoch=epoch,
        control=True,
    )


def voters_value(voters: Sequence[Voter]) -> bytes:
    """Build the value of a VotersRecord (v0). Each voter supports ``kraft.version`` 0 and 1."""
    out = bytearray(struct.pack(">h", 0) + uvarint(len(voters) + 1))
    for voter in voters:
        out += struct.pack(">i", voter.id) + voter.directory_id.bytes + uvarint(len(voter.endpoints) + 1)
        for name, host, port in voter.endpoints:
            for text in (name.encode(), host.encode()):
                out += uvarint(len(text) + 1) + text
            out += struct.pack(">HB", port, 0)
        out += struct.pack(">hhBB", 0, 1, 0, 0)
    return bytes(out + b"\0")


def voter_ids(value: bytes) -> list[int]:
    """Return the ids in a VotersRecord (v0) as :func:`voters_value` and Kafka write it, without tagged fields."""
    ids: list[int] = []
    count, at = read_uvarint(value, 2)
    for _ in range(count - 1):
        ids.append(struct.unpack_from(">i", value, at)[0])
        endpoints, at = read_uvarint(value, at + 4 + 16)  # after the id, and that of the directory
        for _ in range(endpoints - 1):
            for _text in ("name", "host"):
                size, at = read_uvarint(value, at)
                at += size - 1
            at += 3  # the port, and no tags
        at += 6  # the range of kraft.version, and no tags of it or of the voter
    return ids


def leader_and_voters(value: bytes) -> tuple[int, list[int]]:
    """Return the ids of the leader and the voters in a LeaderChangeMessage (v0 and v1), without tagged fields."""
    version, leader_id = struct.unpack_from(">hi", value)
    count, at = read_uvarint(value, 6)
    size = 4 + (16 if version > 0 else 0) + 1  # an id, since v1 that of the directory, and no tags
    return leader_id, [struct.unpack_from(">i", value, at + size * number)[0] for number in range(count - 1)]


def kraft_version_of(value: bytes) -> int:
    """Return the level of a KRaftVersionRecord."""
    return int(struct.unpack_from(">h", value, 2)[0])


def snapshot(
    values: Sequence[bytes],
    now_ms: int,
    *,
    last_contained_ms: int = 0,
    epoch: int = 0,
    quorum: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """Build a snapshot of metadata values (see :mod:`protocol.log_records.metadata`).

    ``last_contained_ms`` is the timestamp of the last record that it covers, ``epoch`` the leader epoch in which it is
    written; both are 0 in a bootstrap snapshot. ``quorum`` is the result of :func:`quorum_records`.
    """
    header = struct.pack(">hq", 0, last_contained_ms) + b"\0"
    out = bytearray(_control(ControlType.SNAPSHOT_HEADER, header, now_ms, 0, epoch))
    offset = 1
    for kind, value in quorum:
        out += _control(ControlType(kind), value, now_ms, offset, epoch)
        offset += 1
    for start in range(0, len(values), _VALUES_PER_BATCH):
        part = values[start : start + _VALUES_PER_BATCH]
        records = [Record(offset + index, now_ms, None, value) for index, value in enumerate(part)]
        out += build_batch(records, base_offset=offset, partition_leader_epoch=epoch)
        offset += len(part)
    out += _control(ControlType.SNAPSHOT_FOOTER, struct.pack(">h", 0) + b"\0", now_ms, offset, epoch)
    return bytes(out)


def _control(kind: ControlType, value: bytes, now_ms: int, base_offset: int, epoch: int) -> bytearray:
    record = Record(base_offset, now_ms, control_key(kind), value)
    return build_batch([record], base_offset=base_offset, partition_leader_epoch=epoch, control=True)


def snapshot_time_ms(contents: bytes) -> int:
    """Return the timestamp of the last record that a snapshot covers; 0 if the snapshot has none."""
    for kind, value in _control_records(contents):
        if kind == ControlType.SNAPSHOT_HEADER:
            return int(struct.unpack_from(">q", value, 2)[0])
    return 0


def quorum_records(contents: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and value of the control records of the voter set, in a log or a snapshot (KIP-853)."""
    for kind, value in _control_records(contents):
        if kind in {ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS}:
            yield kind, value


def _control_records(contents: bytes) -> Iterator[tuple[int, bytes]]:
    for batch in batches(contents):
        if batch.is_control:
            for record in read_records(batch):
                if record.key is not None and record.value is not None and len(record.key) >= _KEY.size:
                    yield _KEY.unpack_from(record.key)[1], bytes(record.value)


def snapshot_values(contents: bytes) -> Iterator[bytes]:
    """Yield the metadata values of a snapshot, in order. Raises RecordsError where a batch is damaged."""
    for batch in batches(contents):
        if not batch.is_control:
            yield from _values(batch)


def is_whole(contents: bytes) -> bool:
    """Whether a snapshot is complete: it ends with its footer, and all batches are valid."""
    try:
        batches_of_it = list(checked_batches(contents))
        footer = bytes(batches_of_it[-1].view) if batches_of_it else b""
        return any(kind == ControlType.SNAPSHOT_FOOTER for kind, _ in _control_records(footer))
    except RecordsError:
        return False


def _values(batch: RecordBatch) -> Iterator[bytes]:
    for record in read_records(batch):
        if record.value is not None:
            yield record.value
