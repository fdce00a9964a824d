"""DescribeShareGroupOffsets: how far share groups have read, and how much is left (KIP-932).

Versions 0-1; the lag since v1 (KIP-1226). Not done: nothing.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from broker.api import Api
from broker.clock import all_of
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.share.persister import (
    UNINITIALIZED_COUNT,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    SummaryResult,
)
from broker.requests.groups import coordinator, require_group
from broker.requests.share_groups import ERROR_TEXTS, require_share_groups
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
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
    """Each group with its own error (groups D.10)."""
    return DescribeShareGroupOffsetsResponse(groups=await all_of(_describe(group, ctx) for group in request.groups))


async def _describe(
    asked: DescribeShareGroupOffsetsRequestGroup, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        require_share_groups(ctx)
        require_group(AclOperation.DESCRIBE, asked.group_id, ctx, named=False)
        if asked.topics is None:
            topics = await _all_topics(asked.group_id, ctx)
        else:
            topics = await _named(asked.group_id, _merged(asked.topics, ctx), ctx)
    except KafkaError as error:
        denied = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        message = None if denied else error.message or ERROR_TEXTS.get(error.code)
        return DescribeShareGroupOffsetsResponseGroup(asked.group_id, error_code=error.code, error_message=message)
    return DescribeShareGroupOffsetsResponseGroup(asked.group_id, topics)


async def _all_topics(group_id: str, ctx: RequestContext) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """All initialized partitions of topics that the requester may describe."""
    names = {topic_id: topic.name for topic_id, topic in ctx.cluster.image.topics_by_id.items()}
    partitions = coordinator(group_id, ctx).shares.initialized_partitions(group_id)
    allowed = [
        (names[topic_id], topic_id, sorted(indexes))
        for topic_id, indexes in partitions.items()
        if topic_id in names and ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, names[topic_id])
    ]
    return await _read(group_id, allowed, ctx)


def _merged(
    topics: Iterable[DescribeShareGroupOffsetsRequestTopic], ctx: RequestContext
) -> list[tuple[str, list[int]]]:
    """Names and partitions; a topic that is there and named twice has one entry, as the persister's result has."""
    entries: list[tuple[str, list[int]]] = []
    known: dict[str, list[int]] = {}
    for topic in topics:
        name, partitions = topic.topic_name, list(topic.partitions)
        if name in known:
            known[name] += partitions
            continue
        if name in ctx.cluster.image.topics:
            known[name] = partitions
        entries.append((name, partitions))
    return entries


async def _named(
    group_id: str, topics: Sequence[tuple[str, list[int]]], ctx: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """The topics that the request names, in its order."""
    unread = [_without_offsets(group_id, name, indexes, ctx) for name, indexes in topics]
    known = ctx.cluster.image.topics
    wanted = [
        (name, known[name].id, indexes) for (name, indexes), each in zip(topics, unread, strict=True) if each is None
    ]
    read = iter(await _read(group_id, wanted, ctx))
    return [next(read) if each is None else each for each in unread]


def _without_offsets(
    group_id: str, name: str, indexes: Sequence[int], ctx: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic | None:
    """The answer for a topic that is unknown, which is no error, or denied; None where its offsets are to be read."""
    code = ErrorCode.NONE
    if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if code is ErrorCode.NONE and name in ctx.cluster.image.topics:
        if not group_id or not indexes or any(index < 0 for index in indexes):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # the parameters of the persister refuse it
        return None
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            index, UNINITIALIZED_OFFSET, error_code=code, error_message=ERROR_TEXTS.get(code)
        )
        for index in indexes
    ]
    return DescribeShareGroupOffsetsResponseTopic(name, None, partitions)


async def _read(
    group_id: str, topics: Iterable[tuple[str, UUID, Iterable[int]]], ctx: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Topics with the summaries of their partitions, each listed once, even if it is named twice."""
    once = [(name, topic_id, tuple(dict.fromkeys(indexes))) for name, topic_id, indexes in topics]
    persister = ctx.cluster.persister
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
    name: str, index: int, found: SummaryResult, ctx: RequestContext
) -> DescribeShareGroupOffsetsResponsePartition:
    lag = _UNKNOWN_LAG
    if found.start_offset != UNINITIALIZED_OFFSET and found.delivery_complete_count != UNINITIALIZED_COUNT:
        lag = _lag(name, index, found.start_offset + found.delivery_complete_count, ctx)
    return DescribeShareGroupOffsetsResponsePartition(index, found.start_offset, found.leader_epoch, lag=lag)


def _lag(name: str, index: int, done: int, ctx: RequestContext) -> int:
    """The records up to the high watermark that are not delivered for good."""
    partition = ctx.cluster.partitions.get((name, index))
    if partition is None:
        return _UNKNOWN_LAG
    try:
        return partition.led_by(partition.state.leader).high_watermark - done
    except KafkaError:
        return _UNKNOWN_LAG


def refuse(
    request: DescribeShareGroupOffsetsRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> DescribeShareGroupOffsetsResponse:
    """On every group."""
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group.group_id, error_code=error.code, error_message=error.message)
            for group in request.groups
        ]
    )


API: Api[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = Api(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1), handle, refuse
)
