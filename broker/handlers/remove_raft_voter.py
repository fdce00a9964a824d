"""RemoveRaftVoter: removes a controller from the voters of the quorum (KIP-853).

Version 0. Not done: nothing.
"""

from broker.coordination.metadata.quorum import check_cluster_id
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(request: RemoveRaftVoterRequest, ctx: RequestContext) -> RemoveRaftVoterResponse:
    """Remove a voter, which becomes an observer; the last one stays (core B.13)."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    check_cluster_id(request.cluster_id, ctx.cluster.cluster_id)
    if ctx.at_controller and ctx.node.id != ctx.cluster.quorum.leader_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
    quorum = ctx.cluster.quorum
    quorum.check_removed(request.voter_id, request.voter_directory_id)
    ctx.cluster.change_voters([each for each in quorum.voters if each != request.voter_id])
    return RemoveRaftVoterResponse(error_message=None)


API: Api[RemoveRaftVoterRequest, RemoveRaftVoterResponse] = Api(
    ApiKey.REMOVE_RAFT_VOTER, handle, top_level_with_message(RemoveRaftVoterResponse)
)
