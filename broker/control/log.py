"""Verbs about topics and partitions: what they are, who leads them, who is in sync."""

from typing import Any

from broker.control.asked import Asked
from broker.control.problems import nearest, not_found, unprocessable
from broker.coordination.metadata.image import NO_LEADER, Topic
from broker.partition import ReplicatedPartition
from broker.settings.model import ResourceType
from protocol.types import uuid_text
from storage.partition_log import PartitionLog
from storage.producer_state import ProducerEntry

LEADER: dict[str, Any] = {
    "type": "object",
    "properties": {"broker": {"type": ["integer", "null"], "description": "id of the new leader; null: nobody leads"}},
    "required": ["broker"],
    "additionalProperties": False,
}
ISR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "array", "items": {"type": "integer"}, "description": "who is in sync from now on"},
        "held": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "followers that replicate nothing; by default those that are not in sync",
        },
    },
    "required": ["replicas"],
    "additionalProperties": False,
}


# --- finding ---------------------------------------------------------------------------------------------------------


def topic_of(asked: Asked) -> Topic:
    """The topic named in the path. Raises Problem 404."""
    name, topics = asked.names["topic"], asked.cluster.image.topics
    found = topics.get(name)
    if found is None:
        raise not_found(f"there is no topic {name!r}{nearest(name, topics) if topics else ''}")
    return found


def partition_of(asked: Asked) -> ReplicatedPartition:
    """The partition named in the path. Raises Problem 404."""
    topic, text = topic_of(asked), asked.names["partition"]
    found = asked.cluster.partitions.get((topic.name, int(text))) if text.isascii() and text.isdigit() else None
    if found is None:
        last = len(topic.partitions) - 1
        raise not_found(f"topic {topic.name!r} has no partition {text}; it has 0 to {last}")
    return found


def log_of(partition: ReplicatedPartition) -> PartitionLog | None:
    """The leader's log; without a leader that of any replica; ``None`` where all of them are down."""
    return partition.logs.get(partition.state.leader) or next(iter(partition.logs.values()), None)


# --- telling ---------------------------------------------------------------------------------------------------------


def told(partition: ReplicatedPartition) -> dict[str, Any]:
    """A partition in short: who leads, and its offsets as the leader sees them."""
    state, log = partition.state, log_of(partition)
    return {
        "partition": partition.index,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "log_start_offset": -1 if log is None else log.log_start_offset,
        "high_watermark": -1 if log is None else log.high_watermark,
        "last_stable_offset": -1 if log is None else log.last_stable_offset,
        "log_end_offset": -1 if log is None else log.log_end_offset,
        "size_bytes": -1 if log is None else log.size_bytes,
    }


def told_in_full(partition: ReplicatedPartition) -> dict[str, Any]:
    """The same with segments, producers and transactions."""
    log = log_of(partition)
    entries = [] if log is None or not log.has_producers else list(log.producers.producers.values())
    producers = [producer_told(entry) for entry in entries]
    return {
        **told(partition),
        "held": sorted(partition.held),
        "segments": []
        if log is None
        else [{"base_offset": segment.base_offset, "size_bytes": segment.size} for segment in log.segments],
        "producers": producers,
        "open_transactions": [each for each in producers if each["txn_start_offset"] >= 0],
        "aborted_transactions": []
        if log is None
        else [
            {"producer_id": each.producer_id, "first_offset": each.first_offset, "last_offset": each.last_offset}
            for segment in log.segments
            for each in segment.txn_index.entries
        ],
    }


def producer_told(entry: ProducerEntry) -> dict[str, Any]:
    """What a partition knows of a producer."""
    start = entry.transaction_first_offset
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp_ms": entry.last_timestamp_ms,
        "coordinator_epoch": entry.coordinator_epoch,
        "txn_start_offset": -1 if start is None else start,
    }


def _topic(asked: Asked, topic: Topic) -> dict[str, Any]:
    hosted = asked.cluster.partitions
    return {
        "name": topic.name,
        "id": uuid_text(topic.id),
        "internal": topic.internal,
        "partitions": [told(hosted[topic.name, index]) for index in topic.partitions if (topic.name, index) in hosted],
        "configs": dict(asked.cluster.image.config(ResourceType.TOPIC, topic.name)),
    }


