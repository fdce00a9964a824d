"""Compares values that clients write and brokers report: a read returns the last write, or what was read before it.

A response may lag behind the last write by `LAG_US`, because brokers learn of changes from the metadata log; but
responses of one broker never go back to an earlier value. A write without a response may take effect at any time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from pipeline.answers.calls import Fault

LAG_US: Final = 5_000_000  # how long another broker may still have old metadata; ours, far more than it takes
ANY: Final = object()
"""A value that the journal does not contain."""
_ABSENT: Final = object()
_NEVER: Final = 2**62  # after every time

Key = tuple[str, ...]
"""Kind of a value, then its owner: ("setting", "2", "orders", "retention.ms")."""


class _Write(NamedTuple):
    start_us: int
    end_us: int
    """`_NEVER`: whether and when it took effect is unknown."""
    value: object


class _Read(NamedTuple):
    start_us: int
    end_us: int
    value: str | None
    broker: int
    call_id: int
    topic: str | None
    group_id: str | None
    lag_us: int


class Registers:
    """All values of one run and era."""

    def __init__(self) -> None:
        self._writes: dict[Key, list[_Write]] = defaultdict(list)
        self._reads: dict[Key, list[_Read]] = defaultdict(list)
        self._resets: dict[Key, list[_Write]] = defaultdict(list)
        self._born: set[Key] = set()
        self.names: dict[str, str] = {}
        """Topic id -> name, where a response has contained both."""

    def write(self, key: Key, value: object, start_us: int, end_us: int, *, certain: bool = True) -> None:
        """Record that a value was written between two times; if not `certain`, any time after the first, or never."""
        self._writes[key].append(_Write(start_us, end_us if certain else _NEVER, value))

    def reset(self, scope: Key, start_us: int, end_us: int = _NEVER) -> None:
        """Record that values with this key prefix may have changed between two times, or any time after the first."""
        self._resets[scope].append(_Write(start_us, end_us, ANY))

    def begin(self, key: Key, value: object, start_us: int, end_us: int) -> None:
        """Record that the owner of a value was created between two times: before, there was no value."""
        self.write(key, value, start_us, end_us)
        self._born.add(key)

    def known(self, *scope: str) -> list[Key]:
        """Return the keys with this prefix of which a value was written or reported."""
        keys = self._writes.keys() | self._reads.keys()
        return [each for each in keys if each[: len(scope)] == scope]

    def read(
        self, key: Key, value: str | None, times: tuple[int, int], broker: int, call_id: int, *,
        topic: str | None = None, group_id: str | None = None, lag_us: int = LAG_US,
    ) -> None:  # fmt: skip
        """Record that a response reported a value."""
        self._reads[key].append(_Read(*times, value, broker, call_id, topic, group_id, lag_us))

    def faults(self) -> Iterator[Fault]:
        """Yield the responses with a value that cannot have been in force."""
        for key, reads in self._reads.items():
            resets = [each for end in range(1, len(key) + 1) for each in self._resets.get(key[:end], ())]
            writes = sorted([*self._writes.get(key, ()), *resets], key=lambda each: (each.start_us, each.end_us))
            yield from _Value(key, writes, is_born=key in self._born).faults(reads)


class _Value:
    """One value: its writes in order, and what its reads have shown so far."""

    def __init__(self, key: Key, writes: list[_Write], *, is_born: bool) -> None:
        self._key, self._writes = key, writes
        self._starts = [each.start_us for each in writes]
        endless = (at for at, each in enumerate(writes) if each.end_us == _NEVER and each.value is ANY)
        self._unknown_from = next(endless, len(writes))
        """Index of the first write after which any value is possible."""
        self._begun: list[object] = [_ABSENT] if is_born else []
        """The value before the first write."""
        self._learned: dict[int, object] = {}
        """By index of a write: its value, learned from reads because the journal does not contain it."""
        self._floors: dict[int, tuple[int, int]] = {}
        """By broker: end of a read, and the oldest write that explains it."""

    def faults(self, reads: list[_Read]) -> Iterator[Fault]:
        """Yield the reads that no order of the writes explains."""
        for read in sorted(reads, key=lambda each: each.end_us):
            first, values = self._possible(read)
            fitting = [first + at for at, value in enumerate(values) if value is ANY or value == read.value]
            since, floor = self._floors.get(read.broker, (0, -1))
            if since < read.start_us and fitting and max(fitting) < floor:
                yield _fault(read, self._key, "goes back to an older value")
            elif not fitting:
                known = " or ".join(sorted({str(value) for value in values if value is not _ABSENT}))
                yield _fault(read, self._key, f"is {read.value}, not {known}")
            elif ANY not in values:
                self._floors[read.broker] = (read.end_us, max(floor, min(fitting)))

    def _possible(self, read: _Read) -> tuple[int, list[object]]:
        """Return the index of the oldest write that may be in force (-1: none), and the possible values from it on."""
        begun = bisect_right(self._starts, read.end_us)
        if begun > self._unknown_from:
            return 0, [ANY]
        oldest = self._last_over(read.start_us - read.lag_us, begun)
        if oldest < 0:
            written = [each.value for each in self._writes[:begun]]
            if not self._begun and ANY not in written and read.value not in written:
                self._begun.append(read.value)
            if self._begun == [_ABSENT] and written == [ANY] and read.value is not None:
                # The owner did not exist before, so this is the value that it was created with.
                written = [self._learned.setdefault(0, read.value)]
            return (-1, [self._begun[0], *written]) if self._begun else (0, written or [ANY])
        # A write that overlaps the last completed one may have taken effect after it.
        while oldest > 0 and self._writes[oldest - 1].end_us >= self._writes[oldest].start_us:
            oldest -= 1
        if begun == oldest + 1 and self._writes[oldest].value is ANY:
            self._learned.setdefault(oldest, read.value)
        return oldest, [self._learned.get(at, self._writes[at].value) for at in range(oldest, begun)]

    def _last_over(self, before_us: int, begun: int) -> int:
        """Return the index of the last started write that was complete before a time; -1 if none."""
        at = begun - 1
        while at >= 0 and self._writes[at].end_us >= before_us:
            at -= 1
        return at


def _fault(read: _Read, key: Key, what: str) -> Fault:
    kind = "node-address" if key[0] == "node" else "answer-contradicted"
    return Fault(read.call_id, kind, f"{' '.join(key)} {what}", topic=read.topic, group_id=read.group_id)
