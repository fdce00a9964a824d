"""The iteration order of Java's hash tables, where a result of Kafka depends on it (groups 0.8).

Which member leads, which protocol wins a tied vote and in which order members are listed follow from how
``java.util.HashMap`` walks its buckets. Trees, into which Java turns buckets of eight and more, are ignored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")
_MASK = 0xFFFFFFFF
_DEFAULT_CAPACITY = 16


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


def utf16_length(text: str) -> int:
    """``String.length``: how many UTF-16 code units a text has."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def utf16(text: str) -> bytes:
    """What Java sorts strings by: their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def uuid_hash(value: UUID) -> int:
    """``Uuid.hashCode`` as an unsigned 32-bit number."""
    halves = (value.int >> 64) ^ (value.int & 0xFFFF_FFFF_FFFF_FFFF)
    return (halves >> 32 ^ halves) & _MASK


def copied_capacity(count: int) -> int:
    """Of a ``HashSet`` made of a collection of so many."""
    return _power_of_two(max(int(count / 0.75) + 1, _DEFAULT_CAPACITY))


def table_order(keys: Sequence[K], hash_of: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY) -> list[K]:
    """Distinct keys as a table iterates into which they were put in this order; it doubles when it must."""
    while len(keys) > capacity * 3 // 4:
        capacity *= 2
    return sorted(keys, key=lambda key: _bucket(hash_of(key), capacity))


def _bucket(h: int, capacity: int) -> int:
    return (h ^ (h >> 16)) & (capacity - 1)


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
        self._order: tuple[str, ...] | None = ()
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
        return iter(self._ordered())

    def get(self, key: str) -> V | None:
        """The value of a key, if there is one."""
        return self._entries.get(key)

    def pop(self, key: str) -> V | None:
        """Take a key out; its value, if there was one."""
        if key not in self._entries:
            return None
        del self._spread[key]
        self._order = None
        return self._entries.pop(key)

    def values(self) -> list[V]:
        """The values in iteration order."""
        return [self._entries[key] for key in self._ordered()]

    def _ordered(self) -> tuple[str, ...]:
        if self._order is None:
            spread, mask = self._spread, self._capacity - 1
            # sorted() is stable, and a dict keeps the order of insertion: that is the order inside a bucket
            self._order = tuple(sorted(spread, key=lambda key: spread[key] & mask))
        return self._order
