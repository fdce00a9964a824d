"""The faults of a cluster, in the order in which they were added, and the count of hits of each.

Faults are a chain of middleware with the oldest outermost: each may act on the request, pass it on to the next fault,
or respond itself. Without faults requests do not pass them (``ClusterBase.build_handlers``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from broker.request.answers import Disconnect
from broker.request.api import AnyHandler
from broker.request.context import RequestContext
from broker.steering.faults.actions import Action, refuses
from broker.steering.faults.match import Match
from broker.time.clock import Clock, Waiter, stopwatch_ns
from broker.time.rng import Random
from protocol.types import Message


@dataclass(eq=False)
class Fault:
    """A fault. ``description`` is the JSON that the user sent; ``times`` is ``None`` for any number of requests."""

    id: str
    match: Match
    action: Action
    description: dict[str, Any]
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0
    added_us: int = 0
    """When the fault was added, by the same monotonic clock as ``began_us`` of journal entries."""
    hits: int = 0
    _skipped: int = 0
    _claimed: int = 0
    _removed: bool = False
    _reset: bool = False
    _restarts: int = 0
    """Resets and restores of the cluster that the fault has survived."""
    _delays: set[Waiter] = field(default_factory=set)
    _waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)

    @property
    def remaining(self) -> int | None:
        """Return how many more requests the fault affects; ``None`` for any number."""
        return None if self.times is None else self.times - self._claimed

    def claim(self, rng: Random) -> bool:
        """Decide whether the fault applies to a matching request, by ``skip``, ``times`` and ``probability``.

        A removed fault applies to none, not even to requests that an earlier fault has delayed.
        """
        if self._removed or (self.times is not None and self._claimed >= self.times):
            return False
        if self._skipped < self.skip:
            self._skipped += 1
            return False
        if self.probability < 1.0 and rng.random() >= self.probability:
            return False
        self._claimed += 1
        return True

    def count_hit(self) -> None:
        """Count a hit: the fault took effect once more."""
        self.hits += 1
        for hits, future in self._waiting:
            if hits <= self.hits and not future.done():
                future.set_result(None)

    async def pause(self, clock: Clock, ms: int) -> None:
        """Wait ``ms`` on the cluster's clock, or until the fault is removed.

        Raises:
            Disconnect: the cluster was reset or restored; earlier requests get no response.
        """
        restarts = self._restarts
        if not self._removed:  # it may have been removed while the request was served
            waiter = Waiter()
            self._delays.add(waiter)
            try:
                await waiter.wait(clock, clock.now_ms() + ms)
            finally:
                self._delays.discard(waiter)
        if self._reset or self._restarts != restarts:
            raise Disconnect("the cluster was reset or restored", on_purpose=True)

    async def wait_hits(self, hits: int, timeout_s: float) -> None:
        """Wait for this number of hits, ``timeout_s`` of real time at most."""
        if self.hits >= hits:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((hits, future))
        await asyncio.wait((future,), timeout=timeout_s)
        self._waiting.remove((hits, future))

    def disconnect_delayed(self) -> None:
        """Disconnect all delayed requests but keep the fault: a reset keeps it, or the cluster is restored."""
        self._restarts += 1
        for waiter in self._delays:
            waiter.wake()

    def end(self, *, reset: bool = False) -> None:
        """End the fault: delayed requests continue, or are disconnected if a ``reset`` removed it."""
        self._removed, self._reset = True, reset
        for waiter in self._delays:
            waiter.wake()
        for _, future in self._waiting:
            if not future.done():
                future.set_result(None)


class Faults:
    """The faults of a cluster, and the middleware that applies them."""

    def __init__(self, rng: Random, on_change: Callable[[], None] | None = None) -> None:
        """``on_change`` is called when the first fault is added, and when the last one is removed."""
        self._rng, self._on_change = rng, on_change
        self._numbers = count(1)  # not restarted by a reset: an id is never used twice
        self.faults: dict[str, Fault] = {}

    def add(
        self,
        match: Match,
        action: Action,
        description: dict[str, Any],
        *,
        skip: int = 0,
        times: int | None = 1,
        probability: float = 1.0,
    ) -> Fault:
        """Append a fault; its limits are those of :meth:`Fault.claim`."""
        fault = Fault(
            str(next(self._numbers)), match, action, description, skip, times, probability, stopwatch_ns() // 1000
        )
        self.faults[fault.id] = fault
        if len(self.faults) == 1:
            self._changed()
        return fault

    def remove(self, fault_id: str) -> Fault | None:
        """Remove a fault, and let the requests that it delays continue; return it, or ``None`` if it is unknown."""
        fault = self.faults.pop(fault_id, None)
        if fault is not None:
            fault.end()
            if not self.faults:
                self._changed()
        return fault

    def clear(self, *, reset: bool = False) -> None:
        """Remove all faults."""
        for fault in self.faults.values():
            fault.end(reset=reset)
        if self.faults:
            self.faults.clear()
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()

    def disconnect_delayed(self) -> None:
        """Keep all faults, but disconnect the requests that they delay."""
        for fault in self.faults.values():
            fault.disconnect_delayed()

    def apply(self, request: Message, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Message | None]:
        """Middleware: apply the matching faults to a request."""
        if not self.faults:
            return handle(request, ctx)
        return self._pass(request, ctx, handle, list(self.faults.values()))

    async def _pass(
        self, request: Message, ctx: RequestContext, handle: AnyHandler, faults: Iterable[Fault]
    ) -> Message | None:
        """Let the first of these faults that applies act on the request; the rest apply to what it passes on."""
        following = list(faults)
        while following:
            fault = following.pop(0)
            hit = fault.match.find(request, ctx)
            if hit is None or not fault.claim(self._rng):
                continue
            ctx.notes.note_fault(fault.id, refuses=refuses(fault.action))

            def next_fault(request: Message, ctx: RequestContext) -> Awaitable[Message | None]:
                return self._pass(request, ctx, handle, following)

            return await fault.action.act(hit, ctx, next_fault, fault)
        return await handle(request, ctx)
