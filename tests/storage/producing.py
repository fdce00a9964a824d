"""A partition reduced to its producer states: batches are checked, written to a list, and applied."""

from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch, build_marker
from storage.append_errors import RecordsRejectedError
from storage.append_info import AppendOrigin
from storage.producers.rules import ProducerRules
from storage.producers.state import (
    Accept,
    AppendDecision,
    CompletedTransaction,
    Duplicate,
    ProducerStates,
    VerificationGuard,
)

TIME_MS = 1_700_000_000_000


def data_batch(
    pid: int,
    epoch: int,
    sequence: int,
    count: int = 1,
    *,
    transactional: bool = False,
    time_ms: int = TIME_MS,
    base_offset: int = 0,
) -> bytearray:
    """A producer's batch."""
    return build_batch(
        [Record(base_offset + index, time_ms, b"k", b"v") for index in range(count)],
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


class Partition:
    """Producer states with a log around them; by default, batches are of producer 1 at epoch 0."""

    def __init__(self, *, start: int = 0, verification: bool = True) -> None:
        self.states = ProducerStates(ProducerRules(verification=verification))
        self.end = start
        self.log: list[bytearray] = []
        self.time_ms = TIME_MS

    def guard(
        self, *, pid: int = 1, epoch: int = 0, sequence: int = 0, tv2: bool = False, now_ms: int = TIME_MS
    ) -> VerificationGuard | None:
        """What the verification of a request gives."""
        return self.states.start_verification(pid, epoch, sequence, supports_epoch_bump=tv2, now_ms=now_ms)

    def check(
        self,
        *,
        pid: int = 1,
        epoch: int = 0,
        sequence: int = 0,
        count: int = 1,
        transactional: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: object = None,
        time_ms: int = TIME_MS,
    ) -> AppendDecision:
        """Decide about a batch at the log's end."""
        batch = data_batch(
            pid, epoch, sequence, count, transactional=transactional, time_ms=time_ms, base_offset=self.end
        )
        return self.states.check(RecordBatch(batch), origin=origin, guard=guard)

    def produce(self, **batch: object) -> int:
        """Append a batch; its base offset."""
        decision = self.check(**batch)  # type: ignore[arg-type]
        assert isinstance(decision, Accept)
        self._write(decision)
        return decision.batch.base_offset

    def try_to_produce(self, **batch: object) -> bool:
        """Append a batch unless it is refused or a duplicate; whether it was appended."""
        try:
            decision = self.check(**batch)  # type: ignore[arg-type]
        except RecordsRejectedError:
            return False
        if isinstance(decision, Duplicate):
            return False
        self._write(decision)
        return True

    def refusal(self, **batch: object) -> RecordsRejectedError:
        """The error of a batch that must not pass."""
        try:
            decision = self.check(**batch)  # type: ignore[arg-type]
        except RecordsRejectedError as error:
            return error
        raise AssertionError(f"not refused: {decision}")

    def mark(
        self,
        *,
        pid: int = 1,
        epoch: int = 0,
        commit: bool = True,
        coordinator_epoch: int = 0,
        version: int = 0,
        time_ms: int = TIME_MS,
    ) -> CompletedTransaction | None:
        """Append a marker; the transaction that it ended."""
        marker = build_marker(pid, epoch, commit, coordinator_epoch, time_ms, base_offset=self.end)
        decision = self.states.check(RecordBatch(marker), origin=AppendOrigin.COORDINATOR, transaction_version=version)
        assert isinstance(decision, Accept)
        return self._write(decision)

    def mark_refusal(self, **marker: object) -> RecordsRejectedError:
        """The error of a marker that must not pass."""
        end = self.end
        try:
            self.mark(**marker)  # type: ignore[arg-type]
        except RecordsRejectedError as error:
            assert self.end == end
            return error
        raise AssertionError("not refused")

    def _write(self, decision: Accept) -> CompletedTransaction | None:
        self.log.append(bytearray(decision.batch.view))
        self.end = decision.batch.next_offset
        return self.states.apply(decision)
