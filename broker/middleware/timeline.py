"""The life of each transactional id, event by event: what moved it, what was refused, and by which rule.

Moves are seen where state changes, in the machine's replay; refusals where they are raised; and around both the request
that asked. Events are kept for people, in memory only, a few hundred for each id.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from broker.chain import Handler, Middleware
from broker.clock import Clock
from broker.context import RequestContext
from broker.coordination.transaction.epochs import NOBODY, ProducerIdAndEpoch, is_exhausted
from broker.coordination.transaction.refusal import Refusal
from broker.coordination.transaction.states import COMPLETED_BY
from broker.middleware.fields import first_error
from broker.middleware.journal import FAULT_NOTE
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionRecord, TransactionState, TransactionTombstone
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2, RecordBatch

_S = TransactionState
EVENTS_OF_AN_ID, EVENTS = 200, 10_000
"""How much is remembered of one and of all; the id that was heard of least recently makes room, with all its events."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``said`` is who the asker thought the producer was; fields are empty where nothing is to be said."""

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    producer_id: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""
    detail: str = ""
    fault: str | None = None
    said: ProducerIdAndEpoch = NOBODY
    wants: str = ""
    producer_before: int = -1

    @property
    def stood(self) -> ProducerIdAndEpoch:
        """Where the id was before."""
        return ProducerIdAndEpoch(self.producer_before, self.epoch_before)

    @property
    def stands(self) -> ProducerIdAndEpoch:
        """Where the id is since."""
        return ProducerIdAndEpoch(self.producer_id, self.epoch_after)


class _Said(NamedTuple):
    """What a request says of itself: the id it is about, the producer, and in words what it wants."""

    name: str
    producer: ProducerIdAndEpoch
    wants: str = ""


class _By(NamedTuple):
    """Who asked, as an event tells it."""

    client_id: str
    connection: int
    broker: int
    api: ApiKey
    version: int
    said: _Said


class Asking:
    """A request about a transactional id while it is served."""

    __slots__ = ("_by", "ctx", "moved", "refusal", "said", "task")

    def __init__(self, ctx: RequestContext, said: _Said) -> None:
        self.ctx, self.said = ctx, said
        self.task = asyncio.current_task()
        self.moved = False
        self.refusal: Refusal | None = None
        self._by: _By | None = None

    @property
    def by(self) -> _By:
        """What of it is remembered."""
        if self._by is None:
            ctx = self.ctx
            self._by = _By(ctx.client_id, ctx.connection.number, ctx.node.id, ctx.api.key, ctx.version, self.said)
        return self._by


class _Move(NamedTuple):
    """What moved an id. Events are made of it when somebody asks, for most are never looked at."""

    at_ms: int
    before: TransactionRecord | None
    after: TransactionRecord | TransactionTombstone
    by: _By | None
    steering: str

    def told(self) -> Event:
        """The event."""
        before, after = self.before, self.after if isinstance(self.after, TransactionRecord) else None
        name, rule = _named(before, self.after, self.by, self.steering)
        told = Event(
            self.at_ms,
            name,
            "" if before is None else before.state.text,
            "" if after is None else after.state.text,
            -1 if after is None else after.producer_id,
            -1 if before is None else before.producer_epoch,
            -1 if after is None else after.producer_epoch,
            rule=rule,
            detail=_added(before, after),
            producer_before=-1 if before is None else before.producer_id,
        )
        return told if self.by is None else _asked_by(told, self.by)


_ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)


def asking() -> Asking | None:
    """The request that is being served by the running task; ``None`` in a timer, whoever may have set that."""
    found = _ASKING.get()
    return found if found is not None and found.task is asyncio.current_task() else None


