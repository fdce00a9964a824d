"""Until a partition's replicas know alike what there is: Kafka's fetch it, ours have it in the step of the append."""

from typing import Any

from comparison.histories.settle import patiently
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest

LATEST, EARLIEST = -1, -2
CONSUMER, ANY_REPLICA = -1, -2
"""Who asks for offsets: a consumer hears of the high watermark, a debugging replica of the log's end."""


def replicated(side: Side) -> None:
    """Return when all records of the history's topics are under their high watermarks."""
    deadline = patiently("what was acknowledged early is replicated")
    for topic, part in _parts(side):
        while _offset(side, topic, part, LATEST, CONSUMER) != _offset(side, topic, part, LATEST, ANY_REPLICA):
            deadline.check(topic)


def caught_up(side: Side, broker: int) -> None:
    """Return when a broker that follows tells of its replicas what their leaders tell."""
    replicated(side)
    deadline = patiently(f"broker {broker} has followed")
    for topic, part in _parts(side):
        if broker in part.replica_nodes and broker != part.leader_id:
            while _followed(side, topic, part, broker) != _leads(side, topic, part):
                deadline.check(topic)


def _parts(side: Side) -> list[tuple[str, Any]]:
    found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    mine = [topic for topic in found if topic.name.startswith(side.names.prefix)]
    return [(topic.name, part) for topic in mine for part in topic.partitions if part.leader_id > 0]


def _offset(side: Side, topic: str, part: Any, at: int, replica_id: int) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(part.partition_index, at)])
    answer = side.call(ApiKey.LIST_OFFSETS, 8, ListOffsetsRequest(replica_id, [asked], 0), part.leader_id)
    return int(answer.topics[0].partitions[0].offset)


def _leads(side: Side, topic: str, part: Any) -> tuple[int, int]:
    return _offset(side, topic, part, EARLIEST, CONSUMER), _offset(side, topic, part, LATEST, CONSUMER)


def _followed(side: Side, topic: str, part: Any, broker: int) -> tuple[int, int]:
    at = _offset(side, topic, part, LATEST, CONSUMER)
    asked = FetchTopic(topic, [FetchPartition(part.partition_index, at, 1)])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[asked])
    (found,) = side.call(ApiKey.FETCH, 12, request, broker).responses[0].partitions
    return found.log_start_offset, found.high_watermark
