"""Shrinks the faults of a run to few that still break a promise (Zeller's delta debugging), within a limit of time."""

from collections.abc import Callable, Collection, Iterator, Sequence

from simulator.plan import Fault

_QUIET_S = 5.0
"""Real time after which progress is printed even if no fault could be left out.

Ours, who waits sees that it goes on.
"""


class Shrinking:
    """The search for few faults that break a promise.

    ``breaks`` plays a run with only these faults, by number, until a promise is broken; it returns when, in virtual ms,
    or None. Its other argument is when one was broken in the shortest run so far, at first ``broken_ms``. No run begins
    that may not end within ``limit_s``: a run is expected to take as long as the longest so far, the first one
    ``run_s``. ``write`` is called with lines about the progress, ``clock_s`` is the real time.
    """

    def __init__(
        self,
        faults: Sequence[Fault],
        broken_ms: int,
        breaks: Callable[[frozenset[int], int], int | None],
        *,
        limit_s: float,
        run_s: float,
        clock_s: Callable[[], float],
        write: Callable[[str], None],
    ) -> None:
        self._all, self._breaks, self._clock_s, self._write = len(faults), breaks, clock_s, write
        self._limit_s, self._longest_s = limit_s, run_s
        self._began_s = self._reported_s = clock_s()
        self.runs = 0
        self._tried = set[frozenset[int]]()
        self.left: list[Fault] = []
        """The faults that still break a promise."""
        self._keep(faults, broken_ms)

    @property
    def out_of_time(self) -> bool:
        """Whether one more run may exceed the limit."""
        return self._clock_s() - self._began_s + self._longest_s > self._limit_s

    def shrink(self) -> list[Fault]:
        """Leave out halves and quarters of the faults, then whole kinds, then smaller pieces, at last single faults."""
        size = max(len(self.left) // 2, 1)
        self._try_pieces(size)
        size = max(size // 2, 1)
        self._try_pieces(size)
        self._try_kinds()
        before = -1
        while not self.out_of_time and (size > 1 or len(self.left) != before):
            size, before = max(size // 2, 1), len(self.left)
            self._try_pieces(size)
        ended = "; there was no time for more runs" if self.out_of_time else "; none can be left out"
        self._write(f"{self._progress()}{ended}")
        return self.left

    def _try_pieces(self, size: int) -> None:
        at = 0
        while at < len(self.left):
            if not self._try_without(self.left[at : at + size]):
                at += size

    def _try_kinds(self) -> None:
        for kind in _by_frequency(self.left):
            self._try_without([each for each in self.left if each.kind == kind])

    def _try_without(self, faults: Collection[Fault]) -> bool:
        """Leave these out if the others still break a promise; return whether they do."""
        rest = [each for each in self.left if each not in faults]
        only = frozenset(each.number for each in rest)
        if not faults or only in self._tried or self.out_of_time:
            return False
        self._tried.add(only)
        began_s = self._clock_s()
        broken_ms = self._breaks(only, self._broken_ms)
        took_s = self._clock_s() - began_s
        self._longest_s = max(self._longest_s, took_s) if self.runs else took_s
        self.runs += 1
        if broken_ms is not None:
            self._keep(rest, broken_ms)
        if broken_ms is not None or self._clock_s() - self._reported_s >= _QUIET_S:
            self._reported_s = self._clock_s()
            self._write(self._progress())
        return broken_ms is not None

    def _keep(self, faults: Sequence[Fault], broken_ms: int) -> None:
        """Keep the faults that began before the promise was broken; later ones had no part in it."""
        self._broken_ms = broken_ms
        self.left = [each for each in faults if each.at_ms <= broken_ms]

    def _progress(self) -> str:
        took_s = self._clock_s() - self._began_s
        return f"{len(self.left)} of {self._all} faults are enough (run {self.runs}, {took_s:.0f} s)"


def _by_frequency(faults: Sequence[Fault]) -> Iterator[str]:
    kinds = [each.kind for each in faults]
    yield from sorted(dict.fromkeys(kinds), key=lambda kind: (-kinds.count(kind), kind))
