"""Verbs about topics and partitions: creation, deletion, offsets, leaders and in-sync replicas."""

from collections.abc import Sequence
from typing import cast

from broker.control.problems import conflict, not_found, unprocessable
from broker.control.request import ControlRequest, number_in
from broker.control.verbs import answers
from broker.coordination.metadata import topics as metadata_topics
from broker.coordination.metadata.image import INTERNAL_TOPICS, METADATA_TOPIC, NO_LEADER, Topic
from broker.coordination.metadata.machine import Result
from broker.replication.partition import ReplicatedPartition
from broker.settings.model import ConfigResourceType
from broker.settings.topics import validate as validate_settings
from control_api.answers import topics as answer
from control_api.producers import ProducerForgotten
from control_api.spelling import suggestion
from control_api.topics import InSync, LeaderMove, LogStart, NewTopic, TopicDeleted
from protocol.errors import ErrorCode, KafkaError
from protocol.types import uuid_text
from storage.log.partition_log import PartitionLog
from storage.producers.state import ProducerEntry

_BY_SETTINGS = -1

# --- finding ---------------------------------------------------------------------------------------------------------


def topic_of(request: ControlRequest) -> Topic:
    """Return the topic named in the path. Raises Problem 404."""
    return topic_named(request, request.names["topic"])


def topic_named(request: ControlRequest, name: str) -> Topic:
    """Return the topic of that name. Raises Problem 404."""
    topics = request.cluster.image.topics
    topic = topics.get(name)
    if topic is None:
        raise not_found(f"there is no topic {name!r}{suggestion(name, topics)}")
    return topic


def partition_of(request: ControlRequest) -> ReplicatedPartition:
    """Return the partition named in the path. Raises Problem 404."""
    topic, text = topic_of(request), request.names["partition"]
    number = number_in(text)
    partition = None if number is None else request.cluster.partitions.get((topic.name, number))
    if partition is None:
        last = len(topic.partitions) - 1
        raise not_found(f"topic {topic.name!r} has no partition {text}; it has 0 to {last}")
    return partition


def log_of(partition: ReplicatedPartition) -> PartitionLog | None:
    """Return the leader's log; without a leader that of any replica; ``None`` if all of them are down."""
    return partition.logs.get(partition.state.leader) or next(iter(partition.logs.values()), None)


# --- describing ------------------------------------------------------------------------------------------------------


def partition_answer(partition: ReplicatedPartition, *, detail: bool = True) -> answer.Partition:
    """Describe a partition: its leader, and the leader's offsets; in detail also segments and producers."""
    state, log = partition.state, log_of(partition)
    entries = log.producer_log.entries() if detail and log is not None else ()
    producers = tuple(map(producer_answer, entries))
    segments = list(log.segments) if detail and log is not None else []
    return answer.Partition(
        partition=partition.index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
        held=tuple(sorted(partition.held)),
        log_start_offset=-1 if log is None else log.log_start_offset,
        high_watermark=-1 if log is None else log.high_watermark,
        last_stable_offset=-1 if log is None else log.last_stable_offset,
        log_end_offset=-1 if log is None else log.log_end_offset,
        size_bytes=-1 if log is None else log.segments.size,
        segments=tuple(answer.Segment(base_offset=each.base_offset, size_bytes=each.size) for each in segments),
        producers=producers,
        open_transactions=tuple(each for each in producers if each.txn_start_offset >= 0),
        aborted_transactions=tuple(
            answer.AbortedTransaction(
                producer_id=each.producer_id, first_offset=each.first_offset, last_offset=each.last_offset
            )
            for segment in segments
            for each in segment.txn_index.entries
        ),
    )


def producer_answer(entry: ProducerEntry) -> answer.Producer:
    """Describe a producer's state in a partition."""
    start = entry.transaction_first_offset
    return answer.Producer(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp_ms=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        txn_start_offset=-1 if start is None else start,
    )


