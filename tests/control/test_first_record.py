"""What a test with the fixtures' settings asks until it has read its first record: nothing twice, nothing refused.

Each refusal here is a pause of a client: 1 s in librdkafka for COORDINATOR_NOT_AVAILABLE, 0.1 s for an unknown topic.
"""

import pytest
from confluent_kafka import Consumer, Producer

import understudy

JOINING = "MEMBER_ID_REQUIRED"
"""Not a pause: Kafka gives each new member of a classic group its id so (KIP-394)."""


def read_back(kafka: understudy.Cluster) -> None:
    """Produce one record to a topic that is not there yet, and read it with a new group."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", b"one order")
    assert producer.flush(60) == 0
    group = {"group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **group})
    consumer.subscribe(["orders"])
    record = consumer.poll(60)
    consumer.close()
    assert record is not None
    assert (record.error(), record.value()) == (None, b"one order")


@pytest.mark.parametrize("brokers", [1, 3])
def test_librdkafka_is_refused_nothing(brokers: int) -> None:
    """In a process that has just started, and after a reset."""
    once = ("Produce", "SyncGroup", "OffsetFetch", "ListOffsets", "LeaveGroup")
    with understudy.start(brokers=brokers) as kafka:
        for _ in range(2):
            read_back(kafka)
            entries = kafka.journal.find()
            assert {entry.error for entry in entries} == {None, JOINING}
            apis = [entry.api for entry in entries]
            assert {api: apis.count(api) for api in (*once, "JoinGroup")} == {**dict.fromkeys(once, 1), "JoinGroup": 2}
            kafka.reset(disconnect=True)


def test_a_lazy_cluster_refuses_it_twice() -> None:
    """Positive control: with Kafka's answers both refusals are in the journal."""
    with understudy.start(lazy_coordinators=True) as kafka:
        read_back(kafka)
        refused = {entry.error for entry in kafka.journal.find()}
    assert refused == {None, JOINING, "UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_NOT_AVAILABLE"}
