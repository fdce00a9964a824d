"""Recent usage of a client: Kafka's rate over sample windows, and its token bucket (core G.10).

After ``org.apache.kafka.common.metrics.stats``: ``Rate`` over a ``WindowedSum``, and ``TokenBucket`` (KIP-599).
"""

import math
from typing import NamedTuple

MOST_MS = 2**31 - 1
"""The largest value of ThrottleTimeMs."""


class Windows(NamedTuple):
    """``quota.window.num`` windows of ``quota.window.size.seconds``, here in ms."""

    number: int
    size_ms: int


class _Sample:
    """One window: since when, when something was recorded last, and how much in all."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        """Empty the window and begin it now."""
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """A rate of recorded values per second."""

    __slots__ = ("_current", "_samples", "_windows", "used_ms")

    def __init__(self, windows: Windows) -> None:
        self._windows, self.used_ms = windows, 0
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """So much more, or less."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        """The next window; there is one more than counts, for the one that is half expired."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measured(self, now_ms: int) -> tuple[float, int]:
        """The rate per second, and over how many ms it was measured.

        These are at least all windows but one, so that a client that has just begun does not count as fast.
        """
        windows = self._windows
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        expired_ms = windows.number * windows.size_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expired_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = windows.number - 1 - elapsed_ms // windows.size_ms
        elapsed_ms = max(elapsed_ms + max(missing, 0) * windows.size_ms, 1)
        return sum(sample.value for sample in self._samples) / (elapsed_ms / 1000), elapsed_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """For how long to wait until the rate is at its bound again; 0: it is not above."""
        rate, elapsed_ms = self.measured(now_ms)
        if rate <= bound:
            return 0
        return min(rounded((rate - bound) / bound * elapsed_ms), MOST_MS)


class TokenBucket:
    """Tokens that come at a rate and are used up at once; their number may go below zero once."""

    __slots__ = ("_tokens", "_updated_ms", "_windows", "used_ms")

    def __init__(self, windows: Windows) -> None:
        self._windows, self.used_ms = windows, 0
        self._tokens = 0.0
        self._updated_ms = 0

    def record(self, value: float, bound: float, now_ms: int) -> None:
        """So many tokens are used."""
        self._tokens = min(self._burst(bound), self._refilled(bound, now_ms) - value)

    def _burst(self, bound: float) -> float:
        return self._windows.number * (self._windows.size_ms / 1000) * bound

    def _refilled(self, bound: float, now_ms: int) -> float:
        more = bound * ((now_ms - self._updated_ms) / 1000)
        self._tokens = min(self._burst(bound), self._tokens + more)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """For how long to wait until no token is missing; 0: none is."""
        tokens = self._refilled(bound, now_ms)
        return min(rounded(-tokens / bound * 1000), MOST_MS) if tokens < 0 else 0


def rounded(value: float) -> int:
    """As ``Math.round`` does: halves go up, and what is no number is 0: brokers before 4.4 take NaN as a quota."""
    return 0 if math.isnan(value) else math.floor(value + 0.5)
