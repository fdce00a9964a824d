"""DescribeCluster: lists the brokers, for administrators (KIP-700; endpoint types KIP-919; fenced brokers KIP-1073).

Versions 0-2. Differs from Kafka: ControllerId is the first alive broker, not a random one.
"""

from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.topology import NOT_ASKED, authorized_operations, may_on_cluster, topology_of
from protocol import features
from protocol.acls import CLUSTER_NAME
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2
_NAMES = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


async def handle(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """Return the cluster id and the brokers with the client's listener (core B.4), or the controller (KIP-919)."""
    here, wanted = _CONTROLLERS if ctx.at_controller else _BROKERS, request.endpoint_type
    if wanted not in _NAMES:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != here:
        typed = features.describe_cluster_has_endpoint_types(ctx.version)
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if typed else ErrorCode.INVALID_REQUEST,
            f"The request was sent to an endpoint of type {_NAMES[here]}, but we wanted an endpoint of type "
            f"{_NAMES[wanted]}",
        )
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        may = may_on_cluster(ctx, AclOperation.DESCRIBE)
        operations = authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME) if may else 0
    quorum = ctx.cluster.quorum
    if ctx.at_controller:
        controller_id, nodes = quorum.leader_id, _controllers(ctx)
    else:
        controller_id, nodes = topology_of(ctx).controller_id, _brokers(request, ctx)
    return DescribeClusterResponse(
        cluster_id=ctx.cluster.cluster_id,
        controller_id=controller_id,
        brokers=nodes,
        cluster_authorized_operations=operations,
        endpoint_type=wanted,
    )


def _controllers(ctx: RequestContext) -> list[DescribeClusterBroker]:
    """Return the controllers that have registered, voters or not; the active one before it can be registered."""
    quorum, registered = ctx.cluster.quorum, ctx.cluster.image.controllers
    if len(quorum.controllers) == 1:
        return [DescribeClusterBroker(each.id, *each.address) for each in quorum.controllers.values()]
    listeners = [(id, each.end_points[0]) for id, each in sorted(registered.items()) if each.end_points]
    return [DescribeClusterBroker(id, endpoint.host, endpoint.port) for id, endpoint in listeners]


def _brokers(request: DescribeClusterRequest, ctx: RequestContext) -> list[DescribeClusterBroker]:
    brokers = []
    for broker_id, broker in sorted(ctx.cluster.image.brokers.items()):
        at = broker.listeners.get(ctx.listener)
        if at is not None and (not broker.fenced or request.include_fenced_brokers):
            brokers.append(DescribeClusterBroker(broker_id, at.host, at.port, broker.rack, broker.fenced))
    return brokers


API: Api[DescribeClusterRequest, DescribeClusterResponse] = Api(
    ApiKey.DESCRIBE_CLUSTER, handle, top_level_with_message(DescribeClusterResponse)
)
