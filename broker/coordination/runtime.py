"""The shell around a machine: append, replay, perform.

One runtime leads one partition of a coordinator's log. Everything in it is synchronous: an operation is decided on the
state of that moment, its records are appended as one batch and replayed, and then its effects are performed. Nothing
can come in between, so there are no locks. After Kafka's ``CoordinatorRuntime``.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog

from broker.clock import Clock, Timer
from broker.coordination.outcome import CancelTimer, Machine, Outcome, Reply, SetTimer, TransactionalAppend
from protocol.errors import ErrorCode, KafkaError

_log = structlog.get_logger(__name__)
M = TypeVar("M", bound=Machine)
_TOLD_SKIPS = 10  # of one log, one by one


class Codec(Protocol):
    """How a machine's records stand in its log."""

    def encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Key and value; a null value is a tombstone."""
        ...

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:
        """The record, or ``None`` for a kind that this machine does not know."""
        ...


class MachineLog(Protocol):
    """Where a machine's records go: the leader's side of one partition."""

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """Append one batch and return its base offset; raises KafkaError where the log refuses it."""
        ...

    def replay(self) -> Iterable[Any]:
        """All batches from the log's start: objects with the fields of a decoded batch (see ``broker.shards``)."""
        ...


class State(Enum):
    """Where a runtime is in its life."""

    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class Runtime(Generic[M]):
    """One machine, led by this broker.

    ``perform`` gets every effect that is no reply and no timer, with the runtime. ``epoch`` is the leader epoch of the
    log's partition: the coordinator epoch of Kafka's markers.
    """

    def __init__(
        self,
        machine: M,
        codec: Codec,
        log: MachineLog,
        clock: Clock,
        perform: "Callable[[Runtime[M], Any], None]",
        *,
        partition: int = 0,
        epoch: int = 0,
    ) -> None:
        self.machine, self.partition, self.epoch = machine, partition, epoch
        self.state = State.LOADING
        self._codec, self._log, self._clock, self._perform = codec, log, clock, perform
        self._timers: dict[Hashable, Timer] = {}
        self._skipped = 0

    # --- asking ------------------------------------------------------------------------------------------------------

    async def ask(self, operation: Callable[[M, int, Hashable], Outcome]) -> Any:
        """Run an operation and wait for the reply addressed to its token.

        Raises:
            KafkaError: the operation refused, its records could not be appended, or the reply is an error; nothing was
                changed. COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR where this runtime is not active.
        """
        return await self.begin(operation)

    def begin(self, operation: Callable[[M, int, Hashable], Outcome]) -> "asyncio.Future[Any]":
        """Run an operation; what its reply is awaited by. Raises as :meth:`ask` where it is refused at once."""
        self.check_active()
        token: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._do(operation(self.machine, self._clock.now_ms(), token))
        return token

    def submit(self, operation: Callable[[int], Outcome]) -> None:
        """Run an operation that nobody waits for, such as a timer's or the news that markers are written."""
        if self.state is State.CLOSED:
            return
        try:
            self._do(operation(self._clock.now_ms()))
        except KafkaError as error:
            _log.warning("coordinator operation failed", partition=self.partition, error=str(error))

    def check_active(self) -> None:
        """Raise what a client hears from a coordinator that is loading or gone."""
        if self.state is State.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is State.CLOSED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # --- life --------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay the whole log, then let the machine re-arm its soft state. Nothing where it was closed before."""
        if self.state is not State.LOADING:
            return
        for batch in self._log.replay():
            if batch.marker is not None:
                self.machine.replay_marker(batch.producer_id, batch.producer_epoch, batch.marker)
                continue
            transaction = None
            if batch.is_transactional:
                transaction = TransactionalAppend(batch.producer_id, batch.producer_epoch, "")
            for offset, key, value in batch.records():
                self._replay(offset, key, value, transaction)
        if self._skipped > _TOLD_SKIPS:
            _log.warning("more records skipped", partition=self.partition, count=self._skipped - _TOLD_SKIPS)
        self.state = State.ACTIVE
        self.submit(self.machine.loaded)

    def _replay(
        self, offset: int, key: bytes | None, value: bytes | None, transaction: TransactionalAppend | None
    ) -> None:
        """One record of the log; what cannot be read is passed over.

        Anybody who calls himself ``__admin_client`` may have put it there, and a coordinator that does not start any
        more, as Kafka's then, is of no use to anybody.
        """
        try:
            record = self._codec.decode(key, value)
            if record is not None:
                self.machine.replay(record, offset, transaction)
        except Exception as error:  # noqa: BLE001 - whatever a record does to its reader
            self._skipped += 1
            if self._skipped <= _TOLD_SKIPS:
                _log.warning("record skipped", partition=self.partition, offset=offset, error=str(error))

    def close(self) -> None:
        """This broker leads the log no more: timers die, parked requests hear NOT_COORDINATOR."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self.state is State.ACTIVE:
            for effect in self.machine.unloaded().effects:
                if isinstance(effect, Reply):
                    _resolve(effect.to, effect.message)
        self.state = State.CLOSED

    def marker_written(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A transaction marker has just been appended to this runtime's own log."""
        if self.state is State.ACTIVE:
            self.machine.replay_marker(producer_id, producer_epoch, committed)

    # --- doing -------------------------------------------------------------------------------------------------------

    def _do(self, outcome: Outcome) -> None:
        if outcome.records:
            now_ms = self._clock.now_ms()
            try:
                encoded = [self._codec.encode(record) for record in outcome.records]
                base = self._log.append(encoded, now_ms, outcome.transactional)
            except KafkaError as error:
                if outcome.on_append_error is None:
                    raise
                self._effects(outcome.on_append_error(error, now_ms))
                return
            for index, record in enumerate(outcome.records):
                self.machine.replay(record, base + index, outcome.transactional)
        self._effects(outcome)

    def _effects(self, outcome: Outcome) -> None:
        for effect in outcome.effects:
            match effect:
                case Reply(to, message):
                    _resolve(to, message)
                case SetTimer(key, at_ms):
                    self._cancel(key)
                    self._timers[key] = self._clock.call_at(at_ms, partial(self._fire, effect))
                case CancelTimer(key):
                    self._cancel(key)
                case _:
                    self._perform(self, effect)

    def _cancel(self, key: Hashable) -> None:
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def _fire(self, timer: SetTimer) -> None:
        self._timers.pop(timer.key, None)
        self.submit(timer.then)


def _resolve(token: Hashable, message: Any) -> None:
    """Answer a parked request; one whose connection is gone is past answering."""
    if isinstance(token, asyncio.Future) and not token.done():
        if isinstance(message, BaseException):
            token.set_exception(message)
        else:
            token.set_result(message)
