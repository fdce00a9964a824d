"""AddRaftVoter: adds a controller to the voters of the quorum (KIP-853).

Versions 0-1. Differs from Kafka: only a controller of this process can become a voter; another one is reported as
unreachable.
"""

from broker.coordination.metadata.quorum import check_cluster_id
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, ctx: RequestContext) -> AddRaftVoterResponse:
    """Add an observer to the voters (core B.13)."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    # The order of KafkaRaftClient.handleAddVoterRequest: any controller refuses a wrong cluster.
    check_cluster_id(request.cluster_id, ctx.cluster.cluster_id)
    if ctx.at_controller and ctx.node.id != ctx.cluster.quorum.leader_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
    endpoints = [(each.name, each.host, each.port) for each in request.listeners]
    quorum = ctx.cluster.quorum
    quorum.check_added(request.voter_id, request.voter_directory_id, endpoints)
    quorum.controllers[request.voter_id].address = quorum.address_of(endpoints)
    ctx.cluster.change_voters([*quorum.voters, request.voter_id])
    return AddRaftVoterResponse(error_message=None)


API: Api[AddRaftVoterRequest, AddRaftVoterResponse] = Api(
    ApiKey.ADD_RAFT_VOTER, handle, top_level_with_message(AddRaftVoterResponse)
)
