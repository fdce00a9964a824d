"""DescribeTopicPartitions: describes topics page by page, with eligible leader replicas (KIP-966).

Version 0. Not done: nothing.
"""

from broker.coordination.metadata.image import INTERNAL_TOPICS, Topic
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.topology import Topology, authorized_operations, topology_of
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from protocol.topic_names import check_topic_name

Answer = DescribeTopicPartitionsResponseTopic


async def handle(request: DescribeTopicPartitionsRequest, ctx: RequestContext) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, denied ones last (core B.5)."""
    requested = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None:
        _check(cursor, requested)
    names = sorted(requested or ctx.cluster.image.topics)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    if "" in names and (cursor is None or cursor.topic_name):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # DescribeTopicPartitionsRequestHandler fails on it
    allowed = [name for name in names if ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name)]
    limit = max(1, min(ctx.node.settings.int("max.request.partition.size.limit"), request.response_partition_limit))
    topics, next_cursor = _page(allowed, cursor, limit, ctx)
    for topic in topics:
        topic.topic_authorized_operations = authorized_operations(ctx, ResourceType.TOPIC, topic.name or "")
    if requested:
        hidden = set(names) - set(allowed)
        topics += [_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) for name in names if name in hidden]
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _check(cursor: Cursor, names: set[str]) -> None:
    # The topic before the index: core B.5.2.
    if names and cursor.topic_name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "DescribeTopicPartitionsRequest cursor partition must be valid")


def _page(
    names: list[str], cursor: Cursor | None, limit: int, ctx: RequestContext
) -> tuple[list[Answer], Cursor | None]:
    """Return one page, limited in its number of partitions, and the cursor of the next one."""
    seen, left = topology_of(ctx), limit
    answers: list[Answer] = []
    for name in names:
        if not left:
            return answers, Cursor(name, 0)
        topic = ctx.cluster.image.topics.get(name)
        if topic is None:
            answers.append(_missing(name))
            continue
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        end = min(start + left, len(topic.partitions))
        answers.append(_described(topic, range(start, end), seen))
        if end < len(topic.partitions):
            return answers, Cursor(name, end)
        left -= max(end - start, 0)
    return answers, None


def _missing(name: str) -> Answer:
    try:
        # A name that no topic can have is 17, not 3 (core B.5.5).
        check_topic_name(name)
    except KafkaError as error:
        return _refused(error.code, name)
    return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)


def _refused(code: ErrorCode, name: str) -> Answer:
    return Answer(code, name, is_internal=name in INTERNAL_TOPICS)


def _described(topic: Topic, indexes: range, seen: Topology) -> Answer:
    partitions = []
    for index in indexes:
        partition = topic.partitions[index]
        view = seen.partition(topic, index, partition)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                # no error, even without a leader (KRaftMetadataCache.getPartitionMetadataForDescribeTopicResponse)
                partition_index=index,
                leader_id=view.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=partition.elr,
                last_known_elr=partition.last_known_elr,
                offline_replicas=view.offline,
            )
        )
    return Answer(ErrorCode.NONE, topic.name, topic.id, topic.internal, partitions)


API: Api[DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse] = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: Answer(error.code, topic.name),
        lambda topics: DescribeTopicPartitionsResponse(topics=topics),
    ),
)
