"""The transaction coordinator of one partition of ``__transaction_state``, as a pure machine.

It is asked something together with the time and answers with records and effects; :meth:`TransactionMachine.replay`
alone changes what it knows. What an id is, is its last record. Soft, and lost with the machine: which markers are
outstanding, the epoch before the last bump, the armed scans. After Kafka's ``TransactionCoordinator`` and
``TransactionStateManager`` (transactions A to C).
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any

from broker.coordination.outcome import Outcome, Reply, SetTimer, TransactionalAppend, WriteMarkers
from broker.coordination.transaction.adding import check_may_add
from broker.coordination.transaction.completion import Completion, Progress
from broker.coordination.transaction.ending import (
    Ending,
    EndRequest,
    check_epoch,
    check_producer_id,
    end_by_newer_client,
    end_by_older_client,
)
from broker.coordination.transaction.epochs import NOBODY, ProducerIdAndEpoch, assign, check_expected
from broker.coordination.transaction.refusal import Refusal, concurrent
from broker.coordination.transaction.scans import Scan, Settings, may_time_out, timed_out
from broker.coordination.transaction.states import COMPLETED_BY, IDLE, append_error
from broker.coordination.transaction.transitions import TV0, TV2, Transitions
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


class TransactionMachine:
    """All transactional ids of one partition of the transaction log."""

    def __init__(
        self, settings: Settings, next_producer_id: Callable[[], int], transaction_version: Callable[[], int]
    ) -> None:
        """``next_producer_id`` gives a fresh id; ``transaction_version`` is the finalized level of that feature."""
        self.transactions: dict[str, TransactionRecord] = {}
        self.completions: dict[str, Completion] = {}
        """Ids whose markers are being written: Kafka's pending Complete state."""
        self._settings = settings
        self._steps = Transitions(transaction_version, next_producer_id)
        self._failed_fences: set[str] = set()
        interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        self._timeouts = Scan("timeouts", lambda: settings.int(interval), self.scan_timeouts)
        expiry_interval = "transaction.remove.expired.transaction.cleanup.interval.ms"
        self._expiries = Scan("expiries", lambda: settings.int(expiry_interval), self.scan_expired)

    # --- remembering -------------------------------------------------------------------------------------------------

    def replay(self, record: Record, _offset: int, _transaction: TransactionalAppend | None = None) -> None:
        """Take over a record: the latest one is all there is to know of an id, a tombstone forgets it."""
        name = record.transactional_id
        self.completions.pop(name, None)
        self._failed_fences.discard(name)
        if isinstance(record, TransactionTombstone):
            self.transactions.pop(name, None)
            return
        self.transactions[name] = record
        if record.state in COMPLETED_BY:
            self.completions[name] = Completion(record.partitions or ())

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Nothing: no transaction's records stand in the transaction log."""

    def loaded(self, now_ms: int) -> Outcome:
        """Send the markers of prepared transactions once more, all of them, and resume the scans (B.9)."""
        self._timeouts.start(now_ms)
        self._expiries.start(now_ms)
        markers = tuple(self._markers(self.transactions[name]) for name in self.completions)
        return Outcome(effects=(*self._arm_timeouts(now_ms), *self._arm_expiries(now_ms), *markers))

    def unloaded(self) -> Outcome:
        """Nothing is parked here: every request is answered at once."""
        return Outcome()

    # --- InitProducerId ----------------------------------------------------------------------------------------------

    def init_producer_id(
        self, name: str, timeout_ms: int, expected: ProducerIdAndEpoch, now_ms: int, to: Hashable
    ) -> Outcome:
        """Give a producer its id and epoch, fencing whoever had them; replies :class:`ProducerIdAndEpoch`.

        A transaction that is open is aborted first, and the producer told to ask again (CONCURRENT_TRANSACTIONS).

        Raises:
            Refusal: PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, or UNKNOWN_SERVER_ERROR (E3).
            KafkaError: what the allocation of a producer id says.
        """
        stored = self.transactions.get(name)
        if stored is None:
            stored = self._steps.unknown(name, timeout_ms, now_ms)
        self._check_not_completing(name, "I1")
        check_expected(stored, expected)
        _check_not_prepared(stored, "I3")
        if stored.state is _S.ONGOING:
            again = Refusal(
                ErrorCode.CONCURRENT_TRANSACTIONS, "transactions I5", "the open transaction is aborted first"
            )
            return self._fence(stored, now_ms, to, (Reply(to, again),))
        given = assign(stored, expected)
        record = self._steps.initialised(stored, given, timeout_ms, now_ms)
        reply = ProducerIdAndEpoch(record.producer_id, record.producer_epoch)
        return self._written(record, to, (Reply(to, reply), *self._watch_expiry(record, now_ms)), before=stored)

    # --- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------------------------

    def add_partitions(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        now_ms: int,
        to: Hashable,
        *,
        client: int = TV0,
        pending_first: bool = True,
    ) -> Outcome:
        """Let partitions join the transaction, opening it if need be; replies ``None`` (C.1.1 P7 to P14).

        ``client`` is :data:`TV2` where a broker adds them for a client that knows KIP-890. ``pending_first``: see
        :func:`~broker.coordination.transaction.adding.check_may_add`.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS or PRODUCER_FENCED.
        """
        stored = self._known(name, "P7")
        check_may_add(stored, name in self.completions, producer, pending_first=pending_first)
        if stored.state is _S.ONGOING and stored.partitions is not None and partitions <= stored.partitions:
            return Outcome(effects=(Reply(to, None),))
        record = self._steps.added(stored, partitions, client, now_ms)
        begins = stored.state is not _S.ONGOING
        watch = self._watch_timeout(record, now_ms) if begins else ()
        return self._written(record, to, (*watch, Reply(to, None)))

    def verify_partitions(
        self, name: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether partitions belong to the open transaction; nothing is written (C.1.3 V3 to V8).

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS, for all of them.
        """
        stored = self._known(name, "V3")
        check_producer_id(stored, producer.producer_id, "V4")
        check_epoch(stored, producer.producer_epoch, "V5")
        _check_not_prepared(stored, "V6")
        known = stored.partitions or frozenset()
        return {p: ErrorCode.NONE if p in known else ErrorCode.TRANSACTION_ABORTABLE for p in partitions}

    # --- EndTxn ------------------------------------------------------------------------------------------------------

    def end(self, name: str, request: EndRequest, now_ms: int, to: Hashable, *, client: int = TV0) -> Outcome:
        """Commit or abort; replies the :class:`ProducerIdAndEpoch` to go on with (:data:`NOBODY` before KIP-890).

        The reply goes out when the decision is written; the markers follow.

        Raises:
            Refusal: see :mod:`broker.coordination.transaction.ending`.
            KafkaError: what the allocation of a producer id says, where epochs are exhausted.
        """
        stored = self._known(name, "T3")
        decide = end_by_newer_client if client >= TV2 else end_by_older_client
        if decide(stored, name in self.completions, request) is Ending.REPEAT:
            return Outcome(effects=(Reply(to, _next_producer(stored, client)),))
        record = self._steps.prepared(stored, request.committed, client, now_ms)
        return self._written(record, to, (Reply(to, _next_producer(record, client)), self._markers(record)))

    def markers_written(
        self,
        name: str,
        producer: ProducerIdAndEpoch,
        results: Mapping[TopicPartition, ErrorCode],
        now_ms: int,
        *,
        completes: bool = True,
    ) -> Outcome:
        """What became of the markers of ``name`` that carried ``producer``, partition by partition (B.6).

        ``completes`` is false where the transaction is held before its Complete record; told again without results, it
        goes on.
        """
        found = self._completion_of(name, producer)
        if found is None:
            return Outcome()
        record, completion = found
        progress = completion.note(results)
        if progress is Progress.DONE:
            return self._complete(record, completion, now_ms) if completes else Outcome()
        if progress is Progress.AGAIN:
            return self._later(name, completion, now_ms, lambda _: self._send_again(name, producer))
        return Outcome()

    def _completion_of(self, name: str, producer: ProducerIdAndEpoch) -> tuple[TransactionRecord, Completion] | None:
        """The prepared transaction that these markers belong to, unless it is over or somebody else's by now."""
        record, completion = self.transactions.get(name), self.completions.get(name)
        if record is None or completion is None or completion.fenced or producer != _producer(record):
            return None
        return record, completion

    def _send_again(self, name: str, producer: ProducerIdAndEpoch) -> Outcome:
        found = self._completion_of(name, producer)
        return Outcome() if found is None else Outcome(effects=(self._markers(found[0], found[1].take_again()),))

    def _complete(self, record: TransactionRecord, completion: Completion, now_ms: int) -> Outcome:
        name, producer = record.transactional_id, _producer(record)

        def refused(error: KafkaError, at_ms: int) -> Outcome:
            # A log that cannot be written now may be later; a coordinator that lost its log has nothing more to say.
            if append_error(error.code) is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                return Outcome()
            return self._later(
                name, completion, at_ms, lambda then_ms: self.markers_written(name, producer, {}, then_ms)
            )

        done = self._steps.completed(record, now_ms)
        return Outcome((done,), self._watch_expiry(done, now_ms), on_append_error=self._forgetting_scans(refused))

    @staticmethod
    def _later(name: str, completion: Completion, now_ms: int, then: Callable[[int], Outcome]) -> Outcome:
        return Outcome(effects=(SetTimer(("markers", name), now_ms + completion.back_off(), then),))

    # --- timeouts and expiry -----------------------------------------------------------------------------------------

    def scan_timeouts(self, now_ms: int) -> Outcome:
        """Abort what is open for longer than its timeout, each in an operation of its own (B.7)."""
        self._timeouts.forget()
        late = [
            SetTimer(("timeout", name), now_ms, partial(self.time_out, name))
            for name, record in self.transactions.items()
            if timed_out(record, now_ms)
        ]
        return Outcome(effects=(*late, *self._arm_timeouts(now_ms)))

    def time_out(self, name: str, now_ms: int) -> Outcome:
        """Fence the producer of a transaction that is past its timeout and abort it; nothing where that has changed."""
        record = self.transactions.get(name)
        if record is None or not timed_out(record, now_ms):
            return Outcome()
        return self._fence(record, now_ms, None, ())

    def abort(self, name: str, now_ms: int, to: Hashable) -> Outcome:
        """Abort an open transaction on behalf of nobody in particular, as a timeout does; replies ``None``.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, or INVALID_TXN_STATE where none is open.
        """
        stored = self._known(name, "B.7")
        self._check_not_completing(name, "B.7")
        if stored.state is not _S.ONGOING:
            raise Refusal(ErrorCode.INVALID_TXN_STATE, "transactions B.7", f"{name} has no open transaction")
        return self._fence(stored, now_ms, to, (Reply(to, None),))

    def scan_expired(self, now_ms: int) -> Outcome:
        """Forget ids that nobody has used for ``transactional.id.expiration.ms``, in one batch of tombstones (B.8)."""
        self._expiries.forget()
        unused_since_ms = now_ms - self._settings.int("transactional.id.expiration.ms")
        expired = {
            name
            for name, record in self.transactions.items()
            if record.state in IDLE and record.last_update_ms <= unused_since_ms
        }
        return Outcome(
            tuple(TransactionTombstone(name) for name in sorted(expired)),
            self._arm_expiries(now_ms, without=expired),
            on_append_error=self._forgetting_scans(lambda _error, _now_ms: Outcome()),
        )

    def _arm_timeouts(self, now_ms: int) -> tuple[SetTimer, ...]:
        deadlines = (r.start_ms + r.timeout_ms for r in self.transactions.values() if may_time_out(r))
        return self._timeouts.watch_all(deadlines, now_ms)

    def _arm_expiries(self, now_ms: int, without: Iterable[str] = ()) -> tuple[SetTimer, ...]:
        left = (r for name, r in self.transactions.items() if r.state in IDLE and name not in without)
        return self._expiries.watch_all((self._expires_after(r) for r in left), now_ms)

    def _watch_timeout(self, record: TransactionRecord, now_ms: int) -> tuple[SetTimer, ...]:
        return self._timeouts.watch(record.start_ms + record.timeout_ms, now_ms) if may_time_out(record) else ()

    def _watch_expiry(self, record: TransactionRecord, now_ms: int) -> tuple[SetTimer, ...]:
        return self._expiries.watch(self._expires_after(record), now_ms)

    def _expires_after(self, record: TransactionRecord) -> int:
        # "Not later than", where the timeout is "earlier than": one millisecond less.
        return record.last_update_ms + self._settings.int("transactional.id.expiration.ms") - 1

    # --- steering ----------------------------------------------------------------------------------------------------

    def set_epoch(self, name: str, producer_epoch: int, now_ms: int, to: Hashable) -> Outcome:
        """Put the id at an epoch, as if its producer had come that far; replies ``None``. For tests of exhaustion.

        Raises:
            Refusal: INVALID_PRODUCER_ID_MAPPING; CONCURRENT_TRANSACTIONS while markers are being written.
        """
        stored = self._known(name, "steering")
        self._check_not_completing(name, "steering")
        record = dataclasses.replace(
            stored, producer_epoch=producer_epoch, last_epoch=NO_PRODUCER_EPOCH, last_update_ms=now_ms
        )
        return self._written(record, to, (Reply(to, None),))

    # --- what they share ---------------------------------------------------------------------------------------------

    def _known(self, name: str, rule: str) -> TransactionRecord:
        stored = self.transactions.get(name)
        if stored is None:
            raise Refusal(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"transactions {rule}", f"{name} is not known")
        return stored

    def _check_not_completing(self, name: str, rule: str) -> None:
        if name in self.completions:
            raise concurrent(rule)

    def _fence(self, stored: TransactionRecord, now_ms: int, to: Hashable, effects: tuple[Reply, ...]) -> Outcome:
        """Abort an open transaction against its producer's will (A.5)."""
        name = stored.transactional_id
        record = self._steps.fenced(stored, now_ms, keep_epoch=name in self._failed_fences)

        def refused(error: KafkaError, _now_ms: int) -> Outcome:
            if record.client_transaction_version < TV2:
                # The old producer is out at once, and the next attempt does not raise the epoch again.
                self.transactions[name] = dataclasses.replace(
                    stored, producer_epoch=record.producer_epoch, last_epoch=NO_PRODUCER_EPOCH
                )
                self._failed_fences.add(name)
            return Outcome(effects=_mapped(error, to))

        markers = self._markers(record)
        return Outcome((record,), (*effects, markers), on_append_error=self._forgetting_scans(refused))

    def _written(
        self, record: TransactionRecord, to: Hashable, effects: tuple[Any, ...], before: TransactionRecord | None = None
    ) -> Outcome:
        """One transition, or the error of the log as the client hears it (B.4)."""

        def refused(error: KafkaError, _now_ms: int) -> Outcome:
            if before is not None:
                self.transactions.setdefault(before.transactional_id, before)  # a new id keeps its producer id (A.3)
            return Outcome(effects=_mapped(error, to))

        return Outcome((record,), effects, on_append_error=self._forgetting_scans(refused))

    def _forgetting_scans(self, refused: Callable[[KafkaError, int], Outcome]) -> Callable[[KafkaError, int], Outcome]:
        """Timers that came with refused records were not set."""

        def call(error: KafkaError, now_ms: int) -> Outcome:
            outcome = refused(error, now_ms)
            self._timeouts.forget()
            self._expiries.forget()
            rearmed = (*self._arm_timeouts(now_ms), *self._arm_expiries(now_ms))
            return dataclasses.replace(outcome, effects=(*outcome.effects, *rearmed))

        return call

    @staticmethod
    def _markers(record: TransactionRecord, partitions: frozenset[TopicPartition] | None = None) -> WriteMarkers:
        """Markers carry the producer id from before a rotation, and the epoch of the Prepare record."""
        return WriteMarkers(
            record.transactional_id,
            record.producer_id,
            record.producer_epoch,
            record.state is _S.PREPARE_COMMIT,
            (record.partitions or frozenset()) if partitions is None else partitions,
            record.client_transaction_version,
        )


def _producer(record: TransactionRecord) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(record.producer_id, record.producer_epoch)


def _next_producer(record: TransactionRecord, client: int) -> ProducerIdAndEpoch:
    """What a client goes on with after EndTxn; it hears of a rotation before the coordinator has carried it out."""
    if client < TV2:
        return NOBODY
    if record.state in COMPLETED_BY and record.next_producer_id >= 0:
        return ProducerIdAndEpoch(record.next_producer_id, 0)
    return _producer(record)


def _mapped(error: KafkaError, to: Hashable) -> tuple[Reply, ...]:
    return () if to is None else (Reply(to, KafkaError(append_error(error.code), error.message)),)


def _check_not_prepared(stored: TransactionRecord, rule: str) -> None:
    if stored.state in COMPLETED_BY:
        raise concurrent(rule)
