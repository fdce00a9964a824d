"""Brokers and partitions as clients see them: leaders, offline replicas, authorized operations (core B.3)."""

from collections.abc import Callable, Collection
from functools import cached_property

from broker.coordination.metadata.image import NO_LEADER, Broker, ClusterImage, Partition, Topic
from broker.request.context import AclOperation, RequestContext, ResourceType
from protocol.acls import CLUSTER_NAME
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError

NOT_ASKED = -(2**31)
"""The value of an authorized-operations field that was not requested (KIP-430)."""

# The operations of each resource type (core B.3); a bit is set if the principal is allowed.
_OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
}


def authorized_operations(ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the bit field of operations that the principal may perform on a resource."""
    field = 0
    for operation in _OPERATIONS[resource_type]:
        if ctx.authorized(operation, resource_type, name):
            field |= 1 << operation
    return field


def may_on_cluster(ctx: RequestContext, operation: AclOperation) -> bool:
    """Whether the principal may perform an operation on the cluster."""
    return ctx.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def check_on_cluster(ctx: RequestContext, operation: AclOperation) -> None:
    """Refuse a principal that may not perform an operation on the cluster (AuthHelper.authorizeClusterOperation).

    The message begins and ends like Kafka's, which has the Java request object between.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if not may_on_cluster(ctx, operation):
        request = f"Request(connectionId={ctx.connection.id}, listenerName=ListenerName({ctx.listener}))"
        reason = f"Request {request} needs {operation.name} permission."
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)


@dataclass(slots=True)
class PartitionView:
    """One partition as a client sees it."""

    error: ErrorCode
    leader: int
    offline: tuple[int, ...]


class Topology:
    """The cluster as seen from one listener, while one request is served."""

    def __init__(self, image: ClusterImage, listener: str, is_offline: Callable[[str, int, int], bool]) -> None:
        self._image, self._listener, self._is_offline = image, listener, is_offline

    @cached_property
    def brokers(self) -> list[Broker]:
        """Unfenced brokers that have the listener, by id."""
        return [broker for broker in self._image.alive_brokers() if self._listener in broker.listeners]

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The ids of :attr:`brokers`."""
        return frozenset(broker.id for broker in self.brokers)

    @property
    def controller_id(self) -> int:
        """The broker to which clients send controller requests: with KRaft any alive broker, which forwards them.

        Kafka picks a random one for each response; here it is always the first, so that runs with a seed are
        reproducible.
        """
        return self.brokers[0].id if self.brokers else -1

    def partition(self, topic: Topic, index: int, partition: Partition) -> PartitionView:
        """Return error, leader and offline replicas of one partition."""
        leader, error = partition.leader, ErrorCode.NONE
        if leader not in self.reachable:
            alive = leader != NO_LEADER and self._image.alive(leader)
            error = ErrorCode.LISTENER_NOT_FOUND if alive else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        offline = tuple(
            replica
            for replica in partition.replicas
            if replica not in self.reachable or self._is_offline(topic.name, index, replica)
        )
        return PartitionView(error, leader, offline)

    def alive_only(self, replicas: Collection[int]) -> tuple[int, ...]:
        """Return those of the replicas that are reachable."""
        return tuple(replica for replica in replicas if replica in self.reachable)


def topology_of(ctx: RequestContext) -> Topology:
    """Return the topology for the listener of a request."""
    partitions = ctx.cluster.partitions

    def is_offline(topic: str, index: int, broker_id: int) -> bool:
        hosted = partitions.get((topic, index))
        log = None if hosted is None else hosted.logs.get(broker_id)
        return log is not None and log.offline

    return Topology(ctx.cluster.image, ctx.listener, is_offline)
