"""State machine of the transaction coordinator of one partition of ``__transaction_state``.

States of a transactional id (``states.VALID_PREVIOUS`` has the transitions)::

    Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing, Empty ...
                     -> PrepareAbort  -> CompleteAbort  -> Ongoing, Empty ...

Rules:

1. The state of an id is its last record. Only :meth:`TransactionMachine.replay` changes it.
2. An operation writes at most one record; the reply is sent when the record is in the log. ``rules`` checks
   whether it is allowed, ``transitions`` assigns the producer id and epoch and builds the record.
3. Between a Prepare record and its Complete record the markers are being written (``completions``), and every other
   operation is refused with CONCURRENT_TRANSACTIONS.
4. No request is parked: every request is answered by its own outcome.
5. Each outcome and each refusal names its rule (``reasons``).

Exceptions:

* Two refused appends change the state without a record, as in Kafka, whose cache has changed by then:
  :meth:`TransactionMachine._written` keeps a new id's producer id (transactions A.3), and
  :meth:`TransactionMachine._fence` bumps the epoch before ``transaction.version`` 2 (transactions A.5). Both are lost
  when the coordinator is unloaded.
* A record that ``transaction.version`` 0 cannot encode leaves its id in transition, as in Kafka (transactions B.3).
* Soft state: outstanding markers, the epoch before the last bump, failed fences, stuck ids, the armed scans.

After Kafka's ``TransactionCoordinator`` and ``TransactionStateManager`` (transactions A to C).
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from broker.coordination.outcome import Outcome, Reply, SetTimer, TransactionalAppend, TransactionOutcome
from broker.coordination.reasons import STEERING, Reason, Refusal
from broker.coordination.settings import Settings
from broker.coordination.transaction.completion import (
    Completion,
    Completions,
    Scans,
    markers_of,
    producer_of,
    timed_out,
)
from broker.coordination.transaction.rules import (
    ADDED,
    BEGUN,
    Ending,
    EndRequest,
    check_epoch,
    check_may_add,
    check_not_prepared,
    check_producer_id,
    concurrent,
    end_by_newer_client,
    end_by_older_client,
    not_added,
    not_appended,
    reason_of_end,
)
from broker.coordination.transaction.states import COMPLETED_BY, KIP_98, KIP_890
from broker.coordination.transaction.transitions import (
    NO_PRODUCER,
    TV0,
    TV2,
    ProducerIdAndEpoch,
    Transitions,
    assign,
    check_expected,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import (
    NO_PRODUCER_EPOCH,
    TopicPartition,
    TransactionRecord,
    TransactionState,
    TransactionTombstone,
)

_S = TransactionState
Record = TransactionRecord | TransactionTombstone

_FENCED_BY_INIT: Final = Reason("aborted for a new producer", "transactions A.2 I5", KIP_98)
_TIMED_OUT: Final = Reason("timed out", "transactions B.7", KIP_98)
_EXPIRED: Final = Reason("expired", "transactions B.8", KIP_98)
EXPIRIES: Final = {_TIMED_OUT.kind: "transactions", _EXPIRED.kind: "transactional_ids"}
"""Decisions by time alone, and what they end."""
_ABORTED_BY_STEERING: Final = Reason("aborted by the control plane", STEERING, STEERING)
_EPOCH_SET: Final = Reason("producer epoch set by the control plane", STEERING, STEERING)


class TransactionMachine:
    """The transactional ids of one partition of the transaction log."""

    def __init__(
        self, settings: Settings, next_producer_id: Callable[[], int], transaction_version: Callable[[], int]
    ) -> None:
        """``next_producer_id`` allocates an id; ``transaction_version`` returns the finalized level of that feature."""
        self.transactions: dict[str, TransactionRecord] = {}
        self._steps = Transitions(transaction_version, next_producer_id)
        self._failed_fences: set[str] = set()
        self.stuck = self._steps.stuck
        """Ids that stay in transition until the coordinator is reloaded (transactions B.3)."""
        self._scans = Scans(settings, self.transactions, self.stuck, self.scan_timeouts, self.scan_expired)
        self._completions = Completions(self.transactions, self._steps, self._scans)
        self.completions = self._completions.under_way
        """Progress of the ids whose markers are being written: Kafka's pending Complete state."""
        self.unreplicated: dict[str, TransactionRecord | None] = {}
        """Ids whose last record is not replicated, with the state before it: Kafka's pending transition."""

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(
        self, record: Record, _offset: int, _transaction: TransactionalAppend | None = None
    ) -> TransactionRecord | None:
        """Apply a record, and return the one that it replaces. A tombstone deletes the id."""
        name = record.transactional_id
        before = self.transactions.get(name)
        self.completions.pop(name, None)
        self._failed_fences.discard(name)
        self.stuck.discard(name)
        if isinstance(record, TransactionTombstone):
            self.transactions.pop(name, None)
            return before
        self.transactions[name] = record
        if record.state in COMPLETED_BY:
            self.completions[name] = Completion(record.partitions or ())
        return before

    def replicating(self, records: Sequence[Record], _transaction: TransactionalAppend | None = None) -> None:
        """Refuse other operations of these ids with CONCURRENT_TRANSACTIONS until the records are replicated."""
        for record in records:
            self.unreplicated.setdefault(record.transactional_id, self.transactions.get(record.transactional_id))

    def replicated(self, records: Sequence[Record]) -> None:
        """Accept operations of these ids again."""
        for record in records:
            self.unreplicated.pop(record.transactional_id, None)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Do nothing: the transaction log has no transactional records."""

    def loaded(self, now_ms: int) -> TransactionOutcome:
        """Send all markers of prepared transactions again, and arm the scans (transactions B.9)."""
        markers = tuple(markers_of(self.transactions[name]) for name in self.completions)
        return Outcome(effects=(*self._scans.start(now_ms), *markers))

    def unloaded(self) -> TransactionOutcome:
        """Do nothing: no request is parked."""
        return Outcome()

    # --- InitProducerId ----------------------------------------------------------------------------------------------

    def init_producer_id(
        self, name: str, timeout_ms: int, expected: ProducerIdAndEpoch, now_ms: int, to: Hashable
    ) -> TransactionOutcome:
        """Assign a producer id and epoch, and fence the previous producer; replies with :class:`ProducerIdAndEpoch`.

        An open transaction is aborted first; the reply is CONCURRENT_TRANSACTIONS, and the producer retries.

        Raises:
            Refusal: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, or UNKNOWN_SERVER_ERROR (transactions A.3 E3).
            KafkaError: if no producer id could be allocated.
        """
        stored = self.transactions.get(name)
        if stored is None:
            stored = self._steps.unknown(name, timeout_ms, now_ms)
        # Before the producer: while markers are written, a fenced producer has to retry, too.
        self._check_no_transition(name, "transactions A.2 I1")
        check_expected(stored, expected)
        check_not_prepared(stored, "transactions A.2 I3", KIP_98)
        if stored.state is _S.ONGOING:
            again = Refusal(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                _FENCED_BY_INIT.rule,
                _FENCED_BY_INIT.source,
                "the open transaction is aborted first",
            )
            # The epoch of the abort is not the caller's: its retry gets the next one. Quirk: the expected epoch is not
            # compared, so a zombie with the right id aborts the open transaction (transactions A.2 I5).
            return self._fence(stored, now_ms, to, _FENCED_BY_INIT, (Reply(to, again),), again)
        assignment = assign(stored, expected)
        record = self._steps.initialised(stored, assignment, timeout_ms, now_ms)
        reply = ProducerIdAndEpoch(record.producer_id, record.producer_epoch)
        effects = (Reply(to, reply), *self._scans.watch_expiry(record, now_ms))
        return self._written(record, to, effects, assignment.reason, before=stored)

    # --- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------------------------

    def add_partitions(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        now_ms: int,
        to: Hashable,
        *,
        client_transaction_version: int = TV0,
        pending_first: bool = True,
    ) -> TransactionOutcome:
        """Add partitions to the transaction; the first ones begin it (transactions C.1.1 P7 to P14).

        Replies with ``None``.

        ``client_transaction_version`` is :data:`TV2` if a broker adds them for a client that supports KIP-890.
        ``pending_first``: see :func:`~broker.coordination.transaction.rules.check_may_add`.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS or PRODUCER_FENCED.
        """
        stored = self._known(name, "transactions C.1.1 P7", KIP_98)
        check_may_add(stored, producer, transition_pending=self._in_transition(name), pending_first=pending_first)
        # A client sends partitions again whose response was lost: nothing is written twice.
        if stored.state is _S.ONGOING and stored.partitions is not None and partitions <= stored.partitions:
            return Outcome(effects=(Reply(to, None),))
        # Quirk: an empty list begins a transaction, too (transactions B.3).
        record = self._steps.added(stored, partitions, client_transaction_version, now_ms)
        if stored.state is _S.ONGOING:
            return self._written(record, to, (Reply(to, None),), ADDED)
        return self._written(record, to, (*self._scans.watch_timeout(record, now_ms), Reply(to, None)), BEGUN)

    def verify_partitions(
        self, name: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition], to: Hashable
    ) -> TransactionOutcome:
        """Verify that partitions are in the open transaction, without writing (transactions C.1.3 V3 to V8).

        Replies with an error code for each partition: NONE or TRANSACTION_ABORTABLE.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS, for all partitions.
        """
        # Unlike for additions, a pending transition is not looked at (transactions C.1.3).
        stored = self._known(name, "transactions C.1.3 V3", KIP_890)
        check_producer_id(stored, producer.producer_id, "transactions C.1.3 V4", KIP_890)
        check_epoch(stored, producer.producer_epoch, "transactions C.1.3 V5", KIP_890)
        check_not_prepared(stored, "transactions C.1.3 V6", KIP_890)
        known = stored.partitions or frozenset()
        codes = {p: ErrorCode.NONE if p in known else ErrorCode.TRANSACTION_ABORTABLE for p in partitions}
        return Outcome(effects=(Reply(to, codes),), refusal=not_added(codes))

    # --- EndTxn ------------------------------------------------------------------------------------------------------

    def end(
        self, name: str, request: EndRequest, now_ms: int, to: Hashable, *, client_transaction_version: int = TV0
    ) -> TransactionOutcome:
        """Commit or abort; replies the :class:`ProducerIdAndEpoch` to use next (:data:`NO_PRODUCER` before KIP-890).

        The reply is sent when the decision is written; the markers follow.

        Raises:
            Refusal: see :mod:`broker.coordination.transaction.rules`.
            KafkaError: if the epochs are exhausted and no producer id could be allocated.
        """
        # By the version of the request alone, at any level of transaction.version (transactions C.3.2).
        newer = client_transaction_version >= TV2
        stored = self._known(
            name, *(("transactions C.3.2 U2", KIP_890) if newer else ("transactions C.3.1 T3", KIP_98))
        )
        decide = end_by_newer_client if newer else end_by_older_client
        if decide(stored, request, transition_pending=self._in_transition(name)) is Ending.REPEAT:
            return Outcome(effects=(Reply(to, _next_producer(stored, client_transaction_version)),))
        record = self._steps.prepared(stored, request.committed, client_transaction_version, now_ms)
        effects = (Reply(to, _next_producer(record, client_transaction_version)), markers_of(record))
        return self._written(record, to, effects, reason_of_end(request, newer=newer))

    def markers_written(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        results: Mapping[TopicPartition, ErrorCode],
        now_ms: int,
        *,
        completes: bool = True,
    ) -> TransactionOutcome:
        """Handle the results of the markers of ``name`` with ``producer``, by partition (transactions B.6).

        ``completes`` is false if the control plane holds the transaction before its Complete record; a later call
        without results completes it.
        """
        return self._completions.markers_written(name, producer, results, now_ms, completes=completes)

    # --- timeouts and expiry -----------------------------------------------------------------------------------------

    def scan_timeouts(self, now_ms: int) -> TransactionOutcome:
        """Abort transactions that are open for longer than their timeout, each as an operation (transactions B.7)."""
        late = [SetTimer(("timeout", name), now_ms, partial(self.time_out, name)) for name in self._scans.late(now_ms)]
        return Outcome(effects=(*late, *self._scans.after_timeouts(now_ms)))

    def time_out(self, name: str, now_ms: int) -> TransactionOutcome:
        """Fence the producer of a transaction and abort it, if it is still past its timeout."""
        record = self.transactions.get(name)
        if record is None or not timed_out(record, now_ms) or name in self.unreplicated:
            return Outcome()
        return self._fence(record, now_ms, None, _TIMED_OUT)

    def abort(self, name: str, now_ms: int, to: Hashable) -> TransactionOutcome:
        """Control plane: abort an open transaction as a timeout does; replies with ``None``.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, or INVALID_TXN_STATE if none is open.
        """
        stored = self._known(name, "transactions B.7", STEERING)
        self._check_no_transition(name, "transactions B.7")
        if stored.state is not _S.ONGOING:
            raise Refusal(ErrorCode.INVALID_TXN_STATE, "transactions B.7", STEERING, f"{name} has no open transaction")
        return self._fence(stored, now_ms, to, _ABORTED_BY_STEERING, (Reply(to, None),))

    def scan_expired(self, now_ms: int) -> TransactionOutcome:
        """Delete ids unused for ``transactional.id.expiration.ms``, in batches of tombstones (transactions B.8)."""
        expired = self._scans.expired(now_ms) - self.unreplicated.keys()
        return Outcome(
            tuple(TransactionTombstone(name) for name in sorted(expired)),
            self._scans.after_expired(now_ms, expired),
            divisible=True,
            on_append_error=self._scans.rearming(lambda _error, _now_ms: Outcome()),
            reason=_EXPIRED,
        )

    # --- control plane -----------------------------------------------------------------------------------------------

    def set_epoch(self, name: str, producer_epoch: int, now_ms: int, to: Hashable) -> TransactionOutcome:
        """Set an id's producer epoch, as if its producer had reached it; replies with ``None``. For exhaustion tests.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING; CONCURRENT_TRANSACTIONS while markers are being written.
        """
        stored = self._known(name, "transactions B.6", STEERING)
        self._check_no_transition(name, "transactions B.6")
        record = dataclasses.replace(
            stored, producer_epoch=producer_epoch, last_epoch=NO_PRODUCER_EPOCH, last_update_ms=now_ms
        )
        return self._written(record, to, (Reply(to, None),), _EPOCH_SET)

    # --- shared by operations ----------------------------------------------------------------------------------------

    def _known(self, name: str, rule: str, source: str) -> TransactionRecord:
        stored = self.unreplicated.get(name) or self.transactions.get(name)
        if stored is None:
            raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, rule, source, f"unknown transactional id {name}")
        return stored

    def _in_transition(self, name: str) -> bool:
        return name in self.completions or name in self.unreplicated or name in self.stuck

    def _check_no_transition(self, name: str, rule: str) -> None:
        if self._in_transition(name):
            raise concurrent(rule, KIP_98)

    def _fence(
        self,
        stored: TransactionRecord,
        now_ms: int,
        to: Hashable,
        reason: Reason,
        effects: tuple[Reply, ...] = (),
        refusal: Refusal | None = None,
    ) -> TransactionOutcome:
        """Abort an open transaction and fence its producer (transactions A.5)."""
        name = stored.transactional_id
        record = self._steps.fenced(stored, now_ms, keep_epoch=name in self._failed_fences)

        def refused(error: KafkaError, _now_ms: int) -> TransactionOutcome:
            if record.client_transaction_version < TV2:
                # The old producer is fenced already, and the next attempt does not bump the epoch again.
                self.transactions[name] = dataclasses.replace(
                    stored, producer_epoch=record.producer_epoch, last_epoch=NO_PRODUCER_EPOCH
                )
                self._failed_fences.add(name)
            return not_appended(error, to)

        return Outcome(
            (record,),
            (*effects, markers_of(record)),
            on_append_error=self._scans.rearming(refused),
            reason=reason,
            refusal=refusal,
        )

    def _written(
        self,
        record: TransactionRecord,
        to: Hashable,
        effects: tuple[Any, ...],
        reason: Reason,
        before: TransactionRecord | None = None,
    ) -> TransactionOutcome:
        """Return the outcome of one transition, or the client error if the append is refused (transactions B.4)."""

        def refused(error: KafkaError, _now_ms: int) -> TransactionOutcome:
            if before is not None:
                # A new id keeps its producer id (transactions A.3).
                self.transactions.setdefault(before.transactional_id, before)
            return not_appended(error, to)

        return Outcome((record,), effects, on_append_error=self._scans.rearming(refused), reason=reason)


def _next_producer(record: TransactionRecord, client_transaction_version: int) -> ProducerIdAndEpoch:
    """Return the producer to use after EndTxn; a rotated id is returned before its transaction is complete."""
    if client_transaction_version < TV2:
        return NO_PRODUCER
    if record.state in COMPLETED_BY and record.next_producer_id >= 0:
        return ProducerIdAndEpoch(record.next_producer_id, 0)
    return producer_of(record)
