"""The shell around a machine: append, replay, perform.

One runtime leads one partition of a coordinator's log. Everything in it is synchronous: an operation is decided on the
state of that moment, its records are appended as one batch and replayed, and then its effects are performed. Nothing
can come in between, so there are no locks. After Kafka's ``CoordinatorRuntime``.

What may be seen outside, replies and a machine's own effects, waits until all replicas in sync have the records: mostly
that is so as soon as they are appended (``deferred``).

An observer may watch a runtime, for people: it receives each outcome and each refusal, with the reason that the machine
gives and the cause of the operation, an object that the caller passed: mostly the request's context.
"""

import asyncio
import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog

from broker.clock import Clock
from broker.coordination.deferred import DeferredEffects, ReplicatedLog, kept, parted, resolve
from broker.coordination.outcome import (
    CancelTimer,
    Machine,
    Outcome,
    Reply,
    RunAtOnce,
    RunLater,
    SetTimer,
    TransactionalAppend,
    TransactionEnd,
)
from broker.long_work import LongWork
from broker.timers import Timer
from protocol.errors import ErrorCode, KafkaError
from protocol.pauses import pause

_log = structlog.get_logger(__name__)
M = TypeVar("M", bound=Machine[Any])
X = TypeVar("X")
T = TypeVar("T")
M_contra = TypeVar("M_contra", contravariant=True)
Token = asyncio.Future[T]
"""The address of a reply. Machines compare tokens and hand them on; what a token is, only the runtime knows."""
_FEW_RECORDS = 200  # that are made, and their effects performed, within about 10 ms
_LOGGED_SKIPS = 10  # of one log, one by one
_WRITE_TIMEOUT_MS = 5000  # the default of offsets.commit.timeout.ms and share.coordinator.write.timeout.ms
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Codec(Protocol):
    """How a machine's records are written in its log."""

    def encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Key and value; a null value is a tombstone."""
        ...

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:
        """The record, or ``None`` for a kind that this machine ignores."""
        ...


class MachineLog(ReplicatedLog, Protocol):
    """Where a machine's records go: the leader's side of one partition."""

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """Append one batch and return its base offset. Raises KafkaError if the log refuses it."""
        ...

    def replay(self) -> Iterable[Any]:
        """All batches from the log's start, with the fields of ``broker.replication.coordinator_log.LoggedBatch``."""
        ...


class Observer(Protocol[M_contra]):
    """Watches the decisions of the machines of a kind. It decides nothing, and costs nothing where there is none."""

    def on_applied(
        self, machine: M_contra, outcome: Outcome[Any], replaced: Sequence[Any], cause: object | None
    ) -> None:
        """An outcome's records are appended and replayed; its effects come next.

        ``replaced`` is what ``replay`` returned for each record. ``cause`` is ``None`` for timers and steering.
        """
        ...

    def on_refused(self, machine: M_contra, error: KafkaError, cause: object | None) -> None:
        """An operation was refused, by the machine or by its log, or an outcome's reply refuses what was asked for."""
        ...


class State(Enum):
    """Where a runtime is in its life."""

    LOADING = "loading"
    ACTIVE = "active"
    CLOSED = "closed"


