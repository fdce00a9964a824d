"""Brokers and partitions as clients see them: leaders, offline replicas, authorized operations (core B.3)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.metadata.image import NO_LEADER, Broker, ClusterImage, Partition, Topic
from protocol.acls import CLUSTER_NAME
from protocol.errors import ErrorCode, KafkaError

NOT_ASKED = -(2**31)
"""The value of an authorized-operations field that was not requested."""

# Each resource's operations (core B.3); a bit is set where the requester may.
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
    """The bit field of what the requester may do with a resource."""
    field = 0
    for operation in _OPERATIONS[resource_type]:
        if ctx.authorized(operation, resource_type, name):
            field |= 1 << operation
    return field


def may_on_cluster(ctx: RequestContext, operation: AclOperation) -> bool:
    """Whether the requester may do that to the cluster."""
    return ctx.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def check_on_cluster(ctx: RequestContext, operation: AclOperation) -> None:
    """Refuse a requester who may not do that to the cluster (AuthHelper.authorizeClusterOperation).

    The text begins and ends as Kafka's, which prints the request object of its JVM between.

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
    """The cluster as seen from one listener, for the length of one request."""

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
        """Whom clients send requests for the controller to: in KRaft any alive broker, which passes them on.

        Kafka picks one by chance for each answer; here it is always the first, so that a seed decides everything.
        """
        return self.brokers[0].id if self.brokers else -1

    def partition(self, topic: Topic, index: int, partition: Partition) -> PartitionView:
        """Error, leader and offline replicas of one partition."""
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
        """Those of the replicas that can be reached."""
        return tuple(replica for replica in replicas if replica in self.reachable)


def topology_of(ctx: RequestContext) -> Topology:
    """As the requester sees it."""
    partitions = ctx.cluster.partitions

    def is_offline(topic: str, index: int, broker_id: int) -> bool:
        hosted = partitions.get((topic, index))
        log = None if hosted is None else hosted.logs.get(broker_id)
        return log is not None and log.offline

    return Topology(ctx.cluster.image, ctx.listener, is_offline)
