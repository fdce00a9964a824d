"""Histories over several brokers: replicas are assigned, each step goes to a broker, and brokers restart.

Kafka places replicas at random, so a history assigns them. Each request goes to the leader or coordinator by Kafka's
metadata, on both clusters; a step with `b` goes to that broker, which is often the wrong one.
"""

import random
from collections.abc import Sequence
from typing import Any

from comparison.histories.quiescence import Restless, coordinator, deadline_for, leader, wait_metadata, wait_reassigned
from comparison.histories.step_request import PATIENCE_MS, Step
from comparison.target import UNKNOWN_TRANSACTIONAL_ID, Target
from comparison.values import OFFSETS, TRANSACTIONS
from protocol.apis import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

AT_THE_LEADER = {
    "produce", "fetch", "list_offsets", "epoch_end", "describe_producers", "delete_records", "write_marker",
}  # fmt: skip
OF_A_GROUP = {
    "join", "sync", "heartbeat", "leave", "commit", "fetch_offsets", "delete_offset", "delete_group",
    "describe_group", "commit_in_transaction",
}  # fmt: skip
OF_A_TRANSACTION = {"init_producer", "add_partitions", "add_offsets", "end_transaction", "describe_transaction"}
WRONG_ONE_IN = 14
"""One step in so many goes to any broker: ours, as most must reach their leader to have an effect."""
FIRST_EPOCH = 4
"""Leader epoch of the internal topics when histories begin; it appears in markers.

Ours, as all clusters are brought to it.
"""


def spread(steps: Sequence[Step], seed: object, brokers: int) -> list[Step]:
    """Convert a history of one broker to one of several."""
    chance = random.Random(f"spread {seed}")
    counts: dict[str, int] = {}
    return [_spread(dict(step), chance, brokers, counts) for step in steps]


def _spread(step: dict[str, Any], chance: random.Random, brokers: int, counts: dict[str, int]) -> Step:
    do, everywhere = step["do"], range(1, brokers + 1)
    if do in {"create_topic", "create_partitions"}:
        _assign(step, chance, brokers, counts)
    elif do in {"create_topics", "create_more"}:
        step["topics"] = [_placed(entry, chance, brokers, counts) for entry in step["topics"]]
    elif do == "delete_topic":
        counts.pop(step["topic"], None)
    elif do == "metadata":
        step.pop("auto", None)
    elif do == "fetch_session":
        step["b"] = 1 + int(step["session"][1:]) % brokers  # a fetch session belongs to one broker
    elif do == "reassign":
        # 9: a broker that does not exist.
        step["replicas"] = chance.choice((_replicas(chance, brokers), _replicas(chance, brokers), [9], None))
    elif do == "restart":
        step["broker"] = chance.choice(everywhere)
    if do in AT_THE_LEADER | OF_A_GROUP | OF_A_TRANSACTION and chance.randrange(WRONG_ONE_IN) == 0:
        step["b"] = chance.choice(everywhere)
    return step


def _replicas(chance: random.Random, brokers: int) -> list[int]:
    return chance.sample(range(1, brokers + 1), chance.choice((1, 2, brokers)))


def _assign(step: dict[str, Any], chance: random.Random, brokers: int, counts: dict[str, int]) -> None:
    """Assign the replicas of new partitions."""
    topic = step["topic"]
    before = counts.get(topic, 0) if step["do"] == "create_partitions" else 0
    count = step.get("partitions", step.get("count", 0))
    if count <= before:
        return
    width = chance.choice((1, 2, brokers))  # the same for all partitions of a topic
    step["assign"] = [chance.sample(range(1, brokers + 1), width) for _ in range(count - before)]
    step.pop("factor", None)
    if not step.get("validate") and (step["do"] == "create_topic" or topic in counts):
        counts[topic] = max(count, counts.get(topic, 0))


