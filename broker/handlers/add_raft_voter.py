"""AddRaftVoter: adds a controller to the voters of the quorum (KIP-853).

Versions 0-1. Differs from Kafka: no other node can become a voter; a valid one is reported as unreachable.
"""

from broker.coordination.metadata.quorum import check_cluster_id
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, ctx: RequestContext) -> AddRaftVoterResponse:
    """Refuse the request: the quorum keeps its one voter (core B.13)."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    if ctx.at_controller and ctx.node.id != ctx.cluster.quorum.leader_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
    check_cluster_id(request.cluster_id, ctx.cluster.cluster_id)
    endpoints = [(each.name, each.host, each.port) for each in request.listeners]
    ctx.cluster.quorum.check_added(request.voter_id, request.voter_directory_id, endpoints)
    return AddRaftVoterResponse(error_message=None)


API: Api[AddRaftVoterRequest, AddRaftVoterResponse] = Api(
    ApiKey.ADD_RAFT_VOTER, (0, 1), handle, top_level_with_message(AddRaftVoterResponse)
)