# --- verbs -----------------------------------------------------------------------------------------------------------


async def topics(asked: Asked) -> dict[str, Any]:
    """All topics with their partitions, by name."""
    known = asked.cluster.image.topics
    return {"topics": [_topic(asked, known[name]) for name in sorted(known)]}


async def topic(asked: Asked) -> dict[str, Any]:
    """One topic: its partitions, and what is configured otherwise than by default."""
    return _topic(asked, topic_of(asked))


async def partition(asked: Asked) -> dict[str, Any]:
    """One partition: leader, epochs, offsets, segments, producers, open and aborted transactions."""
    return told_in_full(partition_of(asked))


async def move_leader(asked: Asked) -> dict[str, Any]:
    """Give a partition another leader, or none; a broker without a replica gets one instead of the old leader's."""
    asked.only("broker")
    found = partition_of(asked)
    if "broker" not in asked.body:
        raise unprocessable("the body needs 'broker', the id of a broker or null", "broker")
    broker = None if asked.body["broker"] is None else asked.integer("broker", least=1)
    await lead(asked, found, broker)
    return told_in_full(found)


async def lead(asked: Asked, partition: ReplicatedPartition, broker: int | None) -> None:
    """Make a broker lead a partition. Raises Problem 404, or KafkaError where it may not lead."""
    cluster, place, state = asked.cluster, (partition.topic, partition.index), partition.state
    if broker is not None and broker not in cluster.nodes:
        raise not_found(f"there is no broker {broker}; there are {', '.join(map(str, cluster.nodes))}")
    if broker is not None and broker not in state.replicas:
        replaced = state.leader if state.leader != NO_LEADER else state.replicas[0]
        target = [broker if each == replaced else each for each in state.replicas]
        ((_, error),) = await cluster.metadata.ask(
            lambda machine, _now_ms, to: machine.alter_partition_reassignments([(*place, target)], to)
        )
        if error is not None:
            raise error
    if partition.state.leader != broker:
        await cluster.metadata.ask(lambda machine, _now_ms, to: machine.move_leader(*place, broker, to))


async def change_isr(asked: Asked) -> dict[str, Any]:
    """Say who is in sync with the leader; the others stop replicating, until they are in sync again."""
    asked.only("replicas", "held")
    found = partition_of(asked)
    state = found.state
    in_sync = _brokers(asked, "replicas", state.replicas)
    if state.leader != NO_LEADER and state.leader not in in_sync:
        raise unprocessable(f"broker {state.leader} leads and is always in sync; move the leader first", "replicas")
    out_of_sync = [broker for broker in state.replicas if broker not in in_sync]
    held = _brokers(asked, "held", state.replicas) if "held" in asked.body else out_of_sync
    if state.leader in held:
        raise unprocessable(f"broker {state.leader} leads, it cannot be held back", "held")
    cluster, place = asked.cluster, (found.topic, found.index)
    found.held = frozenset(held)
    found.replicate()
    if tuple(in_sync) != state.isr:
        await cluster.metadata.ask(lambda machine, _now_ms, to: machine.change_isr(*place, tuple(in_sync), to))
    return told_in_full(found)


def _brokers(asked: Asked, name: str, replicas: tuple[int, ...]) -> list[int]:
    """Some of a partition's replicas, in its order. Raises Problem 422."""
    value = asked.body.get(name)
    if not isinstance(value, list) or any(each not in replicas or isinstance(each, bool) for each in value):
        known = ", ".join(map(str, replicas))
        raise unprocessable(f"{name!r} must be a list of the partition's replicas, which are {known}", name)
    return [broker for broker in replicas if broker in value]


async def forget_producer(asked: Asked) -> dict[str, Any]:
    """Let a partition forget a producer, as if it had expired: what clients recover from by KIP-360."""
    found, text = partition_of(asked), asked.names["producer_id"]
    logs = [log for log in found.logs.values() if text.isascii() and text.isdigit() and log.forget_producer(int(text))]
    if not logs:
        raise not_found(f"{found.name} knows no producer {text}")
    asked.cluster.producer_timelines.forgotten(int(text), found)
    return {"producer_id": int(text), "forgotten": True}
