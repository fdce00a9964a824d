"""A transaction machine on the workbench: log, timers and clock are plain lists and numbers, there is no event loop."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from broker.coordination.outcome import CancelTimer, Reply, SetTimer, TransactionOutcome, WriteMarkers
from broker.coordination.reasons import Reason, StateChange
from broker.coordination.transaction.machine import TransactionMachine
from broker.coordination.transaction.rules import EndRequest
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records import transaction as codec
from protocol.log_records.transaction import TransactionRecord, TransactionState, TransactionTombstone
from tests.coordination.settings import FixedSettings

START_MS = 1_700_000_000_000
FOO, BAR = ("foo", 0), ("bar", 1)
S = TransactionState
OPEN = (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)

SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3_600_000,
    "transactional.id.expiration.ms": 604_800_000,
}


class Bench:
    """Asks a machine, keeps what it writes, and performs its effects, in order."""

    def __init__(self, log: list[tuple[bytes, bytes | None]] | None = None, *, version: int = 2) -> None:
        self.now_ms = START_MS
        self.version = version
        self.settings = FixedSettings(SETTINGS)
        self.ids: Iterator[int] = count(1000, 1000)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.effects: list[Any] = []
        self.timers: dict[Any, SetTimer] = {}
        self.refuse_append: ErrorCode | None = None
        self.followers_lag = False
        self.reasons: list[Reason] = []
        """Why each record was written, beside :attr:`log`."""
        self.changes: list[StateChange] = []
        """What happened without a record."""
        self.machine = TransactionMachine(self.settings, lambda: next(self.ids), lambda: self.version)
        for key, value in log or []:
            record = codec.decode(key, value)
            assert record is not None
            self.machine.replay(record, len(self.log))
            self.log.append((key, value))
        self.do(self.machine.loaded(self.now_ms))

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, operation: Callable[[str], TransactionOutcome]) -> Any:
        """Return the message of the reply; raise it if it is an error. Other effects are in :attr:`effects`."""
        self.effects.clear()
        self.do(operation("me"))
        (reply,) = [effect.message for effect in self.effects if isinstance(effect, Reply) and effect.to == "me"]
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    def code(self, operation: Callable[[], Any]) -> int:
        """The error code that an operation ends with, 0 for success."""
        try:
            operation()
        except KafkaError as error:
            return int(error.code)
        return 0

    def init(
        self, name: str = "tx", expected: tuple[int, int] = NO_PRODUCER, timeout_ms: int = 60_000
    ) -> ProducerIdAndEpoch:
        """InitProducerId."""
        producer: ProducerIdAndEpoch = self.ask(
            lambda to: self.machine.init_producer_id(name, timeout_ms, ProducerIdAndEpoch(*expected), self.now_ms, to)
        )
        return producer

    def add(
        self,
        producer: tuple[int, int],
        *partitions: tuple[str, int],
        name: str = "tx",
        client_transaction_version: int = 0,
        pending_first: bool = True,
    ) -> None:
        """AddPartitionsToTxn."""
        self.ask(
            lambda to: self.machine.add_partitions(
                name,
                ProducerIdAndEpoch(*producer),
                frozenset(partitions),
                self.now_ms,
                to,
                client_transaction_version=client_transaction_version,
                pending_first=pending_first,
            )
        )

    def verify(
        self, producer: tuple[int, int], *partitions: tuple[str, int], name: str = "tx"
    ) -> dict[tuple[str, int], ErrorCode]:
        """AddPartitionsToTxn that only verifies; markers that wait go on waiting."""
        outcome = self.machine.verify_partitions(name, ProducerIdAndEpoch(*producer), partitions, "me")
        (reply,) = outcome.effects
        assert isinstance(reply, Reply)
        codes: dict[tuple[str, int], ErrorCode] = reply.message
        return codes

    def end(
        self,
        producer: tuple[int, int],
        committed: bool = True,
        *,
        name: str = "tx",
        client_transaction_version: int = 2,
    ) -> ProducerIdAndEpoch:
        """EndTxn; the markers wait in :attr:`effects`."""
        next_producer: ProducerIdAndEpoch = self.ask(
            lambda to: self.machine.end(
                name,
                EndRequest(*producer, committed),
                self.now_ms,
                to,
                client_transaction_version=client_transaction_version,
            )
        )
        return next_producer

    def write_markers(self, result: ErrorCode = ErrorCode.NONE) -> None:
        """Answer all markers of the last operation in the same way."""
        markers, self.effects = [m for m in self.effects if isinstance(m, WriteMarkers)], []
        assert markers, "no markers are to be written"
        for effect in markers:
            self.do(
                self.machine.markers_written(
                    effect.transactional_id,
                    ProducerIdAndEpoch(effect.producer_id, effect.producer_epoch),
                    dict.fromkeys(effect.partitions, result),
                    self.now_ms,
                )
            )

    # --- doing -------------------------------------------------------------------------------------------------------

    def do(self, outcome: TransactionOutcome) -> None:
        """Append, replay, perform; as the runtime does."""
        if outcome.records and self.refuse_append is not None:
            assert outcome.on_append_error is not None
            outcome = outcome.on_append_error(KafkaError(self.refuse_append), self.now_ms)
        else:
            if self.followers_lag:
                self.machine.replicating(outcome.records)
            for record in outcome.records:
                self.machine.replay(record, len(self.log))
                self.log.append(codec.encode(record))
                assert outcome.reason is not None, "a record was written without a reason"
                self.reasons.append(outcome.reason)
        self.changes += outcome.changes
        for effect in outcome.effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.key] = effect
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
            else:
                self.effects.append(effect)

    def replicate(self) -> None:
        """All replicas in sync have the log."""
        self.followers_lag = False
        self.machine.replicated([codec.decode(*entry) for entry in self.log])  # type: ignore[misc]

    def advance(self, ms: int) -> None:
        """Let time pass, firing each timer at its own time."""
        target_ms = self.now_ms + ms
        while due := [timer for timer in self.timers.values() if timer.at_ms <= target_ms]:
            timer = min(due, key=lambda each: each.at_ms)
            del self.timers[timer.key]
            self.now_ms = max(self.now_ms, timer.at_ms)
            self.do(timer.then(self.now_ms))
        self.now_ms = target_ms

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def written(self) -> list[TransactionRecord | TransactionTombstone | None]:
        """Everything in the log, decoded."""
        return [codec.decode(*entry) for entry in self.log]

    @property
    def last(self) -> TransactionRecord:
        """The newest record of the log, as a reader sees it."""
        record = self.written[-1]
        assert isinstance(record, TransactionRecord)
        return record

    def state(self, name: str = "tx") -> tuple[str, int, int]:
        """Where an id is: state, producer id, epoch."""
        record = self.machine.transactions[name]
        return record.state.text, record.producer_id, record.producer_epoch

    def plant(
        self, state: S, epoch: int, *, producer_id: int = 1000, previous: int | None = None, last: int = -1
    ) -> None:
        """Put an id ``tx`` into a state, as if it had been replayed from a log."""
        next(self.ids)  # 1000 is taken
        partitions = None if state is S.EMPTY else frozenset({FOO} if state in OPEN else ())
        start_ms = -1 if state is S.EMPTY else self.now_ms
        self.machine.replay(
            TransactionRecord(
                "tx",
                producer_id,
                epoch,
                60_000,
                state,
                partitions,
                self.now_ms,
                start_ms,
                producer_id if previous is None else previous,
                last_epoch=last,
            ),
            0,
        )
