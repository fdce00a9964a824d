"""The segments of one log in offset order (Kafka: LogSegments)."""

from bisect import bisect_right, insort
from collections.abc import Iterator

from storage.segment import Segment


class Segments:
    """Segments by base offset, looked up by bisection. `active` is the last one; ask for it only if there are any."""

    __slots__ = ("_bases", "_by_base", "active")

    active: Segment

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._by_base: dict[int, Segment] = {}

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        for base in tuple(self._bases):
            yield self._by_base[base]

    def add(self, segment: Segment) -> None:
        """Add a segment, or put it in the place of the one with its base offset."""
        if segment.base_offset not in self._by_base:
            insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment
        self.active = self._by_base[self._bases[-1]]

    def remove(self, segment: Segment) -> None:
        """Take a segment out, if it is the one that stands at its base offset."""
        if self._by_base.get(segment.base_offset) is segment:
            del self._by_base[segment.base_offset]
            self._bases.remove(segment.base_offset)
            if self._bases:
                self.active = self._by_base[self._bases[-1]]

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._by_base[self._bases[0]]

    def floor(self, offset: int) -> Segment | None:
        """The segment with the greatest base at or below `offset`; the first one for smaller offsets."""
        bases = self._bases
        if not bases:
            return None
        return self._by_base[bases[max(bisect_right(bases, offset) - 1, 0)]]

    def after(self, segment: Segment) -> Segment | None:
        """The next segment; None for the active one."""
        bases = self._bases
        index = bisect_right(bases, segment.base_offset)
        return self._by_base[bases[index]] if index < len(bases) else None

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment of `offset` and all later ones."""
        bases = self._bases
        for base in bases[max(bisect_right(bases, offset) - 1, 0) :]:
            segment = self._by_base.get(base)
            if segment is not None:
                yield segment

    @property
    def size(self) -> int:
        """Bytes in all `.log` files."""
        return sum(segment.size for segment in self._by_base.values())
