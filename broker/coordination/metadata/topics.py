"""Decisions of CreateTopics and CreatePartitions (core B.7, B.8), manual assignments and internal topics among them.

The handlers check requests as a whole (duplicates, authorization, timeouts). Kafka creates its internal topics when
they are first needed (transactions B.10, groups D.9).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any
from uuid import UUID

from broker.coordination.metadata.controller import MIN_ISR, TOPIC_RESOURCE, Controller
from broker.settings import plugins
from control_api.plugins import CREATE_TOPIC_POLICY, is_reference
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import HashMap, as_int
from protocol.log_records.metadata import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord
from protocol.pauses import pause
from protocol.topic_names import check_topic_name, colliding_form, may_collide

# --- manual assignments -----------------------------------------------------------------------------------------------


def check_assignment(controller: Controller, replicas: Sequence[int], size: int | None = None) -> None:
    """Check one partition's replicas; ``size`` is the expected replication factor.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT with Kafka's message, for the first problem.
    """
    if not replicas:
        raise invalid_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        broker = controller.image.brokers.get(broker_id)
        includes = f"The manual partition assignment includes broker {broker_id}, but"
        if broker is None:
            raise invalid_assignment(f"{includes} no such broker is registered.")
        if not broker.takes_replicas:
            raise invalid_assignment(f"{includes} all its log directories are cordoned.")
        if broker_id == previous:
            raise invalid_assignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if size is not None and len(replicas) != size:
        raise invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {size} replica(s)."
        )


def new_partition(controller: Controller, topic_id: UUID, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """Return the record of a partition on these brokers, led by the first active one.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT if none of them is active.
    """
    pause()
    isr = tuple(broker_id for broker_id in replicas if controller.image.active(broker_id))
    if not isr:
        raise invalid_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(controller.directory_of(broker_id) for broker_id in replicas),
    )


def invalid_assignment(message: str) -> KafkaError:
    """Return INVALID_REPLICA_ASSIGNMENT with a message."""
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


# --- topics and partitions --------------------------------------------------------------------------------------------

MOST_PARTITIONS = 10_000
"""Largest number of new partitions of a request (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH)."""
MOST_RECORDS = 10_000
"""Largest number of records of a request (QuorumController.MAX_RECORDS_PER_USER_OP)."""

CheckConfigs = Callable[[Mapping[str, str | None]], None]
"""Raises KafkaError if a topic cannot have these settings."""
Charge = Callable[[int], None]
"""Charges a number of created or deleted partitions; raises THROTTLING_QUOTA_EXCEEDED above the quota (KIP-599)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 means the default. ``assignments`` are (partition, brokers) as in the request."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result for one topic. With an error nothing was created; a topic that was only validated has an unused id."""

    name: str
    error: KafkaError | None = None
    topic_id: UUID | None = None
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic to extend to ``count`` partitions; ``assignments`` lists the brokers of each new one."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def check_partitions(total: int, *, overflows: bool) -> None:
    """Refuse too many partitions in one request (core B.7 T4).

    Args:
        total: the sum of the partitions of all topics.
        overflows: whether the sum is an int, as before 4.4, which may overflow.

    Raises:
        KafkaError: POLICY_VIOLATION; UNKNOWN_SERVER_ERROR if the sum overflows.
    """
    counted = as_int(total) if overflows else total
    if counted > MOST_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if total > MOST_PARTITIONS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def check_records(count: int) -> None:
    """Refuse a request with more records than the controller writes (``BoundedListTooLongException``).

    Raises:
        KafkaError: POLICY_VIOLATION.
    """
    if count > MOST_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def create_topic(
    controller: Controller, topic: NewTopic, check_configs: CheckConfigs, charge: Charge
) -> tuple[CreatedTopic, list[Any]]:
    """Return the result for one topic and its records (core B.7 T6 to T19)."""
    pause()
    try:
        _check_name(controller, topic.name)
        check_configs(topic.configs)
        # Also for ValidateOnly, whose result has an id that no topic gets (core B.7.2).
        topic_id = controller.new_uuid()
        if topic.assignments:
            partitions = _assigned(controller, topic, topic_id)
        else:
            partitions = _placed(controller, topic, topic_id)
        _check_policy(controller, topic, partitions)
        charge(len(partitions))
    except KafkaError as error:
        return CreatedTopic(topic.name, error), []
    configs = {key: value for key, value in topic.configs.items() if value is not None}
    records: list[Any] = [TopicRecord(topic.name, topic_id)]
    records += [ConfigRecord(TOPIC_RESOURCE, topic.name, key, configs[key]) for key in HashMap(configs.items())]
    if controller.elr and MIN_ISR in configs:
        records.append(ClearElrRecord(topic.name))
    records += partitions
    created = CreatedTopic(topic.name, None, topic_id, len(partitions), len(partitions[0].replicas), configs)
    return created, records


