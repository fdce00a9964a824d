"""An event loop on virtual time: nothing waits, and the same work runs in the same order each time.

When nothing is ready, the time jumps to the next timer. There are no sockets, no threads and no signals; what would
start a listener is given to the simulated network.
"""

import asyncio
import math
from collections.abc import Callable
from typing import Any

_RESOLUTION_S = 1e-6
_MOST_TURNS = 200_000
"""Turns of the loop within one instant of virtual time, after which something must be spinning."""
BEGIN_NS = 1_800_000_000_000_000_000
"""The virtual time at the start of a run: January 2027."""


class Spinning(Exception):
    """The loop goes round without end while no time passes."""


class Endless(Exception):
    """The run has not come to its end within the virtual time that it may take."""


class NothingLeft(Exception):
    """Something is awaited, and there is nothing left that could end the wait."""


class _Selector:
    """What asyncio's loop asks how long to wait: it moves the time instead."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        """Move on by ``timeout`` seconds; no file is ever ready."""
        if timeout is None:
            raise NothingLeft("nothing is due, and the run is not over")
        if timeout > 0:
            self._turns = 0
            self._loop.now_s += timeout
            if self._loop.now_s > self._loop.limit_s:
                raise Endless(f"it is not over after {self._loop.limit_s:.0f} s of virtual time")
        else:
            self._turns += 1
            if self._turns > _MOST_TURNS:
                self._turns = 0  # so that the loop can be closed
                raise Spinning(f"{_MOST_TURNS} turns of the loop at {self._loop.now_s:.6f} s of virtual time")
        return []

    def close(self) -> None:
        """Do nothing: there is nothing open."""


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop over a selector that never waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.limit_s = math.inf
        self.listen: Callable[[Callable[[], Any], str, int], object] | None = None
        """Opens a listener; set by the simulated network."""
        self._selector = _Selector(self)
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self.now_s

    def time_ns(self) -> int:
        """Virtual nanoseconds since 1970, in whole microseconds."""
        return BEGIN_NS + round(self.now_s * 1_000_000) * 1000

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Open a listener of the simulated network; the options of real sockets mean nothing here."""
        assert self.listen is not None
        return self.listen(protocol_factory, str(host), int(port))

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events of files."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


async def sleep_ms(ms: float) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(ms / 1000)  # noqa: TID251 - on the virtual loop


def now_ms() -> int:
    """Virtual milliseconds since the start of the run."""
    return round(asyncio.get_running_loop().time() * 1000)