class Runtime(Generic[M, X]):
    """One machine, led by this broker; ``X`` are the effects that are the machine's own.

    ``perform`` gets those, with the runtime. ``epoch`` is the leader epoch of the
    log's partition: the coordinator epoch of Kafka's markers. What is replayed from an old log is not observed.
    """

    def __init__(
        self,
        machine: M,
        codec: Codec,
        log: MachineLog,
        clock: Clock,
        perform: "Callable[[Runtime[M, X], X], None]",
        *,
        partition: int = 0,
        epoch: int = 0,
        observer: Observer[M] | None = None,
        write_timeout_ms: Callable[[Sequence[Any]], int] = lambda _records: _WRITE_TIMEOUT_MS,
        answers_in_order: bool = True,
    ) -> None:
        """``write_timeout_ms`` is how long the reply of an operation with these records waits for replicas at most.

        ``answers_in_order``: whether a reply without records waits for the records before it as well, as those of
        Kafka's ``CoordinatorRuntime`` do.
        """
        self.machine, self.partition, self.epoch = machine, partition, epoch
        self.state = State.LOADING
        self._observer = observer
        self._codec, self._log, self._clock, self._perform = codec, log, clock, perform
        self._timers: dict[Hashable, Timer] = {}
        self._skipped = 0
        self._answers_in_order = answers_in_order
        self._deferred = DeferredEffects(log, clock, write_timeout_ms, self._effect, machine.replicated)
        self._long: LongWork[None] | None = None
        """An operation of many records that is under way."""

    # --- asking ------------------------------------------------------------------------------------------------------

    async def ask(
        self, operation: "Callable[[M, int, Token[T]], Outcome[X]]", cause: object | None = None, *, records: int = 1
    ) -> T:
        """Run an operation and wait for the reply addressed to its token. ``cause`` is for the observer.

        ``records`` is about how many it makes, or effects; of more than a few hundred, others are served meanwhile.
        Nothing else is decided then: the next operation first runs this one to its end. What may be seen is a state
        whose effects have been performed in part, as brokers apply the metadata later than the controller has them.

        Raises:
            KafkaError: the operation refused, its records could not be appended, or the reply is an error; nothing was
                changed. COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR where this runtime is not active.
        """
        if records <= _FEW_RECORDS:
            return await self.begin(operation, cause)
        self.finish()
        answers: list[Token[T]] = []
        work = self._long = LongWork(lambda: answers.append(self.begin(operation, cause)))
        try:
            await work.run()
        finally:
            if self._long is work:  # else another one, which has run this to its end, is under way
                self._long = None
        return await answers[0]

    def finish(self) -> None:
        """Run an operation to its end that is under way at length."""
        if self._long is not None:
            self._long.finish()

    def begin(self, operation: "Callable[[M, int, Token[T]], Outcome[X]]", cause: object | None = None) -> "Token[T]":
        """Run an operation, and return the future of its reply. Raises as :meth:`ask` where it is refused at once."""
        self.finish()
        self.check_active()
        token: Token[T] = asyncio.get_running_loop().create_future()
        try:
            self._do(operation(self.machine, self._clock.now_ms(), token), cause)
        except KafkaError as error:
            if self._observer is not None:
                self._observer.on_refused(self.machine, error, cause)
            raise
        return token

    def replication(self) -> "Token[None] | None":
        """A future of all that is written so far being replicated, ``None`` where it is.

        It fails as the reply of an operation would: COORDINATOR_NOT_AVAILABLE after a while, or NOT_COORDINATOR.
        """
        if not self._deferred:
            return None
        token: Token[None] = asyncio.get_running_loop().create_future()
        self._deferred.add_to_last([Reply(token, None)])
        return token

    def submit(self, operation: Callable[[int], Outcome[X]]) -> bool:
        """Run an operation without a reply, such as a timer's, or the report that markers are written.

        Returns whether records of it were appended, or it failed.
        """
        self.finish()
        if self.state is State.CLOSED:
            return False
        try:
            outcome = operation(self._clock.now_ms())
            appended = self._do(outcome)
        except KafkaError as error:
            self._warn(error)
            return True
        if outcome.refusal is not None:
            self._warn(outcome.refusal)
        return appended

    def _warn(self, error: KafkaError) -> None:
        _log.warning("coordinator operation failed", partition=self.partition, error=str(error))

    def check_active(self) -> None:
        """Raise COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR unless the coordinator serves."""
        if self.state is State.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is State.CLOSED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # --- life --------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay the whole log, then let the machine re-arm its soft state, unless it was closed before.

        A log that cannot be read, since its directory went offline meanwhile, leaves it closed (Kafka: FAILED): it
        answers NOT_COORDINATOR until another broker leads.
        """
        if self.state is not State.LOADING:
            return
        try:
            self._replay_log()
        except KafkaError as error:
            _log.error("coordinator cannot be loaded", partition=self.partition, error=str(error))
            self.close()
            return
        if self.state is not State.LOADING:
            return
        self.state = State.ACTIVE
        self.submit(self.machine.loaded)

    def _replay_log(self) -> None:
        for batch in self._log.replay():
            if batch.marker is not None:
                self.machine.replay_marker(batch.producer_id, batch.producer_epoch, batch.marker)
                continue
            transaction = None
            if batch.is_transactional:
                transaction = TransactionalAppend(batch.producer_id, batch.producer_epoch, "")
            for offset, key, value in batch.records():
                self._replay(offset, key, value, transaction)
                pause()
        if self._skipped > _LOGGED_SKIPS:
            _log.warning("more records skipped", partition=self.partition, count=self._skipped - _LOGGED_SKIPS)

    def _replay(
        self, offset: int, key: bytes | None, value: bytes | None, transaction: TransactionalAppend | None
    ) -> None:
        """One record of the log; a record that cannot be read is skipped.

        A client that calls itself ``__admin_client`` may have written it. Kafka's coordinator does not start then; here
        it serves everything else.
        """
        try:
            record = self._codec.decode(key, value)
            if record is not None:
                self.machine.replay(record, offset, transaction)
        except Exception as error:  # noqa: BLE001 - any record, however malformed
            self._skipped += 1
            if self._skipped <= _LOGGED_SKIPS:
                _log.warning("record skipped", partition=self.partition, offset=offset, error=str(error))

    def close(self) -> None:
        """This broker no longer leads the log: cancel the timers, answer parked requests with NOT_COORDINATOR."""
        self.finish()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._deferred.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
        if self.state is State.ACTIVE:
            for effect in self.machine.unloaded().effects:
                if isinstance(effect, Reply):
                    resolve(effect.to, effect.message)
        self.state = State.CLOSED

    def marker_written(self, producer_id: int, producer_epoch: int, committed: bool, end_offset: int) -> None:
        """A transaction marker has just been appended to this runtime's own log, which it ends at ``end_offset``."""
        if self.state is State.ACTIVE:
            if self._deferred or self._log.high_watermark < end_offset:
                end = (TransactionEnd(producer_id, committed),)
                self.machine.replicating(end, None)
                self._deferred.add(end_offset, end, ())
            self.machine.replay_marker(producer_id, producer_epoch, committed)

    # --- doing -------------------------------------------------------------------------------------------------------

    def _do(self, outcome: Outcome[X], cause: object | None = None) -> bool:
        """Append, replay, perform. Returns whether there were records, and the log took them."""
        replaced: Sequence[Any] = ()
        unreplicated_end: int | None = None
        refused, appended = outcome.failed, False
        if outcome.records:
            now_ms = self._clock.now_ms()
            try:
                encoded = [self._encode(record) for record in outcome.records]
                base = self._log.append(encoded, now_ms, outcome.transactional)
            except KafkaError as error:
                if outcome.divisible and error.code in _TOO_LARGE and len(outcome.records) > 1:
                    self._do_in_halves(outcome, cause)
                    return True
                self._effects(kept(outcome))
                if outcome.on_append_error is None:
                    raise
                outcome, refused = outcome.on_append_error(error, now_ms), True
            else:
                end, appended = base + len(outcome.records), True
                if self._deferred or self._log.high_watermark < end:
                    unreplicated_end = end
                    self.machine.replicating(outcome.records, outcome.transactional)
                transaction, replay = outcome.transactional, self.machine.replay
                replaced = [replay(record, base + at, transaction) for at, record in enumerate(outcome.records)]
        if self._observer is not None:
            self._observer.on_applied(self.machine, outcome, replaced, cause)
            if outcome.refusal is not None:
                self._observer.on_refused(self.machine, outcome.refusal, cause)
        if refused or (unreplicated_end is None and not self._deferred):
            self._effects(outcome.effects)
        else:
            self._defer(outcome, unreplicated_end)
        return appended

    def _do_in_halves(self, outcome: Outcome[X], cause: object | None) -> None:
        """Append records that are too many for one batch as two, and perform the effects with the last of them."""
        middle = len(outcome.records) // 2
        self._do(replace(outcome, records=outcome.records[:middle], effects=(), changes=()), cause)
        self._do(replace(outcome, records=outcome.records[middle:]), cause)

    def _defer(self, outcome: Outcome[X], unreplicated_end: int | None) -> None:
        """Change the soft state, answer directly; the rest waits for the outcome's records, or for those before it."""
        soft, seen = parted(outcome.effects)
        self._effects(soft)
        if unreplicated_end is not None:
            self._deferred.add(unreplicated_end, outcome.records, seen)
        elif self._answers_in_order:
            self._deferred.add_to_last(seen)
        else:
            self._effects(seen)

    def _encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Write a record.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, as from Kafka, where a name of a client is too long to be written.
        """
        if self._long is not None:
            self._long.pause()
        try:
            return self._codec.encode(record)
        except (struct.error, ValueError) as error:
            _log.warning("record cannot be written", partition=self.partition, error=str(error))
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

    def _effects(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            if self._long is not None:
                self._long.pause()
            self._effect(effect)

    def _effect(self, effect: Any) -> None:
        match effect:
            case Reply(to, message):
                resolve(to, message)
            case SetTimer(key, at_ms, _, rhythm):
                self._cancel(key)
                self._timers[key] = self._clock.call_at(at_ms, partial(self._fire, effect), rhythm)
            case CancelTimer(key):
                self._cancel(key)
            case RunLater(then):
                asyncio.get_running_loop().call_soon(self.submit, then)
            case RunAtOnce(then):
                self._do(then(self._clock.now_ms()))
            case _:
                self._perform(self, effect)

    def _cancel(self, key: Hashable) -> None:
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def _fire(self, timer: SetTimer) -> None:
        self._timers.pop(timer.key, None)
        if self.submit(timer.then) and timer.rhythm is not None:
            self._clock.found()
