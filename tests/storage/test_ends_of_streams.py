"""Batches whose streams do not end with the batch: what Kafka 4.4.0 answered to each, by Produce."""

import random
import struct
import sys
import zlib
from types import FrameType
from typing import Any

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import BATCH_HEADER_SIZE, RecordBatch
from protocol.records.compression import Codec, compress
from protocol.records.records import Record, build_batch
from protocol.records.stream_ends import gzip_pieces
from storage.append_errors import RecordsRejectedError
from storage.log.large_batches import check_in_steps, in_one_go
from tests.storage.validating import NOW, PLAIN, append, stamped

GZIP, LZ4 = Codec.GZIP, Codec.LZ4
TAKEN, NO_RECORDS_THERE, UNREADABLE = ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR
MIB = 1 << 20
OTHER = b"\0\1" * 40
SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"abcd"


def batch_of(codec: Codec, stream: bytes, count: int) -> bytearray:
    """A batch with this stream as its records."""
    batch = build_batch([Record(index, NOW + index, b"k", b"") for index in range(count)])[:BATCH_HEADER_SIZE] + stream
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return stamped(batch, 21, codec, 2)


def written(count: int, size: int) -> bytes:
    """Records as they are before they are compressed."""
    return bytes(build_batch([Record(at, NOW + at, b"k", bytes(size)) for at in range(count)])[BATCH_HEADER_SIZE:])


def answers(batch: bytearray) -> list[ErrorCode]:
    """The answer where batches of this size are decompressed at once, if they are; and where they are read in steps."""
    codes = []
    for at_once in (True, False):
        each = bytearray(batch)
        try:
            if at_once:
                append(each, limit=1 << 31)
            else:
                in_one_go(check_in_steps(RecordBatch(each), PLAIN, NOW, "orders-3", 1 << 40))
            codes.append(TAKEN)
        except RecordsRejectedError as error:
            codes.append(error.code)
    return codes


def streams(codec: Codec, records: bytes) -> dict[str, bytes]:
    """One stream for each case."""

    def packed(data: bytes) -> bytes:
        return bytes(compress(codec, data))

    whole, half = packed(records), len(records) // 2
    return {
        "plain": whole,
        "a byte behind": whole + b"\0",
        "bytes behind": whole + OTHER,
        "magic behind": whole + (b"\x1f\x8b\x08" if codec == GZIP else b"\x04\x22\x4d\x18"),
        "a header behind": whole + b"\x1f\x8b\x08" + bytes(37),
        "a cut one behind": whole + whole[:15],
        "joined": packed(records[:half]) + packed(records[half:]),
        "joined, bytes behind": packed(records[:half]) + packed(records[half:]) + OTHER,
        "an empty one behind": whole + packed(b""),
        "an empty one before": packed(b"") + whole,
        "twice": whole + whole,
        "skippable behind": whole + SKIPPABLE,
        "skippable before": SKIPPABLE + whole,
    }


SEEN = {
    "plain": (TAKEN, TAKEN),
    "a byte behind": (TAKEN, TAKEN),
    "bytes behind": (TAKEN, TAKEN),
    "magic behind": (TAKEN, TAKEN),
    "a header behind": (UNREADABLE, TAKEN),
    "a cut one behind": (TAKEN, TAKEN),
    "joined": (TAKEN, NO_RECORDS_THERE),
    "joined, bytes behind": (TAKEN, NO_RECORDS_THERE),
    "an empty one behind": (TAKEN, TAKEN),
    "an empty one before": (TAKEN, NO_RECORDS_THERE),
    "twice": (NO_RECORDS_THERE, TAKEN),
    "skippable behind": (TAKEN, TAKEN),
    "skippable before": (UNREADABLE, UNREADABLE),
}
"""Kafka's answers with gzip and with lz4."""


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 2 * MIB], ids=["small", "large"])
@pytest.mark.parametrize("codec", [GZIP, LZ4])
def test_gzip_is_read_to_its_last_member_and_lz4_to_its_first_frame(codec: Codec, size: int) -> None:
    """Whether the records are held or come piece by piece."""
    cases = streams(codec, written(3, size))
    seen = {name: both[codec == LZ4] for name, both in SEEN.items()}
    assert {name: answers(batch_of(codec, stream, 3)) for name, stream in cases.items()} == {
        name: [code, code] for name, code in seen.items()
    }


@pytest.mark.parametrize(
    ("size", "code"),
    [(-26, TAKEN), (-18, TAKEN), (-10, NO_RECORDS_THERE), (0, NO_RECORDS_THERE), (8, NO_RECORDS_THERE), (20, TAKEN)],
)
def test_a_short_member_is_tried_where_java_has_not_read_it_yet(size: int, code: ErrorCode) -> None:
    """GZIPInputStream looks at what is in its buffer of 8 KiB, or is still to come: 18 bytes are enough there or not.

    `size` is that of the member before, with regard to the end of the first buffer.
    """
    goal, chance = 10 + 8192 + size, random.Random(5)
    value = chance.randbytes(goal)
    member = b""
    for length in range(goal - 60, goal):
        records = build_batch([Record(0, NOW, b"k", value[:length])])[BATCH_HEADER_SIZE:]
        member = bytes(compress(GZIP, records))
        if len(member) == goal:
            break
    assert len(member) == goal
    assert answers(batch_of(GZIP, member, 1)) == [TAKEN, TAKEN]
    assert answers(batch_of(GZIP, member + bytes(compress(GZIP, b"x"))[:18], 1)) == [code, code]


def test_headers_of_members_with_all_their_fields_are_read() -> None:
    """As RFC 1952 has them; one whose checksum is wrong is no header, and where it comes first no stream."""
    plain = bytes(compress(GZIP, written(3, 100)))
    empty = bytes(compress(GZIP, b""))
    header = plain[:3] + b"\x1e" + plain[4:10] + b"\2\0ab" + b"name\0" + b"comment\0"
    checksum = struct.pack("<H", 0xFFFF & zlib.crc32(header))
    wrong = bytes([checksum[0] ^ 1, checksum[1]])
    assert answers(batch_of(GZIP, empty + header + checksum + plain[10:], 3)) == [TAKEN, TAKEN]
    assert answers(batch_of(GZIP, plain + header + wrong + plain[10:], 3)) == [TAKEN, TAKEN]
    assert answers(batch_of(GZIP, header + wrong + plain[10:], 3)) == [UNREADABLE, UNREADABLE]


def test_a_name_that_does_not_end_is_passed_over_in_large_steps() -> None:
    """Of a further member, 64 MiB long: as many steps of the interpreter took seconds, in which nothing else is served.

    Lines are counted, not seconds.
    """
    plain = bytes(compress(GZIP, written(3, 100)))
    data = plain + plain[:3] + b"\x08" + plain[4:10] + b"a" * (64 * MIB)
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        decompressed = b"".join(gzip_pieces(data))
    finally:
        sys.settrace(None)
    assert decompressed == written(3, 100)
    assert 0 < lines < 20_000
