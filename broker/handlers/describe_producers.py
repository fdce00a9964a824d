"""DescribeProducers: lists a partition's active producers and their open transactions (KIP-664).

Version 0. Any replica answers. Differs from Kafka: a request whose response would have more than 250,000 producers is
refused.
"""

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.response_budget import Allowance
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from protocol.topic_names import check_topic_name


async def handle(request: DescribeProducersRequest, ctx: RequestContext) -> DescribeProducersResponse:
    """Return the producer state of each partition (transactions C.8)."""
    topics, allowance, slices = [], Allowance(), Slices()
    for topic in request.topics:
        answers = []
        for index in topic.partition_indexes:
            await slices.pause()
            try:
                producers = _producers(topic.name, index, ctx)
                answers.append(PartitionResponse(index, active_producers=producers))
            except KafkaError as error:
                answers.append(PartitionResponse(index, error.code, error.message))
            allowance.take(len(answers[-1].active_producers))
        topics.append(TopicResponse(topic.name, answers))
    return DescribeProducersResponse(topics=topics)


_UNKNOWN = "This server does not host this topic-partition."


def _producers(topic: str, index: int, ctx: RequestContext) -> list[ProducerState]:
    # Name, permission, existence: KafkaApis.handleDescribeProducersRequest; the replica comes last (transactions C.8).
    check_topic_name(topic)
    if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if topic not in ctx.cluster.image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN)
    log = ctx.node.partition(topic, index).hosted_by(ctx.node.id)
    return [
        ProducerState(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            -1 if entry.transaction_first_offset is None else entry.transaction_first_offset,
        )
        for entry in log.producer_log.entries()
    ]


API: Api[DescribeProducersRequest, DescribeProducersResponse] = Api(
    ApiKey.DESCRIBE_PRODUCERS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: TopicResponse(
            topic.name, [PartitionResponse(i, error.code, error.message) for i in topic.partition_indexes]
        ),
        lambda topics: DescribeProducersResponse(topics=topics),
    ),
)
