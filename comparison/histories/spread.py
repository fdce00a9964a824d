"""Histories over several brokers: replicas are assigned, each step has a broker to go to, and brokers restart.

Kafka places replicas by chance, so a history says where they are. Each request goes to the broker that Kafka's side
names for it (leader, coordinator), the same on both sides; where the step says `b`, to that one, which is often wrong.
"""

import random
from collections.abc import Sequence
from typing import Any

from comparison.histories.asked import Step
from comparison.histories.settle import Restless, coordinator, leader, metadata_followed, nothing_moves, patiently
from comparison.plain import OFFSETS, TRANSACTIONS
from comparison.side import Side
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
PATIENCE_MS = 15_000
WRONG_ONE_IN = 14
FIRST_EPOCH = 4
"""Of the leaders of the internal topics, when histories begin: markers tell it."""


def spread(steps: Sequence[Step], seed: object, brokers: int) -> list[Step]:
    """A history of one broker as one of several."""
    chance = random.Random(f"spread {seed}")
    counts: dict[str, int] = {}
    return [_spread(dict(step), chance, brokers, counts) for step in steps]


def _spread(step: dict[str, Any], chance: random.Random, brokers: int, counts: dict[str, int]) -> Step:
    do, everywhere = step["do"], range(1, brokers + 1)
    if do in {"create_topic", "create_partitions"}:
        _assign(step, chance, brokers, counts)
    elif do == "delete_topic":
        counts.pop(step["topic"], None)
    elif do == "metadata":
        step.pop("auto", None)
    elif do == "fetch_session":
        step["b"] = 1 + int(step["session"][1:]) % brokers  # a session is one broker's
    elif do == "reassign":
        step["replicas"] = chance.choice((_replicas(chance, brokers), _replicas(chance, brokers), [9], None))
    elif do == "restart":
        step["broker"] = chance.choice(everywhere)
    if do in AT_THE_LEADER | OF_A_GROUP | OF_A_TRANSACTION and chance.randrange(WRONG_ONE_IN) == 0:
        step["b"] = chance.choice(everywhere)
    return step


def _replicas(chance: random.Random, brokers: int) -> list[int]:
    return chance.sample(range(1, brokers + 1), chance.choice((1, 2, brokers)))


def _assign(step: dict[str, Any], chance: random.Random, brokers: int, counts: dict[str, int]) -> None:
    """Say where the partitions that are made here are to be."""
    topic = step["topic"]
    before = counts.get(topic, 0) if step["do"] == "create_partitions" else 0
    count = step.get("partitions", step.get("count", 0))
    if count <= before:
        return
    width = chance.choice((1, 2, brokers))  # all partitions of a topic have as many
    step["assign"] = [chance.sample(range(1, brokers + 1), width) for _ in range(count - before)]
    step.pop("factor", None)
    if not step.get("validate") and (step["do"] == "create_topic" or topic in counts):
        counts[topic] = max(count, counts.get(topic, 0))


def broker_of(side: Side, step: Step) -> int:
    """The broker that a step goes to."""
    if "b" in step:
        return int(step["b"])
    do = step["do"]
    if do in AT_THE_LEADER:
        return leader(side, side.called(step["topic"]), step["partition"])
    if do in OF_A_GROUP:
        return coordinator(side, side.called(step["group"]), 0)
    if do in OF_A_TRANSACTION:
        known = side.producer(step.get("producer", "")).transactional_id if do != "init_producer" else None
        return coordinator(side, side.called(step.get("transactional_id") or known or "nobody"), 1)
    return 1


# --- the same places on both ----------------------------------------------------------------------------------------


def placed(side: Side) -> None:
    """Put the partitions of the internal topics where every cluster of so many brokers has them for histories."""
    everywhere = list(range(1, len(side.brokers) + 1))
    found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    for topic in found:
        if topic.name not in (OFFSETS, TRANSACTIONS):
            continue
        for index in range(len(topic.partitions)):
            start = index % len(everywhere)
            _moved(side, topic.name, index, everywhere[start:] + everywhere[:start])
    metadata_followed(side)


def _moved(side: Side, topic: str, index: int, replicas: list[int]) -> None:
    """Let the first one lead, in that leader epoch: how often a leader was elected before is each cluster's chance."""
    while (led := _led(side, topic, index))[0] < FIRST_EPOCH:
        epoch, leading = led
        first = replicas[0] if epoch + 1 == FIRST_EPOCH else next(each for each in replicas[1:] if each != leading)
        ordered = replicas if first == replicas[0] else [first, *(each for each in replicas if each != first)]
        asked = ReassignableTopic(topic, [ReassignablePartition(index, ordered)])
        request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=[asked])
        side.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        in_sync(side)
        election = ElectLeadersRequest([TopicPartitions(topic, [index])], PATIENCE_MS, 0)
        side.call(ApiKey.ELECT_LEADERS, 2, election)
    if led != (FIRST_EPOCH, replicas[0]):
        raise Restless(f"{topic}-{index} is led by {led[1]} in epoch {led[0]}")


def _led(side: Side, topic: str, index: int) -> tuple[int, int]:
    """Leader epoch and leader."""
    metadata_followed(side)
    (found,) = side.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(topic)], False)).topics
    (led,) = ((each.leader_epoch, each.leader_id) for each in found.partitions if each.partition_index == index)
    return led


def in_sync(side: Side) -> None:
    """Return when each broker tells that all replicas of all partitions are in sync, and nothing is being moved."""
    nothing_moves(side)
    deadline = patiently("replicas are in sync")
    for broker in range(1, len(side.brokers) + 1):
        while True:
            found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False), broker=broker).topics
            parts = [part for topic in found for part in topic.partitions]
            if all(part.leader_id > 0 and len(part.isr_nodes) == len(part.replica_nodes) for part in parts):
                break
            deadline.check()
