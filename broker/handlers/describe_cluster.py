"""DescribeCluster: the brokers, for administrators (KIP-700; endpoint types KIP-919; fenced brokers KIP-1073).

Versions 0-2. Differs from Kafka: ControllerId is the first alive broker, not a random one.
"""

from broker.chain import Api
from broker.context import AclOperation, RequestContext, ResourceType
from broker.topology import NOT_ASKED, authorized_operations, may_on_cluster, topology_of
from protocol.acls import CLUSTER_NAME
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


async def handle(request: DescribeClusterRequest, ctx: RequestContext) -> DescribeClusterResponse:
    """Core B.4."""
    if request.endpoint_type == _CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        may = may_on_cluster(ctx, AclOperation.DESCRIBE)
        operations = authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME) if may else 0
    brokers = []
    for broker_id, broker in sorted(ctx.cluster.image.brokers.items()):
        at = broker.listeners.get(ctx.listener)
        if at is not None and (not broker.fenced or request.include_fenced_brokers):
            brokers.append(DescribeClusterBroker(broker_id, at.host, at.port, broker.rack, broker.fenced))
    return DescribeClusterResponse(
        cluster_id=ctx.cluster.cluster_id,
        controller_id=topology_of(ctx).controller_id,
        brokers=brokers,
        cluster_authorized_operations=operations,
        endpoint_type=request.endpoint_type,
    )


def refuse(request: DescribeClusterRequest, error: KafkaError, version: int) -> DescribeClusterResponse:  # noqa: ARG001
    """At the top."""
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


API = Api(ApiKey.DESCRIBE_CLUSTER, (0, 2), handle, refuse)