class Timelines:
    """The events of all transactional ids of a cluster."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: OrderedDict[str, deque[Event | _Move]] = OrderedDict()
        self._count = 0
        self.steering = ""
        """What the control plane is doing at this moment, for the moves that come of it."""

    def of(self, name: str) -> list[Event]:
        """The events of an id, oldest first."""
        return [each.told() if isinstance(each, _Move) else each for each in self._events.get(name, ())]

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()
        self._count = 0

    def note(self, name: str, event: Event | _Move) -> None:
        """One more event."""
        events = self._events.get(name)
        if events is None:
            events = self._events[name] = deque(maxlen=EVENTS_OF_AN_ID)
        self._events.move_to_end(name)
        self._count += len(events) < EVENTS_OF_AN_ID
        events.append(event)
        while self._count > EVENTS:
            _, forgotten = self._events.popitem(last=False)
            self._count -= len(forgotten)

    # --- what machines tell ------------------------------------------------------------------------------------------

    def moved(self, before: TransactionRecord | None, after: TransactionRecord | TransactionTombstone) -> None:
        """A record was replayed, not out of an old log."""
        found = asking()
        if found is not None:
            found.moved = True
        by = None if found is None else found.by
        self.note(after.transactional_id, _Move(self._clock.now_ms(), before, after, by, self.steering))

    @staticmethod
    def refused(refusal: Refusal) -> None:
        """A coordinator says no to the request that is being served."""
        found = asking()
        if found is not None:
            found.refusal = refusal

    # --- what requests tell ------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware]:
        """The watch over each API that speaks of transactional ids."""
        return dict.fromkeys(_SAYS, self.watch)

    def watch(self, request: Any, ctx: RequestContext, handle: Handler) -> Awaitable[Any]:
        """Middleware, outermost: what is answered in the end counts, be it a fault's."""
        said = _SAYS[ctx.api.key](request)
        if said is None or not said.name:
            return handle(request, ctx)
        return self._watch(said, request, ctx, handle)

    async def _watch(self, said: _Said, request: Any, ctx: RequestContext, handle: Handler) -> Any:
        mine = Asking(ctx, said)
        token = _ASKING.set(mine)
        try:
            response = await handle(request, ctx)
        finally:
            _ASKING.reset(token)
        error = first_error(response)
        if error is not None:
            self._note_refusal(mine, request, response, error)
        elif not mine.moved and ctx.api.key in _TELLS_OF_ITSELF:
            self.note(said.name, _asked_by(self._still(said.name, "asked again, nothing changed"), mine.by))
        return response

    def _note_refusal(self, mine: Asking, request: Any, response: Any, error: ErrorCode) -> None:
        said = mine.said if mine.ctx.api.key is not ApiKey.PRODUCE else _said_by_batches(request)
        if said is None:
            return
        refusal = mine.refusal
        told = replace(
            _asked_by(self._still(said.name, "refused"), mine.by),
            said=said.producer,
            error=error.name,
            rule="" if refusal is None else refusal.rule,
            detail=refusal.message or "" if refusal is not None else _message(response),
            fault=mine.ctx.notes.get(FAULT_NOTE) if mine.ctx.notes else None,
        )
        self.note(said.name, told)

    def _still(self, name: str, event: str) -> Event:
        """An event that moves nothing."""
        known = (each for each in reversed(self._events.get(name, ())) if isinstance(each, _Move) or each.error is None)
        found = next(known, None)
        last = found.told() if isinstance(found, _Move) else found
        if last is None or not last.state_after:
            return Event(self._clock.now_ms(), event)
        return Event(
            self._clock.now_ms(),
            event,
            last.state_after,
            last.state_after,
            last.producer_id,
            last.epoch_after,
            last.epoch_after,
            producer_before=last.producer_id,
        )


def _asked_by(event: Event, by: _By) -> Event:
    return replace(
        event,
        client_id=by.client_id,
        connection=by.connection,
        broker=by.broker,
        api=by.api.title,
        version=by.version,
        said=by.said.producer,
        wants=by.said.wants,
    )


def _added(before: TransactionRecord | None, after: TransactionRecord | None) -> str:
    if after is None or after.state is not _S.ONGOING:
        return ""
    known = before.partitions or frozenset() if before is not None and before.state is _S.ONGOING else frozenset()
    return ", ".join(f"{topic}-{index}" for topic, index in sorted((after.partitions or frozenset()) - known))


