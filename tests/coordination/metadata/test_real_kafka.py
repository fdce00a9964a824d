"""A data directory changes hands between us and an Apache Kafka 4.3, both ways; its own tool reads our metadata."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.targets import oracle_release
from tests.serving import start
from tests.storage.kafka_tools import RealBroker, dump_log, java, need_kafka
from tests.swap.looking import patiently
from understudy.launcher import ServerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealBroker]:
    """A real broker whose data directory has been formatted, and not started yet."""
    need_kafka()
    broker = RealBroker(tmp_path)
    yield broker
    broker.stop(clean=False)


def ours(data: Path) -> ServerProcess:
    """Understudy on that directory."""
    return start(data_dir=data, settings=SETTINGS)


def committed(bootstrap: str, value: bytes) -> None:
    """One record in a transaction of ``tx``, consumed up to by the group ``g``."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "tx"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", value, partition=0)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    end = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=60)[1] + 1
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition("t", 0, end)], metadata, 30)
    producer.commit_transaction(60)
    consumer.close()


def check_handed_over(bootstrap: str, values: list[bytes]) -> None:
    """Topic, settings, records and the group's offset are what the other one left."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=60).topics
    assert [partition.leader for partition in topics["t"].partitions.values()] == [1, 1]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_committed"})
    (stored,) = patiently(lambda: consumer.committed([TopicPartition("t", 0)], timeout=60))
    assert stored.offset > 0
    consumer.assign([TopicPartition("t", 0, 0)])
    seen = [message.value() for message in consumer.consume(len(values), timeout=60) if message.error() is None]
    consumer.close()
    assert seen == values


def test_a_directory_goes_from_us_to_kafka_and_back(real: RealBroker) -> None:
    """Made by us, with nothing formatted before; Kafka starts on it without a complaint about the quorum."""
    shutil.rmtree(real.data)
    process = start(data_dir=real.data, settings=SETTINGS, topics=["t:2:retention.ms=-1"], as_version=oracle_release())
    (bootstrap,) = process.ready.bootstrap_servers
    committed(bootstrap, b"ours")
    process.stop()
    log = next((real.data / "__cluster_metadata-0").glob("*.log"))
    printed = dump_log("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(log))
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"t"' in printed
    assert "Exception" not in printed
    real.start()
    check_handed_over(real.bootstrap, [b"ours"])
    committed(real.bootstrap, b"theirs")
    real.stop()
    assert "quorum-state" not in real.complaints()
    process = ours(real.data)
    check_handed_over(process.ready.bootstrap_servers[0], [b"ours", b"theirs"])
    process.stop()


def test_a_directory_goes_from_kafka_to_us_and_back(real: RealBroker) -> None:
    """What a real controller wrote is read, all kinds of records of it."""
    real.start()
    admin = AdminClient({"bootstrap.servers": real.bootstrap})
    for future in admin.create_topics([NewTopic("t", 2, 1, config={"retention.ms": "-1"})]).values():
        future.result(60)
    committed(real.bootstrap, b"theirs")
    real.stop()
    process = ours(real.data)
    (bootstrap,) = process.ready.bootstrap_servers
    check_handed_over(bootstrap, [b"theirs"])
    committed(bootstrap, b"ours")
    process.stop()
    real.start()
    check_handed_over(real.bootstrap, [b"theirs", b"ours"])


def test_a_formatted_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    """Features and cluster id are those that kafka-storage was given; nothing else is there yet."""
    need_kafka()
    data, properties = tmp_path / "data", tmp_path / "server.properties"
    voters = "controller.quorum.voters=1@127.0.0.1:9\ncontroller.listener.names=C\nlisteners=P://:8,C://:9\n"
    protocols = "listener.security.protocol.map=P:PLAINTEXT,C:PLAINTEXT\ninter.broker.listener.name=P\n"
    properties.write_text(f"process.roles=broker,controller\nnode.id=1\nlog.dirs={data}\n{voters}{protocols}")
    cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
    feature = ("--feature", "transaction.version=1")
    java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties), *feature)
    process = ours(data)
    assert process.ready.cluster_id == cluster_id
    log = next((data / "__cluster_metadata-0").glob("*.log"))
    process.stop()
    printed = dump_log("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(log))
    assert '{"name":"transaction.version","featureLevel":1}' in printed
