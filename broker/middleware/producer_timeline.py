"""The life of each producer id, event by event: where it came from, and the sequences that partitions took or refused.

An idempotent producer without a transactional id has no coordinator that remembers it; each partition judges its
batches by itself. What it judged is noted here after the handler, when the answer is known: batches that follow each
other are one event that grows, so a producer to which nothing happens costs next to nothing. Events are kept for
people, in memory only, a few hundred for each producer.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from broker.chain import Handler, Middleware
from broker.clock import Clock
from broker.context import RequestContext
from broker.middleware.journal import FAULT_NOTE
from broker.partition import ReplicatedPartition
from broker.producing.gate import CANDIDATES_NOTE, Candidate
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch
from storage.append import AppendInfo
from storage.producer_state import ProducerEntry
from storage.rejection import RecordsRejectedError

EVENTS_OF_A_PRODUCER, EVENTS = 200, 10_000
"""How much is remembered of one and of all; the producer that was heard of least recently makes room."""
ACCEPTED, DUPLICATE, REFUSED = "accepted", "duplicate", "refused"
Place = tuple[str, int]


@dataclass(slots=True)
class ProducerEvent:
    """One event.

    ``epoch_before`` and ``epoch_after`` are those that the partition knows the producer by, -1 where it does not;
    ``producer_epoch`` is what the request says. ``known_sequence`` is the last one that the partition had before.
    Accepted batches that follow each other are one event: it lasts from ``at_ms`` to ``until_ms``.
    """

    at_ms: int
    event: str
    until_ms: int
    place: Place | None = None
    producer_epoch: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    first_sequence: int = -1
    last_sequence: int = -1
    known_sequence: int = -1
    batches: int = 0
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""
    detail: str = ""
    fault: str | None = None

    @property
    def partition(self) -> str:
        """Such as ``orders-0``; empty where the event is about none."""
        return "" if self.place is None else f"{self.place[0]}-{self.place[1]}"


@dataclass(slots=True)
class Life:
    """What is remembered of a producer id. ``runs`` are the events that may still grow, by partition."""

    transactional_id: str | None = None
    client_id: str | None = None
    events: deque[ProducerEvent] = field(default_factory=deque)
    runs: dict[Place, ProducerEvent] = field(default_factory=dict)


class ProducerTimelines:
    """The events of all producer ids of a cluster."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives: OrderedDict[int, Life] = OrderedDict()
        self._weight = 0  # lives and events

    # --- looking -----------------------------------------------------------------------------------------------------

    def of(self, producer_id: int) -> Life | None:
        """What is remembered of an id; not to be changed."""
        return self._lives.get(producer_id)

    @property
    def lives(self) -> Mapping[int, Life]:
        """All that is remembered, by producer id; not to be changed."""
        return self._lives

    def clear(self) -> None:
        """Forget everything."""
        self._lives.clear()
        self._weight = 0

    # --- what requests tell ------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware]:
        """The watch over the APIs by which producers get an id and use it."""
        return {ApiKey.PRODUCE: self.watch_produce, ApiKey.INIT_PRODUCER_ID: self.watch_init}

    async def watch_init(self, request: InitProducerIdRequest, ctx: RequestContext, handle: Handler) -> Any:
        """Middleware: a producer gets its id. What moves a transactional id is told by its own timeline."""
        response = await handle(request, ctx)
        if response.error_code is ErrorCode.NONE and response.producer_id >= 0:
            life = self._life(response.producer_id)
            life.transactional_id, life.client_id = request.transactional_id, ctx.client_id
            if request.transactional_id is None:
                epoch = response.producer_epoch
                event = self._event("initialised", None, ctx)
                event.epoch_after, event.rule = epoch, "transactions A5, KIP-98"
                self._add(life, event)
        return response

    async def watch_produce(self, request: ProduceRequest, ctx: RequestContext, handle: Handler) -> Any:
        """Middleware, outermost: what became of each batch, also where its answer is lost by a fault."""
        response = None
        try:
            response = await handle(request, ctx)
        finally:
            notes = ctx.notes
            candidates: list[Candidate] | None = notes.get(CANDIDATES_NOTE)
            fault: str | None = notes.get(FAULT_NOTE)
            unread = candidates is None
            for each in candidates or ():
                if each.batch is None:
                    unread = True
                elif each.batch.producer_id >= 0:
                    self._tell(each, each.batch, request.transactional_id, ctx, fault)
            if (unread or fault is not None) and response is not None:
                self._tell_answers(request, response, candidates or (), ctx)
        return response

    # --- what partitions forget --------------------------------------------------------------------------------------

    def forgotten(self, producer_id: int, partition: ReplicatedPartition) -> None:
        """Steering made a partition forget a producer."""
        self._lost(producer_id, partition, "forgotten", "steering")

    def expired(self, producer_ids: Iterable[int], partition: ReplicatedPartition) -> None:
        """They were silent for ``producer.id.expiration.ms``."""
        for producer_id in producer_ids:
            self._lost(producer_id, partition, "expired", "transactions D.7")

    def _lost(self, producer_id: int, partition: ReplicatedPartition, event: str, rule: str) -> None:
        life = self._lives.get(producer_id)
        if life is not None:
            now_ms, place = self._clock.now_ms(), (partition.topic, partition.index)
            life.runs.pop(place, None)
            self._add(life, ProducerEvent(now_ms, event, now_ms, place, rule=rule))

    # --- noting ------------------------------------------------------------------------------------------------------

    def _tell(
        self, each: Candidate, batch: RecordBatch, name: str | None, ctx: RequestContext, fault: str | None
    ) -> None:
        life, info = self._life(batch.producer_id), each.info
        life.transactional_id, life.client_id = name, ctx.client_id
        if info is None:
            self._refused(life, each, batch, ctx)
        elif info.duplicate:
            self._duplicate(life, each, batch, ctx, fault)
        else:
            self._accepted(life, each, batch, info, ctx, fault)
            if each.error is not None:  # written, and then not replicated in time
                self._refused(life, each, batch, ctx)

    def _accepted(
        self, life: Life, each: Candidate, batch: RecordBatch, info: AppendInfo, ctx: RequestContext, fault: str | None
    ) -> None:
        place, epoch, before = (each.topic, each.index), batch.producer_epoch, info.producer_epoch_before
        run = None if fault is not None else life.runs.get(place)
        if run is not None and before == epoch == run.epoch_after and run.connection == ctx.connection.number:
            run.last_sequence, run.until_ms = batch.last_sequence, self._clock.now_ms()
            run.batches += 1
            return
        event = self._event(ACCEPTED, place, ctx)
        event.producer_epoch = event.epoch_after = epoch
        event.epoch_before, event.fault, event.batches = before, fault, 1
        event.first_sequence, event.last_sequence = batch.base_sequence, batch.last_sequence
        event.rule = _rule_of(before, epoch)
        if fault is None:
            life.runs[place] = event
        else:
            life.runs.pop(place, None)
        self._add(life, event)

    def _duplicate(
        self, life: Life, each: Candidate, batch: RecordBatch, ctx: RequestContext, fault: str | None
    ) -> None:
        event = self._batch_event(DUPLICATE, (each.topic, each.index), batch, ctx)
        event.epoch_before = event.epoch_after = batch.producer_epoch
        event.rule, event.fault = "transactions S1, KIP-98", fault
        if each.info is not None:
            event.detail = f"it lies at offset {each.info.base_offset} since it came first"
        life.runs.pop((each.topic, each.index), None)
        self._add(life, event)

    def _refused(self, life: Life, each: Candidate, batch: RecordBatch, ctx: RequestContext) -> None:
        error, known = each.error, known_here(each.partition, batch.producer_id)
        if error is None:
            return
        place = (each.topic, each.index)
        event = self._batch_event(REFUSED if each.info is None else "answered with an error", place, batch, ctx)
        if known is not None:
            event.epoch_before = event.epoch_after = known.producer_epoch
            event.known_sequence = known.last_sequence
        event.error = error.code.name
        if isinstance(error, RecordsRejectedError):
            event.rule, event.detail = error.rule, error.reason
        else:
            event.detail = error.message or ""
        life.runs.pop(place, None)
        self._add(life, event)

    def _tell_answers(
        self, request: ProduceRequest, response: ProduceResponse, candidates: Iterable[Candidate], ctx: RequestContext
    ) -> None:
        """Errors that no candidate tells of: a fault made them, or the request never came that far."""
        known = {(each.asked_name, each.topic_id, each.index): each for each in candidates if each.batch is not None}
        fault = ctx.notes.get(FAULT_NOTE)
        for key, batch in _batches(request):
            code = _answer_to(response, key)
            judged = known.get(key)
            told = None if judged is None else judged.error and judged.error.code
            if code is ErrorCode.NONE or code is told:
                continue
            name = _name(key, ctx)
            event = self._batch_event(REFUSED if judged is None else "answered with an error", name, batch, ctx)
            entry = known_here(ctx.cluster.partitions.get(name), batch.producer_id)
            if entry is not None:
                event.epoch_before = event.epoch_after = entry.producer_epoch
                event.known_sequence = entry.last_sequence
            event.error, event.fault = code.name, fault
            life = self._life(batch.producer_id)
            life.transactional_id, life.client_id = request.transactional_id, ctx.client_id
            life.runs.pop(name, None)
            self._add(life, event)

    def _event(self, name: str, place: Place | None, ctx: RequestContext) -> ProducerEvent:
        now_ms = self._clock.now_ms()
        return ProducerEvent(
            now_ms,
            name,
            now_ms,
            place,
            client_id=ctx.client_id,
            connection=ctx.connection.number,
            broker=ctx.node.id,
            api=ctx.api.key.title,
            version=ctx.version,
        )

    def _batch_event(self, name: str, place: Place, batch: RecordBatch, ctx: RequestContext) -> ProducerEvent:
        event = self._event(name, place, ctx)
        event.producer_epoch = batch.producer_epoch
        event.first_sequence, event.last_sequence, event.batches = batch.base_sequence, batch.last_sequence, 1
        return event

    # --- keeping -----------------------------------------------------------------------------------------------------

    def _life(self, producer_id: int) -> Life:
        """What is remembered of an id, which was heard of just now."""
        life = self._lives.get(producer_id)
        if life is None:
            life = self._lives[producer_id] = Life()
            self._weight += 1
            self._make_room()
        else:
            self._lives.move_to_end(producer_id)
        return life

    def _add(self, life: Life, event: ProducerEvent) -> None:
        if len(life.events) >= EVENTS_OF_A_PRODUCER:
            gone = life.events.popleft()
            if gone.place is not None and life.runs.get(gone.place) is gone:
                del life.runs[gone.place]  # what nobody can see need not grow
        else:
            self._weight += 1
        life.events.append(event)
        self._make_room()

    def _make_room(self) -> None:
        while self._weight > EVENTS:
            _, gone = self._lives.popitem(last=False)
            self._weight -= 1 + len(gone.events)


