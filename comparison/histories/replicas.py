"""Waiting for replication: Kafka's replicas fetch records, Understudy's have them as soon as they are appended."""

from typing import Any

from comparison.histories.quiescence import deadline_for
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest

LATEST, EARLIEST = -1, -2
CONSUMER, ANY_REPLICA = -1, -2
"""Replica ids in ListOffsets: a consumer gets the high watermark, a debugging replica the log end offset."""


def wait_replicated(target: Target, *, internal: bool = False) -> None:
    """Wait until all records of the history's topics, or also ``internal`` ones, are below their high watermarks."""
    deadline = deadline_for("records are replicated")
    for topic, part in _parts(target, ("__",) if internal else ()):
        while _offset(target, topic, part, LATEST, CONSUMER) != _offset(target, topic, part, LATEST, ANY_REPLICA):
            deadline.check(topic)


def wait_caught_up(target: Target, broker: int) -> None:
    """Wait until a follower reports the same offsets for its replicas as their leaders."""
    wait_replicated(target)
    deadline = deadline_for(f"broker {broker} has followed")
    for topic, part in _parts(target):
        if broker in part.replica_nodes and broker != part.leader_id:
            while _followed(target, topic, part, broker) != _leads(target, topic, part):
                deadline.check(topic)


def _parts(target: Target, prefixes: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    topics = target.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    topics_of_history = [topic for topic in topics if topic.name.startswith((target.names.prefix, *prefixes))]
    return [(topic.name, part) for topic in topics_of_history for part in topic.partitions if part.leader_id > 0]


def _offset(target: Target, topic: str, part: Any, at: int, replica_id: int) -> int:
    requested = ListOffsetsTopic(topic, [ListOffsetsPartition(part.partition_index, at)])
    answer = target.call(ApiKey.LIST_OFFSETS, 8, ListOffsetsRequest(replica_id, [requested], 0), part.leader_id)
    return int(answer.topics[0].partitions[0].offset)


def _leads(target: Target, topic: str, part: Any) -> tuple[int, int]:
    return _offset(target, topic, part, EARLIEST, CONSUMER), _offset(target, topic, part, LATEST, CONSUMER)


def _followed(target: Target, topic: str, part: Any, broker: int) -> tuple[int, int]:
    at = _offset(target, topic, part, LATEST, CONSUMER)
    requested = FetchTopic(topic, [FetchPartition(part.partition_index, at, 1)])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[requested])
    (data,) = target.call(ApiKey.FETCH, 12, request, broker).responses[0].partitions
    return data.log_start_offset, data.high_watermark
