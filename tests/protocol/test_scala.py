"""The order of Scala's maps, as ListOffsets of a real 4.4.0 broker showed it."""

import pytest

from protocol.scala import grouped_by_topic, immutable_order, mutable_order, topic_partition_hash


@pytest.mark.parametrize(
    ("asked", "answered"),
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
    asked: dict[str, list[int]], answered: dict[str, list[int]]
) -> None:
    """Both the topics and the partitions of each."""
    places = [(topic, partition) for topic, partitions in asked.items() for partition in partitions]
    assert list(grouped_by_topic(places).items()) == list(answered.items())


def test_equal_hashes_keep_their_order() -> None:
    """Aa and BB have one hash in Java."""
    assert immutable_order(["BB", "Aa", "b"], lambda text: {"b": 7}.get(text, 2112)).index("BB") < 2
    assert immutable_order(["BB", "Aa"], lambda _: 2112) == ["BB", "Aa"]
    assert mutable_order(["BB", "Aa"], lambda _: 2112) == ["BB", "Aa"]
    assert topic_partition_hash(("Aa", 1)) == topic_partition_hash(("BB", 1))
