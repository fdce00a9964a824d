"""What members subscribe to, and Java's order of things (groups A.1, 0.8)."""

import pytest

from protocol.consumer_protocol import subscribed_topics
from protocol.java import HashMap, string_hash, utf16_length
from tests.coordination.group.subscriptions import subscription


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_topics_are_read_from_any_version(version: int) -> None:
    """Topics are read from a subscription of any version, because version 0 is a prefix of all."""
    assert subscribed_topics(subscription("foo", "bär", version=version, user_data=b"x")) == frozenset({"foo", "bär"})
    assert subscribed_topics(subscription(version=version)) == frozenset()


@pytest.mark.parametrize(
    "raw", [b"", b"\0", b"meta", subscription("foo")[:-5], b"\0\1\xff\xff\xff\xff\0\0\0\0", b"\0\1\0\0\0\1\xff\xff\0\0"]
)
def test_other_bytes_are_no_subscription(raw: bytes) -> None:
    """Metadata that are no consumer subscription name no topics, and raise nothing."""
    assert subscribed_topics(raw) is None


def test_a_user_data_longer_than_the_rest_is_no_subscription() -> None:
    """Metadata whose user data are cut short are no subscription."""
    assert subscribed_topics(subscription("foo", version=0, user_data=b"abc")[:-1]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("test", 3556498), ("my-txn", -1061187895), ("polygenelubricants", -(2**31)), ("tx-ü😀", -859807594)],
)
def test_strings_hash_as_in_java(text: str, expected: int) -> None:
    """Strings hash to the vectors of transactions F.9, as in Java."""
    assert string_hash(text) == expected & 0xFFFFFFFF


def test_lengths_count_utf16_units() -> None:
    """A character outside the basic plane counts twice."""
    assert [utf16_length(text) for text in ("", "abc", "ü", "😀")] == [0, 3, 1, 2]


def test_a_table_iterates_as_in_java() -> None:
    """The order that java.util.HashMap printed for the same puts and removals, through two doublings."""
    table: HashMap[int] = HashMap((f"m{i * i * 37}", i) for i in range(30))
    table.pop("m37")
    table["ü😀"] = 1
    table.pop("m0")
    table["m0"] = 3
    assert table.pop("none") is None
    assert list(table) == [
        "ü😀",
        "m17908",
        "m2997",
        "m11988",
        "m3700",
        "m5328",
        "m31117",
        "m16317",
        "m10693",
        "m19573",
        "m4477",
        "m148",
        "m925",
        "m6253",
        "m23125",
        "m26973",
        "m29008",
        "m1813",
        "m14800",
        "m0",
        "m2368",
        "m13357",
        "m8325",
        "m592",
        "m333",
        "m25012",
        "m1332",
        "m9472",
        "m7252",
        "m21312",
    ]
    assert (len(table), table["m0"], table.get("none"), "m148" in table) == (30, 3, None, True)
    assert table.values()[0] == 1
    names = HashMap((name, 0) for name in ("range", "roundrobin", "sticky", "cooperative-sticky", "a", "b"))
    assert list(names) == ["a", "b", "sticky", "range", "roundrobin", "cooperative-sticky"]
