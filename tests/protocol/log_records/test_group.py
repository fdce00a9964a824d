"""Records of ``__consumer_offsets``, byte for byte (transactions F.3)."""

from uuid import UUID

import pytest

from protocol.log_records.group import (
    GroupMember,
    GroupMetadata,
    GroupMetadataTombstone,
    OffsetCommit,
    OffsetCommitTombstone,
    decode,
    encode,
)

TOPIC_ID = UUID(bytes=bytes(range(16)))
AT = 1_700_000_000_000
OFFSET_KEY = "0001000267310003666f6f00000003"
VECTORS = [
    (
        OffsetCommit("g1", "foo", 3, 42, 7, "", AT, version=3),
        OFFSET_KEY,
        "0003000000000000002a0000000700000000018bcfe56800",
    ),
    (
        OffsetCommit("g1", "foo", 3, 42, 7, "", AT),
        OFFSET_KEY,
        "0004000000000000002a00000007010000018bcfe5680000",
    ),
    (
        OffsetCommit("g1", "foo", 3, 42, 7, "", AT, topic_id=TOPIC_ID),
        OFFSET_KEY,
        "0004000000000000002a00000007010000018bcfe56800010010000102030405060708090a0b0c0d0e0f",
    ),
    (
        OffsetCommit("g1", "foo", 3, 42, -1, "", AT, 1_700_086_400_000, version=1),
        OFFSET_KEY,
        "0001000000000000002a00000000018bcfe568000000018bd50bc400",
    ),
    (
        GroupMetadata("g1", "consumer", 5, None, None, AT),
        "000200026731",
        "00030008636f6e73756d657200000005ffffffff0000018bcfe5680000000000",
    ),
    (OffsetCommitTombstone("g1", "foo", 3), OFFSET_KEY, None),
    (GroupMetadataTombstone("g1"), "000200026731", None),
]


@pytest.mark.parametrize(("record", "key", "value"), VECTORS)
def test_DSK_01_records_are_kafkas_bytes(record: object, key: str, value: str | None) -> None:
    """The vectors of transactions F.3 are written and read, byte for byte."""
    raw = (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert encode(record) == raw  # type: ignore[arg-type]
    assert decode(*raw) == record


def test_a_group_with_members_survives_the_log() -> None:
    """Members keep instance id, timeouts, subscription and assignment."""
    members = (
        GroupMember("m1", "c", "/127.0.0.1", 300_000, 45_000, b"sub", b"assign", "i1"),
        GroupMember("m2", "c", "/127.0.0.1", 300_000, 45_000, b"", b""),
    )
    record = GroupMetadata("g", "consumer", 7, "range", "m1", AT, members)
    assert decode(*encode(record)) == record


@pytest.mark.parametrize(
    ("version", "value", "expected"),
    [
        (0, "000000000000000000050001780000018bcfe56800", OffsetCommit("g1", "foo", 3, 5, -1, "x", AT, version=0)),
        (2, "000200000000000000050001780000018bcfe56800", OffsetCommit("g1", "foo", 3, 5, -1, "x", AT, version=2)),
    ],
)
def test_values_of_old_brokers_are_read(version: int, value: str, expected: OffsetCommit) -> None:
    """Versions that Kafka once wrote can still be loaded, also under the legacy key kind."""
    assert expected.version == version
    assert decode(bytes.fromhex(OFFSET_KEY), bytes.fromhex(value)) == expected
    assert decode(b"\0\0" + bytes.fromhex(OFFSET_KEY)[2:], bytes.fromhex(value)) == expected


def test_an_old_groups_missing_fields_are_minus_one() -> None:
    """GroupMetadataValue v0 knows no rebalance timeout, no timestamp and no instance id."""
    member = "00026d31 000163 000168 0000ea60 00000001aa 00000001bb"
    value = "0000 0008636f6e73756d6572 00000002 000572616e6765 00026d31 00000001" + member
    expected = GroupMember("m1", "c", "h", -1, 60_000, b"\xaa", b"\xbb")
    assert decode(bytes.fromhex("000200026731"), bytes.fromhex(value)) == GroupMetadata(
        "g1", "consumer", 2, "range", "m1", -1, (expected,)
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"x"),
        (b"\0", b"x"),
        (bytes.fromhex("000b00026731"), b"\0\0\0\0\0\4\0"),
        (bytes.fromhex("000300026731"), b"\0\1\0\0\0\4\0"),
        (bytes.fromhex("7fff00026731"), b""),
        (bytes.fromhex(OFFSET_KEY), bytes.fromhex("0063")),
        (bytes.fromhex(OFFSET_KEY), b""),
        (bytes.fromhex(OFFSET_KEY), bytes.fromhex("000400")),
        (bytes.fromhex("0001000267"), b"x"),
        (bytes.fromhex("000200026731"), bytes.fromhex("0063")),
    ],
)
def test_what_is_not_known_is_skipped(key: bytes | None, value: bytes) -> None:
    """Other kinds, other versions and broken bytes do not stop a load (groups A.12; transactions DSK-05)."""
    assert decode(key, value) is None


def test_tags_of_a_later_kafka_are_skipped() -> None:
    """The topic id is tag 0; what has another number is not known, and the offset counts (transactions DSK-06)."""
    record = OffsetCommit("g1", "t", 3, 7, 2, "m", 9, topic_id=UUID(int=5))
    key, value = encode(record)
    assert value is not None
    assert value.endswith(b"\1\0\x10" + UUID(int=5).bytes)
    later = value[: -len(b"\1\0\x10") - 16] + b"\2\0\x10" + UUID(int=5).bytes + b"\7\2ab"
    assert decode(key, later) == record
