"""Long work of plain functions, in slices: the loop serves others between two of them.

What changes the cluster is written as plain functions, which nothing can come between. For a few partitions that is
what it should be; for ten thousand, no other client would be served meanwhile. So such work runs on a stack of its
own, a greenlet: ``protocol.pauses.pause``, called anywhere within it, goes back to the loop when a slice is over, and
the work goes on there later. Work pauses where the others may see what there is so far, and nowhere else can anything
come between. A function that is not run as long work is not interrupted by its pauses.

What such work makes is mostly there to stay: partitions, logs. So the garbage collector does not walk it, during the
work or afterwards: a full collection in a cluster of 40,000 partitions would keep everybody waiting for half a second.
"""

import asyncio
import contextvars
import gc
from collections.abc import Callable
from typing import Generic, TypeVar

from greenlet import getcurrent, greenlet

from broker.clock import Slices, turns
from protocol import pauses

T = TypeVar("T")
_SLICE_US = 2000


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
        """Run it to its end, and return its result; a caller that hangs up meanwhile does not stop it half done.

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
        """Run all that is left of it now, because its end is needed; within the work itself, do nothing."""
        if self._runs:
            return
        self._hurries = True
        while not self._done:
            self._step()

    def pause(self) -> None:
        """Let the loop go on until it gives the next slice, if this one is over."""
        if not self._hurries and self._slices.over:
            parent = self._stack.parent
            assert parent is not None
            parent.switch()

    def _step(self) -> None:
        """Let it run until it pauses or ends."""
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
        except BaseException as error:  # noqa: BLE001 - it is raised where the work was begun
            self._error = error
