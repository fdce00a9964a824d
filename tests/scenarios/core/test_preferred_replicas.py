"""A consumer is sent to a replica in its own rack (KIP-392, core E.7). The same is asked of a real Kafka elsewhere."""

import pytest
from confluent_kafka import Consumer, Producer

from protocol.errors import ErrorCode
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import produced
from tests.scenarios.core.batches import batch
from tests.scenarios.core.racks import RACKS, RECORDS, SETTINGS, fetched, fill
from tests.server import Server, until
from tests.wire import Wire


@pytest.fixture
def cluster(broker_with: BrokerWith) -> Server:
    """Three brokers in three racks."""
    return broker_with(brokers=3, rack=RACKS, settings=SETTINGS)


def wires(cluster: Server) -> dict[int, Wire]:
    """A connection to each broker."""
    return {broker: cluster.wire(broker) for broker in (1, 2, 3)}


def preferred(wire: Wire, rack: str, *, version: int = 12, topic: str = "at-1") -> tuple[int, bool]:
    """The replica that broker 1 prefers for a consumer there, and whether it gave records."""
    answer = fetched(wire, 1, topic, rack, 0, version)
    return answer[-2:]


def test_a_consumer_is_sent_to_its_own_rack(cluster: Server) -> None:
    """Without records; in the leader's rack, in no rack, and in one without a replica it gets them from the leader."""
    fill(wires(cluster)[1], wires(cluster))
    wire = cluster.wire(1)
    assert [preferred(wire, rack) for rack in RACKS] == [(-1, True), (2, False), (3, False)]
    assert [preferred(wire, rack) for rack in ("", "d")] == [(-1, True)] * 2
    assert fetched(cluster.wire(2), 2, "at-1", "b", 0)[-2:] == (-1, True)


def test_versions_that_know_no_racks_read_from_the_leader(cluster: Server) -> None:
    """The field of the rack came with the replica in v11."""
    fill(wires(cluster)[1], wires(cluster))
    assert [preferred(cluster.wire(1), "b", version=version) for version in (10, 11)] == [(-1, True), (2, False)]


def test_without_the_setting_there_is_no_choice(broker_with: BrokerWith) -> None:
    """Without replica.selector.class, Kafka's default, no preferred replica is named."""
    cluster = broker_with(brokers=3, rack=RACKS)
    fill(wires(cluster)[1], wires(cluster))
    assert preferred(cluster.wire(1), "b") == (-1, True)


def test_only_a_replica_in_sync_that_has_the_offset_is_chosen(cluster: Server) -> None:
    """One that is held back has not got it; one that is down is neither in sync nor there."""
    fill(wires(cluster)[1], wires(cluster))
    wire = cluster.wire(1)
    cluster.control("POST", "/v1/topics/at-1/partitions/0/isr", {"replicas": [1, 2, 3], "held": [2]})
    assert produced(wire, "at-1", batch(b"d"), acks=1) == RECORDS
    answers = [fetched(wire, 1, "at-1", "b", offset)[-2] for offset in (RECORDS, RECORDS + 1)]
    assert answers == [2, -1]
    cluster.control("POST", "/v1/brokers/3/stop")
    assert preferred(wire, "c") == (-1, True)


def test_a_broker_that_restarts_keeps_its_rack(cluster: Server) -> None:
    """A broker keeps its rack over a restart and a reset."""
    fill(wires(cluster)[1], wires(cluster))
    cluster.control("POST", "/v1/brokers/2/kill")
    cluster.control("POST", "/v1/brokers/2/start")
    assert preferred(cluster.wire(1), "b") == (2, False)
    cluster.control("POST", "/v1/reset")
    fill(wires(cluster)[1], wires(cluster))
    assert preferred(cluster.wire(1), "c") == (3, False)


@pytest.mark.sockets("librdkafka connects to it")
def test_librdkafka_reads_from_its_rack(cluster: Server) -> None:
    """`client.rack`: all its records come from broker 2, which does not lead."""
    fill(wires(cluster)[1], wires(cluster))
    producer = Producer({"bootstrap.servers": ",".join(cluster.process.ready.bootstrap_servers)})
    producer.produce("at-1", b"one more")
    assert producer.flush(60) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(cluster.process.ready.bootstrap_servers),
            "group.id": "g",
            "client.rack": "b",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["at-1"])
    values: list[bytes | None] = []

    def all_there() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) == 4

    until(all_there, "four records")
    consumer.close()
    entries = cluster.control("GET", "/v1/journal?api=Fetch")["entries"]
    served = {
        each["broker"]
        for each in entries
        for topic in (each["response"] or {}).get("responses", ())
        for partition in topic["partitions"]
        if partition["records"]["count"]
    }
    assert served == {2}
    assert values[-1] == b"one more"


def test_an_offset_that_only_the_leader_has(cluster: Server) -> None:
    """At the follower it is out of range: clients ask the leader again (KIP-392)."""
    fill(wires(cluster)[1], wires(cluster))
    assert fetched(cluster.wire(2), 2, "at-1", "b", 4)[4] is ErrorCode.OFFSET_OUT_OF_RANGE
