"""Record batches for the rows of Produce: sound ones, and those with one thing wrong."""

import struct
from collections.abc import Sequence

from crc32c import crc32c

from protocol.records.records import Record, build_batch

T0_MS = 1_700_000_000_000
CRC_AT, ATTRIBUTES_AT = 17, 21
FIELDS = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "max_timestamp_ms": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}
"""Name -> position and format of the header fields that tests overwrite (core D.4)."""


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] = (),
    times_ms: Sequence[int] = (),
    codec: int = 0,
    level: int | None = None,
) -> bytearray:
    """A batch of records with these values; key ``k`` and :data:`T0_MS` where none are given."""
    records = [
        Record(
            index,
            times_ms[index] if index < len(times_ms) else T0_MS,
            keys[index] if index < len(keys) else b"k",
            value,
        )
        for index, value in enumerate(values)
    ]
    return build_batch(records, codec=codec, level=level)


def sized(total: int) -> bytearray:
    """A batch of one record that is ``total`` bytes long."""
    rough = len(batch(b"x" * total))
    for size in range(2 * total - rough - 4, 2 * total - rough + 5):
        encoded = batch(b"x" * size)
        if len(encoded) == total:
            return encoded
    raise AssertionError(f"no batch of {total} bytes")


def with_fields(original: bytes | bytearray, *, sealed: bool = True, **fields: int) -> bytearray:
    """The batch with header fields overwritten, and the CRC recomputed unless ``sealed`` is false."""
    changed = bytearray(original)
    for name, value in fields.items():
        at, form = FIELDS[name]
        struct.pack_into(form, changed, at, value)
    if sealed and "crc" not in fields:
        seal(changed)
    return changed


def seal(changed: bytearray) -> None:
    """Make the CRC right."""
    struct.pack_into(">I", changed, CRC_AT, crc32c(bytes(changed[ATTRIBUTES_AT:])))


def with_records(original: bytes | bytearray, records: bytes) -> bytearray:
    """The batch with another records part, its length and CRC made right."""
    changed = bytearray(original[:61]) + records
    return with_fields(changed, length=len(changed) - 12)


def crc_is_right(data: bytes, at: int, size: int) -> bool:
    """Whether the CRC of a batch at that position fits its bytes."""
    (stored,) = struct.unpack_from(">I", data, at + CRC_AT)
    return bool(stored == crc32c(data[at + ATTRIBUTES_AT : at + size]))
