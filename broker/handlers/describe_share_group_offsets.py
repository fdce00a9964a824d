"""DescribeShareGroupOffsets: start offsets and lags of share groups (KIP-932).

Versions 0-1; the lag since v1 (KIP-1226). Not done: nothing.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from broker.coordination.share_state.persister import (
    UNINITIALIZED_COUNT,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    SummaryResult,
)
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, require_group
from broker.request.share_groups import ERROR_TEXTS, require_share_groups
from broker.time.clock import all_of
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import HashTable, integer_hash, uuid_hash
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

_UNKNOWN_LAG = -1


async def handle(request: DescribeShareGroupOffsetsRequest, ctx: RequestContext) -> DescribeShareGroupOffsetsResponse:
    """Describe each group, each with its own error (groups D.10)."""
    return DescribeShareGroupOffsetsResponse(groups=await all_of(_describe(group, ctx) for group in request.groups))


async def _describe(
    group: DescribeShareGroupOffsetsRequestGroup, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        require_share_groups(ctx)
        # The refusal has no message, unlike that of ShareGroupDescribe (groups D.10).
        require_group(AclOperation.DESCRIBE, group.group_id, ctx, named=False)
        if group.topics is None:
            topics = await _all_topics(group.group_id, ctx)
        else:
            topics = await _named(group.group_id, group.topics, ctx)
    except KafkaError as error:
        denied = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        message = None if denied else error.message or ERROR_TEXTS.get(error.code)
        return DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=error.code, error_message=message)
    return DescribeShareGroupOffsetsResponseGroup(group.group_id, topics)


async def _all_topics(group_id: str, ctx: RequestContext) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Return all initialized partitions of topics that the requester may describe."""
    names = {topic_id: topic.name for topic_id, topic in ctx.cluster.image.topics_by_id.items()}
    partitions = coordinator(group_id, ctx).shares.initialized_partitions(group_id)
    allowed = [
        (names[topic_id], topic_id, sorted(indexes))
        for topic_id, indexes in partitions.items()
        if topic_id in names and ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, names[topic_id])
    ]
    return await _read(group_id, allowed, ctx)


async def _named(
    group_id: str, topics: Sequence[DescribeShareGroupOffsetsRequestTopic], ctx: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Return the requested topics: those with offsets in the order of the persister's maps, then unknown, denied ones.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if the persister's parameters refuse an entry, such as one without partitions.
    """
    wanted: HashTable[UUID, tuple[str, HashTable[int, bool]]] = HashTable(uuid_hash)
    unknown, denied = [], []
    for each in topics:
        name, indexes = each.topic_name, each.partitions
        topic = ctx.cluster.image.topics.get(name)
        if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            denied.append(_without_offsets(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            unknown.append(_without_offsets(each, ErrorCode.NONE))
        elif not group_id or not indexes or any(index < 0 for index in indexes):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            _, of_topic = wanted.get_or_create(topic.id, partial(_no_partitions, name))
            for index in indexes:
                of_topic.put(index, True)
    described = [(name, topic_id, list(of_topic)) for topic_id, (name, of_topic) in wanted.items()]
    return [*await _read(group_id, described, ctx), *unknown, *denied]


def _no_partitions(name: str) -> tuple[str, HashTable[int, bool]]:
    return name, HashTable(integer_hash)


def _without_offsets(
    topic: DescribeShareGroupOffsetsRequestTopic, code: ErrorCode
) -> DescribeShareGroupOffsetsResponseTopic:
    """Build the entry of a topic that is denied, or unknown, which is not an error."""
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            index, UNINITIALIZED_OFFSET, error_code=code, error_message=ERROR_TEXTS.get(code)
        )
        for index in topic.partitions
    ]
    return DescribeShareGroupOffsetsResponseTopic(topic.topic_name, None, partitions)


async def _read(
    group_id: str, topics: Iterable[tuple[str, UUID, Iterable[int]]], ctx: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Return topics with the summaries of their partitions."""
    once = [(name, topic_id, tuple(indexes)) for name, topic_id, indexes in topics]
    persister = ctx.node.persister
    summaries = iter(
        await all_of(
            persister.read_summary(SharePartitionKey(group_id, topic_id, index), -1)
            for _, topic_id, indexes in once
            for index in indexes
        )
    )
    return [
        DescribeShareGroupOffsetsResponseTopic(
            name, topic_id, [_partition(name, index, next(summaries), ctx) for index in indexes]
        )
        for name, topic_id, indexes in once
    ]


def _partition(
    name: str, index: int, summary: SummaryResult, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponsePartition:
    lag = _UNKNOWN_LAG
    if summary.start_offset != UNINITIALIZED_OFFSET and summary.delivery_complete_count != UNINITIALIZED_COUNT:
        lag = _lag(name, index, summary.start_offset + summary.delivery_complete_count, ctx)
    return DescribeShareGroupOffsetsResponsePartition(index, summary.start_offset, summary.leader_epoch, lag=lag)


def _lag(name: str, index: int, done: int, ctx: RequestContext) -> int:
    """Return the number of records below the high watermark whose delivery is not complete."""
    partition = ctx.cluster.partitions.get((name, index))
    if partition is None:
        return _UNKNOWN_LAG
    try:
        return partition.led_by(partition.state.leader).high_watermark - done
    except KafkaError:
        return _UNKNOWN_LAG


API: Api[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = Api(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    handle,
    per_item(
        lambda request: request.groups,
        lambda group, error: DescribeShareGroupOffsetsResponseGroup(
            group.group_id, error_code=error.code, error_message=error.message
        ),
        lambda groups: DescribeShareGroupOffsetsResponse(groups=groups),
    ),
)
