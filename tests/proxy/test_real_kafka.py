"""A real Apache Kafka of three brokers behind the proxy: transactions, a group and an administration client."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.differential.cluster import KafkaCluster
from tests.proxy.conftest import ProxyTo
from tests.serving import Server
from tests.storage.kafka_tools import need_kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers."""
    need_kafka()
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("kafka"), brokers=3, settings={"group.initial.rebalance.delay.ms": "0"}
    )
    cluster.start()
    yield cluster
    cluster.stop()


def clients(proxy: Server) -> dict[str, str | int | float | bool]:
    """The settings of every client."""
    return {"bootstrap.servers": proxy.addresses[0]}


def test_transactions_and_a_group_pass(kafka: KafkaCluster, proxy_to: ProxyTo) -> None:
    """A commit is read, an abort is not, offsets are kept; each broker is reached at an address of the proxy's."""
    proxy = proxy_to(kafka.addresses[0])
    admin = AdminClient(clients(proxy))
    admin.create_topics([NewTopic("t", 3, 3)])["t"].result(60)
    producer = Producer({**clients(proxy), "transactional.id": "x"})
    producer.init_transactions(60)
    for commits in (True, False):
        producer.begin_transaction()
        for index in range(3):
            producer.produce("t", value=b"kept" if commits else b"gone", partition=index)
        producer.flush(60)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)

    consumer = Consumer(
        {**clients(proxy), "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe(["t"])
    values: list[bytes | None] = []
    while len(values) < 3:
        record = consumer.poll(60)
        assert record is not None
        assert record.error() is None
        values.append(record.value())
    consumer.commit(asynchronous=False)
    committed = consumer.committed([TopicPartition("t", index) for index in range(3)], 30)
    consumer.close()
    assert values == [b"kept"] * 3
    assert all(each.offset >= 1 for each in committed)

    addresses = {f"{each.host}:{each.port}" for each in admin.list_topics(timeout=60).brokers.values()}
    assert not addresses & set(kafka.addresses)
    assert len(addresses) == 3
    assert {1, 2, 3} <= {entry["broker"] for entry in proxy.control("GET", "/v1/journal")["entries"]}


def test_a_lost_reply_and_a_fenced_producer_are_explained(kafka: KafkaCluster, proxy_to: ProxyTo) -> None:
    """A commit whose reply is lost is repeated by the client; a second producer fences the first."""
    proxy = proxy_to(kafka.addresses[0])
    admin = AdminClient(clients(proxy))
    admin.create_topics([NewTopic("u", 1, 3)])["u"].result(60)
    fault = proxy.control(
        "POST", "/v1/faults", {"match": {"api": "EndTxn"}, "do": {"apply_then": {"disconnect": "reset"}}}
    )
    first = Producer({**clients(proxy), "transactional.id": "y", "client.id": "first"})
    first.init_transactions(60)
    first.begin_transaction()
    first.produce("u", value=b"v")
    first.commit_transaction(60)
    assert proxy.control("GET", f"/v1/faults/{fault['id']}")["hits"] == 1

    first.begin_transaction()
    second = Producer({**clients(proxy), "transactional.id": "y", "client.id": "second"})
    second.init_transactions(60)
    first.produce("u", value=b"w")
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    why = proxy.control("GET", "/v1/transactions/y/why")
    assert "`second`" in why["why"], why
