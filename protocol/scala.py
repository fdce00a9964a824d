"""The iteration order of Scala's hash maps (2.13), where a response of Kafka depends on it.

``mutable.HashMap`` walks a table whose buckets are sorted by hash. ``immutable.HashMap``, which ``groupBy`` returns,
walks a tree of nodes with 32 places each (CHAMP): the single keys of a node first, then the nodes below it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from protocol.java import as_int, string_hash, table_order

K = TypeVar("K")
_MASK = 0xFFFFFFFF  # of Java's int
_CAPACITY = 16  # mutable.HashMap.defaultInitialCapacity
_BITS = 5  # of the hash for each level: 32 places
_FEW = 4  # Map1 to Map4 are classes of their own, in the order of insertion


def topic_partition_hash(place: tuple[str, int]) -> int:
    """``TopicPartition.hashCode`` as an unsigned 32-bit number."""
    topic, partition = place
    return (31 * (31 + partition) + string_hash(topic)) & _MASK


def mutable_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Return distinct keys in the iteration order of a ``mutable.HashMap`` that they were added to."""
    # mutable.HashMap.improveHash.
    spread = {key: h ^ h >> 16 for key in keys for h in (hash_of(key),)}
    capacity = _CAPACITY
    while len(spread) >= capacity * 3 // 4:  # mutable.HashMap.defaultLoadFactor
        capacity *= 2

    def place(key: K) -> tuple[int, int]:
        h = spread[key]
        # The bucket, and within it the order of Java's int.
        return h & (capacity - 1), as_int(h)

    return sorted(spread, key=place)


def immutable_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Return distinct keys in the iteration order of an ``immutable.HashMap``."""
    improved = {key: _improved(hash_of(key)) for key in keys}
    return _walk(list(improved), improved.__getitem__, 0)


def _walk(keys: Sequence[K], hash_of: Callable[[K], int], shift: int) -> list[K]:
    if shift >= 32:  # keys of equal hashes share a node, in the order of insertion
        return list(keys)
    places: dict[int, list[K]] = {}
    for key in keys:
        places.setdefault(hash_of(key) >> shift & (1 << _BITS) - 1, []).append(key)
    ordered = [places[at][0] for at in sorted(places) if len(places[at]) == 1]
    for at in sorted(places):
        if len(places[at]) > 1:
            ordered += _walk(places[at], hash_of, shift + _BITS)
    return ordered


def _improved(h: int) -> int:
    """``scala.collection.Hashing.improve``."""
    h = (h + ~(h << 9)) & _MASK
    h ^= h >> 14
    h = (h + (h << 4)) & _MASK
    return h ^ h >> 10


def few_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Return distinct keys in the iteration order of an immutable map or set: up to four keep their order."""
    distinct = list(dict.fromkeys(keys))
    return distinct if len(distinct) <= _FEW else immutable_order(distinct, hash_of)


def tabled_by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return partitions by topic as Kafka lists those of a Java map of partitions in another one of topics."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in table_order(list(dict.fromkeys(places)), topic_partition_hash):
        by_topic.setdefault(topic, []).append(partition)
    return {topic: by_topic[topic] for topic in table_order(list(by_topic), string_hash)}


def few_grouped_by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return partitions by topic as ``groupBy`` of an immutable map lists them, to which a mutable one was added."""
    ordered = mutable_order(places, topic_partition_hash)
    few = len(ordered) <= _FEW
    by_topic: dict[str, list[tuple[str, int]]] = {}
    for place in ordered if few else immutable_order(ordered, topic_partition_hash):
        by_topic.setdefault(place[0], []).append(place)
    return {
        topic: [
            partition
            for _, partition in (by_topic[topic] if few else immutable_order(by_topic[topic], topic_partition_hash))
        ]
        for topic in immutable_order(by_topic, string_hash)
    }


def grouped_by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return partitions by topic as ``groupBy`` of a ``mutable.Map`` of partitions lists them."""
    by_topic: dict[str, list[tuple[str, int]]] = {}
    for place in mutable_order(places, topic_partition_hash):
        by_topic.setdefault(place[0], []).append(place)
    return {
        topic: [partition for _, partition in mutable_order(by_topic[topic], topic_partition_hash)]
        for topic in immutable_order(by_topic, string_hash)
    }
