"""The timeline of each producer id: who initialised it, and the sequences that partitions accepted or refused.

An idempotent producer without a transactional id has no coordinator; each partition checks its batches by its own
producer state. The result is recorded after the handler, when the response is known, with the rule that the log gives.
Consecutive accepted batches extend one event, so a healthy producer costs next to nothing. Events are kept in memory
only, within the limits of the event log.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from broker.coordination.reasons import STEERING, Refusal
from broker.replication.partition import ReplicatedPartition
from broker.request.api import AnyHandler, Middleware
from broker.request.context import RequestContext
from broker.request.produce_results import Produced
from broker.steering.timelines.event_log import LIMITS, EventLog
from broker.steering.timelines.events import origin_of
from broker.steering.timelines.producer_events import (
    ACCEPTED,
    ANSWERED,
    DUPLICATE,
    EXPIRED,
    FORGOTTEN,
    REFUSED,
    Folding,
    Place,
    ProducerEvent,
    ProducerHistory,
    causes_of,
)
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.batch import RecordBatch, begins_with_batch
from protocol.types import Message
from storage.append_errors import RecordsRejectedError
from storage.append_info import NO_RULE, AppendInfo, Rule
from storage.producers import rules
from storage.producers.state import ProducerEntry

_INITIALISED: Final = Rule("transactions A.1 A5", "KIP-98")


@dataclass(slots=True)
class _Producer:
    """The user of a producer id. ``runs`` are the events that the next accepted batch may extend, by partition."""

    transactional_id: str | None = None
    client_id: str | None = None
    runs: dict[Place, ProducerEvent] = field(default_factory=dict)


class ProducerTimelines:
    """The timelines of all producer ids of a cluster."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._log: EventLog[int, ProducerEvent] = EventLog(Folding())
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    # --- reading -----------------------------------------------------------------------------------------------------

    def of(self, producer_id: int) -> ProducerHistory | None:
        """Return what is known of a producer id; ``None`` if nothing. Do not modify the events."""
        producer = self._producers.get(producer_id)
        events, forgotten = self._log.of(producer_id), self._log.forgotten(producer_id)
        if producer is None and not events and forgotten <= 0:
            return None
        user = _Producer() if producer is None else producer
        return ProducerHistory(user.transactional_id, user.client_id, events, forgotten)

    def ids(self) -> list[int]:
        """Return all known producer ids, those with the latest requests last."""
        silent = [each for each in self._log.ids() if each not in self._producers]
        return [*silent, *self._producers]

    def refused(self) -> list[int]:
        """Return the producer ids that were refused, those with the latest refusals last."""
        return self._log.refused()

    def clear(self) -> None:
        """Remove all events and producers."""
        self._log.clear()
        self._producers.clear()

    # --- the middleware ----------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware]:
        """Return the middleware of InitProducerId and Produce."""
        return {ApiKey.PRODUCE: self.watch_produce, ApiKey.INIT_PRODUCER_ID: self.watch_init}

    async def watch_init(
        self, request: InitProducerIdRequest, ctx: RequestContext, handle: AnyHandler
    ) -> Message | None:
        """Middleware: record new producer ids. Changes of a transactional id are in that id's own timeline."""
        response = await handle(request, ctx)
        if not isinstance(response, InitProducerIdResponse):
            return response
        if response.error_code is ErrorCode.NONE and response.producer_id >= 0:
            self._used(response.producer_id, request.transactional_id, ctx)
            if request.transactional_id is None:
                event = self._event("initialised", None, ctx, _INITIALISED)
                event.epoch_after = response.producer_epoch
                self._log.note(response.producer_id, event)
        return response

    async def watch_produce(self, request: ProduceRequest, ctx: RequestContext, handle: AnyHandler) -> Message | None:
        """Middleware, outermost: record the result of each batch, even if a fault drops the response."""
        response: Message | None = None
        try:
            response = await handle(request, ctx)
        finally:
            produced, fault = ctx.notes.produced, ctx.notes.faults
            unread = produced is None
            for each in produced or ():
                if each.batch is None:
                    unread = True
                elif each.batch.producer_id >= 0:
                    self._note(each, each.batch, request.transactional_id, ctx, fault)
            if (unread or fault is not None) and isinstance(response, ProduceResponse):
                self._note_answers(request, response, produced or (), ctx)
        return response

    # --- partitions that remove a producer ---------------------------------------------------------------------------

    def forgotten(self, producer_id: int, partition: ReplicatedPartition) -> None:
        """Record that the control plane removed a producer's state from a partition."""
        self._lost(producer_id, partition, FORGOTTEN, Rule(STEERING, STEERING))

    def expired(self, producer_ids: Iterable[int], partition: ReplicatedPartition) -> None:
        """Record that a partition removed producers that had written nothing for ``producer.id.expiration.ms``."""
        for producer_id in producer_ids:
            self._lost(producer_id, partition, EXPIRED, rules.EXPIRED)

    def _lost(self, producer_id: int, partition: ReplicatedPartition, event: str, rule: Rule) -> None:
        producer = self._producers.get(producer_id)
        if producer is None and producer_id not in self._log:
            return
        now_ms, place = self._clock.now_ms(), (partition.topic, partition.index)
        if producer is not None:
            producer.runs.pop(place, None)
        self._log.note(producer_id, ProducerEvent(now_ms, event, now_ms, place, rule=rule.rule, source=rule.source))

    # --- noting ------------------------------------------------------------------------------------------------------

    def _note(
        self, each: Produced, batch: RecordBatch, name: str | None, ctx: RequestContext, fault: str | None
    ) -> None:
        producer, info = self._used(batch.producer_id, name, ctx), each.info
        if info is None:
            self._refused(producer, each, batch, ctx)
        elif info.duplicate:
            self._duplicate(producer, each, batch, info, ctx, fault)
        else:
            self._accepted(producer, each, batch, info, ctx, fault)
            if each.error is not None:  # appended, but not replicated in time
                self._refused(producer, each, batch, ctx)

    def _accepted(
        self, producer: _Producer, each: Produced, batch: RecordBatch, info: AppendInfo, ctx: RequestContext,
        fault: str | None,
    ) -> None:  # fmt: skip
        place, epoch, before = (each.topic, each.index), batch.producer_epoch, info.producer_epoch_before
        run = None if fault is not None else producer.runs.get(place)
        goes_on = run is not None and before == epoch == run.epoch_after and run.connection == ctx.connection.number
        if run is not None and goes_on and not run.merged:
            run.last_sequence, run.until_ms = batch.last_sequence, self._clock.now_ms()
            run.batches += 1
            return
        event = self._event(ACCEPTED, place, ctx, info.rule)
        event.producer_epoch = event.epoch_after = epoch
        event.epoch_before, event.fault, event.batches = before, fault, 1
        event.first_sequence, event.last_sequence = batch.base_sequence, batch.last_sequence
        if fault is None:
            producer.runs[place] = event
        else:
            producer.runs.pop(place, None)
        self._log.note(batch.producer_id, event)

    def _duplicate(
        self, producer: _Producer, each: Produced, batch: RecordBatch, info: AppendInfo, ctx: RequestContext,
        fault: str | None,
    ) -> None:  # fmt: skip
        event = self._batch_event(DUPLICATE, (each.topic, each.index), batch, ctx, info.rule)
        event.epoch_before = event.epoch_after = batch.producer_epoch
        event.fault, event.detail = fault, f"it was first written at offset {info.base_offset}"
        producer.runs.pop((each.topic, each.index), None)
        self._log.note(batch.producer_id, event)

    def _refused(self, producer: _Producer, each: Produced, batch: RecordBatch, ctx: RequestContext) -> None:
        error, known = each.error, known_here(each.partition, batch.producer_id)
        if error is None:
            return
        place = (each.topic, each.index)
        event = self._batch_event(REFUSED if each.info is None else ANSWERED, place, batch, ctx, _rule_of(error))
        _set_known(event, known)
        event.error = error.code.name
        event.detail = _detail_of(error)
        self._note_refusal(producer, batch.producer_id, event)

    def _note_answers(
        self, request: ProduceRequest, response: ProduceResponse, produced: Iterable[Produced], ctx: RequestContext
    ) -> None:
        """Record errors that are no partition's result: those of faults, and of requests refused before any append."""
        known = {(each.asked_name, each.topic_id, each.index): each for each in produced if each.batch is not None}
        fault = ctx.notes.refused_by
        for key, batch in _batches(request):
            code = _answer_to(response, key)
            judged = known.get(key)
            noted = None if judged is None else judged.error and judged.error.code
            if code is ErrorCode.NONE or code is noted:
                continue
            place = _place_of(key, ctx)
            event = self._batch_event(REFUSED if judged is None else ANSWERED, place, batch, ctx)
            _set_known(event, known_here(ctx.cluster.partitions.get(place), batch.producer_id))
            event.error, event.fault = code.name, fault
            producer = self._used(batch.producer_id, request.transactional_id, ctx)
            self._note_refusal(producer, batch.producer_id, event)

    def _note_refusal(self, producer: _Producer, producer_id: int, event: ProducerEvent) -> None:
        if event.place is not None:
            producer.runs.pop(event.place, None)
        self._log.note(producer_id, event, list(causes_of(event, self._log.newest_first(producer_id))))

    def _event(self, name: str, place: Place | None, ctx: RequestContext, rule: Rule = NO_RULE) -> ProducerEvent:
        now_ms = self._clock.now_ms()
        return ProducerEvent(now_ms, name, now_ms, place, rule=rule.rule, source=rule.source, **origin_of(ctx))

    def _batch_event(
        self, name: str, place: Place, batch: RecordBatch, ctx: RequestContext, rule: Rule = NO_RULE
    ) -> ProducerEvent:
        event = self._event(name, place, ctx, rule)
        event.producer_epoch = batch.producer_epoch
        event.first_sequence, event.last_sequence, event.batches = batch.base_sequence, batch.last_sequence, 1
        return event

    def _used(self, producer_id: int, transactional_id: str | None, ctx: RequestContext) -> _Producer:
        """Update the user of a producer id. Known producers are bounded like the ids of the event log."""
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = _Producer()
            if len(self._producers) > LIMITS.ids:
                self._producers.popitem(last=False)
        else:
            self._producers.move_to_end(producer_id)
        producer.transactional_id, producer.client_id = transactional_id, ctx.client_id
        return producer


