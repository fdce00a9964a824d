"""OffsetForLeaderEpoch: the end offset of an epoch, by which consumers detect log truncation (KIP-320).

Versions 2-4. Not done: nothing.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> OffsetForLeaderEpochResponse:
    """Return the end offset of each leader epoch in the leader's log (core E.9)."""
    inter_broker = ctx.authorized(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
    topics: list[OffsetForLeaderTopicResult] = []
    denied: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        allowed = inter_broker or ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        answers = []
        for partition in topic.partitions:
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                answers.append(_answer(topic.topic, partition, ctx))
            except KafkaError as error:
                answers.append(EpochEndOffset(error.code, partition.partition))
        (topics if allowed else denied).append(OffsetForLeaderTopicResult(topic.topic, answers))
    return OffsetForLeaderEpochResponse(topics=[*topics, *denied])  # denied ones last, as in KafkaApis


def _answer(topic: str, wanted: OffsetForLeaderPartition, ctx: RequestContext) -> EpochEndOffset:
    partition = ctx.node.partition(topic, wanted.partition)
    partition.check_epoch(ctx.node.id, wanted.current_leader_epoch)
    log = partition.led_by(ctx.node.id)
    epoch, end = log.epochs.end_offset_for(wanted.leader_epoch, log.log_end_offset)
    return EpochEndOffset(ErrorCode.NONE, wanted.partition, epoch, end)


API: Api[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse] = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: OffsetForLeaderTopicResult(
            topic.topic, [EpochEndOffset(error.code, p.partition) for p in topic.partitions]
        ),
        lambda topics: OffsetForLeaderEpochResponse(topics=topics),
    ),
)
