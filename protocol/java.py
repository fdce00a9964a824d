"""The iteration order of Java's hash tables, where a result of Kafka depends on it (groups 0.8).

Which member leads, which protocol wins a tied vote and in which order members are listed follow from how
``java.util.HashMap`` walks its buckets. Trees, into which Java turns buckets of eight and more, are ignored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")
_MASK = 0xFFFFFFFF  # of Java's int
_DEFAULT_CAPACITY = 16  # HashMap.DEFAULT_INITIAL_CAPACITY (groups 0.8.3)
# 0.75 and three quarters below: HashMap.DEFAULT_LOAD_FACTOR, and those of the other tables. 31: String.hashCode.
_LONG_MASK = 0xFFFF_FFFF_FFFF_FFFF
_FIBONACCI = -7046029254386353131 & _LONG_MASK
"""Multiplier in ``BaseHashTable.findSlot`` (Knuth's multiplicative hash)."""


def string_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit number: over UTF-16 code units (transactions F.9)."""
    h = 0
    if text.isascii():
        for unit in text.encode():
            h = (31 * h + unit) & _MASK
        return h
    raw = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(raw), 2):
        h = (31 * h + (raw[at] << 8 | raw[at + 1])) & _MASK
    return h


def absolute_hash(text: str) -> int:
    """``Utils.abs(text.hashCode())``: 0 for Integer.MIN_VALUE, which has no positive counterpart (transactions F.9)."""
    h = string_hash(text)
    return h if h < 1 << 31 else (1 << 32) - h if h > 1 << 31 else 0


def utf16_length(text: str) -> int:
    """``String.length``: the number of UTF-16 code units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def utf16(text: str) -> bytes:
    """Return the sort key of a Java string: its UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def split(text: str, separator: str) -> list[str]:
    """``String.split``: empty parts at the end are dropped, unless the text has no separator."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts[0] or len(parts) > 1 or separator not in text else []


def uuid_hash(value: UUID) -> int:
    """``Uuid.hashCode`` as an unsigned 32-bit number."""
    halves = (value.int >> 64) ^ (value.int & 0xFFFF_FFFF_FFFF_FFFF)
    return (halves >> 32 ^ halves) & _MASK


def integer_hash(value: int) -> int:
    """``Integer.hashCode`` as an unsigned 32-bit number."""
    return value & _MASK


def long_hash(value: int) -> int:
    """``Long.hashCode`` as an unsigned 32-bit number."""
    return (value ^ value >> 32) & _MASK


def as_int(number: int) -> int:
    """Return the lowest 32 bits as Java's int, as its cast does."""
    return (number + (1 << 31) & _MASK) - (1 << 31)


def as_long(number: int) -> int:
    """Return the lowest 64 bits as Java's long; so is a sum of longs, which wraps."""
    return (number + (1 << 63) & _LONG_MASK) - (1 << 63)


def parse_integer(text: str) -> int:
    """``Integer.parseInt``: digits behind at most one sign, and nothing else.

    Raises:
        ValueError: the text is not such a number, or the number does not fit.
    """
    value = int(text) if text.removeprefix("-").removeprefix("+" * (text[:1] == "+")).isdecimal() else None
    if value is None or not -(1 << 31) <= value < 1 << 31:
        raise ValueError(text)
    return value


def copied_capacity(count: int) -> int:
    """Return the capacity of a ``HashSet`` copied from a collection of ``count`` elements."""
    return _power_of_two(max(int(count / 0.75) + 1, _DEFAULT_CAPACITY))


def table_capacity(count: int) -> int:
    """Return the capacity of a table that was created for ``count`` entries, ``new HashMap(count)``."""
    return _power_of_two(max(count, 1))


def reserved_capacity(count: int) -> int:
    """Return the capacity of a ``HashMap`` copied from a map of ``count`` entries; that of a new one for none."""
    return _power_of_two(int(count / 0.75 + 1)) if count else _DEFAULT_CAPACITY


def timeline_order(keys: Iterable[str]) -> list[str]:
    """Return up to two strings in the iteration order of Kafka's ``TimelineHashMap``, which begins with two slots."""
    return sorted(keys, key=lambda key: _slot(string_hash(key), 2))


def timeline_table_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Return distinct keys in the iteration order of a ``TimelineHashMap`` that they were put into in this order."""
    table: TimelineTable[K, None] = TimelineTable(hash_of)
    for key in keys:
        table[key] = None
    return list(table)


def _slot(h: int, capacity: int) -> int:
    # The highest bits: as many as number the slots (BaseHashTable.findSlot).
    return (as_int(h) * _FIBONACCI & _LONG_MASK) >> 65 - capacity.bit_length()


def table_order(keys: Sequence[K], hash_of: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY) -> list[K]:
    """Return distinct keys in the iteration order of a table that they were put into in the given order."""
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    return sorted(keys, key=lambda key: bucket(hash_of(key), capacity))


def concurrent_order(keys: Sequence[str]) -> list[str]:
    """Return distinct strings in the order of a ``ConcurrentHashMap``."""
    return table_order(keys, string_hash, concurrent_capacity(len(keys)))


def concurrent_capacity(count: int) -> int:
    """Return the capacity of a ``ConcurrentHashMap`` of ``count`` entries: it doubles when three quarters are used."""
    capacity = _DEFAULT_CAPACITY
    while count >= capacity * 3 // 4:
        capacity *= 2
    return capacity


def persistent_order(keys: Iterable[str]) -> list[str]:
    """Return distinct strings in the order of a ``HashTreePMap`` (PCollections): by their hash as a signed number."""
    return sorted(keys, key=lambda key: as_int(string_hash(key)))


def integer_order(values: Iterable[int]) -> list[int]:
    """Return integers in the iteration order of a ``HashSet``; negative ones were added last."""
    return table_order(sorted(set(values), key=lambda each: (each < 0, each)), integer_hash)


def computed_order(calls: Iterable[K], hash_of: Callable[[K], int], capacity: int) -> list[K]:
    """Return the keys of a table in iteration order, after ``computeIfAbsent`` was called with these keys.

    Unlike ``put`` it adds an entry at the head of its bucket, and checks the table's size when it is called.
    """
    distinct: dict[K, None] = {}
    for key in calls:
        if len(distinct) > capacity * 3 // 4:
            capacity *= 2
        distinct[key] = None
    newest_first = list(distinct)
    newest_first.reverse()
    return sorted(newest_first, key=lambda key: bucket(hash_of(key), capacity))


def bucket(h: int, capacity: int) -> int:
    """Return the bucket of a hash in a table whose capacity is a power of two."""
    return (h ^ (h >> 16)) & (capacity - 1)  # the upper half too (HashMap.hash)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


class HashMap(Generic[V]):
    """A table from strings that iterates as ``java.util.HashMap`` does.

    Built by ``put`` alone: a new key goes to its bucket's tail, the table doubles when more than three quarters are
    taken, and never shrinks.
    """

    __slots__ = ("_capacity", "_entries", "_order", "_spread")

    def __init__(self, entries: Iterable[tuple[str, V]] = ()) -> None:
        self._entries: dict[str, V] = {}
        self._spread: dict[str, int] = {}
        self._capacity = _DEFAULT_CAPACITY
        self._order: dict[str, None] | None = {}
        for key, value in entries:
            self[key] = value

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self._entries:
            h = string_hash(key)
            self._spread[key] = h ^ (h >> 16)
            self._order = None
        self._entries[key] = value
        if len(self._entries) > self._capacity * 3 // 4:
            self._capacity *= 2

    def __getitem__(self, key: str) -> V:
        return self._entries[key]

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._ordered()))

    def get(self, key: str) -> V | None:
        """Return the value of a key, if there is one."""
        return self._entries.get(key)

    def pop(self, key: str) -> V | None:
        """Remove a key; return its value, if there was one."""
        if key not in self._entries:
            return None
        del self._spread[key]
        if self._order is not None:
            del self._order[key]  # the order of the others stays the same
        return self._entries.pop(key)

    def values(self) -> list[V]:
        """Return the values in iteration order."""
        return [self._entries[key] for key in self._ordered()]

    def _ordered(self) -> dict[str, None]:
        if self._order is None:
            spread, mask = self._spread, self._capacity - 1
            # sorted() is stable, and a dict keeps the order of insertion: that is the order inside a bucket
            self._order = dict.fromkeys(sorted(spread, key=lambda key: spread[key] & mask))
        return self._order


class TimelineTable(Generic[K, V]):
    """A table from any keys that iterates as Kafka's ``TimelineHashMap`` does; ``hash_of`` gives a key's hash.

    A new key goes to its slot's end, and a slot is iterated from its end. Before each ``put``, also of a key that it
    has, the table doubles if one more entry would be too many; it never shrinks.
    """

    __slots__ = ("_entries", "_hash_of", "_slots")

    def __init__(self, hash_of: Callable[[K], int]) -> None:
        self._hash_of = hash_of
        self._entries: dict[K, V] = {}
        self._slots: list[list[K]] = [[], []]

    def __setitem__(self, key: K, value: V) -> None:
        # BaseHashTable.baseAddOrReplace: (size + 1) * 0.75 > slots, so four thirds of the slots, not three quarters.
        if (len(self._entries) + 1) * 3 > len(self._slots) * 4:
            keys = [key for slot in self._slots for key in slot]
            self._slots = [[] for _ in range(2 * len(self._slots))]
            for each in keys:
                self._slot_of(each).append(each)
        if key not in self._entries:
            self._slot_of(key).append(key)
        self._entries[key] = value

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return (key for slot in self._slots for key in reversed(slot))

    def get(self, key: K) -> V | None:
        """Return the value of a key, if there is one."""
        return self._entries.get(key)

    def compute(self, key: K, change: Callable[[V | None], V | None]) -> None:
        """Replace a key's value, ``None`` if missing, by the result of ``change``; ``None`` removes the key."""
        value = change(self._entries.get(key))
        if value is None:
            self.pop(key)
        else:
            self[key] = value

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, if there was one."""
        if key in self._entries:
            self._slot_of(key).remove(key)
        return self._entries.pop(key, None)

    def values(self) -> list[V]:
        """Return the values in iteration order."""
        return [self._entries[key] for key in self]

    def _slot_of(self, key: K) -> list[K]:
        return self._slots[_slot(self._hash_of(key), len(self._slots))]


class TimelineMap(TimelineTable[str, V]):
    """A table from strings that iterates as Kafka's ``TimelineHashMap`` does."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(string_hash)


class HashTable(Generic[K, V]):
    """A table from any keys that iterates as ``java.util.HashMap`` does, even if keys are created on first use.

    ``hash_of`` gives a key's hash as an unsigned 32-bit number; ``capacity`` is a power of two. Values are never
    ``None``.
    """

    __slots__ = ("_buckets", "_capacity", "_entries", "_hash_of")

    def __init__(self, hash_of: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY) -> None:
        self._hash_of, self._capacity = hash_of, capacity
        self._entries: dict[K, V] = {}
        self._buckets: dict[int, list[K]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter([key for at in sorted(self._buckets) for key in self._buckets[at]])

    def get(self, key: K) -> V | None:
        """Return the value of a key, if there is one."""
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Set a key's value: a new key goes to its bucket's tail, and then the table may double."""
        if key not in self._entries:
            self._bucket_of(key).append(key)
            self._entries[key] = value
            self._double_above(len(self._entries))
        else:
            self._entries[key] = value

    def get_or_create(self, key: K, create: Callable[[], V]) -> V:
        """Do ``computeIfAbsent``: first the table may double, then a new key goes to its bucket's head."""
        value = self._entries.get(key)
        if value is None:
            self._double_above(len(self._entries))
            self._bucket_of(key).insert(0, key)
            value = self._entries[key] = create()
        return value

    def compute(self, key: K, change: Callable[[V | None], V | None]) -> None:
        """Replace a key's value, ``None`` if missing, by the result of ``change``; ``None`` removes the key.

        As in :meth:`get_or_create`, a new key goes to its bucket's head, and the table may double before.
        """
        self._double_above(len(self._entries))
        value = change(self._entries.get(key))
        if value is None:
            self.remove(key)
        else:
            self.get_or_create(key, lambda: value)
            self._entries[key] = value

    def remove(self, key: K) -> None:
        """Remove a key; the table does not shrink."""
        if self._entries.pop(key, None) is not None:
            self._bucket_of(key).remove(key)

    def items(self) -> list[tuple[K, V]]:
        """Keys and values in iteration order."""
        return [(key, self._entries[key]) for key in self]

    def _bucket_of(self, key: K) -> list[K]:
        return self._buckets.setdefault(bucket(self._hash_of(key), self._capacity), [])

    def _double_above(self, size: int) -> None:
        if size > self._capacity * 3 // 4:
            keys = list(self)
            self._capacity *= 2
            self._buckets = {}
            for key in keys:
                self._bucket_of(key).append(key)


def sized_capacity(count: int) -> int:
    """Return the capacity of a table that Kafka's assignors size for ``count`` entries."""
    return _power_of_two(int((count + 1) / 0.75) + 1)
