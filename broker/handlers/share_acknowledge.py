"""ShareAcknowledge: acknowledges records of a share group without fetching (KIP-932).

Versions 1-2; renewed acquisition locks since v2 (KIP-1222). Not done: nothing.
"""

from uuid import UUID

from broker.partitions.share_partition.acknowledgements import Acknowledging, AckResult
from broker.partitions.share_partition.partitions import led_by
from broker.partitions.share_partition.sessions import FINAL_EPOCH, PartitionKey, SessionKey
from broker.partitions.share_partition.settings import share_settings
from broker.request.api import Api, top_level
from broker.request.context import RequestContext
from broker.request.leader_endpoints import endpoints_of
from broker.request.share_groups import check_share_request
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


async def handle(request: ShareAcknowledgeRequest, ctx: RequestContext) -> ShareAcknowledgeResponse:
    """Check, advance the session epoch, acknowledge; at the final epoch release the remaining records (groups D.6)."""
    group_id, member_id = check_share_request(request, ctx)
    shares, key = led_by(ctx.node), SessionKey(group_id, member_id)
    # Before the topics: a request that fails on them has used its session epoch (groups D.6).
    shares.sessions.acknowledge(key, request.share_session_epoch)
    known = ctx.cluster.image.topics_by_id
    if ctx.node.authorizer is not None and any(topic.topic_id not in known for topic in request.topics):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a topic without a name, for Kafka's authorizer (groups D.6)
    results = await Acknowledging(request, ctx, shares, group_id, member_id).written()
    if request.share_session_epoch == FINAL_EPOCH:
        shares.end_session(key)
    topics: dict[UUID | None, list[PartitionData]] = {}
    leaders: set[int] = set()
    for partition, result in results.items():
        data = _partition(ctx, partition, result)
        leaders.add(data.current_leader.leader_id if result.code in _MOVED else -1)
        topics.setdefault(partition.topic_id, []).append(data)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=share_settings(ctx.cluster, ctx.node.settings, group_id).lock_ms,
        responses=[ShareAcknowledgeTopicResponse(topic_id, each) for topic_id, each in topics.items()],
        node_endpoints=[NodeEndpoint(*each) for each in endpoints_of(ctx, leaders - {-1})],
    )


def _partition(ctx: RequestContext, key: PartitionKey, result: AckResult) -> PartitionData:
    data = PartitionData(key.partition, result.code, result.message)
    topic = ctx.cluster.image.topics_by_id.get(key.topic_id) if key.topic_id else None
    partition = None if topic is None else topic.partitions.get(key.partition)
    if result.code in _MOVED and partition is not None:
        data.current_leader = LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
    return data


# The response has a message, but ShareAcknowledgeRequest.getErrorResponse leaves it out.
API: Api[ShareAcknowledgeRequest, ShareAcknowledgeResponse] = Api(
    ApiKey.SHARE_ACKNOWLEDGE, handle, top_level(ShareAcknowledgeResponse)
)