# --- names and rules -------------------------------------------------------------------------------------------------


def _named(
    before: TransactionRecord | None,
    after: TransactionRecord | TransactionTombstone,
    by: _By | None,
    steering: str,
) -> tuple[str, str]:
    """What a move is called, and the rule that decided it."""
    if isinstance(after, TransactionTombstone):
        return "expired", "transactions B.8, KIP-98"
    if steering:
        return steering, "steering"
    if after.state is _S.EMPTY:
        return "initialised", _rule_of_init(before, NOBODY if by is None else by.said.producer)
    if after.state is _S.ONGOING:
        begins = before is None or before.state is not _S.ONGOING
        return "begun" if begins else "partitions added", "transactions P14, KIP-98"
    if after.state in COMPLETED_BY:
        return _decided(after, by)
    return "committed" if after.state is _S.COMPLETE_COMMIT else "aborted", "transactions B.6, KIP-98"


def _decided(after: TransactionRecord, by: _By | None) -> tuple[str, str]:
    if by is None:
        return "timed out", "transactions B.7, KIP-98"
    if by.api is ApiKey.INIT_PRODUCER_ID:
        return "aborted for a new producer", "transactions I5 and A.5, KIP-98"
    name = "commit decided" if after.state is _S.PREPARE_COMMIT else "abort decided"
    newer = after.client_transaction_version >= 2
    return name, "transactions U6, KIP-890" if newer else "transactions T7, KIP-98"


def _rule_of_init(before: TransactionRecord | None, expected: ProducerIdAndEpoch) -> str:
    """Table A.3: which line gave the producer its epoch."""
    if before is not None and is_exhausted(before.producer_epoch):
        return "transactions E1, KIP-98" if expected == NOBODY else "transactions E2, KIP-360"
    if expected == NOBODY:
        return "transactions E4, KIP-98"
    if before is None or before.producer_epoch < 0:
        return "transactions E5, KIP-360"
    return (
        "transactions E6, KIP-360" if expected.producer_epoch == before.producer_epoch else "transactions E7, KIP-360"
    )


# --- what requests say -----------------------------------------------------------------------------------------------


def _by_fields(request: Any) -> _Said | None:
    name = request.transactional_id
    wants = "" if not hasattr(request, "committed") else "commit" if request.committed else "abort"
    return _Said(name, ProducerIdAndEpoch(request.producer_id, request.producer_epoch), wants) if name else None


def _by_first_transaction(request: Any) -> _Said | None:
    for each in request.transactions:
        return _Said(each.transactional_id, ProducerIdAndEpoch(each.producer_id, each.producer_epoch))
    return None


def _by_name_alone(request: Any) -> _Said | None:
    return _Said(request.transactional_id, NOBODY) if request.transactional_id else None


def _said_by_batches(request: Any) -> _Said | None:
    """Who a Produce request says that it is: its first batch does."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if records is not None and len(records) >= BATCH_HEADER_SIZE and records[16] == MAGIC_V2:
                batch = RecordBatch(records)
                return _Said(request.transactional_id, ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch))
    return _by_name_alone(request)


def _message(response: Any) -> str:
    """The sentence that came with an error of Produce."""
    for topic in getattr(response, "responses", ()):
        for partition in getattr(topic, "partition_responses", ()):
            if partition.error_message:
                return str(partition.error_message)
    return ""


_SAYS: Mapping[ApiKey, Callable[[Any], _Said | None]] = {
    ApiKey.PRODUCE: _by_name_alone,
    ApiKey.INIT_PRODUCER_ID: _by_fields,
    ApiKey.ADD_PARTITIONS_TO_TXN: _by_first_transaction,
    ApiKey.ADD_OFFSETS_TO_TXN: _by_fields,
    ApiKey.END_TXN: _by_fields,
    ApiKey.TXN_OFFSET_COMMIT: _by_fields,
}
_TELLS_OF_ITSELF = frozenset(
    {ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN}
)
