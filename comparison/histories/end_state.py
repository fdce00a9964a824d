"""State after a history: whole logs, producers, and the records of the coordinators' internal topics."""

from collections.abc import Mapping
from functools import partial
from itertools import groupby
from typing import Any

from comparison.difference import Difference
from comparison.exchange import Exchange
from comparison.histories.quiescence import leader, partitions_of
from comparison.histories.records import MOST_BYTES
from comparison.histories.step_request import PATIENCE_MS
from comparison.target import Target
from comparison.values import OFFSETS, TRANSACTIONS, coordinator_records, whole_batches
from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest
from protocol.messages.read_share_group_state import PartitionData as StatePartition
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadStateData

LATEST, EARLIEST = -1, -2
Ends = dict[tuple[str, str, int], int]
"""(address, internal topic, partition) -> log end offset when the history began."""


def topics_of(target: Target) -> dict[str, int]:
    """Return the history's topics, by symbol, with their number of partitions."""
    topics = target.call(ApiKey.METADATA, 12, MetadataRequest(None, False)).topics
    prefix = target.names.prefix
    return {topic.name.removeprefix(prefix): len(topic.partitions) for topic in topics if topic.name.startswith(prefix)}


def offset(target: Target, topic: str, partition: int, at: int) -> int:
    """Look up the start or end offset of a partition, by the topic's full name."""
    request = ListOffsetsRequest(-1, [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, at)])])
    response = target.call(ApiKey.LIST_OFFSETS, 7, request, leader(target, topic, partition))
    ((result,),) = [topic.partitions for topic in response.topics]
    log_offset: int = result.offset
    return log_offset


def _fetched(target: Target, topic: str, partition: int, position: int) -> PartitionData:
    fetch_topic = FetchTopic(topic, [FetchPartition(partition, position, MOST_BYTES)])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=MOST_BYTES, topics=[fetch_topic], session_epoch=-1)
    response = target.call(ApiKey.FETCH, 12, request, leader(target, topic, partition))
    ((partition_data,),) = [topic.partitions for topic in response.responses]
    data: PartitionData = partition_data
    return data


def ends_of_internal_topics(exchange: Exchange) -> Ends:
    """Return the current log end offsets of the coordinators' topics."""
    return {place: end for target in exchange.targets for place, end in ends_of_one(target).items()}


def ends_of_one(target: Target) -> Ends:
    """Return the current log end offsets of the coordinators' topics of one cluster."""
    return {
        (target.address, topic, partition): offset(target, topic, partition, LATEST)
        for topic in (OFFSETS, TRANSACTIONS)
        for partition in range(partitions_of(target, topic))
    }


def _log(target: Target, topic: str, partition: int) -> dict[str, Any]:
    name = target.called(topic)
    start = offset(target, name, partition, EARLIEST)
    answer = _fetched(target, name, partition, max(start, 0))
    return {"start": start, "end": answer.high_watermark, "stable": answer.last_stable_offset, "answer": answer}


def _producers(target: Target, topic: str, partition: int) -> Any:
    request = DescribeProducersRequest([TopicRequest(target.called(topic), [partition])])
    return target.call(ApiKey.DESCRIBE_PRODUCERS, 0, request, leader(target, target.called(topic), partition))


def coordinators_log(target: Target, since: Ends, topic: str, partition: int) -> list[dict[str, Any]]:
    """Return the records written since the history began, reduced to its own groups and ids."""
    answer = _fetched(target, topic, partition, since[target.address, topic, partition])
    data = answer.records
    joined = bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(map(bytes, data or ()))
    records = [record for batch in whole_batches(joined) for record in coordinator_records(topic, batch)]
    of_history = [_without_versions(record) for record in records if _of_history(target, record)]
    return [record for _, run in groupby(of_history, _order_counts) for record in sorted(run, key=_tombstone_order)]


def _of_history(target: Target, record: dict[str, Any]) -> bool:
    """Whether a record belongs to the history; markers, which have no name, by their producer ids."""
    if "is" in record:
        return target.names.prefix in str(record["is"])
    return record["producer_id"] in target.names.symbols.get("producer", {})


def _without_versions(record: dict[str, Any]) -> dict[str, Any]:
    """Remove the metadata offset at which a regular expression was resolved."""
    if (
        isinstance(record.get("is"), dict)
        and record["is"].get("kind") == "REGULAR_EXPRESSION"
        and record["is"]["value"]
    ):
        record["is"]["value"].pop("version")
    return record


def _order_counts(record: dict[str, Any]) -> object:
    """Group runs of tombstones: Kafka deletes offsets with their topic or group in the order of a hash map."""
    return "run" if record.get("kind") == "OffsetCommitTombstone" else id(record)


def _tombstone_order(record: dict[str, Any]) -> str:
    return str(record.get("is"))


def compare(exchange: Exchange, since: Ends) -> list[Difference]:
    """Return all differences in the state after a history."""
    topics = topics_of(exchange.targets[0])
    differences = exchange.agree("topics", "Topics", topics_of)
    for topic, count in sorted(topics.items()) if not differences else ():
        for partition in range(count):
            place = f"{topic}-{partition}"
            log = partial(_log, topic=topic, partition=partition)
            producers = partial(_producers, topic=topic, partition=partition)
            differences += exchange.agree(f"log {place}", "Log", log)
            differences += exchange.agree(f"producers {place}", "DescribeProducers", producers)
    for topic in (OFFSETS, TRANSACTIONS):
        for partition in sorted({key[2] for key in since if key[1] == topic}):
            written = partial(coordinators_log, since=since, topic=topic, partition=partition)
            differences += exchange.agree(f"{topic}-{partition}", topic, written)
    if exchange.targets[0].sharers:
        differences += exchange.agree("share state", "ReadShareGroupState", states_of_shares)
    return differences


def of_one(target: Target) -> dict[str, Any]:
    """Return the topics of a history on one cluster, and their logs."""
    topics = topics_of(target)
    logs = {
        f"log {topic}-{partition}": _log(target, topic, partition)
        for topic, count in sorted(topics.items())
        for partition in range(count)
    }
    return {"topics": topics, **logs}


def states_of_shares(target: Target) -> dict[str, Any]:
    """Return the share coordinator's state of each group, in all partitions of the history's topics."""
    return answers_of_shares(target, state_requests(target))


def state_requests(target: Target) -> dict[str, ReadShareGroupStateRequest]:
    """Return a request for the state of each share group, in all partitions of the history's topics."""
    topics = topics_of(target)
    read = [
        ReadStateData(target.topic_id(topic), [StatePartition(partition, 0) for partition in range(count)])
        for topic, count in sorted(topics.items())
        if topic in target.topics
    ]
    groups = sorted({group for group, _ in target.sharers})
    return {group: ReadShareGroupStateRequest(target.called(group), read) for group in groups if read}


def answers_of_shares(target: Target, requests: Mapping[str, ReadShareGroupStateRequest]) -> dict[str, Any]:
    """Return the responses to such requests."""
    return {group: target.call(ApiKey.READ_SHARE_GROUP_STATE, 0, each) for group, each in requests.items()}


def clean_up(exchange: Exchange) -> None:
    """Delete the history's topics, because thousands of them make brokers slow, and close the connections."""
    for target in exchange.targets:
        clean_up_one(target)


def clean_up_one(target: Target) -> None:
    """Delete the history's topics of one cluster, and close its connections."""
    names = [target.called(symbol) for symbol in topics_of(target)]
    if names:
        request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[DeleteTopicState(name) for name in names])
        target.call(ApiKey.DELETE_TOPICS, 6, request)
    target.close()
