"""DescribeQuorum: voters and observers of the metadata log, with their offsets (KIP-595, KIP-836).

Versions 0-2. Differs from Kafka: by default the controller is part of the first broker and the only voter; the other
brokers are observers. With `--controllers` controllers are nodes of their own, and all brokers are observers.
"""

from collections.abc import Callable
from uuid import UUID

from broker.coordination.metadata.image import METADATA_TOPIC, UNASSIGNED_DIRECTORY, Broker
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

Answer = ResponsePartitionData


async def handle(request: DescribeQuorumRequest, ctx: RequestContext) -> DescribeQuorumResponse:
    """Describe the quorum; the request must contain exactly the one partition of the metadata topic (core B.13)."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    partitions = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if partitions != [(METADATA_TOPIC, 0)]:
        return _with(request, lambda index: Answer(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=_UNKNOWN))
    quorum = ctx.cluster.quorum
    if ctx.at_controller and ctx.node.id != quorum.leader_id:
        message = NOT_LEADER
        return _with(request, lambda index: Answer(index, ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=message))
    answer = _quorum(ctx)
    response = _with(request, lambda _index: answer)
    voters = (quorum.controllers[each] for each in quorum.voters)
    response.nodes = [Node(each.id, [Listener(quorum.listener, *each.address)]) for each in voters]
    return response


NOT_LEADER = (
    "For requests intended only for the leader, this error indicates that the broker is not the current leader. For "
    "requests intended for any replica, this error indicates that the broker is not a replica of the topic partition."
)
_UNKNOWN = "This server does not host this topic-partition."


def _quorum(ctx: RequestContext) -> Answer:
    image, quorum = ctx.cluster.image, ctx.cluster.quorum
    end, now_ms = ctx.cluster.metadata_log.log_end_offset, ctx.now_ms
    brokers = [each for each in sorted(image.brokers) if each not in quorum.controllers]
    return Answer(
        partition_index=0,
        leader_id=quorum.leader_id,
        leader_epoch=ctx.cluster.metadata.epoch,
        high_watermark=ctx.cluster.metadata_log.high_watermark,
        current_voters=[
            ReplicaState(each, *quorum.fetched(each, end, now_ms), quorum.shown_directory(each))
            for each in sorted(quorum.voters)
        ],
        observers=[
            *(ReplicaState(i, end, now_ms, now_ms, _metadata_directory(image.brokers[i])) for i in brokers),
            *(
                ReplicaState(each, *quorum.fetched(each, end, now_ms), quorum.controllers[each].directory_id)
                for each in quorum.following(quorum.observers)
            ),
        ],
    )


def _metadata_directory(broker: Broker) -> UUID:
    """Return the directory in which an observer keeps the metadata log: the first one."""
    return broker.directories[0] if broker.directories else UNASSIGNED_DIRECTORY


def _with(request: DescribeQuorumRequest, answer: Callable[[int], Answer]) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            ResponseTopicData(topic.topic_name, [answer(each.partition_index) for each in topic.partitions])
            for topic in request.topics
        ]
    )


API: Api[DescribeQuorumRequest, DescribeQuorumResponse] = Api(
    ApiKey.DESCRIBE_QUORUM, handle, top_level_with_message(DescribeQuorumResponse)
)
