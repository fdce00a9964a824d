"""Control batches: markers byte for byte, and what is no marker."""

import pytest

from protocol.records.batch import RecordBatch
from protocol.records.records import (
    ControlType,
    Marker,
    Record,
    build_batch,
    build_marker,
    control_key,
    control_type,
    parse_marker,
)

COMMIT = (
    "000000000000000a000000420000000302767fbc2c0030000000000000018bcfe56be80000018bcfe56be8"
    "00000000000003e80001ffffffff000000012000000008000000010c00000000000700"
)
ABORT = (
    "000000000000000b0000004200000003025307b12e0030000000000000018bcfe56fd00000018bcfe56fd0"
    "00000000000003e80002ffffffff000000012000000008000000000c00000000000700"
)


@pytest.mark.parametrize(
    ("expected", "committed", "epoch", "offset", "time_ms"),
    [(COMMIT, True, 1, 10, 1_700_000_001_000), (ABORT, False, 2, 11, 1_700_000_002_000)],
)
def test_markers_are_the_vectors(expected: str, committed: bool, epoch: int, offset: int, time_ms: int) -> None:
    """Built and read, 78 bytes (transactions F.5)."""
    built = build_marker(1000, epoch, committed, 7, time_ms, base_offset=offset, partition_leader_epoch=3)
    assert built.hex() == expected
    batch = RecordBatch(built)
    assert batch.crc_ok()
    assert (batch.is_control, batch.is_transactional, batch.base_sequence) == (True, True, -1)
    assert parse_marker(batch) == Marker(committed, 7, time_ms)


def test_a_data_batch_is_no_marker() -> None:
    """Its records may look like control records."""
    record = Record(0, 0, control_key(ControlType.COMMIT), bytes(6))
    assert parse_marker(RecordBatch(build_batch([record]))) is None


def test_an_empty_control_batch_is_no_marker() -> None:
    """The cleaner leaves such ones; they are skipped (transactions D.14)."""
    assert parse_marker(RecordBatch(build_batch([], control=True, transactional=True))) is None


def control_batch(key: bytes | None, value: bytes | None) -> RecordBatch:
    """A control batch with any record."""
    return RecordBatch(build_batch([Record(0, 5, key, value)], control=True, transactional=True))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, bytes(6)),
        (b"\0\0\0", bytes(6)),
        (b"\xff\xff\0\1", bytes(6)),
        (control_key(ControlType.LEADER_CHANGE), bytes(6)),
        (control_key(ControlType.COMMIT), None),
        (control_key(ControlType.COMMIT), bytes(5)),
    ],
)
def test_what_cannot_be_read_as_a_marker_is_none(key: bytes | None, value: bytes | None) -> None:
    """Other kinds, negative versions, missing and short parts."""
    assert parse_marker(control_batch(key, value)) is None


def test_newer_versions_of_a_marker_are_read() -> None:
    """Key versions above 0 and longer values: the bytes that are known count (transactions F.5)."""
    batch = control_batch(b"\0\1\0\1more", b"\0\2\0\0\0\x2amore")
    assert parse_marker(batch) == Marker(committed=True, coordinator_epoch=42, timestamp_ms=5)


def test_a_damaged_control_batch_raises_nothing() -> None:
    """With any byte of its record changed, a control batch is read without an exception."""
    for position in range(61, 78):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            damaged = bytearray.fromhex(COMMIT)
            damaged[position] = value
            marker = parse_marker(RecordBatch(damaged))
            assert marker is None or isinstance(marker, Marker)


@pytest.mark.parametrize("kind", list(ControlType))
def test_the_key_has_the_kind_of_a_marker(kind: ControlType) -> None:
    """The key of a control record is a version and a type, two 16-bit numbers."""
    assert control_key(kind) == b"\0\0" + int(kind).to_bytes(2, "big")
    assert control_type(control_key(kind)) == kind
    assert control_type(b"\0\0\0\x63") == 99
