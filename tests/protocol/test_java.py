"""The iteration order of Kafka's own hash table (groups 0.8)."""

from typing import Any

import pytest

from protocol.java import (
    HashMap,
    TimelineMap,
    concurrent_order,
    persistent_order,
    string_hash,
    table_order,
    timeline_table_order,
)

AFTER_TEN = "m592 m0 m2368 m1813 m1332 m148 m925 m37 m2997"
AFTER_TWENTY = "m592 m0 m5328 m1813 m2368 m1332 m148 m10693 m4477 m6253 m925 m37 m9472 m7252 m2997 m8325 m11988 m13357"
AFTER_THIRTY = (
    "m592 m0 m5328 m1813 m1332 m148 m2368 m26973 m14800 m4477 m29008 m6253 m925 m31117 m25012 m37 m9472 m7252 m2997 "
    "m23125 m19573 m17908 m8325 m16317 m11988 m13357"
)


def test_a_concurrent_map_doubles_earlier() -> None:
    """As ListTransactions of 4.4.0 listed these ids; with the twelfth one the table has 32 places."""
    listed = ["tx-q2", "tx-ccc", "tx-orders", "w1", "w3", "w5", "tx-a"]
    assert concurrent_order(["w1", "w3", "w5", "tx-a", "tx-ccc", "tx-orders", "tx-q2"]) == listed
    keys = [name(number) for number in range(12)]
    assert concurrent_order(keys) == table_order(keys, string_hash, 32) != table_order(keys, string_hash)
    assert concurrent_order(keys[:11]) == table_order(keys[:11], string_hash)


def name(n: int) -> str:
    """The n-th of thirty keys."""
    return f"m{n * n * 37}"


def test_a_timeline_map_iterates_as_in_kafka() -> None:
    """The orders that the TimelineHashMap of Kafka 4.4.0 printed for the same puts and removals."""
    table: TimelineMap[int] = TimelineMap()
    printed: list[str] = []
    for n in range(30):
        table[name(n)] = n
        if n == 1:
            table["m0"] = 0
        if n % 10 == 9:
            printed.append(" ".join(table))
        if n % 7 == 6:
            table.pop(name(n - 3))
        if n % 5 == 4:
            table[name(n - 2)] = -n
    assert printed == [AFTER_TEN, AFTER_TWENTY, AFTER_THIRTY]
    assert (table.pop("none"), table.get("none"), "none" in table) == (None, None, False)
    assert (table[name(2)], table.get("m0"), len(table)) == (-4, 0, len(table.values()))


def test_the_order_of_a_timeline_map_is_known_without_one() -> None:
    """As if its keys had just been put into it."""
    keys = [f"topic-{n * n}" for n in range(60)]
    table: TimelineMap[int] = TimelineMap()
    for count, key in enumerate(keys, start=1):
        table[key] = 0
        assert timeline_table_order(keys[:count], string_hash) == list(table)


def test_a_persistent_map_is_ordered_by_signed_hashes() -> None:
    """HashTreePMap of PCollections: a tree of integers."""
    assert persistent_order(["b", "zzzzzz", "a"]) == ["zzzzzz", "a", "b"]


def test_what_leaves_a_map_leaves_the_order_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not sorted again: thousands of members that leave with one request would take quadratic time."""
    table = HashMap((name(n), n) for n in range(30))
    listed, sorts = list(table), 0

    def counted(*arguments: Any, **options: Any) -> list[Any]:
        nonlocal sorts
        sorts += 1
        return sorted(*arguments, **options)

    monkeypatch.setattr("protocol.java.sorted", counted, raising=False)
    while len(table):
        assert list(table) == listed
        table.pop(listed.pop(0))
    assert sorts == 0
    table["b"], table["a"] = 1, 2
    assert (list(table), sorts) == (["a", "b"], 1)
