"""Topics whose ids have the same hash order on all clusters.

Each cluster generates the ids of its topics, and Kafka's assignor of share groups iterates over partitions in the order
of hash tables: with two members, the assignment depends on the id.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from comparison.histories.quiescence import wait_metadata
from comparison.histories.step_request import PATIENCE_MS, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.java import table_order, uuid_hash
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.types import uuid_text

CAPACITIES = (4, 8, 16)  # of Kafka's tables, for as many partitions as a history has
TRIES = 3000  # ours: an order depends on eight bits of a hash, so that one id in 256 has it
NEWEST = 7
"""Version of CreateTopics whose response has the id."""
_MASK = 0xFFFFFFFF


def hash_order(topic_id: UUID, partitions: int) -> list[list[int]]:
    """Return the orders of a topic's partitions, also with one more, in hash tables of several capacities."""
    hash_of = partial(_hash_of_partition, topic_id)
    return [
        table_order(list(range(count)), hash_of, capacity)
        for count in (partitions, partitions + 1)
        for capacity in CAPACITIES
    ]


def _hash_of_partition(topic_id: UUID, partition: int) -> int:
    """``TopicIdPartition.hashCode``."""
    return (31 * uuid_hash(topic_id) + partition) & _MASK


def hash_alike(targets: Sequence[Target], requests: Sequence[StepRequest]) -> None:
    """Recreate a topic on all clusters but the first until its id has the hash order of the first cluster's.

    The requests are the CreateTopics of each cluster, which have succeeded. After the timeout it returns: then the
    assignments of two members may differ.
    """
    topic = requests[0].request.topics[0]
    name, partitions = topic.name, max(topic.num_partitions, 1)
    wait_metadata(targets[0])
    wanted = _id(targets[0], name)
    if wanted is None:
        return
    for target, request in zip(targets[1:], requests[1:], strict=True):
        before = topic_id = _id(target, name)
        for _ in range(TRIES):
            if topic_id is None or hash_order(topic_id, partitions) == hash_order(wanted, partitions):
                break
            target.call(
                ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[DeleteTopicState(name)])
            )
            target.call(ApiKey.CREATE_TOPICS, NEWEST, request.request)
            topic_id = _id(target, name)
        if before is not None and topic_id is not None:
            _rename(target, before, topic_id)


def _id(target: Target, name: str) -> UUID | None:
    (topic,) = target.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name)], False)).topics
    return topic.topic_id if topic.partitions else None


def _rename(target: Target, before: UUID, after: UUID) -> None:
    """Replace the first id by the second one in the history's state."""
    for symbol, topic_id in target.topics.items():
        if topic_id == before:
            target.topics[symbol] = after
    named = target.names.symbols.get("topic", {})
    if uuid_text(before) in named:
        named[uuid_text(after)] = named.pop(uuid_text(before))
