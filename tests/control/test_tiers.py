"""Tiered storage over several brokers, by the clock and by the control plane: real clients read on."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import fetch
from tests.serving import Server, start

SETTINGS = {"remote.log.storage.system.enable": "true", "log.retention.check.interval.ms": "300000"}
RECORDS = 9
TIERED = {"remote.storage.enable": "true", "internal.segment.bytes": "1000", "local.retention.ms": "60000"}
WAIT_S = 60


@pytest.fixture
def cluster(broker_with: BrokerWith) -> Server:
    """Three brokers with tiered storage, whose clock only the test moves."""
    server = broker_with(brokers=3, settings=SETTINGS)
    server.freeze()
    return server


def filled(cluster: Server, replicas: int = 3) -> None:
    """A topic with two records to a segment."""
    admin = AdminClient({"bootstrap.servers": cluster.addresses[0]})
    for future in admin.create_topics([NewTopic("orders", 1, replicas, config=TIERED)]).values():
        future.result(WAIT_S)
    producer = Producer({"bootstrap.servers": cluster.addresses[0], "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce("orders", f"{number}".ljust(400), partition=0)
        assert producer.flush(WAIT_S) == 0


def altered(cluster: Server, resource_type: int, name: str, configs: dict[str, str]) -> None:
    """IncrementalAlterConfigs."""
    changes = [AlterableConfig(each, 0, value) for each, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(resource_type, name, changes)])
    (answer,) = cluster.wire().call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert answer.error_code is ErrorCode.NONE, answer.error_message


def read(address: str) -> list[int]:
    """All that a consumer gets from the start."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    numbers: list[int] = []
    while len(numbers) < RECORDS:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert not message.error(), message.error()
        numbers.append(int(message.value() or b"-1"))
    consumer.close()
    return numbers


def offsets(cluster: Server, *timestamps: int, broker: int = 1) -> list[int]:
    """ListOffsets of the leader."""
    listed = []
    for timestamp in timestamps:
        request = ListOffsetsRequest(-1, [ListOffsetsTopic("orders", [ListOffsetsPartition(0, timestamp)])])
        ((answer,),) = [each.partitions for each in cluster.wire(broker).call(ApiKey.LIST_OFFSETS, 11, request).topics]
        assert answer.error_code is ErrorCode.NONE
        listed.append(answer.offset)
    return listed


def leader(cluster: Server) -> int:
    """The broker that leads the topic's partition."""
    (partition,) = cluster.control("GET", "/v1/topics/orders")["partitions"]
    return int(partition["leader"])


def test_a_consumer_reads_what_is_in_the_tier(cluster: Server) -> None:
    """Copied after 30 s, removed locally after a minute; the earliest offset stays."""
    filled(cluster)
    first = leader(cluster)
    assert offsets(cluster, -4, -5, broker=first) == [0, -1]
    cluster.advance(30_000)
    assert offsets(cluster, -4, -5, broker=first) == [0, 7]
    cluster.advance(630_000)
    assert offsets(cluster, -2, -4, -5, broker=first) == [0, 9, 8]
    assert read(cluster.addresses[0]) == list(range(RECORDS))


def test_each_replica_has_the_tier(cluster: Server) -> None:
    """The next leader serves it, and knows up to where it was copied; a follower's fetch is refused there."""
    filled(cluster)
    first = leader(cluster)
    cluster.advance(630_000)
    follower = next(each for each in (1, 2, 3) if each != first)
    assert fetch(cluster.wire(first), "orders", 0, replica_id=follower).error_code is (
        ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
    )
    assert fetch(cluster.wire(first), "orders", 9, replica_id=follower).error_code is ErrorCode.NONE
    cluster.control("POST", f"/v1/brokers/{first}/stop")
    second = leader(cluster)
    assert second not in {-1, first}
    assert offsets(cluster, -2, -4, -5, broker=second) == [0, 9, 8]
    assert read(cluster.addresses[second - 1]) == list(range(RECORDS))
    cluster.control("POST", f"/v1/brokers/{first}/start")
    cluster.control("POST", f"/v1/brokers/{second}/stop")
    third = leader(cluster)
    assert offsets(cluster, -2, broker=third) == [0]
    assert read(cluster.addresses[third - 1]) == list(range(RECORDS))


def test_a_snapshot_has_the_tier(cluster: Server) -> None:
    """What is restored is read from both tiers."""
    filled(cluster)
    first = leader(cluster)
    cluster.advance(630_000)
    name = cluster.control("POST", "/v1/snapshots")["id"]
    cluster.control("POST", "/v1/retention/run")
    cluster.control("POST", f"/v1/snapshots/{name}/restore")
    assert offsets(cluster, -2, broker=leader(cluster)) == [0]
    assert read(cluster.addresses[first - 1]) == list(range(RECORDS))


def test_retention_run_copies_first(cluster: Server) -> None:
    """One command after the time has come: what it copies, it removes locally."""
    filled(cluster)
    first = leader(cluster)
    assert cluster.control("POST", "/v1/retention/run")["segments_deleted"] == 0
    assert offsets(cluster, -4, -5, broker=first) == [0, 7]


def test_a_start_without_tiered_storage_removes_nothing(tmp_path: Path) -> None:
    """The tier is left as it is, even if settings change meanwhile, and is read again with the setting.

    The control: a topic that gives up its tier, with tiered storage on, loses it. A foreign file is not read.
    """

    def served(settings: dict[str, str], **options: bool) -> Server:
        server = Server(start(data_dir=str(tmp_path / "data"), settings=settings, **options))
        server.freeze()
        return server

    server = served(SETTINGS)
    filled(server, replicas=1)
    server.advance(630_000)
    assert offsets(server, -2, -4) == [0, 9]
    server.stop()
    folder = tmp_path / "data" / "orders-0"
    tier = sorted(each.name for each in folder.glob("*.tiered"))

    server = served({})
    altered(server, 4, "", {"message.max.bytes": "2000000"})  # the default of all topics
    server.stop()
    assert sorted(each.name for each in folder.glob("*.tiered")) == tier

    (folder / "notes.log.tiered").write_text("mine", encoding="utf-8")
    server = served(SETTINGS, read_only=True)
    assert offsets(server, -2, -4) == [0, 9]
    server.stop()
    (folder / "notes.log.tiered").unlink()
    server = served(SETTINGS)
    assert offsets(server, -2, -4) == [0, 9]
    assert read(server.addresses[0]) == list(range(RECORDS))
    altered(server, 2, "orders", {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"})
    assert offsets(server, -2) == [9]
    server.stop()
    assert list(folder.glob("*.tiered")) == []
