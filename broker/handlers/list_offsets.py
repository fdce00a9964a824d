"""ListOffsets: the offset at the start, at the end, or at a timestamp.

Versions 1-11; 0, which returns the base offsets of segments, for releases before 4.0. Not done: nothing.
"""

from collections import Counter
from collections.abc import Sequence

from broker.partitions.fetch.read import READ_COMMITTED
from broker.replication.partition import ReplicatedPartition
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.message_format import check_time
from broker.time.clock import in_slices
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from protocol.scala import grouped_by_topic
from storage.log.partition_log import PartitionLog

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
"""Special timestamps (ListOffsetsRequest), by which the offset of another place is looked up."""
_CONSUMER = -1
_ANY_REPLICA = -2  # a debug consumer (core E.8.3)

OffsetPosition = tuple[int, int, int]
"""Offset, timestamp and leader epoch."""
_NOTHING: OffsetPosition = (-1, -1, -1)


async def handle(request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse:
    """Return each partition's offset for a timestamp, or at one of its ends (core E.8).

    Kafka answers from a map of partitions (ReplicaManager.fetchOffset): each partition once, in the map's order, and no
    topic without partitions.
    """
    # IsolationLevel.forId throws an IllegalArgumentException, which is no error of the protocol.
    if request.isolation_level not in (0, 1):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    allowed, denied = _by_right(request.topics, ctx)
    times = Counter((topic.name, p.partition_index) for topic in allowed for p in topic.partitions)
    wanted = {(topic.name, p.partition_index): p for topic in allowed for p in topic.partitions}
    topics = []
    for name, indexes in grouped_by_topic(wanted).items():
        of_topic = []
        for index in indexes:
            try:
                if times[name, index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                of_topic.append(await _answer(request, name, wanted[name, index], ctx))
            except KafkaError as error:
                of_topic.append(ListOffsetsPartitionResponse(index, error.code))
        topics.append(ListOffsetsTopicResponse(name, of_topic))
    refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return ListOffsetsResponse([*topics, *(_refused(topic, refused) for topic in denied)])


def _by_right(
    topics: Sequence[ListOffsetsTopic], ctx: RequestContext
) -> tuple[list[ListOffsetsTopic], list[ListOffsetsTopic]]:
    """Split topics into those that the client may describe, and the others, which come last."""
    allowed: list[ListOffsetsTopic] = []
    denied: list[ListOffsetsTopic] = []
    for topic in topics:
        may = ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
        (allowed if may else denied).append(topic)
    return allowed, denied


async def _answer(
    request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition, ctx: RequestContext
) -> ListOffsetsPartitionResponse:
    counts_segments = features.list_offsets_counts_segments(ctx.version)
    # The order of ReplicaManager.fetchOffset: the version, the epoch, the leader, the offset (core E.8.2, E.8.3).
    if not counts_segments and wanted.timestamp < features.list_offsets_oldest_special(ctx.version):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.node.partition(topic, wanted.partition_index)
    partition.check_epoch(ctx.node.id, wanted.current_leader_epoch)
    if wanted.timestamp >= 0:
        check_time(topic, ctx)
    any_replica = request.replica_id == _ANY_REPLICA
    log = partition.hosted_by(ctx.node.id) if any_replica else partition.led_by(ctx.node.id)
    if counts_segments:
        return ListOffsetsPartitionResponse(
            wanted.partition_index, old_style_offsets=_starts(log, wanted, request.replica_id, ctx.now_ms)
        )
    consumer = request.replica_id == _CONSUMER
    if not consumer:
        bound = log.log_end_offset
    else:
        bound = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    behind = consumer and _is_behind(partition, log)
    if wanted.timestamp == LATEST:
        position: OffsetPosition | None = None if behind else (bound, -1, partition.state.leader_epoch)
    else:
        position = await _find(log, wanted.timestamp, bound)
    if position is None and behind:
        known = features.list_offsets_knows_not_available(ctx.version)
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE)
    offset, timestamp_ms, epoch = position or _NOTHING
    return ListOffsetsPartitionResponse(
        wanted.partition_index, timestamp=timestamp_ms, offset=offset, leader_epoch=epoch
    )


def _is_behind(partition: ReplicatedPartition, log: PartitionLog) -> bool:
    """Whether a new leader's high watermark is still below the start offset of its epoch (KIP-207, transactions D.12).

    Consumers may have read further on the previous leader.
    """
    newest = log.epochs.newest
    if newest is None or newest.epoch != partition.state.leader_epoch:
        return False
    return newest.start_offset > log.high_watermark


def _starts(log: PartitionLog, wanted: ListOffsetsPartition, replica_id: int, now_ms: int) -> list[int]:
    """Return the log end offset and segments' base offsets, newest first; consumers get at most the high watermark.

    Kafka: UnifiedLog.legacyFetchOffsetsBefore and Partition.legacyFetchOffsetsForTimestamp of 0.11 to 3.9.
    """
    segments = log.reader.segment_starts(now_ms)
    if wanted.timestamp == EARLIEST:
        segments = segments[-1:]
    elif wanted.timestamp != LATEST:
        segments = [each for each in segments if each.modified_ms <= wanted.timestamp]
    offsets = sorted((each.offset for each in segments[: max(0, wanted.max_num_offsets)]), reverse=True)
    if replica_id != _CONSUMER:
        return offsets
    seen = [offset for offset in offsets if offset <= log.high_watermark]
    return seen if len(seen) == len(offsets) else [log.high_watermark, *seen]


async def _find(log: PartitionLog, timestamp: int, bound: int) -> OffsetPosition | None:
    """Return offset, timestamp and leader epoch; ``None`` if there is nothing below the bound."""
    if timestamp == EARLIEST or (timestamp == EARLIEST_LOCAL and not log.config.tiered):
        return log.log_start_offset, -1, log.epochs.earliest(log.log_start_offset)
    if timestamp == MAX_TIMESTAMP:
        record = await in_slices(log.reader.search_max_timestamp(bound))
    elif timestamp >= 0:
        record = await in_slices(log.reader.search_timestamp(timestamp, bound))
    else:
        return _of_tiers(log, timestamp, bound) if log.config.tiered else _NOTHING
    return None if record is None else (record.offset, record.timestamp_ms, record.leader_epoch)


def _of_tiers(log: PartitionLog, timestamp: int, bound: int) -> OffsetPosition | None:
    """Return where a log with a remote tier starts locally, and up to where it is copied (core E.8.9)."""
    copied = -1 if log.tier is None else log.tier.copied
    if timestamp == EARLIEST_LOCAL:
        offset = log.local_log_start_offset
    elif timestamp == LATEST_TIERED:
        offset = copied
    elif timestamp == EARLIEST_PENDING_UPLOAD:
        offset = max(copied + 1, log.log_start_offset)
        if offset >= bound:
            return None
    else:
        return _NOTHING
    return offset, -1, log.epochs.at(offset)


def _refused(topic: ListOffsetsTopic, error: KafkaError) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        topic.name, [ListOffsetsPartitionResponse(p.partition_index, error.code) for p in topic.partitions]
    )


API: Api[ListOffsetsRequest, ListOffsetsResponse] = Api(
    ApiKey.LIST_OFFSETS,
    handle,
    per_item(lambda request: request.topics, _refused, lambda topics: ListOffsetsResponse(topics=topics)),
)
