"""Fetches of consumers in racks (KIP-392), to be asked of any cluster of three brokers in the racks a, b and c."""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.scenarios.core.asking import interest
from tests.scenarios.core.batches import batch
from tests.server import until

RACKS = ("a", "b", "c")
SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
REPLICAS = {"at-1": (1, 2, 3), "at-2": (2, 3), "at-3": (3,)}
RECORDS = 3
Answer = tuple[str, str, int, int, int, int, int, int, bool]
"""Topic, rack, asked broker, offset, error, high watermark, log start, preferred replica, and whether records came."""


class BrokerConnection(Protocol):
    """A connection to a broker."""

    def call(self, key: ApiKey, version: int, request: object) -> object:
        """The answer."""
        ...


def fill(first: BrokerConnection, leaders: Mapping[int, BrokerConnection]) -> None:
    """Create the topics, each led by its first replica, and write three records to each of them."""
    topics = [
        CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(0, replicas)]) for name, replicas in REPLICAS.items()
    ]
    first.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics))
    for name, replicas in REPLICAS.items():
        until(partial(_written, leaders[replicas[0]], name), f"records in {name}")


def wait_for_replicas(brokers: Mapping[int, BrokerConnection]) -> None:
    """Wait for the high watermark of each replica; a follower learns it one fetch after the records."""
    for name, replicas in REPLICAS.items():
        for broker in replicas:
            until(partial(_has_all, brokers[broker], broker, name), f"the high watermark of {name} on broker {broker}")


def _has_all(replica: BrokerConnection, broker: int, topic: str) -> bool:
    return fetched(replica, broker, topic, "", 0)[5] == RECORDS


def _written(leader: BrokerConnection, topic: str) -> bool:
    """Whether the leader took the three records; false where it does not lead the topic yet."""
    data = [TopicProduceData(topic, [PartitionProduceData(0, batch(b"a", b"b", b"c"))])]
    response = leader.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 10_000, data))
    assert isinstance(response, ProduceResponse)
    ((answer,),) = [each.partition_responses for each in response.responses]
    unready = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert answer.error_code in (ErrorCode.NONE, *unready)
    return answer.error_code is ErrorCode.NONE


def fetched(connection: BrokerConnection, broker: int, topic: str, rack: str, offset: int, version: int = 12) -> Answer:
    """What the broker answers to a consumer in a rack that asks for one offset."""
    request = FetchRequest(-1, 0, 1, 1 << 20, 0, [FetchTopic(topic, [interest(offset=offset)])], 0, -1, rack_id=rack)
    response = connection.call(ApiKey.FETCH, version, request)
    assert isinstance(response, FetchResponse)
    ((data,),) = [each.partitions for each in response.responses]
    return (
        topic, rack, broker, offset, data.error_code, data.high_watermark, data.log_start_offset,
        data.preferred_read_replica, bool(data.records),
    )  # fmt: skip


def answers(brokers: Mapping[int, BrokerConnection]) -> list[Answer]:
    """Each topic, at each broker, from each rack, at the offsets around what there is."""
    return [
        fetched(connection, broker, topic, rack, offset)
        for topic in REPLICAS
        for broker, connection in brokers.items()
        for rack in ("", *RACKS, "nowhere")
        for offset in (0, RECORDS - 1, RECORDS, RECORDS + 1)
    ]
