"""Damaged logs: every flipped byte is reported with file, place and reason, and nothing that was not there is read."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.decoding.damage import DamagedError
from pipeline.reading import read_batches, read_segments
from pipeline.segment_reader import CHUNK_BYTES
from protocol.records.records import Record, build_batch, frame_batch
from tests.pipeline.logs import NOW_MS, RECORD, as_tuples, chain, expected, header, read, rows, write_segment

BASE_OFFSET, LEADER_EPOCH = range(8), range(12, 16)
"""Outside the checksum. In the very last batch nothing that follows can contradict them."""


def flipped(data: bytes, at: int, mask: int) -> bytes:
    """The bytes, one of them changed."""
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


MASKS = (0x01, 0x80, 0xFF)


@pytest.mark.parametrize("codec", [0, 4])
def test_any_flipped_byte_is_reported(tmp_path: Path, codec: int) -> None:
    """One row of damage or more, or an error that names the place; every other row is as it was."""
    check_flips(tmp_path, codec, lambda at: [MASKS[at % 3]])


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("codec", range(5))
def test_any_flipped_bits_are_reported(tmp_path: Path, codec: int) -> None:
    """As above, with every bit, and all of a byte."""
    check_flips(tmp_path, codec, lambda _: [*(1 << bit for bit in range(8)), 0xFF])


def check_flips(tmp_path: Path, codec: int, masks: Callable[[int], list[int]]) -> None:
    """Flip each byte of a small log with each of its masks, and hold what is read against the sound log."""
    data = b"".join(chain(3, 2, 4, codec=codec))
    path = write_segment(tmp_path, data)
    sound = as_tuples(read(path, *RECORD))
    last_base = header(data, 2).position
    for at, mask in [(place, mask) for place in range(len(data)) for mask in masks(place)]:
        path.write_bytes(flipped(data, at, mask))
        place = f"byte {at}, mask {mask}"
        reported = read(path, *RECORD, "segment", "position", mode="report")
        damage = [row for row in reported if row["damage"] is not None]
        records = [row for row in reported if row["damage"] is None]
        if not damage and at - last_base in BASE_OFFSET:
            assert records[5]["offset"] > sound[4][0] + 1, place  # behind a gap
            continue
        if not damage and at - last_base in LEADER_EPOCH:
            assert as_tuples(records) == sound, place
            continue
        assert damage, f"{place} was not noticed"
        assert {row["segment"] for row in damage} == {str(path)}
        assert all(row["damage"] for row in damage)
        assert set(map(str, as_tuples(records))) < set(map(str, sound)), place
        assert len(records) >= len(sound) - 4, place  # one batch is given up
        with pytest.raises(DamagedError, match=f"^{path}: byte \\d+: .+"):
            read(path, "offset")


def test_flipped_bytes_crash_nothing_when_checksums_are_not_compared(tmp_path: Path) -> None:
    """The structure alone is checked then: an error of ours or rows, of either kind."""
    chance = random.Random(4)
    caught = 0
    for codec in range(5):
        data = b"".join(chain(30, 1, 50, 20, codec=codec))
        path = write_segment(tmp_path, data)
        for _ in range(40):
            broken = bytearray(data)
            for _ in range(chance.choice((1, 1, 4, 40))):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            path.write_bytes(broken)
            try:
                as_tuples(read(path, *RECORD, crc=False))
            except DamagedError as error:
                caught += 1
                assert error.path == str(path)  # noqa: PT017 - which of them raise is chance
            assert rows(read_batches(path, crc=False))
    assert caught > 70


@pytest.mark.parametrize("cut", [1, 30, 61, 100])
def test_a_torn_tail_is_not_there_yet(tmp_path: Path, cut: int) -> None:
    """As a broker leaves it while it writes; `read_batches` reports it."""
    data = b"".join(chain(3, 3))
    end = header(data, 1).position + min(cut, header(data, 1).size - 1)
    path = write_segment(tmp_path, data[:end])
    assert as_tuples(read(path, *RECORD)) == expected(data)[:3]
    last = rows(read_batches(path))[-1]
    assert (last["position"], last["size"]) == (header(data, 1).position, end - header(data, 1).position)
    assert "bytes" in last["damage"]


def test_a_torn_segment_with_another_behind_it_is_damage(tmp_path: Path) -> None:
    """Only the last segment of a log is ever written."""
    first, second, third = chain(3, 3, 3)
    write_segment(tmp_path, first, second[:-1])
    write_segment(tmp_path, third, base=6)
    with pytest.raises(DamagedError, match="bytes are there"):
        read(tmp_path)
    assert [row["offset"] for row in read(tmp_path, "offset", mode="skip")] == [0, 1, 2, 6, 7, 8]


def test_a_tail_below_the_high_watermark_is_damage(tmp_path: Path) -> None:
    """What the checkpoint calls committed was there once."""
    first, second = chain(3, 3)
    write_segment(tmp_path, first, second[:-1])
    checkpoint = tmp_path / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 3\n")
    assert len(read(tmp_path)) == 3
    checkpoint.write_text("0\n1\nt 0 6\n")
    with pytest.raises(DamagedError, match="bytes are there"):
        read(tmp_path)


def test_zeros_after_the_last_batch_are_ignored(tmp_path: Path) -> None:
    """A broker with `log.preallocate` gives a segment its full size."""
    data = b"".join(chain(3))
    path = write_segment(tmp_path, data, bytes(10_000))
    assert as_tuples(read(path, *RECORD)) == expected(data)
    assert rows(read_batches(path))[-1]["damage"] == "10000 bytes of zeros"


def test_a_preallocated_segment_ends_where_its_zeros_begin(tmp_path: Path) -> None:
    """Zeros of several chunks behind a batch that ends with zeros; zeros between batches are damage."""
    batches = chain(3, 3, value_size=5000)
    path = write_segment(tmp_path, *batches)
    with path.open("ab") as file:
        file.truncate(3 * CHUNK_BYTES)
    answer = [(row["base_offset"], row["damage"]) for row in rows(read_batches(path))]
    size = len(b"".join(batches))
    assert answer == [(0, None), (3, None), (6, f"{3 * CHUNK_BYTES - size} bytes of zeros")]
    assert len(rows(read_segments(path))) == 6
    path.write_bytes(batches[0] + bytes(2 * CHUNK_BYTES) + batches[1])
    with pytest.raises(DamagedError):
        rows(read_segments(path))


def test_a_hole_hides_nothing_behind_it(tmp_path: Path) -> None:
    """Bytes that are no batch, larger than a chunk: what follows is found by its checksum."""
    batches = chain(3, 3, 3)
    hole = random.Random(1).randbytes(9_000_000)
    path = write_segment(tmp_path, batches[0], hole, batches[2])
    reported = read(path, "offset", mode="report")
    assert [row["offset"] for row in reported if row["damage"] is None] == [0, 1, 2, 6, 7, 8]
    assert [row["damage"] is None for row in reported][:3] == [True] * 3


MALFORMED: dict[str, Any] = {
    "a key that is longer than its record": b"\x0e\x00\x00\x00\x7e\x02v\x00",
    "a value that is longer than its record": b"\x0e\x00\x00\x00\x01\x7ev\x00",
    "records that do not fill their batch": b"\x0c\x00\x00\x00\x01\x02v\x00\x00\x00",
    "fields that do not fill their record": b"\x10\x00\x00\x00\x01\x02v\x00\x00",
    "more headers than bytes, or fewer than none": b"\x0e\x00\x00\x00\x01\x02v\x7e",
    "a header without a key": b"\x12\x00\x00\x00\x01\x02v\x02\x01\x01",
    "a record's offset lies outside its batch": b"\x0e\x00\x00\x04\x01\x02v\x00",
    "a varint of more than 5 bytes": b"\x1a\x00\x00\x00\xff\xff\xff\xff\xff\xff\x01v\x00\x00",
    "a record that extends beyond its batch": b"\xfe\xff\x7f\x00\x00\x00\x01\x02v\x00",
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_records_that_do_not_add_up_are_named(tmp_path: Path, reason: str) -> None:
    """Behind a right checksum, as a careless producer could have sent them, between sound batches."""
    wrong = frame_batch(MALFORMED[reason], 1, base_offset=3, last_offset_delta=0, base_timestamp_ms=0,
                        max_timestamp_ms=0, partition_leader_epoch=0)  # fmt: skip
    last = build_batch([Record(4, NOW_MS, None, b"v")], partition_leader_epoch=0)
    first = chain(3)[0]
    path = write_segment(tmp_path, first, wrong, last)
    reported = rows(read_segments(path, columns=["offset", "position", "batch_base_offset"], mode="report"))
    assert [row["damage"] for row in reported] == [None] * 3 + [reason, None]
    assert (reported[3]["position"], reported[3]["batch_base_offset"]) == (len(first), 3)
