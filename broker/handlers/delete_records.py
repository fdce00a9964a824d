"""DeleteRecords: raises the log start offset of partitions (KIP-107).

Versions 0-2. Not done: nothing.
"""

from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.replication.partition import Progress, ReplicatedPartition
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.time.clock import Watched, wait_until
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from protocol.scala import few_grouped_by_topic, grouped_by_topic


@dataclass(slots=True)
class _Pending:
    """A partition whose replicas do not all begin at the offset yet; ``seen`` is how far they were."""

    partition: ReplicatedPartition
    offset: int
    result: DeleteRecordsPartitionResult
    seen: Progress


async def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """Answer when the replicas on all brokers that are not fenced have deleted them, or at the timeout (core E.10).

    Of two offsets for a partition the last one is used (KafkaApis.handleDeleteRecordsRequest keeps a map).
    """
    deadline_ms = ctx.cluster.clock.now_ms() + max(request.timeout_ms, 0)
    offsets = {
        (topic.name, partition.partition_index): partition.offset
        for topic in request.topics
        for partition in topic.partitions
    }
    grouped = (
        grouped_by_topic if any(_goes_to_replica_manager(*place, ctx) for place in offsets) else few_grouped_by_topic
    )
    pending: list[_Pending] = []
    topics = [
        DeleteRecordsTopicResult(name, [_delete(name, index, offsets[name, index], ctx, pending) for index in indexes])
        for name, indexes in grouped(offsets).items()
    ]
    if pending:
        await _wait_for_replicas(pending, deadline_ms, ctx)
    return DeleteRecordsResponse(topics=topics)


async def _wait_for_replicas(pending: list[_Pending], deadline_ms: int, ctx: RequestContext) -> None:
    """Wait for replicas that are held or down, or whose log directory has failed (Kafka: DelayedDeleteRecords)."""

    def done() -> bool:
        pending[:] = [each for each in pending if not _deleted(each, ctx.node.id)]
        return not pending or ctx.connection.lost

    watched: list[Watched] = [ctx.connection, *(each.partition for each in pending)]
    await wait_until(done, watched, ctx.cluster.clock, deadline_ms)
    for each in pending:
        each.result.error_code = ErrorCode.REQUEST_TIMED_OUT


def _deleted(pending: _Pending, broker_id: int) -> bool:
    """Whether all replicas begin at the offset, by now.

    Kafka looks only when a follower or the high watermark has advanced (Partition.tryCompleteDelayedRequests), not when
    a replica's broker is fenced, another broker leads or the topic is deleted: the wait then lasts (core E.10.1).
    """
    progress = pending.partition.progress(broker_id)
    if progress is None or not progress.is_beyond(pending.seen):
        return False
    pending.seen = progress
    low_watermark = pending.partition.low_watermark(broker_id)
    if low_watermark >= pending.offset:
        pending.result.low_watermark = low_watermark
    return low_watermark >= pending.offset


def _goes_to_replica_manager(topic: str, index: int, ctx: RequestContext) -> bool:
    """Whether Kafka passes the partition to the replica manager, whose map decides the order of the response."""
    allowed = ctx.authorized(AclOperation.DELETE, ResourceType.TOPIC, topic)
    return allowed and ctx.cluster.image.partition(topic, index) is not None


def _delete(
    topic: str, index: int, offset: int, ctx: RequestContext, pending: list[_Pending]
) -> DeleteRecordsPartitionResult:
    try:
        partition = _partition(topic, index, ctx)
        target = partition.delete_records_before(ctx.node.id, offset)
        result = DeleteRecordsPartitionResult(index, partition.low_watermark(ctx.node.id))
    except KafkaError as error:
        return DeleteRecordsPartitionResult(index, -1, error.code)
    if result.low_watermark < target and (seen := partition.progress(ctx.node.id)) is not None:
        pending.append(_Pending(partition, target, result, seen))
    return result


def _partition(topic: str, index: int, ctx: RequestContext) -> ReplicatedPartition:
    """Return the partition if its records may be deleted. Raises KafkaError."""
    if not ctx.authorized(AclOperation.DELETE, ResourceType.TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.node.partition(topic, index)
    # Before leadership: clients may not cut a coordinator's log, on any broker.
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = partition.led_by(ctx.node.id)
    # Compaction keeps the last value of each key; a raised log start would lose it.
    if log.config.compact and not log.config.delete:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    return partition


API: Api[DeleteRecordsRequest, DeleteRecordsResponse] = Api(
    ApiKey.DELETE_RECORDS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: DeleteRecordsTopicResult(
            topic.name, [DeleteRecordsPartitionResult(p.partition_index, -1, error.code) for p in topic.partitions]
        ),
        lambda topics: DeleteRecordsResponse(topics=topics),
    ),
)
