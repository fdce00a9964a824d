"""Measures a client's usage: Kafka's rate over sample windows, and its token bucket (core G.10).

Follows ``org.apache.kafka.common.metrics.stats``: ``Rate`` over a ``WindowedSum``, and ``TokenBucket`` (KIP-599).
"""

import math
from typing import NamedTuple

MOST_MS = 2**31 - 1
"""The maximum of ThrottleTimeMs."""


class Windows(NamedTuple):
    """``quota.window.num`` windows of ``quota.window.size.seconds``, here in ms."""

    number: int
    size_ms: int


class _Sample:
    """One window: its start, the time of its last record, and its sum."""

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
        """Record a value, which may be negative."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        """Begin the next window; there is one window more than counted, for the one that is partly expired."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measured(self, now_ms: int) -> tuple[float, int]:
        """Return the rate per second, and the time in ms over which it was measured.

        That is at least all windows but one, so that a client that has just begun does not seem fast.
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
        """Return the time in ms until the rate is within the quota again; 0: it is."""
        rate, elapsed_ms = self.measured(now_ms)
        if rate <= bound:
            return 0
        return min(rounded((rate - bound) / bound * elapsed_ms), MOST_MS)


class TokenBucket:
    """Tokens that refill at a rate and are spent immediately; their number may become negative."""

    __slots__ = ("_tokens", "_updated_ms", "_windows", "used_ms")

    def __init__(self, windows: Windows) -> None:
        self._windows, self.used_ms = windows, 0
        self._tokens = 0.0
        self._updated_ms = 0

    def record(self, value: float, bound: float, now_ms: int) -> None:
        """Spend tokens."""
        self._tokens = min(self._burst(bound), self._refilled(bound, now_ms) - value)

    def _burst(self, bound: float) -> float:
        return self._windows.number * (self._windows.size_ms / 1000) * bound

    def _refilled(self, bound: float, now_ms: int) -> float:
        more = bound * ((now_ms - self._updated_ms) / 1000)
        self._tokens = min(self._burst(bound), self._tokens + more)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return the time in ms until the number of tokens is not negative; 0: it is not."""
        tokens = self._refilled(bound, now_ms)
        return min(rounded(-tokens / bound * 1000), MOST_MS) if tokens < 0 else 0


def rounded(value: float) -> int:
    """Round like ``Math.round``: halves up, and NaN is 0, since brokers before 4.4 accept NaN as a quota."""
    return 0 if math.isnan(value) else math.floor(value + 0.5)