def _check_policy(controller: Controller, topic: NewTopic, partitions: Sequence[PartitionRecord]) -> None:
    """Ask ``create.topic.policy.class.name``, once the topic is known to be possible (core B.7 T16)."""
    reference = controller.settings.string(CREATE_TOPIC_POLICY)
    if not is_reference(reference):
        return
    assigned = {index: list(replicas) for index, replicas in topic.assignments} or None
    count, factor = (None, None) if assigned else (len(partitions), len(partitions[0].replicas))
    configs = {key: value for key, value in topic.configs.items() if value is not None}
    request = plugins.NewTopicRequest(topic.name, count, factor, assigned, configs)
    plugins.enforce(reference, request)


def _check_name(controller: Controller, name: str) -> None:
    # Existence first, although no invalid name exists: core B.7 T6 wins over the two others.
    if name in controller.image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    # Quirk: two colliding names in one request pass; only existing topics are compared (core B.7 T8).
    if may_collide(name):
        others = controller.image.colliding_names.get(colliding_form(name))
        if others:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {min(others)}"
            )


def _assigned(controller: Controller, topic: NewTopic, topic_id: UUID) -> list[PartitionRecord]:
    """Return the partitions of a manual assignment, after checks in this order (core B.7 T11 to T15)."""
    manual = "A manual partition assignment was specified, but"
    if topic.replication_factor != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{manual} replication factor was not set to -1.")
    if topic.partitions != -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{manual} numPartitions was not set to -1.")
    partitions_by_index: dict[int, PartitionRecord] = {}
    size: int | None = None
    for index, replicas in topic.assignments:
        if index in partitions_by_index:
            raise invalid_assignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(controller, replicas, size)
        size = len(replicas)
        partitions_by_index[index] = new_partition(controller, topic_id, index, replicas)
    if set(partitions_by_index) != set(range(len(partitions_by_index))):
        raise invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions_by_index[index] for index in range(len(partitions_by_index))]


def _placed(controller: Controller, topic: NewTopic, topic_id: UUID) -> list[PartitionRecord]:
    """Return partitions that the controller places; the factor is checked before the count (core B.7 T16)."""
    factor, count = topic.replication_factor, topic.partitions
    if factor < -1 or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    factor = controller.settings.int("default.replication.factor") if factor == -1 else factor
    count = controller.settings.int("num.partitions") if count == -1 else count
    placer = controller.placer()
    return [new_partition(controller, topic_id, index, placer.place(factor)) for index in range(count)]


def add_partitions(controller: Controller, wanted: MorePartitions, most: int, charge: Charge) -> list[PartitionRecord]:
    """Return the records of a topic's new partitions (core B.8); ``most`` is how many the request may still create.

    Raises:
        KafkaError: with Kafka's code and message.
    """
    pause()
    topic = controller.image.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have, want = len(topic.partitions), wanted.count
    if want == have:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if want < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {have} partition(s); {want} would not be an increase.",
        )
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is not None and len(wanted.assignments) != want - have:
        raise invalid_assignment(
            f"Attempted to add {want - have} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified."
        )
    charge(want - have)
    if want - have > most:
        # As in 4.3.1, whose list of records overflows, which fails the whole request.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if wanted.assignments is None:
        placer = controller.placer()
        assignments: Sequence[Sequence[int]] = [placer.place(factor) for _ in range(have, want)]
    else:
        assignments = wanted.assignments
        for replicas in assignments:
            check_assignment(controller, replicas, factor)
    return [new_partition(controller, topic.id, have + i, replicas) for i, replicas in enumerate(assignments)]


# --- internal topics --------------------------------------------------------------------------------------------------


# Broker settings' prefix of each topic's partition count and replication factor.
_PREFIXES: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic",
    "__transaction_state": "transaction.state.log",
    "__share_group_state": "share.coordinator.state.topic",
}


def internal_topic(controller: Controller, name: str) -> NewTopic:
    """Return the specification of an internal topic by the broker's settings.

    Kafka's default replication factor of 3 is lowered to the number of active brokers, so that one broker is enough. A
    configured factor is kept: creation then fails if there are too few brokers, as in Kafka.
    """
    prefix = _PREFIXES[name]
    setting = f"{prefix}.replication.factor"
    factor = controller.settings.int(setting)
    if setting not in controller.settings.static:
        factor = max(1, min(factor, sum(broker.active for broker in controller.image.brokers.values())))
    count = controller.settings.int(f"{prefix}.num.partitions")
    return NewTopic(name, count, factor, configs=_configs(controller, name, prefix))


def _configs(controller: Controller, name: str, prefix: str) -> dict[str, str | None]:
    segment_bytes = str(controller.settings.int(f"{prefix}.segment.bytes"))
    if name == "__transaction_state":
        return {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(controller.settings.int("transaction.state.log.min.isr")),
            "segment.bytes": segment_bytes,
            "unclean.leader.election.enable": "false",
        }
    if name == "__share_group_state":
        return {
            "compression.type": "producer",
            "cleanup.policy": "delete",
            "min.insync.replicas": str(controller.settings.int("share.coordinator.state.topic.min.isr")),
            "segment.bytes": segment_bytes,
            "retention.ms": "-1",
        }
    return {"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": segment_bytes}
