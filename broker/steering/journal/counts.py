"""Counters of requests by API since the server started, for the metrics."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode

LATENCY_BOUNDS_NS: Final = tuple(
    round(seconds * 1e9)
    for seconds in (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
)
"""Upper bounds of the latency histograms, in nanoseconds.

Ours: steps of 1, 2.5 and 5, from what a request takes to the default of request.timeout.ms, 30 s.
"""


class Totals:
    """What the requests of one API add up to."""

    __slots__ = ("in_bytes", "out_bytes", "requests", "took_ns")

    def __init__(self) -> None:
        self.requests = self.took_ns = self.in_bytes = self.out_bytes = 0


class Counts:
    """Counters by API key. Keys are below 256; requests whose key cannot be read are not counted."""

    def __init__(self) -> None:
        self.by_api: dict[int, Totals] = {}
        self.errors: Counter[tuple[int, ErrorCode]] = Counter()
        """API key and error code -> number of responses with it; a code counts once per response."""
        self.latencies: dict[int, list[int]] = {}
        """API key -> number of requests in each bucket of `LATENCY_BOUNDS_NS`, and above the last bound."""
        self.faulted: Counter[int] = Counter()
        """API key -> requests to which a fault applied."""

    def add(self, key: int, took_ns: int, in_bytes: int, out_bytes: int) -> None:
        """Count a request. `in_bytes` does not include the size field."""
        totals = self.by_api.get(key)
        if totals is None:
            totals = self.by_api[key] = Totals()
            self.latencies[key] = [0] * (len(LATENCY_BOUNDS_NS) + 1)
        totals.requests += 1
        totals.took_ns += took_ns
        totals.in_bytes += in_bytes + 4  # with the size field, as `out_bytes` has it
        totals.out_bytes += out_bytes
        self.latencies[key][bisect_left(LATENCY_BOUNDS_NS, took_ns)] += 1

    def add_outcome(self, key: int, errors: Sequence[ErrorCode], faults: str | None) -> None:
        """Count the error codes of a response, and the request if faults applied (``faults``: their ids)."""
        for code in set(errors):
            self.errors[key, code] += 1
        if faults is not None:
            self.faulted[key] += 1
