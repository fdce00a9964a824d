"""librdkafka through the proxy: what was sent is read, the journal has it, and a fault is met."""

from confluent_kafka import Consumer, Producer

from tests.conftest import BrokerWith
from tests.proxy.conftest import ProxyTo


def consumed(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """The values of so many records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        record = consumer.poll(60)
        assert record is not None, f"{len(values)} of {count} records came"
        assert record.error() is None
        values.append(record.value() or b"")
    consumer.close()
    return values


def test_records_pass_and_a_fault_is_met(broker_with: BrokerWith, proxy_to: ProxyTo) -> None:
    """Every request to each of three brokers goes through the proxy, and one Produce meets its fault."""
    server = broker_with(brokers=3, topics={"t": 6}, settings={"group.initial.rebalance.delay.ms": 0})
    proxy = proxy_to(server.addresses[0])
    fault = proxy.control(
        "POST", "/v1/faults", {"match": {"api": "Produce"}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}}
    )
    producer = Producer({"bootstrap.servers": proxy.addresses[0], "linger.ms": 0, "client.id": "sender"})
    for number in range(200):
        producer.produce("t", value=b"%d" % number, partition=number % 6)
    assert producer.flush(60) == 0
    values = consumed(proxy.addresses[0], "t", 200)
    assert sorted(values, key=int) == [b"%d" % number for number in range(200)]

    assert proxy.control("GET", f"/v1/faults/{fault['id']}")["hits"] == 1
    seen = proxy.control("GET", "/v1/journal")["entries"]
    assert {1, 2, 3} <= {entry["broker"] for entry in seen}
    assert {"Produce", "Fetch", "JoinGroup", "OffsetCommit"} <= {entry["api"] for entry in seen}
    assert [entry["error"] for entry in seen if entry["fault"] == fault["id"]] == ["NOT_LEADER_OR_FOLLOWER"]

    upstream = server.control("GET", "/v1/journal?api=Produce")["entries"]
    met = [entry for entry in seen if entry["api"] == "Produce" and entry["fault"] is None]
    assert len(upstream) == len(met), "a request went past the proxy, or the refused one did not stop there"
