"""What is logged of peers that were refused: one line each, and never more lines than somebody can read."""

from typing import Any

import structlog

from broker.clock import Clock, Timer

_log = structlog.get_logger(__name__)
LINES = 100
"""In one window; the rest is only counted."""
WINDOW_MS = 1000


class Refusals:
    """The log lines of one broker's refusals. A flood of bad requests must not become a flood of lines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told = self._untold = 0
        self._window_ms = 0
        self._timer: Timer | None = None

    def tell(self, peer: str, reason: str, *, event: str = "connection closed", **asked: Any) -> None:
        """Log what became of a request, and why; ``asked`` is its ``api`` and ``version``, as far as they are known."""
        now_ms = self._clock.machine_ms()
        if not 0 <= now_ms - self._window_ms < WINDOW_MS:
            self._sum_up()
            self._window_ms, self._told = now_ms, 0
        if self._told < LINES:
            self._told += 1
            _log.warning(event, peer=peer, **asked, reason=reason)
            return
        self._untold += 1
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.now_ms() + WINDOW_MS, self._sum_up)

    def _sum_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._untold:
            _log.warning("more was refused than is told one by one", count=self._untold)
            self._untold = 0

    def close(self) -> None:
        """Say what has not been said."""
        self._sum_up()
