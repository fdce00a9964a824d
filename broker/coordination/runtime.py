"""Runtime of a coordinator's machine: appends its records, replays them, performs its effects.

One runtime serves one partition of a coordinator's log, on the broker that leads it. Operations run synchronously: the
machine decides on its current state, the records are appended as one batch and replayed, and then the effects are
performed. Nothing can run in between, so there are no locks. After Kafka's ``CoordinatorRuntime``.

Replies and a machine's own effects wait until all in-sync replicas have the records; mostly that is so as soon as they
are appended (:class:`DeferredEffects`, after Kafka's ``DeferredEventQueue``).

An observer, if there is one, receives each outcome and each refusal for the journal, with the machine's reason and the
cause of the operation: an object that the caller passed, mostly the request's context.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

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
from broker.logs import Logger
from broker.time.clock import Clock
from broker.time.long_work import LongWork
from broker.time.timers import Timer
from broker.time.wakeups import Wakeup
from protocol.errors import ErrorCode, KafkaError
from protocol.pauses import pause

# --- effects that wait ------------------------------------------------------------------------------------------------


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
        if isinstance(token, Wakeup) and token.on_done is not None:
            token.on_done()


# --- the runtime ------------------------------------------------------------------------------------------------------


_log = Logger(__name__)
M = TypeVar("M", bound=Machine[Any])
X = TypeVar("X")
T = TypeVar("T")
M_contra = TypeVar("M_contra", contravariant=True)
Token = asyncio.Future[T]
"""The future of a reply. Machines treat it as an opaque token: they only compare and pass it on."""
_FEW_RECORDS: Final = 200  # as many are written, and their effects performed, within about 10 ms
_LOGGED_SKIPS: Final = 10  # logged one by one, for each log; the rest only as a number; ours, enough to see their kind
_WRITE_TIMEOUT_MS: Final = 5000  # the default of offsets.commit.timeout.ms and share.coordinator.write.timeout.ms
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Codec(Protocol):
    """Encoding of a machine's records in its log."""

    def encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Return key and value; a null value is a tombstone."""
        ...

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:
        """Return the record, or ``None`` for a kind that this machine ignores."""
        ...


class MachineLog(ReplicatedLog, Protocol):
    """The log of a machine: one partition, on its leader."""

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """Append one batch and return its base offset. Raises KafkaError if the log refuses it."""
        ...

    def replay(self) -> Iterable[Any]:
        """Iterate over all batches from the log start: ``broker.replication.coordinator_log.LoggedBatch``."""
        ...


class Observer(Protocol[M_contra]):
    """Watches the decisions of the machines of one kind, without influence on them."""

    def on_applied(
        self, machine: M_contra, outcome: Outcome[Any], replaced: Sequence[Any], cause: object | None
    ) -> None:
        """Handle an outcome whose records are appended and replayed, before its effects are performed.

        ``replaced`` has the result of ``replay`` for each record; ``cause`` is ``None`` for timers and control plane.
        """
        ...

    def on_refused(self, machine: M_contra, error: KafkaError, cause: object | None) -> None:
        """Handle a refusal: by the machine, by its log, or in the reply of an outcome."""
        ...


class State(Enum):
    """Lifecycle states of a runtime."""

    LOADING = "loading"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class Runtime(Generic[M, X]):
    """Runs one machine on the broker that leads its log; ``X`` is the type of the machine's own effects.

    ``perform(runtime, effect)`` performs those. ``epoch`` is the leader epoch of the log's partition, which markers
    carry as the coordinator epoch. The observer is not called while an existing log is replayed.
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
        """``write_timeout_ms(records)`` is the longest time that the reply of an operation waits for replication.

        ``answers_in_order``: whether the reply of an operation without records waits for the replication of earlier
        records, as in Kafka's ``CoordinatorRuntime``.
        """
        self.machine, self.partition, self.epoch = machine, partition, epoch
        self.state = State.LOADING
        self._observer = observer
        self._codec, self._log, self._clock, self._perform = codec, log, clock, perform
        self._timers: dict[Hashable, Timer] = {}
        self._skipped = 0
        self._answers_in_order = answers_in_order
        self._deferred = DeferredEffects(log, clock, write_timeout_ms, self._effect, machine.replicated)
        self._suspended: list[Callable[[int], Outcome[X]]] = []
        """Operations without a reply that wait for :meth:`resume`."""
        self._long: LongWork[None] | None = None
        """The operation of many records that is running, if any."""

    # --- asking ------------------------------------------------------------------------------------------------------

    async def ask(
        self, operation: "Callable[[M, int, Token[T]], Outcome[X]]", cause: object | None = None, *, records: int = 1
    ) -> T:
        """Run an operation and await the reply to its token. ``cause`` is passed to the observer.

        ``records`` estimates how many records or effects the operation has. With more than a few hundred, other tasks
        run meanwhile, but no other operation: the next one first runs this one to its end. Readers may see a state
        whose effects have been performed in part, as brokers apply metadata later than the controller.

        Raises:
            KafkaError: the operation was refused, its records could not be appended, or the reply is an error; nothing
                was changed. COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR if this runtime is not active.
        """
        if records <= _FEW_RECORDS:
            return await self.begin(operation, cause)
        self.finish()
        answers: list[Token[T]] = []
        work = self._long = LongWork(lambda: answers.append(self.begin(operation, cause)))
        try:
            await work.run()
        finally:
            if self._long is work:  # else another one has run this one to its end and is now running
                self._long = None
        return await answers[0]

    def finish(self) -> None:
        """Run the current operation of many records to its end, if there is one."""
        if self._long is not None:
            self._long.finish()

    def begin(self, operation: "Callable[[M, int, Token[T]], Outcome[X]]", cause: object | None = None) -> "Token[T]":
        """Run an operation and return the future of its reply. Raises as :meth:`ask` if it is refused immediately."""
        self.finish()
        self.check_active()
        token: Token[T] = Wakeup()
        try:
            self._do(operation(self.machine, self._clock.now_ms(), token), cause)
        except KafkaError as error:
            if self._observer is not None:
                self._observer.on_refused(self.machine, error, cause)
            raise
        return token

    def replication(self) -> "Token[None] | None":
        """Return a future that is done when all records so far are replicated; ``None`` if they are already.

        It fails as the reply of an operation would: COORDINATOR_NOT_AVAILABLE after a while, or NOT_COORDINATOR.
        """
        if not self._deferred:
            return None
        token: Token[None] = asyncio.get_running_loop().create_future()
        self._deferred.add_to_last([Reply(token, None)])
        return token

    def submit(self, operation: Callable[[int], Outcome[X]]) -> bool:
        """Run an operation without a reply, such as that of a timer or of written markers.

        Return whether it appended records or failed.
        """
        self.finish()
        if self.state is State.CLOSED:
            return False
        if self.state is State.SUSPENDED:
            self._suspended.append(operation)
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

    def due_ms(self, key: Hashable) -> int | None:
        """Return when the timer with that key fires; ``None`` if it is not running."""
        timer = self._timers.get(key)
        return None if timer is None else timer.at_ms

    @property
    def active(self) -> bool:
        """Whether it takes operations."""
        return self.state is State.ACTIVE

    def check_active(self) -> None:
        """Raise COORDINATOR_LOAD_IN_PROGRESS, NOT_CONTROLLER or NOT_COORDINATOR unless the coordinator is active."""
        if self.state is State.SUSPENDED:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        if self.state is State.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is State.CLOSED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    # --- life --------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay the whole log, then let the machine restore its soft state. Does nothing if already closed.

        If the log cannot be read, because its directory went offline meanwhile, the coordinator is closed (Kafka:
        FAILED): it answers NOT_COORDINATOR until another broker leads the partition.
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

    def suspend(self) -> None:
        """Append nothing until :meth:`resume`: the log has no leader. The machine keeps its state.

        Operations with a reply are refused with NOT_CONTROLLER; those without one wait.
        """
        self.finish()
        if self.state is State.ACTIVE:
            self.state = State.SUSPENDED

    def resume(self, epoch: int) -> None:
        """Continue in a new leader epoch with what has waited."""
        self.epoch = epoch
        if self.state is State.SUSPENDED:
            self.state = State.ACTIVE
            waiting, self._suspended = self._suspended, []
            for operation in waiting:
                self.submit(operation)

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
        """Replay one record of the log; a record that cannot be decoded is skipped.

        A client with the client id ``__admin_client`` may have written it. Kafka's coordinator then fails to load; this
        one serves everything else.
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
        """Cancel the timers and answer parked requests with NOT_COORDINATOR: this broker no longer leads the log."""
        self.finish()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._deferred.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
        if self.state is State.ACTIVE:
            outcome = self.machine.unloaded()
            if self._observer is not None:
                self._observer.on_applied(self.machine, outcome, (), None)
            for effect in outcome.effects:
                if isinstance(effect, Reply):
                    resolve(effect.to, effect.message)
        self.state = State.CLOSED

    def marker_written(self, producer_id: int, producer_epoch: int, committed: bool, end_offset: int) -> None:
        """Apply a transaction marker just appended to this runtime's own log; ``end_offset`` is the new log end."""
        if self.state is State.ACTIVE:
            if self._deferred or self._log.high_watermark < end_offset:
                end = (TransactionEnd(producer_id, committed),)
                self.machine.replicating(end, None)
                self._deferred.add(end_offset, end, ())
            self.machine.replay_marker(producer_id, producer_epoch, committed)

    # --- doing -------------------------------------------------------------------------------------------------------

    def _do(self, outcome: Outcome[X], cause: object | None = None) -> bool:
        """Append, replay and perform an outcome; return whether records were appended."""
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
        """Append records that do not fit into one batch as two, and perform the effects with the second one."""
        middle = len(outcome.records) // 2
        self._do(replace(outcome, records=outcome.records[:middle], effects=(), changes=()), cause)
        self._do(replace(outcome, records=outcome.records[middle:]), cause)

    def _defer(self, outcome: Outcome[X], unreplicated_end: int | None) -> None:
        """Perform soft effects and direct replies now; defer the rest until the records are replicated."""
        soft, seen = parted(outcome.effects)
        self._effects(soft)
        if unreplicated_end is not None:
            self._deferred.add(unreplicated_end, outcome.records, seen)
        elif self._answers_in_order:
            self._deferred.add_to_last(seen)
        else:
            self._effects(seen)

    def _encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Encode a record.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, as in Kafka, if a name chosen by a client is too long to be encoded.
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
            self._clock.note_work()
