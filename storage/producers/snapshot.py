"""`<offset>.snapshot`: the producer state of a partition before that offset.

Only the newest batch of each producer is included. Layout: transactions F.6 (Kafka: ProducerStateManager).
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from protocol.checksums import crc32c
from protocol.records.batch import NO_SEQUENCE, decrement_sequence
from storage.producers.state import BatchRange, ProducerEntry

_VERSION: Final = 1
_HEADER: Final = Struct(">hIi")
_CRC_END: Final = 6  # the checksum covers what follows it (transactions F.6)
_ENTRY: Final = Struct(">qhiqiqiq")


class SnapshotCorruptError(ValueError):
    """Corrupt snapshot: it is deleted, and the next older one is tried."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Encode a snapshot file."""
    body = bytearray()
    count = 0
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        first_offset = entry.transaction_first_offset
        body += _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            NO_SEQUENCE if last is None else last.last_sequence,
            -1 if last is None else last.last_offset,
            0 if last is None else last.last_offset - last.first_offset,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            -1 if first_offset is None else first_offset,
        )
        count += 1
    checked = count.to_bytes(4, "big") + body
    return _HEADER.pack(_VERSION, crc32c(checked), count) + body


def decode_snapshot(contents: bytes) -> list[ProducerEntry]:
    """Decode the producers of a snapshot file.

    Raises:
        SnapshotCorruptError: another version, a checksum that does not match, or bytes missing.
    """
    if len(contents) < _HEADER.size:
        raise SnapshotCorruptError(f"{len(contents)} bytes are no snapshot")
    version, crc, count = _HEADER.unpack_from(contents)
    if version != _VERSION:
        raise SnapshotCorruptError(f"version {version}")
    if crc != crc32c(memoryview(contents)[_CRC_END:]):
        raise SnapshotCorruptError("checksum mismatch")
    if count < 0 or len(contents) != _HEADER.size + count * _ENTRY.size:
        raise SnapshotCorruptError(f"{count} entries in {len(contents)} bytes")
    return [_decode_entry(contents, _HEADER.size + number * _ENTRY.size) for number in range(count)]


def _decode_entry(contents: bytes, position: int) -> ProducerEntry:
    (
        producer_id,
        producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp_ms,
        coordinator_epoch,
        first_offset,
    ) = _ENTRY.unpack_from(contents, position)
    batches: tuple[BatchRange, ...] = ()
    if last_sequence != NO_SEQUENCE:
        first_sequence = decrement_sequence(last_sequence, offset_delta)
        batches = (BatchRange(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp_ms),)
    return ProducerEntry(
        producer_id,
        producer_epoch,
        batches,
        coordinator_epoch,
        timestamp_ms,
        None if first_offset < 0 else first_offset,
    )
