"""Records of ``__share_group_state``, byte for byte as Kafka 4.3.1's serializers write them (groups D.9)."""

from uuid import UUID

import pytest

from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate, decode, encode

TOPIC_ID = UUID(bytes=bytes(range(16)))
KEY = "00026731000102030405060708090a0b0c0d0e0f00000003"
BATCH = RecordedBatch(8, 9, 2, 1)
VECTORS = [
    (
        ShareSnapshot(1, 2, 3, 4, 5, 6, (BATCH,), 7),
        "0000" + KEY,
        (
            "0000000000010000000200000003000000000000000400000000000000050000000000000006"
            "02000000000000000800000000000000090200010001000400000007"
        ),
    ),
    (
        ShareSnapshot(start_offset=-1),
        "0000" + KEY,
        "0000000000000000000000000000ffffffffffffffff000000000000000000000000000000000100",
    ),
    (
        ShareUpdate(1, 3, 4, (BATCH,), 7),
        "0001" + KEY,
        "00000000000100000003000000000000000402000000000000000800000000000000090200010001000400000007",
    ),
    (None, "0000" + KEY, None),
]


@pytest.mark.parametrize(("value", "key_hex", "value_hex"), VECTORS)
def test_records_are_kafkas_bytes(
    value: ShareSnapshot | ShareUpdate | None, key_hex: str, value_hex: str | None
) -> None:
    """Share-state records are written to Kafka's bytes and read back from them."""
    record = ShareRecord("g1", TOPIC_ID, 3, value)
    key, data = encode(record)
    assert (key.hex(), None if data is None else data.hex()) == (key_hex, value_hex)
    assert decode(key, data) == record


def test_a_later_kafkas_tag_is_skipped() -> None:
    """A value with an unknown tag is read without it."""
    key, data = encode(ShareRecord("g1", TOPIC_ID, 3, ShareUpdate(1)))
    assert data is not None
    assert data.endswith(b"\0")
    assert decode(key, data[:-1] + b"\x01\x05\x01\xff") == ShareRecord("g1", TOPIC_ID, 3, ShareUpdate(1))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"", b""),
        (b"\0\x02" + bytes.fromhex(KEY), None),
        (bytes.fromhex("0000" + KEY), b"\0\x01"),
        (bytes.fromhex("0000" + KEY), b"\0\0\0"),
        (b"\0\0\0\x09ab", None),
    ],
)
def test_what_is_no_record_is_none(key: bytes | None, value: bytes | None) -> None:
    """Unknown kinds and versions, and bytes that end early."""
    assert decode(key, value) is None
