"""DeleteRecords: raise a partition's log start (KIP-107).

Versions 0-2. Not done: nothing.
"""

from broker.api import Api
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.metadata.image import INTERNAL_TOPICS
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from protocol.scala import few_grouped_by_topic, grouped_by_topic


async def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """All replicas are in this process, so the low watermark is known at once (core E.10).

    Of two offsets for one partition the last one counts (KafkaApis.handleDeleteRecordsRequest keeps a map).
    """
    offsets = {
        (topic.name, asked.partition_index): asked.offset for topic in request.topics for asked in topic.partitions
    }
    grouped = grouped_by_topic if any(_is_asked(*place, ctx) for place in offsets) else few_grouped_by_topic
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name, [_answer(name, index, offsets[name, index], ctx) for index in indexes])
            for name, indexes in grouped(offsets).items()
        ]
    )


def _is_asked(topic: str, index: int, ctx: RequestContext) -> bool:
    """Whether Kafka asks the replica manager, whose map decides the order; otherwise it answers from an empty one."""
    allowed = ctx.authorized(AclOperation.DELETE, ResourceType.TOPIC, topic)
    return allowed and ctx.cluster.image.partition(topic, index) is not None


def _answer(topic: str, index: int, offset: int, ctx: RequestContext) -> DeleteRecordsPartitionResult:
    try:
        return DeleteRecordsPartitionResult(index, _delete(topic, index, offset, ctx))
    except KafkaError as error:
        return DeleteRecordsPartitionResult(index, -1, error.code)


def _delete(topic: str, index: int, offset: int, ctx: RequestContext) -> int:
    if not ctx.authorized(AclOperation.DELETE, ResourceType.TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.node.partition(topic, index)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    log = partition.led_by(ctx.node.id)
    if log.config.compact and not log.config.delete:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    return partition.delete_records_before(ctx.node.id, offset)


def refuse(request: DeleteRecordsRequest, error: KafkaError, version: int) -> DeleteRecordsResponse:  # noqa: ARG001
    """On every partition; the API has no error of its own."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name,
                [DeleteRecordsPartitionResult(p.partition_index, -1, error.code) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


API: Api[DeleteRecordsRequest, DeleteRecordsResponse] = Api(ApiKey.DELETE_RECORDS, (0, 2), handle, refuse)
