"""A run in front of a cluster that fails is recorded, and played back without that cluster: clients see the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.apis import ApiKey
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.paths import errors
from tests.conftest import BrokerWith
from tests.differential.cluster import KafkaCluster
from tests.proxy.conftest import ProxyTo
from tests.scenarios.core.batches import batch
from tests.serving import Server, start
from tests.storage.kafka_tools import need_kafka
from tests.wire import Closed
from understudy.cli import main

QUICK = {"group.initial.rebalance.delay.ms": 0}
Fault = dict[str, Any]


@contextmanager
def replayed(journal: Path, *options: str, **serve: Any) -> Iterator[Server]:
    """A server that plays a journal back."""
    scenario = journal.parent / "incident.json"
    assert main(["scenario", "from-journal", str(journal), "--output", str(scenario), *options]) == 0
    server = Server(start(scenario=str(scenario), settings=QUICK, **serve))
    try:
        yield server
    finally:
        server.finish_test()
        server.process.stop()


def same_twice(
    upstream: Server, proxy: Server, journal: Path, play: Callable[[Server], Any], *faults: Fault
) -> tuple[Any, Any]:
    """What a client sees of a cluster with faults through the proxy, and what it sees of the played-back run."""
    for fault in faults:
        upstream.control("POST", "/v1/faults", fault)
    first = play(proxy)
    proxy.finish_test()
    proxy.control("POST", "/v1/journal/rotate")
    with replayed(journal) as server:
        return first, play(server)


@pytest.fixture
def upstream(broker_with: BrokerWith) -> Server:
    """The cluster of the incident: its partition 0 begins at 5000 and has ten records."""
    server = broker_with(topics={"t": 2}, settings=QUICK)
    server.make_coordinators()
    server.control("POST", "/v1/topics/t/partitions/0/start", {"offset": 5000})
    records = [{"value": f"{number}", "partition": 0} for number in range(10)]
    server.control("POST", "/v1/topics/t/records", {"records": records})
    return server


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A folder for the journal."""
    return tmp_path / "journal"


@pytest.fixture
def proxy(upstream: Server, journal: Path, proxy_to: ProxyTo) -> Server:
    """The proxy in front of it, with a journal."""
    return proxy_to(upstream.addresses[0], journal=str(journal))


# --- librdkafka ------------------------------------------------------------------------------------------------------


def sent(server: Server) -> list[tuple[Any, ...]]:
    """Value, error and offset of each of six records that a producer without retries sends one by one."""
    sends: list[tuple[Any, ...]] = []
    producer = Producer({"bootstrap.servers": server.addresses[0], "client.id": "sender", "retries": 0})
    for number in range(6):
        producer.produce(
            "t", value=b"v%d" % number, partition=0,
            on_delivery=lambda error, record: sends.append((record.value(), error and error.name(), record.offset())),
        )  # fmt: skip
        assert producer.flush(60) == 0
    return sends


def test_a_producer_meets_the_same_error_at_the_same_record(upstream: Server, proxy: Server, journal: Path) -> None:
    """The fourth record is refused, and the fifth has its offset, which follows from what was there before."""
    fault = {"match": {"api": "Produce"}, "skip": 3, "do": {"error": "NOT_ENOUGH_REPLICAS"}}
    first, second = same_twice(upstream, proxy, journal, sent, fault)
    assert first == [(b"v0", None, 5010), (b"v1", None, 5011), (b"v2", None, 5012),
                     (b"v3", "NOT_ENOUGH_REPLICAS", None), (b"v4", None, 5013), (b"v5", None, 5014)]  # fmt: skip
    assert second == first


def consumed(server: Server) -> tuple[list[int], list[str]]:
    """The offsets that a consumer reads, and the errors of its commits."""
    settings = {"bootstrap.servers": server.addresses[0], "group.id": "g", "client.id": "reader"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["t"])
    offsets: list[int] = []
    errors: list[str] = []
    while len(offsets) < 10:
        record = consumer.poll(60)
        assert record is not None
        assert record.error() is None
        offsets.append(record.offset() or 0)
    for offset in offsets[1:4]:
        try:
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
            errors.append("none")
        except KafkaException as error:
            errors.append(error.args[0].name())
    consumer.close()
    return offsets, errors


def test_a_consumer_reads_the_same_offsets_and_meets_the_same_error(
    upstream: Server, proxy: Server, journal: Path
) -> None:
    """In a replay the reads are the same, and the second commit is refused again."""
    code = "TOPIC_AUTHORIZATION_FAILED"
    fault = {"match": {"api": "OffsetCommit", "group": "g"}, "skip": 1, "do": {"error": code}}
    first, second = same_twice(upstream, proxy, journal, consumed, fault)
    assert first[0] == list(range(5000, 5010))
    assert first[1] == ["none", code, "none"]
    assert second == first


# --- any requests, any faults ----------------------------------------------------------------------------------------


def produce(*partitions: int) -> tuple[ApiKey, int, Any]:
    """Two records to each."""
    data = [PartitionProduceData(partition, batch(b"v", b"w")) for partition in partitions]
    return ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, [TopicProduceData("t", data)])


def commit(*partitions: int) -> tuple[ApiKey, int, Any]:
    """An offset of each, without a member."""
    topics = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(each, 1) for each in partitions])]
    return ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest("g", topics=topics)


def fetch(offset: int) -> tuple[ApiKey, int, Any]:
    """Records of partition 0."""
    return ApiKey.FETCH, 11, FetchRequest(-1, 0, 0, topics=[FetchTopic("t", [FetchPartition(0, offset)])])


