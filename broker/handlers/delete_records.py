"""DeleteRecords: raise a partition's log start (KIP-107).

Versions 0-2. Not done: nothing.
"""

from broker.chain import Api
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


async def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> DeleteRecordsResponse:
    """Core E.10. All replicas are in this process, so the low watermark is known at once."""
    topics = []
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            try:
                low = _delete(topic.name, asked.partition_index, asked.offset, ctx)
                answers.append(DeleteRecordsPartitionResult(asked.partition_index, low))
            except KafkaError as error:
                answers.append(DeleteRecordsPartitionResult(asked.partition_index, -1, error.code))
        topics.append(DeleteRecordsTopicResult(topic.name, answers))
    return DeleteRecordsResponse(topics=topics)


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


API = Api(ApiKey.DELETE_RECORDS, (0, 2), handle, refuse)
