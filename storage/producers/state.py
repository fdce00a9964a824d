"""Producer state of a partition: sequences, epochs, open transactions, and the verification of transactional producers.

The leader calls `check`, which changes nothing and rejects with the code for the producer; then writes the batch; then
calls `apply` with the decision. Followers and recovery call `replay`, which trusts the log. Offsets are those stamped
into the batch. Rules: transactions D.4 S1 to S10, D.6 M1 to M3 (Kafka: ProducerStateManager,
ProducerAppendInfo).

Before a transactional producer appends, it is verified with its coordinator (KIP-890), in memory only. A guard is taken
when a Produce request arrives and must still be current when its batch is appended: a marker written in between
invalidates the guard, so a late batch cannot begin a hanging transaction (transactions D.5; Kafka: VerificationGuard,
VerificationStateEntry).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from protocol.errors import ErrorCode
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, RecordBatch
from protocol.records.records import Marker, parse_marker
from storage.append_errors import RecordsRejectedError
from storage.append_info import NO_RULE, AppendOrigin, Rule
from storage.producers import rules as row
from storage.producers.rules import REMEMBERED_BATCHES, ProducerRules

# --- verification -----------------------------------------------------------------------------------------------------


class VerificationGuard:
    """Token that is equal only to itself."""

    __slots__ = ()


@dataclass(slots=True)
class VerificationEntry:
    """State of a producer between the arrival of its request and its first append."""

    guard: VerificationGuard
    lowest_sequence: int
    producer_epoch: int
    supports_epoch_bump: bool
    """Produce v12 and newer: a transaction begins with sequence 0."""
    created_ms: int


class Verifications:
    """The verification entries of one partition, by producer id."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, VerificationEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: int) -> VerificationEntry | None:
        """Return the entry of a producer, if it is being verified."""
        return self._entries.get(producer_id)

    def take(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard:
        """Return the guard for a request with this epoch and first sequence; requests of one producer share it."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = VerificationEntry(VerificationGuard(), sequence, producer_epoch, supports_epoch_bump, now_ms)
            self._entries[producer_id] = entry
        elif producer_epoch > entry.producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.lowest_sequence = sequence
        # Requests may overtake each other while they are verified; the lowest sequence has to be appended first.
        elif producer_epoch == entry.producer_epoch and sequence < entry.lowest_sequence:
            entry.lowest_sequence = sequence
        return entry.guard

    def is_current(self, producer_id: int, guard: object) -> bool:
        """Whether `guard` is the current one of the producer."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.guard is guard

    def appended(self, producer_id: int) -> None:
        """End the verification of a producer whose transactional batch was appended."""
        self._entries.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """Invalidate outstanding guards after a marker was appended.

        The entry stays if the verified producer gets a new epoch with each transaction and has the marker's epoch: then
        it belongs to the next transaction. The transaction version in the marker is ignored (transactions D.5.4).
        """
        entry = self._entries.get(producer_id)
        if entry is not None and not (entry.supports_epoch_bump and entry.producer_epoch == marker_epoch):
            del self._entries[producer_id]

    @property
    def oldest_ms(self) -> int | None:
        """Creation time of the oldest entry; None without one."""
        return min((entry.created_ms for entry in self._entries.values()), default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove entries older than producer.id.expiration.ms."""
        for producer_id in [pid for pid, entry in self._entries.items() if now_ms - entry.created_ms >= expiration_ms]:
            del self._entries[producer_id]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()


# --- sequences, epochs and transactions -------------------------------------------------------------------------------

_MAX_SEQUENCE: Final = 2**31 - 1  # an int32
_MAX_EPOCH: Final = 2**15 - 1  # an int16
_UNKNOWN_VERSION: Final = -1
"""Version of a transaction whose version is not given (TransactionVersion.TV_UNKNOWN): no marker may have it."""


class BatchRange(NamedTuple):
    """Sequences, offsets and maximum timestamp of a recent batch (BatchMetadata)."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class ProducerEntry:
    """State of one producer: -1 for unknown epochs, None for `transaction_first_offset` without a transaction."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[BatchRange, ...] = ()
    coordinator_epoch: int = -1
    last_timestamp_ms: int = NO_TIMESTAMP
    """Record timestamp of the newest batch or marker."""
    transaction_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        """Last sequence of the newest batch; -1 without one."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the entry may be removed; never while its transaction is open (transactions D.7)."""
        # By the time of records, which clients set: a producer of old timestamps is forgotten in the next round.
        return self.transaction_first_offset is None and now_ms - self.last_timestamp_ms >= expiration_ms


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Batch that was appended before: the response has these values, nothing is appended (transactions D.4 S1)."""

    base_offset: int
    last_offset: int
    timestamp_ms: int
    """Sent as LogAppendTimeMs, also on a CreateTime topic (transactions DUP-04)."""
    rule: Rule = row.S1


class Accept:
    """Batch that may be written; pass this to `apply` afterwards. Immutable."""

    __slots__ = ("batch", "marker", "producer_epoch_before", "rule")

    def __init__(
        self,
        batch: RecordBatch,
        marker: Marker | None = None,
        producer_epoch_before: int = NO_PRODUCER_EPOCH,
        rule: Rule = NO_RULE,
    ) -> None:
        self.batch, self.marker = batch, marker
        self.producer_epoch_before, self.rule = producer_epoch_before, rule


AppendDecision = Duplicate | Accept


class CompletedTransaction(NamedTuple):
    """Transaction that a marker has just ended, as for the transaction index (transactions D.10)."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    is_aborted: bool
    last_stable_offset: int
    """First offset of the earliest transaction still open, else the offset after the marker."""


class ProducerStates:
    """The producers of one partition.

    `rules` are those of the broker, which may change.
    """

    __slots__ = ("_ongoing", "_producers", "_unreplicated", "rules", "verifications")

    def __init__(self, rules: ProducerRules | None = None) -> None:
        self._producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        """First offset -> producer id, in the order of offsets: they are added as the log grows."""
        self._unreplicated: dict[int, int] = {}
        """First offset -> marker offset of transactions whose marker lies at or above the high watermark."""
        self.verifications = Verifications()
        self.rules = ProducerRules() if rules is None else rules

    # --- queries -----------------------------------------------------------------------------------------------------

    @property
    def producers(self) -> Mapping[int, ProducerEntry]:
        """All entries by producer id, read-only: for DescribeProducers, snapshots and the control plane."""
        return MappingProxyType(self._producers)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the earliest transaction that is open, or whose end is not replicated (transactions D.9)."""
        if self._unreplicated:
            first = min(self._unreplicated)
            return min(first, next(iter(self._ongoing))) if self._ongoing else first
        return next(iter(self._ongoing)) if self._ongoing else None

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of this producer is open on the partition, at exactly this epoch."""
        entry = self._producers.get(producer_id)
        return (
            entry is not None and entry.transaction_first_offset is not None and entry.producer_epoch == producer_epoch
        )

    # --- verification ------------------------------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Return the guard for a transactional batch; None if its transaction is open here (transactions D.5.1).

        Raises:
            RecordsRejectedError: INVALID_PRODUCER_EPOCH.
        """
        if self.has_open_transaction(producer_id, producer_epoch):
            return None
        if producer_id in self._producers:
            self._check_epoch(producer_id, producer_epoch)
        return self.verifications.take(
            producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump, now_ms=now_ms
        )

    # --- the leader's append -----------------------------------------------------------------------------------------

    def check(
        self,
        batch: RecordBatch,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: object = None,
        transaction_version: int = 0,
    ) -> AppendDecision:
        """Accept, reject or recognise as a duplicate a batch whose producer id is not -1. Changes nothing.

        Args:
            batch: a header view; its records are read only if it is a control batch.
            origin: CLIENT or COORDINATOR.
            guard: the result of `start_verification` for this request.
            transaction_version: of a marker: decides the epoch rule (transactions D.6 M1, M2).

        Raises:
            RecordsRejectedError: with the code of the rule.
        """
        if batch.is_control:
            return self._check_marker(batch, transaction_version)
        entry = self._producers.get(batch.producer_id)
        # Before the other checks: a retry of what is in the log has an old sequence, and perhaps no guard.
        if origin is AppendOrigin.CLIENT and entry is not None:
            duplicate = _find_duplicate(entry, batch, self.rules.remembered)
            if duplicate is not None:
                return duplicate
        self._check_transaction(batch, guard)
        self._check_epoch(batch.producer_id, batch.producer_epoch)
        rule = self._check_sequence(entry, batch) if origin is AppendOrigin.CLIENT else NO_RULE
        if not batch.is_transactional and entry is not None and entry.transaction_first_offset is not None:
            outside = "its transaction is open, and the batch is not transactional"
            raise _refusal(ErrorCode.INVALID_TXN_STATE, batch, outside, row.S10)
        return Accept(batch, None, NO_PRODUCER_EPOCH if entry is None else entry.producer_epoch, rule)

    def apply(self, decision: Accept) -> CompletedTransaction | None:
        """Add an accepted and written batch to the state; return the transaction that it ended, if any."""
        batch = decision.batch
        if decision.marker is not None:
            self.verifications.ended(batch.producer_id, batch.producer_epoch)
            return self._apply_marker(batch, decision.marker)
        if not batch.is_control:
            self._apply_data(batch)
        return None

    def replay(self, batch: RecordBatch) -> CompletedTransaction | None:
        """Add a batch of the log to the state without checking rules, for followers and recovery. Never fails."""
        if batch.producer_id < 0:
            return None
        return self.apply(Accept(batch, parse_marker(batch) if batch.is_control else None))

    def _check_marker(self, batch: RecordBatch, transaction_version: int) -> Accept:
        marker = parse_marker(batch)
        if marker is None:
            return Accept(batch)
        # An unknown producer has no epoch yet; a marker's epoch may be below even that.
        entry = self._producers.get(batch.producer_id) or ProducerEntry(batch.producer_id)
        epoch = batch.producer_epoch
        behind = epoch < entry.producer_epoch  # transactions D.6 M1
        if transaction_version >= 2 and epoch == entry.producer_epoch:
            # A TV2 marker is one epoch ahead of its data, unless it repeats one, or epochs are used up (KIP-1228,
            # transactions D.6 M2).
            behind = entry.transaction_first_offset is not None and epoch != _MAX_EPOCH
        if behind:
            rule = row.M2 if epoch == entry.producer_epoch else row.M1
            raise _refusal(ErrorCode.INVALID_PRODUCER_EPOCH, batch, f"its epoch here is {entry.producer_epoch}", rule)
        # Only now: an unknown version is reported where the epoch is right (transactions D.6 M0).
        if transaction_version == _UNKNOWN_VERSION:
            raise _refusal(ErrorCode.UNKNOWN_SERVER_ERROR, batch, "its transaction version is -1", row.M0)
        if marker.coordinator_epoch < entry.coordinator_epoch:  # transactions D.6 M3
            raise _refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                batch,
                f"coordinator epoch {marker.coordinator_epoch}, seen {entry.coordinator_epoch}",
                row.M3,
            )
        return Accept(batch, marker)

    def _check_transaction(self, batch: RecordBatch, guard: object) -> None:
        """Check that the producer of a batch that begins a transaction was verified (transactions D.4 S2, S3)."""
        if not batch.is_transactional or self.has_open_transaction(batch.producer_id, batch.producer_epoch):
            return
        self._check_epoch(batch.producer_id, batch.producer_epoch, row.S2)
        if self.rules.verification and not self.verifications.is_current(batch.producer_id, guard):
            outside = "it is not part of an ongoing transaction"
            raise _refusal(ErrorCode.INVALID_TXN_STATE, batch, outside, row.S3)

    def _check_epoch(self, producer_id: int, producer_epoch: int, rule: Rule = row.S4) -> None:
        """Reject an epoch smaller than the known one (transactions D.4 S2, S4)."""
        entry = self._producers.get(producer_id) or ProducerEntry(producer_id)
        if producer_epoch < entry.producer_epoch:
            raise RecordsRejectedError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} sent epoch {producer_epoch}, its epoch here is {entry.producer_epoch}",
                rule=rule.rule,
                source=rule.source,
            )

    def _check_sequence(self, entry: ProducerEntry | None, batch: RecordBatch) -> Rule:
        """Return the rule that accepts a batch (transactions D.4 S7 to S9); transactions D.4 S5 and S6 only reject."""
        sequence = batch.base_sequence
        verification = self.verifications.get(batch.producer_id)
        if verification is not None:
            begins = verification.supports_epoch_bump and self.rules.begins_at_zero
            # A new epoch for each transaction, so its first batch here cannot continue a sequence.
            if begins and sequence != 0 and not (entry and entry.batches):
                raise _out_of_order(batch, "a transaction begins with sequence 0", row.S5)
            if sequence > verification.lowest_sequence:
                raise _out_of_order(
                    batch, f"sequence {verification.lowest_sequence} came before and is missing", row.S6
                )
        if entry is None or entry.producer_epoch == NO_PRODUCER_EPOCH:
            if self.rules.unknown is not None and sequence != 0:
                raise _refusal(self.rules.unknown, batch, "the producer is unknown here", row.UNKNOWN_BEFORE_360)
            return row.S9
        if batch.producer_epoch != entry.producer_epoch:
            if sequence != 0:
                raise _out_of_order(batch, "a new epoch begins with sequence 0", row.S7)
            return row.S7
        last = entry.last_sequence
        # Sequences wrap to 0, as DefaultRecordBatch.incrementSequence does.
        if sequence != last + 1 and not (sequence == 0 and last == _MAX_SEQUENCE):
            raise _out_of_order(batch, f"its last sequence here is {last}", row.S8)
        return row.S8

    def _apply_data(self, batch: RecordBatch) -> None:
        entry = self._entry(batch.producer_id, batch.producer_epoch)
        newest = BatchRange(
            batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp_ms
        )
        entry.batches = (*entry.batches[1 - REMEMBERED_BATCHES :], newest)
        entry.last_timestamp_ms = batch.max_timestamp_ms
        if batch.is_transactional:
            self.verifications.appended(batch.producer_id)
            if entry.transaction_first_offset is None:
                entry.transaction_first_offset = batch.base_offset
                self._ongoing[batch.base_offset] = batch.producer_id

    def _apply_marker(self, batch: RecordBatch, marker: Marker) -> CompletedTransaction | None:
        entry = self._entry(batch.producer_id, batch.producer_epoch)
        # Also by a marker that ends nothing here: it fences markers of earlier coordinators (transactions D.6 M3).
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = marker.timestamp_ms
        first = entry.transaction_first_offset
        if first is None:
            return None
        entry.transaction_first_offset = None
        self._ongoing.pop(first, None)
        offset = batch.base_offset
        self._unreplicated[first] = offset
        stable = next(iter(self._ongoing)) if self._ongoing else offset + 1
        return CompletedTransaction(batch.producer_id, first, offset, not marker.committed, stable)

    def _entry(self, producer_id: int, producer_epoch: int) -> ProducerEntry:
        """Return the entry at this epoch, creating it if need be; a change of epoch drops the batches."""
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id)
        if entry.producer_epoch != producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches = ()
        return entry

    # --- expiry and changes of the log -------------------------------------------------------------------------------

    def high_watermark_advanced(self, high_watermark: int) -> None:
        """Release transactions whose marker is below the high watermark: they no longer hold back the LSO."""
        if self._unreplicated:
            for first in [first for first, marker in self._unreplicated.items() if marker < high_watermark]:
                del self._unreplicated[first]

    def expire(self, now_ms: int, expiration_ms: int) -> list[int]:
        """Remove producers idle for producer.id.expiration.ms, by record time; return their ids (transactions D.7)."""
        expired = [pid for pid, entry in self._producers.items() if entry.is_expired(now_ms, expiration_ms)]
        for producer_id in expired:
            del self._producers[producer_id]
        self.verifications.expire(now_ms, expiration_ms)
        return expired

    def expiry_due_ms(self, expiration_ms: int) -> int | None:
        """Return when time alone makes :meth:`expire` remove something; None for never."""
        idle = (each for each in self._producers.values() if each.transaction_first_offset is None)
        since_ms = min((each.last_timestamp_ms for each in idle), default=None)
        oldest_ms = self.verifications.oldest_ms
        known = [each for each in (since_ms, oldest_ms) if each is not None]
        return min(known) + expiration_ms if known else None

    def records_deleted(self, log_start: int) -> None:
        """Remove producers whose last batch is below the log's start, unless they outlive their records."""
        if self.rules.outlive_records:
            return
        for producer_id, entry in list(self._producers.items()):
            entry.batches = tuple(batch for batch in entry.batches if batch.last_offset >= log_start)
            if not entry.batches:
                self.forget(producer_id)
        for first in [first for first, marker in self._unreplicated.items() if marker < log_start]:
            del self._unreplicated[first]

    def forget(self, producer_id: int) -> bool:
        """Remove one producer and its open transaction; return whether it was known. Only for the control plane."""
        entry = self._producers.pop(producer_id, None)
        if entry is None:
            return False
        if entry.transaction_first_offset is not None:
            self._ongoing.pop(entry.transaction_first_offset, None)
        return True

    def clear(self) -> None:
        """Clear the state before it is rebuilt, and when the log is emptied."""
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.verifications.clear()

    def restore(self, entries: Iterable[ProducerEntry], now_ms: int, expiration_ms: int) -> None:
        """Restore the state from a snapshot, without expired entries (transactions D.8)."""
        self.clear()
        kept = [entry for entry in entries if not entry.is_expired(now_ms, expiration_ms)]
        self._producers.update((entry.producer_id, entry) for entry in kept)
        self._ongoing.update(
            sorted(
                (entry.transaction_first_offset, entry.producer_id)
                for entry in kept
                if entry.transaction_first_offset is not None
            )
        )


def _find_duplicate(entry: ProducerEntry, batch: RecordBatch, remembered: int) -> Duplicate | None:
    """Return the recent batch with exactly these sequences and this epoch, if there is one (transactions D.4 S1)."""
    if batch.producer_epoch != entry.producer_epoch:
        return None
    first, last = batch.base_sequence, batch.last_sequence
    for known in entry.batches[-remembered:]:
        if known.first_sequence == first and known.last_sequence == last:
            return Duplicate(known.first_offset, known.last_offset, known.timestamp_ms)
    return None


def _refusal(code: ErrorCode, batch: RecordBatch, why: str, rule: Rule) -> RecordsRejectedError:
    what = "marker" if batch.is_control else f"sequence {batch.base_sequence}"
    reason = f"producer {batch.producer_id} at epoch {batch.producer_epoch} sent {what}: {why}"
    return RecordsRejectedError(code, reason, rule=rule.rule, source=rule.source)


def _out_of_order(batch: RecordBatch, why: str, rule: Rule) -> RecordsRejectedError:
    return _refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, batch, why, rule)
