"""A real Apache Kafka of three brokers that is steered as scenarios ask: its brokers, leaders and coordinators."""

import threading
import time
from typing import Any, Final

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # not in its __all__

from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.cluster import KafkaCluster
from understudy.client import Cluster
from understudy.exam.exercise import BROKERS, TOPICS, NotExercised
from understudy.exam.log_of_upstream import UpstreamPartition
from understudy.exam.upstream import OFFERS, UpstreamCluster, UpstreamGroup, UpstreamGroups

INTERNAL_PARTITIONS: Final = 3
CONTROLLER: Final = 1
TIMEOUT_MS: Final = 10_000
PATIENCE_S: Final = 60.0
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "10000",
    "group.share.min.session.timeout.ms": "5000",
    "group.share.session.timeout.ms": "10000",
}
COORDINATED: Final = {"group": "__consumer_offsets", "transaction": "__transaction_state"}
FIRST_LEADERS: Final = {"t": 2, "u": 3, "many": 1}
"""The leader of partition 0. Broker 1, the controller, leads none that scenarios write to."""


def partition_of(key: str) -> int:
    """The partition of an internal topic that a group or transactional id belongs to: by `String.hashCode`."""
    hashed = 0
    for each in key:
        hashed = (31 * hashed + ord(each)) & 0xFFFF_FFFF
    return (hashed & 0x7FFF_FFFF) % INTERNAL_PARTITIONS


class SteeredPartition(UpstreamPartition):
    """A partition whose leader moves."""

    def __init__(self, cluster: "SteeredKafka", topic: str, number: int) -> None:
        super().__init__(cluster.past, topic, number)
        self.cluster, self.topic, self.number = cluster, topic, number

    def show(self) -> Any:
        """Its leader, as the brokers that run report it."""
        return self.cluster.state(self.topic, self.number)

    def move_leader(self, broker: int) -> None:
        """Make a broker the preferred leader, and elect it."""
        self.cluster.move(self.topic, self.number, broker)


class SteeredBroker:
    """A broker as a process."""

    def __init__(self, kafka: KafkaCluster, number: int) -> None:
        self.kafka, self.number = kafka, number

    def stop(self) -> None:
        """End it in good order; without the controller only a signal ends it in time."""
        self.kafka.stop(self.number, clean=self.number == CONTROLLER or self.kafka.addresses[0] in self.kafka.running)

    def kill(self) -> None:
        """End it by SIGKILL. Without the controller no replica leaves the ISR, and acks=all waits for the dead one."""
        if self.number == CONTROLLER:
            raise NotExercised("the broker that has to die is the controller of this cluster")
        self.kafka.stop(self.number, clean=False)

    def start(self) -> None:
        """Start it again."""
        self.kafka.start(self.number)


class SteeredGroup(UpstreamGroup):
    """A group of the consumer protocol whose members can be removed."""

    def __init__(self, cluster: "SteeredKafka", name: str) -> None:
        super().__init__(cluster, name)
        self.cluster = cluster

    def evict(self, member_id: str) -> None:
        """Leave in the member's place."""
        coordinator = self.cluster.state(COORDINATED["group"], partition_of(self.name)).leader
        request = ConsumerGroupHeartbeatRequest(self.name, member_id, -1)
        self.cluster.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, request, coordinator)


class SteeredGroups(UpstreamGroups):
    """The groups."""

    def __init__(self, cluster: "SteeredKafka") -> None:
        super().__init__(cluster)
        self.steered = cluster

    def __getitem__(self, name: str) -> SteeredGroup:
        return SteeredGroup(self.steered, name)


class SteeredKafka(UpstreamCluster):
    """What scenarios ask of a cluster, from brokers that this process has started."""

    offers = OFFERS | {"brokers", "coordinators", "leaders", "members"}

    def __init__(self, kafka: KafkaCluster, proxy: Cluster, witness: Cluster) -> None:
        super().__init__(proxy, witness)
        self.kafka = kafka
        self.brokers = {number: SteeredBroker(self.kafka, number) for number in range(1, BROKERS + 1)}
        self.coordinators = self
        self.groups = SteeredGroups(self)

    def partition(self, topic: str, number: int) -> UpstreamPartition:
        """A partition that can be steered."""
        return SteeredPartition(self, topic, number)

    def new_topics(self) -> list[NewTopic]:
        """The topics of each scenario, each on all brokers."""
        return [
            NewTopic(name, count, replica_assignment=[_replicas(FIRST_LEADERS[name] + each) for each in range(count)])
            for name, count in TOPICS.items()
        ]

    def reset(self, *, disconnect: bool) -> None:
        """All brokers run."""
        self.kafka.start()
        super().reset(disconnect=disconnect)

    def state(self, topic: str, number: int) -> Any:
        """Replicas, those in sync, and the leader of a partition: as `leader`, `isr`, `replicas`."""
        side = Target(self.kafka.running[0])
        try:
            request = MetadataRequest([MetadataRequestTopic(topic)], False)
            partitions = side.call(ApiKey.METADATA, 12, request).topics[0].partitions
        finally:
            side.close()
        (partition,) = (each for each in partitions if each.partition_index == number)
        return State(partition.leader_id, partition.isr_nodes, partition.replica_nodes)

    def move(self, topic: str = "", number: int = 0, broker: int = 0, *, type: str = "", key: str = "") -> None:
        """Move a leader, or the coordinator of a group or of a transactional id: the leader of its partition."""
        if type:
            topic = COORDINATED[type]
            number = partition_of(key)
        until = time.monotonic() + PATIENCE_S
        pause = threading.Event()
        while (state := self.state(topic, number)).leader != broker:
            assert time.monotonic() < until, f"{topic}-{number} is led by {state.leader}"
            if state.replicas[0] != broker:
                self._prefer(topic, number, [broker, *(each for each in state.replicas if each != broker)])
            elif broker in state.isr:
                self._elect(topic, number)
            pause.wait(0.1)

    def _prefer(self, topic: str, number: int, replicas: list[int]) -> None:
        partition = ReassignableTopic(topic, [ReassignablePartition(number, replicas)])
        request = AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics=[partition])
        self.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)

    def _elect(self, topic: str, number: int) -> None:
        request = ElectLeadersRequest([TopicPartitions(topic, [number])], TIMEOUT_MS, 0)
        self.ask(ApiKey.ELECT_LEADERS, 2, request)

    def ask(self, key: ApiKey, version: int, request: Any, broker: int | None = None) -> None:
        """Send a request to a broker, or to any that runs; the answer is not looked at."""
        side = Target(self.kafka.running[0] if broker is None else self.kafka.addresses[broker - 1])
        try:
            side.call(key, version, request)
        finally:
            side.close()


class State:
    """A partition's leader and replicas."""

    def __init__(self, leader: int, isr: list[int], replicas: list[int]) -> None:
        self.leader, self.isr, self.replicas = leader, isr, replicas


def _replicas(first: int) -> list[int]:
    return [(first + each - 1) % BROKERS + 1 for each in range(BROKERS)]
