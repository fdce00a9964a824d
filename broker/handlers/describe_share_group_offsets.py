"""DescribeShareGroupOffsets: how far share groups have read, and how much is left (KIP-932).

Versions 0-1; the lag since v1 (KIP-1226). Not done: nothing.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

from broker.api import Api
from broker.clock import all_of
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.share.persister import UNINITIALIZED_COUNT, UNINITIALIZED_OFFSET, SharePartitionKey
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
            topics = await all_of(_named(asked.group_id, *each, ctx) for each in _merged(asked.topics, ctx))
    except KafkaError as error:
        denied = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        message = None if denied else error.message or ERROR_TEXTS.get(error.code)
        return DescribeShareGroupOffsetsResponseGroup(asked.group_id, error_code=error.code, error_message=message)
    return DescribeShareGroupOffsetsResponseGroup(asked.group_id, topics)


async def _all_topics(group_id: str, ctx: RequestContext) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """All initialized partitions of topics that the requester may describe."""
    names = {topic_id: topic.name for topic_id, topic in ctx.cluster.image.topics_by_id.items()}
    partitions = coordinator(group_id, ctx).shares.initialized_partitions(group_id)
    return await all_of(
        _topic(group_id, names[topic_id], topic_id, sorted(indexes), ctx)
        for topic_id, indexes in partitions.items()
        if topic_id in names and ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, names[topic_id])
    )


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
    group_id: str, name: str, indexes: Sequence[int], ctx: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic:
    """A topic that the request names; unknown topics have no offsets, and no error."""
    code = ErrorCode.NONE
    if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = ctx.cluster.image.topics.get(name)
    if code is ErrorCode.NONE and known is not None:
        if not group_id or not indexes or any(index < 0 for index in indexes):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # the parameters of the persister refuse it
        return await _topic(group_id, name, known.id, indexes, ctx)
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            index, UNINITIALIZED_OFFSET, error_code=code, error_message=ERROR_TEXTS.get(code)
        )
        for index in indexes
    ]
    return DescribeShareGroupOffsetsResponseTopic(name, None, partitions)


async def _topic(
    group_id: str, name: str, topic_id: UUID, indexes: Iterable[int], ctx: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic:
    partitions = []
    once = tuple(dict.fromkeys(indexes))  # listed once, even if it is named twice
    persister = ctx.cluster.persister
    summaries = await all_of(persister.read_summary(SharePartitionKey(group_id, topic_id, index), -1) for index in once)
    for index, found in zip(once, summaries, strict=True):
        lag = _UNKNOWN_LAG
        if found.start_offset != UNINITIALIZED_OFFSET and found.delivery_complete_count != UNINITIALIZED_COUNT:
            lag = _lag(name, index, found.start_offset + found.delivery_complete_count, ctx)
        partitions.append(
            DescribeShareGroupOffsetsResponsePartition(index, found.start_offset, found.leader_epoch, lag=lag)
        )
    return DescribeShareGroupOffsetsResponseTopic(name, topic_id, partitions)


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
