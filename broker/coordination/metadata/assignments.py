"""Manual replica assignments: their validation (core B.7 T13, T14), and the partitions created from them."""

from collections.abc import Sequence
from uuid import UUID

from broker.coordination.metadata.controller import Controller
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import PartitionRecord
from protocol.pauses import pause


def check_assignment(controller: Controller, replicas: Sequence[int], size: int | None = None) -> None:
    """Check one partition's replicas; ``size`` is the expected replication factor.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT with Kafka's message, for the first problem.
    """
    if not replicas:
        raise refused("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        broker = controller.image.brokers.get(broker_id)
        includes = f"The manual partition assignment includes broker {broker_id}, but"
        if broker is None:
            raise refused(f"{includes} no such broker is registered.")
        if broker.directories and set(broker.directories) <= set(broker.cordoned or ()):
            raise refused(f"{includes} all its log directories are cordoned.")
        if broker_id == previous:
            raise refused(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if size is not None and len(replicas) != size:
        raise refused(
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
        raise refused(
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


def refused(message: str) -> KafkaError:
    """Return INVALID_REPLICA_ASSIGNMENT with a message."""
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
