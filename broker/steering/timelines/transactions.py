"""The timeline of each transactional id: its state changes and its refusals, each with request and rule.

The coordinator's runtime reports each record that it applies, with the machine's reason, and each refusal
(``Observer``). The middleware adds the request that caused them. Events are kept in memory only, within the limits of
the event log; old transactions (begin, commit) are folded.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from broker.coordination.outcome import TransactionOutcome
from broker.coordination.reasons import STEERING, Reason, Refusal
from broker.coordination.transaction.machine import EXPIRIES, Record, TransactionMachine
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from broker.request.api import AnyHandler, ForField, Middleware
from broker.request.context import RequestContext
from broker.steering.timelines.event_log import EventLog
from broker.steering.timelines.transaction_events import (
    Asker,
    Entry,
    Event,
    Folding,
    History,
    Move,
    Names,
    asked_by,
    causes_of,
    is_refusal,
    read,
)
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.codec import first_error
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord
from protocol.records.batch import RecordBatch, begins_with_batch


class _Request:
    """A request about a transactional id that is being served."""

    __slots__ = ("_asker", "ctx", "moved", "names", "refusal")

    def __init__(self, ctx: RequestContext, names: Names) -> None:
        self.ctx, self.names = ctx, names
        self.moved = False
        self.refusal: KafkaError | None = None
        self._asker: Asker | None = None

    @property
    def asker(self) -> Asker:
        """Return the fields of the request that events keep."""
        if self._asker is None:
            ctx = self.ctx
            client, number, entry = ctx.client_id, ctx.connection.number, ctx.notes.id
            self._asker = Asker(client, number, ctx.node.id, ctx.api.key, ctx.version, self.names, entry)
        return self._asker


class TransactionTimelines:
    """The timelines of all transactional ids of a cluster; observes its transaction machines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.expired: Counter[str] = Counter()
        """What ended by time alone since the start: transactions and transactional ids."""
        self._log: EventLog[str, Entry] = EventLog(Folding())
        self._served: dict[
            int, _Request
        ] = {}  # by the identity of the request's context, which observers get as the cause

    def of(self, name: str) -> History:
        """Return the events of a transactional id."""
        return History([read(each) for each in self._log.of(name)], self._log.forgotten(name))

    def ids(self) -> list[str]:
        """Return all transactional ids with events in the log, those with the latest events last."""
        return self._log.ids()

    def refused(self) -> list[str]:
        """Return the transactional ids that were refused, those with the latest refusals last."""
        return self._log.refused()

    def clear(self) -> None:
        """Remove all events."""
        self._log.clear()

    # --- the observer of the machines --------------------------------------------------------------------------------

    def on_applied(
        self,
        machine: TransactionMachine,  # noqa: ARG002
        outcome: TransactionOutcome,
        replaced: Sequence[TransactionRecord | None],
        cause: object | None,
    ) -> None:
        """Add an event for each applied record, and for each change that the coordinator could not write."""
        if replaced and outcome.reason is not None:
            self.note_moves(outcome.records, outcome.reason, replaced, cause)
        for name, reason, *_ in outcome.changes:
            event = self._unmoved(name, reason.kind)
            self._log.note(name, replace(event, rule=reason.rule, source=reason.source, detail=reason.sentence))

    def note_moves(
        self,
        records: Sequence[Record],
        reason: Reason,
        replaced: Sequence[TransactionRecord | None],
        cause: object | None,
    ) -> None:
        """Add an event for each record. ``cause`` is the context of the request that caused it, if one did."""
        request = self._served.get(id(cause))
        if request is not None:
            request.moved = True
        if (kind := EXPIRIES.get(reason.kind)) is not None:
            self.expired[kind] += len(records)
        asker, now_ms = None if request is None else request.asker, self._clock.now_ms()
        for record, before in zip(records, replaced, strict=True):
            self._log.note(record.transactional_id, Move(now_ms, before, record, asker, reason))

    def on_refused(self, machine: TransactionMachine, error: KafkaError, cause: object | None) -> None:  # noqa: ARG002
        """Keep the refusal until the response is known: a fault may change the error that the client gets."""
        request = self._served.get(id(cause))
        if request is not None:
            request.refusal = error

    # --- the middleware ----------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware | ForField]:
        """Return the middleware of each API that names transactional ids; most producers have none."""
        return {**dict.fromkeys(_NAMES, self.watch), ApiKey.PRODUCE: ForField("transactional_id", self.watch)}

    def watch(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Any]:
        """Middleware, outermost: record the request with the response as sent, with the effect of faults."""
        names = _NAMES[ctx.api.key](request)
        if names is None or not names.transactional_id:
            return handle(request, ctx)
        return self._watch(names, request, ctx, handle)

    async def _watch(self, names: Names, request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
        served = self._served[id(ctx)] = _Request(ctx, names)
        try:
            response = await handle(request, ctx)
        finally:
            del self._served[id(ctx)]
        error = first_error(response)
        if error is not None:
            self._note_refusal(served, request, response, error)
        elif not served.moved and ctx.api.key in _ASKS_ITS_COORDINATOR:
            event = self._unmoved(names.transactional_id, "request changed nothing")
            self._log.note(names.transactional_id, asked_by(event, served.asker))
        return response

    def _note_refusal(self, served: _Request, request: Any, response: Any, error: ErrorCode) -> None:
        names = served.names if served.ctx.api.key is not ApiKey.PRODUCE else _names_of_batches(request)
        if names is None:
            return
        refusal = served.refusal if isinstance(served.refusal, Refusal) else None
        rule, source = _RULES[served.ctx.api.key] if refusal is None else (refusal.rule, refusal.source)
        if served.ctx.notes.refused_by is not None:
            rule, source = STEERING, ""
        event = replace(
            asked_by(self._unmoved(names.transactional_id, "refused"), served.asker),
            request_producer=names.producer,
            error=error.name,
            rule=rule,
            source=source,
            detail=refusal.sentence if refusal is not None else _message(response),
            fault=served.ctx.notes.refused_by,
        )
        causes = list(causes_of(event, self._log.newest_first(names.transactional_id)))
        self._log.note(names.transactional_id, event, causes)

    def _unmoved(self, name: str, event: str) -> Event:
        """Build an event that does not change the id's state, producer id or epoch."""
        now_ms = self._clock.now_ms()
        last = next((each for each in self._log.newest_first(name) if not is_refusal(each)), None)
        known = None if last is None else read(last)
        if known is None or not known.state_after:
            return Event(now_ms, event, until_ms=now_ms)
        return Event(
            now_ms,
            event,
            known.state_after,
            known.state_after,
            known.producer_id,
            known.epoch_after,
            known.epoch_after,
            producer_before=known.producer_id,
            until_ms=now_ms,
        )


# --- what requests name ----------------------------------------------------------------------------------------------


def _by_fields(request: Any) -> Names | None:
    name = request.transactional_id
    wants = "" if not hasattr(request, "committed") else "commit" if request.committed else "abort"
    return Names(name, ProducerIdAndEpoch(request.producer_id, request.producer_epoch), wants) if name else None


def _by_first_transaction(request: Any) -> Names | None:
    for each in request.transactions:
        return Names(each.transactional_id, ProducerIdAndEpoch(each.producer_id, each.producer_epoch))
    return None


def _by_id_alone(request: Any) -> Names | None:
    return Names(request.transactional_id, NO_PRODUCER) if request.transactional_id else None


def _names_of_batches(request: Any) -> Names | None:
    """Return the transactional id and producer of a Produce request: the producer of its first batch."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if records is not None and begins_with_batch(records):
                batch = RecordBatch(records)
                return Names(request.transactional_id, ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch))
    return _by_id_alone(request)


def _message(response: Any) -> str:
    """Return the first error message in a Produce response; empty if there is none."""
    for topic in getattr(response, "responses", ()):
        for partition in getattr(topic, "partition_responses", ()):
            if partition.error_message:
                return str(partition.error_message)
    return ""


_NAMES: Mapping[ApiKey, Callable[[Any], Names | None]] = {
    ApiKey.PRODUCE: _by_id_alone,
    ApiKey.INIT_PRODUCER_ID: _by_fields,
    ApiKey.ADD_PARTITIONS_TO_TXN: _by_first_transaction,
    ApiKey.ADD_OFFSETS_TO_TXN: _by_fields,
    ApiKey.END_TXN: _by_fields,
    ApiKey.TXN_OFFSET_COMMIT: _by_fields,
}
_RULES: Mapping[ApiKey, tuple[str, str]] = {
    ApiKey.PRODUCE: ("transactions D.4", "ProducerAppendInfo"),
    ApiKey.INIT_PRODUCER_ID: ("transactions A.2", "TransactionCoordinator"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("transactions C.1.1", "TransactionCoordinator"),
    ApiKey.ADD_OFFSETS_TO_TXN: ("transactions C.3", "TransactionCoordinator"),
    ApiKey.END_TXN: ("transactions C.5", "TransactionCoordinator"),
    ApiKey.TXN_OFFSET_COMMIT: ("transactions C.4.2", "OffsetMetadataManager"),
}
"""API -> its section of the specification, for refusals without a rule of the machine."""
_ASKS_ITS_COORDINATOR: Final = frozenset(
    {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN}
)
