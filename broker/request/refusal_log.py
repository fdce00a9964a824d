"""Rate-limited log lines about refused requests, one line each."""

from collections import deque
from typing import Any, NamedTuple

from broker.logs import Logger
from broker.time.clock import Clock
from broker.time.timers import Timer

_log = Logger(__name__)
LINES = 100
"""The maximum of lines in one window; the rest is counted: ours, as many as can be read in a second."""
WINDOW_MS = 1000  # a second with a hundred lines can still be read
CLOSED = "connection closed"
_MOST_CLOSED = 20  # the newest, for explanations; ours, what a report can show
RESETS_WINDOW_MS = 60_000
"""One line counts the connections in this time that were reset before they were accepted: health checks, port scans.

Ours, a line a minute.
"""


class Closed(NamedTuple):
    """A connection that the broker closed because of what it sent, at a time of the cluster's clock."""

    at_ms: int
    peer: str
    reason: str


class RefusalLog:
    """Rate-limits one broker's log lines about refused requests. ``closed`` are the latest closed connections."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged = self._suppressed = 0
        self._window_ms = 0
        self._timer: Timer | None = None
        self.closed: deque[Closed] = deque(maxlen=_MOST_CLOSED)
        self._resets = 0
        self._resets_timer: Timer | None = None

    def log_refusal(self, peer: str, reason: str, *, event: str = CLOSED, **request: Any) -> None:
        """Log a refusal and its reason; ``request`` is the ``api`` and ``version``, if known."""
        if event == CLOSED:
            self.closed.append(Closed(self._clock.now_ms(), peer, reason))
        now_ms = self._clock.machine_ms()
        if not 0 <= now_ms - self._window_ms < WINDOW_MS:
            self._log_suppressed()
            self._window_ms, self._logged = now_ms, 0
        if self._logged < LINES:
            self._logged += 1
            _log.warning(event, peer=peer, **request, reason=reason)
            return
        self._suppressed += 1
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.now_ms() + WINDOW_MS, self._log_suppressed)

    def _log_suppressed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._suppressed:
            _log.warning("further refusals were not logged", count=self._suppressed)
            self._suppressed = 0

    def count_reset(self) -> None:
        """Count a connection that was reset before it was accepted."""
        self._resets += 1
        if self._resets_timer is None:
            self._resets_timer = self._clock.call_at(self._clock.now_ms() + RESETS_WINDOW_MS, self._log_resets)

    def _log_resets(self) -> None:
        if self._resets_timer is not None:
            self._resets_timer.cancel()
            self._resets_timer = None
        if self._resets:
            _log.info("connections were reset before they were accepted", count=self._resets)
            self._resets = 0

    def close(self) -> None:
        """Log the pending counts."""
        self._log_suppressed()
        self._log_resets()
