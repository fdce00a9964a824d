"""Timelines of transactional ids, producers and groups, concluded from forwarded requests and responses.

Understudy's own brokers report what a coordinator decided. A proxy concludes it: a successful EndTxn has decided the
commit, a JoinGroup response with a higher generation ends a rebalance. It does not see changes without a request, such
as a transaction timeout at the coordinator; an explanation then reports that.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from broker.coordination.group.classic.states import ALL_JOINED, ASSIGNED, REBALANCE_BEGUN, State
from broker.coordination.reasons import Reason, StateChange
from broker.request.api import AnyHandler, ForField, Middleware
from broker.request.context import RequestContext
from broker.request.produce_results import Produced
from broker.steering.timelines.event_log import LIMITS
from broker.steering.timelines.groups import GroupTimelines
from broker.steering.timelines.producers import ProducerTimelines
from broker.steering.timelines.transactions import TransactionTimelines
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord, TransactionState
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.paths import errors
from protocol.records.batch import RecordBatch, begins_with_batch
from protocol.types import Message
from storage.append_info import AppendInfo, Rule

K = TypeVar("K")
V = TypeVar("V")
_ANSWERED = "the broker's answer"
"""Source of the conclusions."""
_INITIALISED = Reason("initialised", "transactions A.1", _ANSWERED)
_BEGUN = Reason("begun", "transactions C.1.1 P14", _ANSWERED)
_ADDED = Reason("partitions added", "transactions C.1.1 P14", _ANSWERED)
_ENDED = {
    True: Reason("commit decided", "transactions B.6", _ANSWERED),
    False: Reason("abort decided", "transactions B.6", _ANSWERED),
}
_WRITTEN = Rule("transactions D.4", _ANSWERED)
_REBALANCING = frozenset({State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE})


def _put(latest: "OrderedDict[K, V]", key: K, value: V) -> None:
    """Store a value; if there are too many, drop the least recently used one."""
    latest[key] = value
    latest.move_to_end(key)
    if len(latest) > LIMITS.ids:
        latest.popitem(last=False)


class Views:
    """Timelines of an upstream cluster, and the state of each id as concluded from forwarded requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.transactions, self.groups, self.producers = (
            TransactionTimelines(clock),
            GroupTimelines(clock),
            ProducerTimelines(clock),
        )
        self.seen_transactions: OrderedDict[str, tuple[TransactionRecord, int]] = OrderedDict()
        """Transactional id -> its state, and the broker that responded."""
        self.seen_groups: OrderedDict[str, tuple[str, int, int]] = OrderedDict()
        """Group -> its state, its generation, and the broker that responded."""
        self._epochs: OrderedDict[tuple[int, str, int], int] = OrderedDict()

    def clear(self) -> None:
        """Remove all timelines and states."""
        for view in (self.transactions, self.groups, self.producers, self.seen_transactions, self.seen_groups):
            view.clear()
        self._epochs.clear()

    @property
    def outer(self) -> tuple[Mapping[ApiKey, Middleware | ForField], ...]:
        """Middleware outside the faults, which sees the response that the client gets."""
        return self.transactions.middleware, self.groups.middleware, self.producers.middleware

    @property
    def inner(self) -> Mapping[ApiKey, Middleware]:
        """Middleware inside the faults, which sees the broker's own response."""
        return dict.fromkeys(_NOTES, self.conclude)

    @property
    def keys(self) -> frozenset[ApiKey]:
        """APIs that have to be read."""
        return frozenset(key for stage in (*self.outer, self.inner) for key in stage)

    async def conclude(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Message | None:
        """Innermost middleware: conclude changes of state from a response."""
        response = await handle(request, ctx)
        if response is not None:
            _NOTES[ctx.api.key](self, request, response, ctx)
        return response

    # --- transactional ids -------------------------------------------------------------------------------------------

    def _move(self, ctx: RequestContext, after: TransactionRecord, reason: Reason) -> None:
        name = after.transactional_id
        before = self._record(name)
        _put(self.seen_transactions, name, (after, ctx.node.id))
        self.transactions.note_moves((after,), reason, (before,), ctx)

    def _record(self, name: str) -> TransactionRecord | None:
        seen = self.seen_transactions.get(name)
        return None if seen is None else seen[0]

    def note_init(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a successful InitProducerId: the producer has an id and epoch."""
        if response.error_code is not ErrorCode.NONE or not request.transactional_id:
            return
        after = TransactionRecord(
            request.transactional_id,
            response.producer_id,
            response.producer_epoch,
            request.transaction_timeout_ms,
            TransactionState.EMPTY,
            None,
            self._clock.now_ms(),
        )
        self._move(ctx, after, _INITIALISED)

    def _open(
        self, ctx: RequestContext, name: str, producer: tuple[int, int], added: frozenset[tuple[str, int]]
    ) -> None:
        """Note that partitions were added to a transaction, or began one."""
        before, now_ms = self._record(name), self._clock.now_ms()
        ongoing = before is not None and before.state is TransactionState.ONGOING
        before_partitions = before.partitions or frozenset() if before is not None and ongoing else frozenset()
        if ongoing and added <= before_partitions:
            return
        after = TransactionRecord(
            name,
            *producer,
            -1 if before is None else before.timeout_ms,
            TransactionState.ONGOING,
            before_partitions | added,
            now_ms,
            before.start_ms if before is not None and ongoing else now_ms,
        )
        self._move(ctx, after, _ADDED if ongoing else _BEGUN)

    def note_add_partitions(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a successful AddPartitionsToTxn."""
        if next(errors(response), None) is not None:
            return
        for transaction in request.transactions:
            added = frozenset((topic.name, index) for topic in transaction.topics for index in topic.partitions)
            self._open(ctx, transaction.transactional_id, (transaction.producer_id, transaction.producer_epoch), added)

    def note_offsets(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a successful AddOffsetsToTxn or TxnOffsetCommit: a group's offsets are part of a transaction."""
        if next(errors(response), None) is None and request.transactional_id:
            producer = (request.producer_id, request.producer_epoch)
            self._open(ctx, request.transactional_id, producer, frozenset())

    def note_end(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a successful EndTxn: the transaction is decided; since KIP-890 the producer gets a new epoch."""
        before = self._record(request.transactional_id)
        if response.error_code is not ErrorCode.NONE:
            return
        producer_id, epoch = request.producer_id, request.producer_epoch
        if response.producer_epoch >= 0:
            producer_id, epoch = response.producer_id, response.producer_epoch
        after = TransactionRecord(
            request.transactional_id,
            producer_id,
            epoch,
            -1 if before is None else before.timeout_ms,
            TransactionState.PREPARE_COMMIT if request.committed else TransactionState.PREPARE_ABORT,
            None if before is None else before.partitions,
            self._clock.now_ms(),
            -1 if before is None else before.start_ms,
        )
        self._move(ctx, after, _ENDED[bool(request.committed)])

    # --- producers ---------------------------------------------------------------------------------------------------

    def note_produce(self, request: ProduceRequest, response: ProduceResponse, ctx: RequestContext) -> None:
        """Note a Produce response: batches were written or rejected."""
        produced = list(self._produced(request, response, ctx))
        ctx.notes.produced = produced
        if not request.transactional_id:
            return
        written = [batch for batch in produced if batch.info is not None]
        if written and (batch := written[0].batch) is not None:
            producer = (batch.producer_id, batch.producer_epoch)
            added = frozenset((batch.topic, batch.index) for batch in written)
            self._open(ctx, request.transactional_id, producer, added)

    def _produced(self, request: ProduceRequest, response: ProduceResponse, ctx: RequestContext) -> Iterator[Produced]:
        answers = {
            (topic.name, topic.topic_id, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for topic in request.topic_data:
            topic_of_id = ctx.cluster.image.topics_by_id.get(topic.topic_id) if topic.topic_id is not None else None
            name = topic.name or ("" if topic_of_id is None else topic_of_id.name)
            for data in topic.partition_data:
                answer = answers.get((topic.name, topic.topic_id, data.index))
                records = data.records
                if answer is None or not isinstance(records, memoryview) or not begins_with_batch(records):
                    continue
                batch = RecordBatch(records)
                produced = Produced(topic.name, topic.topic_id, name, data.index, None, batch)
                if answer.error_code is not ErrorCode.NONE:
                    produced.error = KafkaError(answer.error_code, answer.error_message)
                elif batch.producer_id >= 0:
                    produced.info = self._info(batch, name, data.index, answer)
                yield produced

    def _info(self, batch: RecordBatch, topic: str, index: int, answer: Any) -> AppendInfo:
        key = (batch.producer_id, topic, index)
        before = self._epochs.get(key, -1)
        _put(self._epochs, key, batch.producer_epoch)
        return AppendInfo(
            answer.base_offset,
            answer.base_offset + batch.last_offset - batch.base_offset,
            answer.log_append_time_ms,
            answer.log_start_offset,
            producer_epoch_before=before,
            rule=_WRITTEN,
        )

    # --- groups ------------------------------------------------------------------------------------------------------

    def _change(self, name: str, ctx: RequestContext, reason: Reason, after: str, epoch: int) -> None:
        before, before_epoch, _ = self.seen_groups.get(name, ("", -1, -1))
        _put(self.seen_groups, name, (after, epoch, ctx.node.id))
        self.groups.note_changes((StateChange(name, reason, before, after, before_epoch, epoch),))

    def note_join(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a JoinGroup response: all members have joined the next generation."""
        name, epoch = request.group_id, response.generation_id
        state, before_epoch, _ = self.seen_groups.get(name, ("", -1, -1))
        if response.error_code is not ErrorCode.NONE or epoch <= before_epoch:
            return
        if state not in _REBALANCING:
            self._change(name, ctx, REBALANCE_BEGUN, State.PREPARING_REBALANCE, before_epoch)
        self._change(name, ctx, ALL_JOINED, State.COMPLETING_REBALANCE, epoch)

    def note_sync(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a SyncGroup response: the members have their assignment."""
        state, before_epoch, _ = self.seen_groups.get(request.group_id, ("", -1, -1))
        if response.error_code is ErrorCode.NONE and state == State.COMPLETING_REBALANCE:
            self._change(request.group_id, ctx, ASSIGNED, State.STABLE, before_epoch)

    def note_member(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a response with REBALANCE_IN_PROGRESS: a rebalance has begun."""
        state, before_epoch, _ = self.seen_groups.get(request.group_id, ("", -1, -1))
        is_rebalancing = next(errors(response), None) is ErrorCode.REBALANCE_IN_PROGRESS
        if is_rebalancing and state not in _REBALANCING:
            self._change(request.group_id, ctx, REBALANCE_BEGUN, State.PREPARING_REBALANCE, before_epoch)

    def note_heartbeat(self, request: Any, response: Any, ctx: RequestContext) -> None:
        """Note a heartbeat response with a new epoch, of a consumer, share or streams group."""
        _, before_epoch, _ = self.seen_groups.get(request.group_id, ("", -1, -1))
        if response.error_code is ErrorCode.NONE and response.member_epoch > before_epoch:
            self._change(request.group_id, ctx, _NEW_EPOCH, "", response.member_epoch)


_NEW_EPOCH = replace(REBALANCE_BEGUN, kind="a member is at a new epoch", rule="groups C.4", source=_ANSWERED)

_NOTES: Mapping[ApiKey, Any] = {
    ApiKey.INIT_PRODUCER_ID: Views.note_init,
    ApiKey.ADD_PARTITIONS_TO_TXN: Views.note_add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: Views.note_offsets,
    ApiKey.TXN_OFFSET_COMMIT: Views.note_offsets,
    ApiKey.END_TXN: Views.note_end,
    ApiKey.PRODUCE: Views.note_produce,
    ApiKey.JOIN_GROUP: Views.note_join,
    ApiKey.SYNC_GROUP: Views.note_sync,
    ApiKey.HEARTBEAT: Views.note_member,
    ApiKey.OFFSET_COMMIT: Views.note_member,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Views.note_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: Views.note_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Views.note_heartbeat,
}
