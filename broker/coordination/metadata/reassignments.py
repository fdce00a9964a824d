"""Changes of leaders, in-sync replicas and assignments that are requested (core B.10, B.11) or periodic."""

from collections.abc import Callable, Sequence
from typing import Any

from broker.coordination.metadata.controller import Controller
from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.image import NO_LEADER, Partition, Topic
from broker.coordination.metadata.topics import check_assignment, invalid_assignment
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import PartitionChangeRecord
from protocol.pauses import pause


def elect(controller: Controller, name: str, index: int, election: Election) -> PartitionChangeRecord:
    """Decide one partition of an ElectLeaders request: PREFERRED or UNCLEAN.

    Raises:
        KafkaError: with the code and message of core B.10.
    """
    pause()
    topic = controller.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    preferred = election is Election.PREFERRED
    if partition.leader == partition.preferred_leader if preferred else partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    record = controller.change(topic, index, election=election).record()
    if record is None:
        if preferred:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return record


def reassign(
    controller: Controller, name: str, index: int, target: Sequence[int] | None, *, factor_may_change: bool
) -> PartitionChangeRecord | None:
    """Decide one partition of an AlterPartitionReassignments request; a null target cancels.

    Raises:
        KafkaError: with the code and message of core B.11.
    """
    pause()
    topic = controller.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if target is None:
        return _cancel(controller, topic, index, partition)
    check_assignment(controller, target)
    size = len({*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas})
    if not factor_may_change and len(target) != size:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {size} to {len(target)}"
        )
    change = controller.change(topic, index, election=Election.ONLINE)  # even if unclean elections are allowed
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    change.replicas = (*target, *removing)
    change.removing = removing or change.removing
    change.adding = adding or change.adding
    return change.record()


def _cancel(controller: Controller, topic: Topic, index: int, partition: Partition) -> PartitionChangeRecord | None:
    # Before the unclean revert: without a reassignment there is nothing to revert (core B.11).
    if not partition.reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding_replicas)
    if not isr and not controller.unclean_allowed(topic.name):
        raise invalid_assignment(
            f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
            "leader election."
        )
    change = controller.change(topic, index)
    change.replicas, change.adding, change.removing = replicas, (), ()
    change.isr = isr or replicas[:1]  # if only removed replicas were in sync (PartitionReassignmentRevert)
    return change.record()


def change_isr(controller: Controller, topic: Topic, index: int, isr: Sequence[int]) -> PartitionChangeRecord | None:
    """Set the ISR that a leader requests (AlterPartition); may complete a reassignment.

    Raises:
        KafkaError: INELIGIBLE_REPLICA for a broker that is fenced, shutting down, or no replica of the partition.
    """
    partition = topic.partitions[index]
    for broker_id in isr:
        if broker_id not in partition.replicas or not controller.image.active(broker_id):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker_id} may not be in sync.")
    change = controller.change(topic, index)
    change.isr = tuple(isr)
    change.recovering = False
    return change.record()


def balance(controller: Controller, stays: Callable[[Topic, int, Partition], bool]) -> list[Any]:
    """Elect preferred replicas wherever others lead (``auto.leader.rebalance.enable``), unless the leader ``stays``.

    Kafka elects at most 1,000 leaders in one step, and continues with the next step at once
    (``ReplicationControlManager.maybeBalancePartitionLeaders``).
    """
    return [
        record
        for topic, index, partition in controller.image.all_partitions()
        if partition.leader != partition.preferred_leader and not stays(topic, index, partition)
        if (record := controller.change(topic, index, election=Election.PREFERRED).record()) is not None
    ]


def elect_uncleanly(controller: Controller) -> list[Any]:
    """Elect leaders for leaderless partitions whose topics allow unclean elections (``maybeElectUncleanLeaders``)."""
    return [
        record
        for topic, index, partition in controller.image.all_partitions()
        if partition.leader == NO_LEADER and controller.unclean_allowed(topic.name)
        if (record := controller.change(topic, index).record()) is not None
    ]


def move_leader(controller: Controller, topic: Topic, index: int, broker_id: int | None) -> list[Any]:
    """Control plane: set a leader, or none, without an election. LeaderEpoch is incremented.

    Raises:
        KafkaError: INELIGIBLE_REPLICA if the broker has no replica or may not lead.
    """
    partition = topic.partitions[index]
    if broker_id is None:
        return [PartitionChangeRecord(index, topic.id, leader=NO_LEADER)]
    if broker_id not in partition.replicas:
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker_id} has no replica of {topic.name}-{index}.")
    if not controller.image.active(broker_id):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker_id} is fenced or in controlled shutdown.")
    isr = None if broker_id in partition.isr else (*partition.isr, broker_id)
    return [PartitionChangeRecord(index, topic.id, leader=broker_id, isr=isr)]
