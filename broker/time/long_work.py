"""Long synchronous functions, run in slices so that the event loop serves other requests in between.

What changes the cluster is written as synchronous functions, which nothing can interleave with. That is right for a
few partitions; for ten thousand, no other client would be served meanwhile. So such work runs in a greenlet:
``protocol.pauses.pause``, called anywhere within it, returns to the loop when a slice is over, and the work continues
later. Work pauses only where others may see the state reached so far, and nothing can interleave anywhere else. In a
function that is not run as long work, its pauses do nothing.

Most objects that such work creates stay alive: partitions, logs. So they are excluded from garbage collection, during
the work and afterwards: a full collection in a cluster of 40,000 partitions would delay every request by half a second.
"""

import asyncio
import contextvars
import gc
from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import getcurrent, greenlet

from broker.time.clock import Slices, turns
from protocol import pauses

T = TypeVar("T")
_SLICE_US = 2000
"""Longer than other slices: clients wait for the end of a reset anyway, and each switch prolongs it."""


class LongWork(Generic[T]):
    """One function that runs in slices."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._stack = greenlet(self._run_all)
        self._stack.gr_context = contextvars.copy_context()
        self._slices = Slices(_SLICE_US)
        self._hurries, self._runs = False, False
        self._result: list[T] = []
        self._error: BaseException | None = None

    @property
    def _done(self) -> bool:
        return bool(self._stack.dead)

    async def run(self) -> T:
        """Run the function to its end and return its result; if the caller is cancelled, the work is still completed.

        Raises what the function raises.
        """
        cancelled = None
        while not self._done:
            self._step()
            try:
                await turns(1)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if self._error is not None:
            raise self._error
        return self._result[0]

    def finish(self) -> None:
        """Run the rest without pauses, because its result is needed now; called from within the work, do nothing."""
        if self._runs:
            return
        self._hurries = True
        while not self._done:
            self._step()

    def pause(self) -> None:
        """Return to the event loop until the next slice, if this slice is over."""
        if not self._hurries and self._slices.over:
            parent = self._stack.parent
            assert parent is not None
            parent.switch()

    def _step(self) -> None:
        """Run until the function pauses or ends."""
        collects, before = gc.isenabled(), pauses.interrupt
        gc.disable()
        pauses.interrupt, self._runs = self.pause, True
        self._slices = Slices(_SLICE_US)
        try:
            self._stack.parent = getcurrent()
            self._stack.switch()
        finally:
            pauses.interrupt, self._runs = before, False
            if collects:
                gc.freeze()
                gc.enable()

    def _run_all(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._error = error