def known_here(partition: ReplicatedPartition | None, producer_id: int) -> ProducerEntry | None:
    """Return the producer state entry of a producer at the partition's leader, if there is one."""
    log = None if partition is None else partition.logs.get(partition.state.leader)
    return None if log is None else log.producer_log.get(producer_id)


def _set_known(event: ProducerEvent, known: ProducerEntry | None) -> None:
    if known is not None:
        event.epoch_before = event.epoch_after = known.producer_epoch
        event.known_sequence = known.last_sequence


def _detail_of(error: KafkaError) -> str:
    match error:
        case RecordsRejectedError():
            return error.reason
        case Refusal():
            return error.message or error.sentence
        case _:
            return error.message or ""


def _rule_of(error: KafkaError) -> Rule:
    return Rule(error.rule, error.source) if isinstance(error, RecordsRejectedError | Refusal) else NO_RULE


Key = tuple[str, UUID | None, int]


def _batches(request: ProduceRequest) -> Iterator[tuple[Key, RecordBatch]]:
    """Yield the first batch of each partition of a request, if it has a producer id."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if not isinstance(records, memoryview) or not begins_with_batch(records):
                continue
            batch = RecordBatch(records)
            if batch.producer_id >= 0:
                yield (topic.name, topic.topic_id, data.index), batch


def _answer_to(response: ProduceResponse, key: Key) -> ErrorCode:
    name, topic_id, index = key
    for topic in response.responses:
        if (topic.name, topic.topic_id) == (name, topic_id):
            for answer in topic.partition_responses:
                if answer.index == index:
                    return answer.error_code
    return ErrorCode.NONE


def _place_of(key: Key, ctx: RequestContext) -> Place:
    """Return topic name and partition, even if the request has only the topic id."""
    name, topic_id, index = key
    topic = ctx.cluster.image.topics_by_id.get(topic_id) if topic_id is not None else None
    return (name if topic is None else topic.name), index
