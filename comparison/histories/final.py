"""What a history leaves behind: whole logs, producers, and what the coordinators wrote into their own topics."""

from functools import partial
from itertools import groupby
from typing import Any

from comparison.difference import Difference
from comparison.exchange import Exchange
from comparison.histories.settle import leader, partitions_of
from comparison.plain import OFFSETS, TRANSACTIONS, coordinator_records, whole_batches
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest

LATEST, EARLIEST = -1, -2
Ends = dict[tuple[str, str, int], int]
"""(address, internal topic, partition) -> its end when the history began."""


def topics_of(side: Side) -> dict[str, int]:
    """The history's topics, by symbol, with their number of partitions."""
    found = side.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    prefix = side.names.prefix
    return {each.name.removeprefix(prefix): len(each.partitions) for each in found if each.name.startswith(prefix)}


def offset(side: Side, topic: str, partition: int, at: int) -> int:
    """An end of a partition's log, by the topic's full name."""
    request = ListOffsetsRequest(-1, [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, at)])])
    told = side.call(ApiKey.LIST_OFFSETS, 7, request, leader(side, topic, partition))
    ((answer,),) = [each.partitions for each in told.topics]
    found: int = answer.offset
    return found


def _fetched(side: Side, topic: str, partition: int, position: int) -> PartitionData:
    asked = FetchTopic(topic, [FetchPartition(partition, position, 1 << 26)])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 26, topics=[asked], session_epoch=-1)
    told = side.call(ApiKey.FETCH, 12, request, leader(side, topic, partition))
    ((answer,),) = [each.partitions for each in told.responses]
    found: PartitionData = answer
    return found


def ends_of_internal_topics(exchange: Exchange) -> Ends:
    """Where the coordinators' logs end now."""
    return {
        (side.address, topic, partition): offset(side, topic, partition, LATEST)
        for side in exchange.sides
        for topic in (OFFSETS, TRANSACTIONS)
        for partition in range(partitions_of(side, topic))
    }


def _log(side: Side, topic: str, partition: int) -> dict[str, Any]:
    name = side.called(topic)
    start = offset(side, name, partition, EARLIEST)
    answer = _fetched(side, name, partition, max(start, 0))
    return {"start": start, "end": answer.high_watermark, "stable": answer.last_stable_offset, "answer": answer}


def _producers(side: Side, topic: str, partition: int) -> Any:
    request = DescribeProducersRequest([TopicRequest(side.called(topic), [partition])])
    return side.call(ApiKey.DESCRIBE_PRODUCERS, 0, request, leader(side, side.called(topic), partition))


def _coordinators_log(side: Side, since: Ends, topic: str, partition: int) -> list[dict[str, Any]]:
    """What was written since the history began, of its own groups and ids alone."""
    answer = _fetched(side, topic, partition, since[side.address, topic, partition])
    data = answer.records
    joined = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(map(bytes, data or ()))
    found = [record for batch in whole_batches(joined) for record in coordinator_records(topic, batch)]
    own = [record for record in found if _of_history(side, record)]
    return [record for _, run in groupby(own, _order_counts) for record in sorted(run, key=_tombstone_order)]


def _of_history(side: Side, record: dict[str, Any]) -> bool:
    """Markers bear no name: those of its own producers count, not those that clear up after an earlier history."""
    if "is" in record:
        return side.names.prefix in str(record["is"])
    return record["producer_id"] in side.names.given.get("producer", {})


def _order_counts(record: dict[str, Any]) -> object:
    """Offsets that go with their topic or group go in the order of a hash map: a run of tombstones is one thing."""
    return "run" if record.get("kind") == "OffsetCommitTombstone" else id(record)


def _tombstone_order(record: dict[str, Any]) -> str:
    return str(record.get("is"))


def look(exchange: Exchange, since: Ends) -> list[Difference]:
    """All that differs in what a history left behind."""
    topics = topics_of(exchange.sides[0])
    found = exchange.agree("topics", "Topics", topics_of)
    for topic, count in sorted(topics.items()) if not found else ():
        for partition in range(count):
            place = f"{topic}-{partition}"
            log = partial(_log, topic=topic, partition=partition)
            producers = partial(_producers, topic=topic, partition=partition)
            found += exchange.agree(f"log {place}", "Log", log)
            found += exchange.agree(f"producers {place}", "DescribeProducers", producers)
    for topic in (OFFSETS, TRANSACTIONS):
        for partition in sorted({key[2] for key in since if key[1] == topic}):
            written = partial(_coordinators_log, since=since, topic=topic, partition=partition)
            found += exchange.agree(f"{topic}-{partition}", topic, written)
    return found


def clean_up(exchange: Exchange) -> None:
    """Delete the history's topics, since brokers that hold thousands of them get slow, and hang up."""
    for side in exchange.sides:
        names = [side.called(symbol) for symbol in topics_of(side)]
        if names:
            request = DeleteTopicsRequest(timeout_ms=15_000, topics=[DeleteTopicState(name) for name in names])
            side.call(ApiKey.DELETE_TOPICS, 6, request)
        side.close()