def _placed(entry: Any, chance: random.Random, brokers: int, counts: dict[str, int]) -> Any:
    """Assign replicas to an entry without an assignment, unless its numbers are invalid."""
    if isinstance(entry, list):  # of CreatePartitions: name, count, replicas
        name, count, assign = entry
        missing = max(count - counts.get(name, 1), 1)
        counts[name] = max(count, counts.get(name, 1))
        return [name, count, assign or [_replicas(chance, brokers) for _ in range(missing)]]
    if "assign" in entry or entry["partitions"] in (0, -2) or entry["factor"] in (0, -2):
        return entry
    count, width = max(entry["partitions"], 1), chance.choice((1, 2, brokers))
    counts.setdefault(entry["topic"], count)
    assigned = [[index, chance.sample(range(1, brokers + 1), width)] for index in range(count)]
    return {**entry, "partitions": -1, "factor": -1, "assign": assigned}


def broker_of(target: Target, step: Step) -> int:
    """Return the broker to which a step is sent."""
    if "b" in step:
        return int(step["b"])
    do = step["do"]
    if do in AT_THE_LEADER:
        return leader(target, target.called(step["topic"]), step["partition"])
    if do in OF_A_GROUP:
        return coordinator(target, target.called(step["group"]), 0)
    if do in OF_A_TRANSACTION:
        transactional_id = target.producer(step.get("producer", "")).transactional_id if do != "init_producer" else None
        return coordinator(
            target, target.called(step.get("transactional_id") or transactional_id or UNKNOWN_TRANSACTIONAL_ID), 1
        )
    return 1


# --- equal assignments on both ---------------------------------------------------------------------------------------


def assign_internal_topics(target: Target) -> None:
    """Move the partitions of the internal topics to the same brokers on every cluster of this size."""
    everywhere = list(range(1, len(target.brokers) + 1))
    topics = target.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    for topic in topics:
        if topic.name not in (OFFSETS, TRANSACTIONS):
            continue
        for index in range(len(topic.partitions)):
            start = index % len(everywhere)
            _move(target, topic.name, index, everywhere[start:] + everywhere[:start])
    wait_metadata(target)


def _move(target: Target, topic: str, index: int, replicas: list[int]) -> None:
    """Elect the first replica until the leader epoch is FIRST_EPOCH: clusters differ in earlier elections."""
    while (led := _led(target, topic, index))[0] < FIRST_EPOCH:
        epoch, leading = led
        first = (
            replicas[0] if epoch + 1 == FIRST_EPOCH else next(replica for replica in replicas[1:] if replica != leading)
        )
        ordered = replicas if first == replicas[0] else [first, *(replica for replica in replicas if replica != first)]
        reassigned = ReassignableTopic(topic, [ReassignablePartition(index, ordered)])
        request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=[reassigned])
        target.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        wait_in_sync(target)
        election = ElectLeadersRequest([TopicPartitions(topic, [index])], PATIENCE_MS, 0)
        target.call(ApiKey.ELECT_LEADERS, 2, election)
    if led != (FIRST_EPOCH, replicas[0]):
        raise Restless(f"{topic}-{index} is led by {led[1]} in epoch {led[0]}")


def _led(target: Target, topic: str, index: int) -> tuple[int, int]:
    """Return leader epoch and leader."""
    wait_metadata(target)
    (metadata,) = target.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(topic)], False)).topics
    (led,) = (
        (partition.leader_epoch, partition.leader_id)
        for partition in metadata.partitions
        if partition.partition_index == index
    )
    return led


def wait_in_sync(target: Target) -> None:
    """Wait until every broker reports that all replicas are in sync and no partition is being reassigned."""
    wait_reassigned(target)
    deadline = deadline_for("replicas are in sync")
    for broker in range(1, len(target.brokers) + 1):
        while True:
            topics = target.call(ApiKey.METADATA, 12, MetadataRequest(None, False), broker=broker).topics
            parts = [part for topic in topics for part in topic.partitions]
            if all(part.leader_id > 0 and len(part.isr_nodes) == len(part.replica_nodes) for part in parts):
                break
            deadline.check()
