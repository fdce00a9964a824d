"""UpdateRaftVoter: a voter reports its endpoints and versions of ``kraft.version`` to the active controller (KIP-853).

Version 0, on the controllers' listeners only. Differs from Kafka: a request that names the active controller itself
closes the connection; it ends the process of a Kafka 4.4.0.
"""

from broker.coordination.metadata.quorum import NO_LEADER, check_cluster_id
from broker.request.answers import Disconnect
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse


async def handle(request: UpdateRaftVoterRequest, ctx: RequestContext) -> UpdateRaftVoterResponse:
    """Record a voter's endpoints (core B.13); each response has the leader."""
    check_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
    try:
        _update(request, ctx)
        code = ErrorCode.NONE
    except KafkaError as error:
        code = error.code
    return UpdateRaftVoterResponse(error_code=code, current_leader=_leader(ctx))


def _update(request: UpdateRaftVoterRequest, ctx: RequestContext) -> None:
    """Check the request in the order of ``KafkaRaftClient.handleUpdateVoterRequest`` and ``UpdateVoterHandler``.

    Raises:
        KafkaError: the request is refused.
        Disconnect: the leader is to update itself.
    """
    cluster, quorum = ctx.cluster, ctx.cluster.quorum
    check_cluster_id(request.cluster_id, cluster.cluster_id)
    epoch = cluster.metadata_partition.state.leader_epoch
    if request.current_leader_epoch != epoch:
        fenced = request.current_leader_epoch < epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH, "")
    if ctx.node.id != quorum.leader_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
    endpoints = [(each.name, each.host, each.port) for each in request.listeners]
    supported = request.k_raft_version_feature
    quorum.check_updated(
        request.voter_id,
        request.voter_directory_id,
        endpoints,
        (supported.min_supported_version, supported.max_supported_version),
    )
    if request.voter_id == quorum.leader_id:
        raise Disconnect("the leader was to update itself")
    if quorum.version:  # configured voters stay where they were configured
        quorum.controllers[request.voter_id].address = quorum.address_of(endpoints)
        cluster.change_voters(quorum.voters)


def _leader(ctx: RequestContext) -> CurrentLeader:
    quorum, epoch = ctx.cluster.quorum, ctx.cluster.metadata_partition.state.leader_epoch
    if quorum.leader_id == NO_LEADER:
        return CurrentLeader(NO_LEADER, epoch)
    return CurrentLeader(quorum.leader_id, epoch, *quorum.controllers[quorum.leader_id].address)


API: Api[UpdateRaftVoterRequest, UpdateRaftVoterResponse] = Api(
    ApiKey.UPDATE_RAFT_VOTER, handle, top_level(UpdateRaftVoterResponse)
)