def topic_answer(request: ControlRequest, topic: Topic) -> answer.Topic:
    """Describe a topic. Its partitions are read lazily while the answer is encoded: there may be many thousands."""
    hosted = request.cluster.partitions
    by_index = (hosted.get((topic.name, index)) for index in list(topic.partitions))
    partitions = (partition_answer(each, detail=False) for each in by_index if each is not None)
    return answer.Topic(
        name=topic.name,
        id=uuid_text(topic.id),
        internal=topic.internal,
        partitions=cast("tuple[answer.Partition, ...]", partitions),
        configs=dict(request.cluster.image.config(ConfigResourceType.TOPIC, topic.name)),
    )


# --- verbs -----------------------------------------------------------------------------------------------------------


@answers("topics list")
async def topics(request: ControlRequest) -> answer.Topics:
    """List all topics with their partitions, by name."""
    images = [topic for _, topic in sorted(request.cluster.image.topics.items())]
    return {"topics": cast("list[answer.Topic]", (topic_answer(request, topic) for topic in images))}


@answers("topics show")
async def topic(request: ControlRequest) -> answer.Topic:
    """Show one topic: its partitions, and its settings that differ from the default."""
    return topic_answer(request, topic_of(request))


@answers("topics create")
async def create(request: ControlRequest, body: NewTopic) -> answer.Topic:
    """Create a topic. Raises KafkaError if Kafka's controller would refuse it."""
    cluster, name = request.cluster, body["name"]
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if body["partitions"] > metadata_topics.MOST_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    configs, by_settings = (
        dict(body.get("configs", {})),
        body["partitions"] == body["replication_factor"] == _BY_SETTINGS,
    )
    if name in INTERNAL_TOPICS and by_settings and not configs:  # as the coordinators would create it
        await have_internal(request, name)
        return topic_answer(request, cluster.image.topics[name])
    wanted = metadata_topics.NewTopic(name, body["partitions"], body["replication_factor"], configs=configs)
    created: list[metadata_topics.CreatedTopic] = await cluster.metadata.ask(
        lambda machine, _now_ms, to: machine.create_topics(
            [wanted], to, check_configs=lambda configs: validate_settings(configs, cluster.settings)
        ),
        records=wanted.partitions,
    )
    if created[0].error is not None:
        raise created[0].error
    return topic_answer(request, cluster.image.topics[name])


async def have_internal(request: ControlRequest, name: str) -> None:
    """Create an internal topic if it is missing. Raises KafkaError if there are too few brokers for it."""
    created: metadata_topics.CreatedTopic = await request.cluster.metadata.ask(
        lambda machine, _now_ms, to: machine.create_internal_topic(name, to)
    )
    if created.error is not None:
        raise created.error


@answers("topics delete")
async def delete(request: ControlRequest) -> TopicDeleted:
    """Delete a topic, with its records and settings."""
    topic, cluster = topic_of(request), request.cluster
    if not cluster.settings.boolean("delete.topic.enable"):
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
    await cluster.metadata.ask(
        lambda machine, _now_ms, to: machine.delete_topics([topic.id], to), records=len(topic.partitions)
    )
    return {"name": topic.name, "id": uuid_text(topic.id), "deleted": True}


@answers("partitions show")
async def partition(request: ControlRequest) -> answer.Partition:
    """Show one partition: leader, epochs, offsets, segments, producers, open and aborted transactions."""
    return partition_answer(partition_of(request))


@answers("partitions start-at")
async def start_at(request: ControlRequest, body: LogStart) -> answer.Partition:
    """Empty a partition and set its log start offset, as if retention had deleted all records before it."""
    partition = partition_of(request)
    if topic_of(request).internal:
        raise conflict(f"{partition.name} holds the state of coordinators, which would be lost")
    try:
        partition.start_at(partition.state.leader, body["offset"], request.cluster.clock.now_ms())
        # Otherwise, after a kill the old checkpoint would set the log start offset, and delete what is before it.
        request.cluster.maintenance.checkpoint()
    except KafkaError as error:
        raise conflict(f"{partition.name} has no log to empty: {error.code.name}") from error
    return partition_answer(partition)


