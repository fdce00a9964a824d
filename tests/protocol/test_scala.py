"""The order of Scala's maps, as ListOffsets of a real 4.4.0 broker showed it."""

import pytest

from protocol.java import string_hash
from protocol.scala import (
    few_grouped_by_topic,
    few_order,
    grouped_by_topic,
    immutable_order,
    mutable_order,
    tabled_by_topic,
    topic_partition_hash,
)


@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ({"min.insync.replicas": [2, 0]}, {"min.insync.replicas": [0, 2]}),
        ({"t0": [0, 1, 2, 3, 4]}, {"t0": [4, 3, 2, 1, 0]}),
        ({"a": [5, 3, 1]}, {"a": [1, 5, 3]}),
        ({"a": list(range(14))}, {"a": [2, 1, 0, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3]}),
        ({"a": [0], "b": [0], "c": [1, 0]}, {"a": [0], "b": [0], "c": [1, 0]}),
        (
            {f"topic-{number}": [0, 1] for number in range(6)},
            {"topic-1": [1, 0], "topic-5": [0, 1], "topic-2": [1, 0], "topic-3": [1, 0], "topic-0": [1, 0],
             "topic-4": [1, 0]},
        ),
        (
            {f"orders.{number}": [1, 0, 3] for number in range(9)},
            {"orders.6": [3, 0, 1], "orders.0": [1, 3, 0], "orders.7": [1, 0, 3], "orders.3": [1, 0, 3],
             "orders.8": [0, 1, 3], "orders.4": [1, 3, 0], "orders.5": [3, 1, 0], "orders.2": [3, 0, 1],
             "orders.1": [3, 1, 0]},
        ),
    ],
)  # fmt: skip
def test_partitions_are_grouped_as_kafka_lists_them(
    requested: dict[str, list[int]], answered: dict[str, list[int]]
) -> None:
    """Both the topics and the partitions of each."""
    places = [(topic, partition) for topic, partitions in requested.items() for partition in partitions]
    assert list(grouped_by_topic(places).items()) == list(answered.items())


@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ({"eta": [1, 0, 2], "delta": [0], "gamma": [5, 0, 17]}, {"gamma": [17, 5, 0], "eta": [0, 1, 2], "delta": [0]}),
        ({"eta": [1, 0, 2], "delta": [0]}, {"eta": [2, 0, 1], "delta": [0]}),
    ],
)
def test_few_partitions_keep_their_order(requested: dict[str, list[int]], answered: dict[str, list[int]]) -> None:
    """As a DeleteRecords of partitions that do not exist was answered by 4.4.0: up to four in the order they came."""
    places = [(topic, partition) for topic, partitions in requested.items() for partition in partitions]
    assert list(few_grouped_by_topic(places).items()) == list(answered.items())


def test_partitions_of_a_table_by_topic() -> None:
    """As AddPartitionsToTxn of partitions that do not exist was answered by 4.4.0."""
    places = [("eta", 1), ("delta", 0), ("gamma", 5), ("gamma", 0), ("gamma", 17), ("eta", 0), ("eta", 2)]
    table = tabled_by_topic(places)
    assert {topic: table[topic] for topic in ("eta", "gamma")} == {"eta": [2, 0, 1], "gamma": [0, 5, 17]}
    assert set(table) == {"eta", "delta", "gamma"}


@pytest.mark.parametrize(
    ("texts", "answered"),
    [
        (["x", "x", "a"], ["x", "a"]),
        (["zeta", "alpha", "beta", "gamma", "x", "x"], ["alpha", "x", "zeta", "beta", "gamma"]),
    ],
)
def test_unknown_states_are_listed_once(texts: list[str], answered: list[str]) -> None:
    """As ListTransactions of 4.4.0 lists them: a set of up to four keeps their order."""
    assert few_order(texts, string_hash) == answered


def test_equal_hashes_keep_their_order() -> None:
    """Keys of one hash (Aa and BB in Java) keep the order in which they came."""
    assert immutable_order(["BB", "Aa", "b"], lambda text: {"b": 7}.get(text, 2112)).index("BB") < 2
    assert immutable_order(["BB", "Aa"], lambda _: 2112) == ["BB", "Aa"]
    assert mutable_order(["BB", "Aa"], lambda _: 2112) == ["BB", "Aa"]
    assert topic_partition_hash(("Aa", 1)) == topic_partition_hash(("BB", 1))
