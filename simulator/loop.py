"""An event loop on virtual time: it never waits, and runs the same work in the same order each time.

When nothing is ready, the time jumps to the next timer. There are no sockets, no threads and no signals; listeners are
opened in the simulated network.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Any

_RESOLUTION_S = 1e-6
_MOST_TURNS = 200_000
"""Iterations of the loop without progress of virtual time after which it counts as spinning."""
BEGIN_NS = 1_800_000_000_000_000_000
"""The virtual time at the start of a run: January 2027."""


class Spinning(Exception):
    """The loop runs on while no virtual time passes."""


class Endless(Exception):
    """The run has not ended within its limit of virtual time."""


class NothingLeft(Exception):
    """Deadlock: the run awaits something, and no task or timer is left that could complete it."""


class _Selector:
    """Selector of asyncio's loop that advances the virtual time instead of waiting."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the time by ``timeout`` seconds; no file is ever ready."""
        if timeout is None:
            raise NothingLeft("nothing is due, and the run is not over")
        if timeout > 0:
            self._turns = 0
            self._loop.now_s += timeout
            if self._loop.now_s > self._loop.limit_s:
                raise Endless(f"it is not over after {self._loop.limit_s:.0f} s of virtual time")
            self._loop.advanced()
        else:
            self._turns += 1
            if self._turns > _MOST_TURNS:
                self._turns = 0  # so that the loop can be closed
                raise Spinning(f"{_MOST_TURNS} turns of the loop at {self._loop.now_s:.6f} s of virtual time")
        return []

    def close(self) -> None:
        """Do nothing: nothing is open."""


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop over a selector that never waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.limit_s = math.inf
        self.listen: Callable[[Callable[[], Any], str, int], object] | None = None
        """Opens a listener; set by the simulated network."""
        self.advanced: Callable[[], None] = lambda: None
        """Called whenever the virtual time has advanced; what it raises ends the run."""
        self._selector = _Selector(self)
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self.now_s

    def time_ns(self) -> int:
        """Virtual nanoseconds since 1970, in whole microseconds."""
        return BEGIN_NS + round(self.now_s * 1_000_000) * 1000

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Open a listener of the simulated network; options of real sockets are ignored."""
        assert self.listen is not None
        return self.listen(protocol_factory, str(host), int(port))

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events of files."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


async def sleep_ms(ms: float) -> None:
    """Sleep for some virtual milliseconds."""
    await asyncio.sleep(ms / 1000)  # noqa: TID251 - on the virtual loop


def now_ms() -> int:
    """Return the virtual milliseconds since the start of the run."""
    return round(asyncio.get_running_loop().time() * 1000)