@answers("leader move")
async def move_leader(request: ControlRequest, body: LeaderMove) -> answer.Partition:
    """Move a partition's leader, or leave it without one; a broker without a replica replaces the old leader's."""
    partition = partition_of(request)
    await lead(request, partition, body["broker"])
    return partition_answer(partition)


async def lead(
    request: ControlRequest, partition: ReplicatedPartition, broker: int | None, *, loading_ms: int = 0
) -> None:
    """Make a broker the leader of a partition, until its next election. Raises Problem 404, or KafkaError.

    ``loading_ms`` is how long a coordinator that moves with the partition takes to load.
    """
    cluster, place, state = request.cluster, (partition.topic, partition.index), partition.state
    if broker is not None and broker not in cluster.nodes:
        raise not_found(f"there is no broker {broker}; there are {', '.join(map(str, cluster.nodes))}")
    if broker is not None and broker not in state.replicas:
        replaced = state.leader if state.leader != NO_LEADER else state.replicas[0]
        target = [broker if replica == replaced else replica for replica in state.replicas]
        results: list[Result] = await cluster.metadata.ask(
            lambda machine, _now_ms, to: machine.alter_partition_reassignments([(*place, target)], to)
        )
        ((_, error),) = results
        if error is not None:
            raise error
    if partition.state.leader != broker:
        await cluster.metadata.ask(
            lambda machine, _now_ms, to: machine.move_leader(*place, broker, to, loading_ms=loading_ms)
        )
    elif loading_ms and state.leader != broker:  # the reassignment has moved it
        cluster.metadata_publisher.reload_coordinator(partition, loading_ms)
    cluster.moved_leaders[partition.topic_id, partition.index] = partition.state.leader_epoch


@answers("isr set")
async def change_isr(request: ControlRequest, body: InSync) -> answer.Partition:
    """Set the in-sync replicas; the others stop replicating until they are in sync again."""
    partition = partition_of(request)
    state = partition.state
    in_sync = _brokers("replicas", body["replicas"], state.replicas)
    if state.leader != NO_LEADER and state.leader not in in_sync:
        raise unprocessable(
            f"broker {state.leader} is the leader and always in sync; move the leader first", "replicas"
        )
    out_of_sync = [broker for broker in state.replicas if broker not in in_sync]
    held = _brokers("held", body["held"], state.replicas) if "held" in body else out_of_sync
    if state.leader in held:
        raise unprocessable(f"broker {state.leader} is the leader, which cannot be held", "held")
    cluster, place = request.cluster, (partition.topic, partition.index)
    before, partition.held = partition.held, frozenset(held)
    partition.replicate()
    if tuple(in_sync) != state.isr:
        try:
            await cluster.metadata.ask(lambda machine, _now_ms, to: machine.change_isr(*place, tuple(in_sync), to))
        except KafkaError:  # an in-sync follower that is held would block all writes
            partition.held = before
            partition.replicate()
            raise
    return partition_answer(partition)


def _brokers(name: str, ids: Sequence[int], replicas: tuple[int, ...]) -> list[int]:
    """Return these replicas in the partition's order. Raises Problem 422 for others."""
    if any(each not in replicas for each in ids):
        listed = ", ".join(map(str, replicas))
        raise unprocessable(f"{name!r} must be a list of the partition's replicas, which are {listed}", name)
    return [broker for broker in replicas if broker in ids]


@answers("producers forget")
async def forget_producer(request: ControlRequest) -> ProducerForgotten:
    """Remove a producer's state from a partition, as if it had expired; clients recover from it by KIP-360."""
    partition, text = partition_of(request), request.names["producer_id"]
    producer_id = number_in(text)
    if producer_id is None or not [log for log in partition.logs.values() if log.producer_log.forget(producer_id)]:
        raise not_found(f"{partition.name} has no state of a producer {text}")
    request.cluster.producer_timelines.forgotten(producer_id, partition)
    return {"producer_id": producer_id, "forgotten": True}
