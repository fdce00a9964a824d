"""Effects that wait until their records are replicated, after Kafka's ``DeferredEventQueue``."""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from broker.coordination.outcome import CancelTimer, Outcome, Reply, RunAtOnce, SetTimer
from broker.time.clock import Clock
from broker.time.timers import Timer
from protocol.errors import ErrorCode, KafkaError


class ReplicatedLog(Protocol):
    """A log that notifies watchers when its high watermark may have moved."""

    @property
    def high_watermark(self) -> int:
        """Return the high watermark. Raises KafkaError if this broker does not lead the log."""
        ...

    def watch(self, call: Callable[[], None]) -> None:
        """Run ``call`` whenever the high watermark may have moved, until :meth:`unwatch`."""
        ...

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop running ``call``."""
        ...


@dataclass(slots=True)
class _Append:
    """One appended batch that is not replicated yet, and its waiting effects."""

    end_offset: int
    records: Sequence[Any]
    effects: list[Any]
    timer: Timer | None = None


class DeferredEffects:
    """Effects that wait for the replication of their appends, in log order.

    ``perform`` performs one effect; ``replicated`` receives the records that all in-sync replicas now have. A reply
    waits at most ``timeout_ms(records)``, then becomes COORDINATOR_NOT_AVAILABLE, which clients retry; the other
    effects keep waiting.
    """

    def __init__(
        self,
        log: ReplicatedLog,
        clock: Clock,
        timeout_ms: Callable[[Sequence[Any]], int],
        perform: Callable[[Any], None],
        replicated: Callable[[Sequence[Any]], None],
    ) -> None:
        self._log, self._clock, self._timeout_ms = log, clock, timeout_ms
        self._perform, self._replicated = perform, replicated
        self._appends: deque[_Append] = deque()
        self._scheduled = False

    def __bool__(self) -> bool:
        """Return whether any append is not replicated yet."""
        return bool(self._appends)

    def add(self, end_offset: int, records: Sequence[Any], effects: Sequence[Any]) -> None:
        """Defer the effects of an append until the high watermark reaches ``end_offset``."""
        append = _Append(end_offset, records, list(effects))
        if not self._appends:
            self._log.watch(self._wake)
        self._appends.append(append)
        self._limit(append)

    def add_to_last(self, effects: Sequence[Any]) -> None:
        """Defer the effects of an operation without records until the last append is replicated."""
        append = self._appends[-1]
        append.effects.extend(effects)
        self._limit(append)

    def _limit(self, append: _Append) -> None:
        if append.timer is None and any(isinstance(effect, Reply) for effect in append.effects):
            at_ms = self._clock.now_ms() + self._timeout_ms(append.records)
            append.timer = self._clock.call_at(at_ms, partial(self._time_out, append))

    def _time_out(self, append: _Append) -> None:
        append.timer = None
        replies = [effect for effect in append.effects if isinstance(effect, Reply)]
        append.effects = [effect for effect in append.effects if not isinstance(effect, Reply)]
        for reply in replies:
            resolve(reply.to, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _wake(self) -> None:
        """Check in a later iteration of the event loop: an append to this log may be running and not replayed yet."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._scheduled = False
        try:
            high_watermark = self._log.high_watermark
        except KafkaError:
            return  # another broker leads the log: this coordinator is about to be closed
        while self._appends and self._appends[0].end_offset <= high_watermark:
            append = self._appends.popleft()
            if not self._appends:
                self._log.unwatch(self._wake)
            if append.timer is not None:
                append.timer.cancel()
            self._replicated(append.records)
            for effect in append.effects:
                self._perform(effect)

    def fail(self, error: KafkaError) -> None:
        """Answer waiting requests with an error and drop the other effects, as another broker leads the log."""
        appends = tuple(self._appends)
        self._appends.clear()
        self._log.unwatch(self._wake)
        for append in appends:
            if append.timer is not None:
                append.timer.cancel()
            for effect in append.effects:
                if isinstance(effect, Reply):
                    resolve(effect.to, KafkaError(error.code, error.message))


def parted(effects: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Split effects into immediate ones (soft state, direct replies) and those that wait for replication."""
    at_once: list[Any] = []
    later: list[Any] = []
    for effect in effects:
        soft = isinstance(effect, (SetTimer, CancelTimer, RunAtOnce))
        (at_once if soft or _is_direct(effect) else later).append(effect)
    return at_once, later


def kept(outcome: Outcome[Any]) -> list[Any]:
    """Return the effects of an outcome that are performed even though the log refused its records."""
    timers = (SetTimer, CancelTimer) if outcome.keeps_timers else ()
    return [effect for effect in outcome.effects if _is_direct(effect) or isinstance(effect, timers)]


def _is_direct(effect: Any) -> bool:
    return isinstance(effect, Reply) and effect.direct


def resolve(token: Hashable, message: Any) -> None:
    """Answer a parked request, unless its connection is closed."""
    if isinstance(token, asyncio.Future) and not token.done():
        if isinstance(message, BaseException):
            token.set_exception(message)
        else:
            token.set_result(message)