def known_here(partition: ReplicatedPartition | None, producer_id: int) -> ProducerEntry | None:
    """What a partition's leader knows of a producer."""
    log = None if partition is None else partition.logs.get(partition.state.leader)
    return None if log is None or not log.has_producers else log.producers.producers.get(producer_id)


def _rule_of(epoch_before: int, epoch: int) -> str:
    """Which rule lets a batch in that nothing speaks against."""
    if epoch_before < 0:
        return "transactions S9, KIP-360"
    return "transactions S8, KIP-98" if epoch == epoch_before else "transactions S7, KIP-360"


Key = tuple[str, UUID | None, int]


def _batches(request: ProduceRequest) -> Iterator[tuple[Key, RecordBatch]]:
    """The first batch of each partition of a request, where a producer sent it."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if not isinstance(records, memoryview) or len(records) < BATCH_HEADER_SIZE:
                continue
            if records[16] == MAGIC_V2 and (batch := RecordBatch(records)).producer_id >= 0:
                yield (topic.name, topic.topic_id, data.index), batch


def _answer_to(response: ProduceResponse, key: Key) -> ErrorCode:
    name, topic_id, index = key
    for topic in response.responses:
        if (topic.name, topic.topic_id) == (name, topic_id):
            for answer in topic.partition_responses:
                if answer.index == index:
                    return answer.error_code
    return ErrorCode.NONE


def _name(key: Key, ctx: RequestContext) -> Place:
    """Topic and partition by name, also where a request names the topic by its id."""
    name, topic_id, index = key
    found = ctx.cluster.image.topics_by_id.get(topic_id) if topic_id is not None else None
    return (name if found is None else found.name), index