REQUESTS: list[tuple[ApiKey, int, Any]] = [
    produce(0),
    produce(1),
    produce(0, 1),
    commit(0),
    commit(0, 1),
    fetch(5000),
    (ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic("t")])),
    (ApiKey.METADATA, 9, MetadataRequest(None)),
    (ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])),
    (ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])),
    (ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("x", 60_000)),
    (ApiKey.END_TXN, 3, EndTxnRequest("x", 4711, 0, committed=True)),
    (ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "m")),
]
FAULTS: list[Fault] = [
    {"match": {"api": "Produce"}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}},
    {"match": {"api": "Produce", "topic": "t", "partition": 1}, "do": {"error": "KAFKA_STORAGE_ERROR"}},
    {"match": {"api": "Produce", "topic": "t", "partition": 0}, "do": {"apply_then": {"error": "REQUEST_TIMED_OUT"}}},
    {"match": {"api": "Produce"}, "do": {"disconnect": "close"}},
    {"match": {"api": "Produce"}, "do": {"apply_then": {"disconnect": "close"}}},
    {"match": {"api": "OffsetCommit"}, "do": {"error": "COORDINATOR_LOAD_IN_PROGRESS"}},
    {"match": {"api": "OffsetCommit", "topic": "t", "partition": 0}, "do": {"error": "OFFSET_METADATA_TOO_LARGE"}},
    {"match": {"api": "OffsetCommit"}, "do": {"disconnect": "reset"}},
    {"match": {"api": "Metadata", "topic": "t"}, "do": {"error": "LEADER_NOT_AVAILABLE"}},
    {"match": {"api": "FindCoordinator", "group": "g"}, "do": {"error": "COORDINATOR_NOT_AVAILABLE"}},
    {"match": {"api": "FindCoordinator"}, "do": {"error": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"}},
    {"match": {"api": "InitProducerId"}, "do": {"error": "CONCURRENT_TRANSACTIONS"}},
    {"match": {"api": "EndTxn"}, "do": {"error": "PRODUCER_FENCED"}},
    {"match": {"api": "EndTxn"}, "do": {"disconnect": "close"}},
    {"match": {"api": "Heartbeat"}, "do": {"error": "REBALANCE_IN_PROGRESS"}},
    {"match": {"api": "Heartbeat"}, "do": {"error": "COORDINATOR_NOT_AVAILABLE"}},
    {"match": {"api": "Fetch"}, "do": {"error": "UNKNOWN_LEADER_EPOCH"}},
]


def outcomes(server: Server, requests: list[tuple[ApiKey, int, Any]]) -> list[str]:
    """The errors that requests are answered with, one after the other, and the offsets of what is written."""
    results = []
    wire = server.wire(client_id="app")
    for key, version, request in requests:
        try:
            response = wire.call(key, version, request)
        except Closed:
            results.append(f"{key.title}: closed")
            wire = server.wire(client_id="app")
            continue
        codes = [code.name for code in errors(response)]
        bases = (
            [p.base_offset for t in response.responses for p in t.partition_responses] if key is ApiKey.PRODUCE else []
        )
        results.append(f"{key.title}: {codes} {bases}")
    return results


@pytest.mark.parametrize("seed", range(3))
def test_any_requests_meet_the_same_errors(upstream: Server, proxy: Server, journal: Path, seed: int) -> None:
    """Refused, cut and applied requests of all kinds, for one partition or for all, between others that succeed."""
    chance = Random(seed)
    requests = [chance.choice(REQUESTS) for _ in range(60)]
    faults = [{**chance.choice(FAULTS), "skip": chance.randrange(6), "times": chance.randint(1, 3)} for _ in range(8)]
    first, second = same_twice(upstream, proxy, journal, lambda server: outcomes(server, requests), *faults)
    met = upstream.control("GET", "/v1/faults")["faults"]
    assert sum(fault["hits"] for fault in met) > 4
    assert second == first


# --- a real Kafka ----------------------------------------------------------------------------------------------------


@pytest.mark.interop
@pytest.mark.timeout(240)
def test_an_incident_of_a_real_kafka_happens_again(tmp_path: Path, journal: Path, proxy_to: ProxyTo) -> None:
    """Kafka refuses a batch that is too large for its topic, then takes the next one, which gets its offset."""
    need_kafka()
    kafka = KafkaCluster(tmp_path / "kafka", brokers=1, settings={"group.initial.rebalance.delay.ms": "0"})
    kafka.start()
    try:
        admin = AdminClient({"bootstrap.servers": kafka.addresses[0]})
        admin.create_topics([NewTopic("t", 1, 1, config={"max.message.bytes": "1000"})])["t"].result(60)
        before = Producer({"bootstrap.servers": kafka.addresses[0]})
        for _ in range(5):
            before.produce("t", value=b"before")
        assert before.flush(60) == 0
        proxy = proxy_to(kafka.addresses[0], journal=str(journal))
        first = oversized(proxy)
        proxy.control("POST", "/v1/journal/rotate")
    finally:
        kafka.stop()
    assert first == [(None, 5), ("MSG_SIZE_TOO_LARGE", None), (None, 6)]
    with replayed(journal) as server:
        assert oversized(server) == first


def oversized(server: Server) -> list[tuple[str | None, int | None]]:
    """Error and offset of three records, of which the second is large."""
    deliveries: list[tuple[Any, ...]] = []
    producer = Producer({"bootstrap.servers": server.addresses[0], "client.id": "sender", "retries": 0})
    for size in (10, 5000, 10):
        producer.produce("t", value=b"x" * size, on_delivery=lambda error, record: deliveries.append(
            (error and error.name(), record.offset())))  # fmt: skip
        assert producer.flush(60) == 0
    return deliveries
