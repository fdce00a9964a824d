"""Clients in share groups (KIP-932): Java's KafkaShareConsumer, and librdkafka's; on ours and on a real Kafka."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.clients.clients import JAVA, compile_java
from tests.clients.drivers import HERE, command, missing
from tests.clients.passed import running
from tests.clients.targets import CACHE, JVM, Target

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
QUICK = {
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
}
"""Members are assigned their partitions at once."""


@pytest.fixture(scope="module")
def cluster(target_name: str) -> Iterator[Target]:
    """One broker."""
    with running(1, target_name, QUICK) as started:
        yield started


def test_java_acknowledges_implicitly_explicitly_and_renews(cluster: Target) -> None:
    """Every step of the Java share consumer's program succeeds: implicit, explicit, renewing."""
    if absent := missing(JAVA[0]):
        pytest.skip(f"needs {', '.join(absent)}")
    command([HERE / "setup.sh", "java"])
    class_path = compile_java(CACHE / "java" / "clients-4.3.1", "share-consumer", "groups")
    done = subprocess.run(
        ["java", *JVM, "-cp", class_path, "groups.ShareConsumer", cluster.bootstrap, f"s-{uuid.uuid4().hex[:8]}"],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    sys.stderr.write(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line for line in lines if not line["ok"]] == []
    assert len(lines) == 5


# ---------------------------------------------------------------- librdkafka


@pytest.fixture
def queue(cluster: Target) -> tuple[str, Producer]:
    """A topic and a producer to it; the group of the same name begins with its first record."""
    name = f"q-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, 1)])[name].result(30)
    group = ConfigResource(ResourceType.GROUP, name)
    group.add_incremental_config(
        ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    )
    for altered in admin.incremental_alter_configs([group]).values():
        altered.result(30)
    return name, Producer({"bootstrap.servers": cluster.bootstrap})


def member(cluster: Target, name: str, mode: str) -> ShareConsumer:
    """A member of the queue's group."""
    consumer = ShareConsumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": name, "share.acknowledgement.mode": mode}
    )
    consumer.subscribe([name])
    return consumer


def send(queue: tuple[str, Producer], value: str) -> None:
    """Write one record."""
    name, producer = queue
    producer.produce(name, value)
    assert producer.flush(30) == 0


def take(consumer: ShareConsumer) -> tuple[Message, bytes | None, int | None]:
    """The one record that comes, its value, and how often it was delivered."""
    while True:
        messages = list(consumer.poll(1))
        assert [each.error() for each in messages] == [None] * len(messages)
        if messages:
            (message,) = messages
            value = message.value()
            assert isinstance(value, bytes)
            return message, value, message.delivery_count()


def test_librdkafka_releases_rejects_and_accepts(cluster: Target, queue: tuple[str, Producer]) -> None:
    """What it releases is delivered again, and counted; what it rejects or accepts is not."""
    name, _ = queue
    send(queue, "first")
    with member(cluster, name, "explicit") as consumer:
        for kind, delivery, following in (
            (AcknowledgeType.RELEASE, (b"first", 1), ""),
            (AcknowledgeType.REJECT, (b"first", 2), "second"),
            (AcknowledgeType.ACCEPT, (b"second", 1), "third"),
        ):
            message, *taken = take(consumer)
            assert tuple(taken) == delivery
            consumer.acknowledge(message, kind)
            assert list(consumer.commit_sync(30.0).values()) == [None]
            if following:
                send(queue, following)
    with member(cluster, name, "explicit") as consumer:
        assert take(consumer)[1:] == (b"third", 1)


def test_librdkafka_accepts_what_was_read(cluster: Target, queue: tuple[str, Producer]) -> None:
    """Its implicit mode: with the next poll, or when it commits; a member that closes before has accepted nothing."""
    name, _ = queue
    send(queue, "one")
    with member(cluster, name, "implicit") as consumer:
        assert take(consumer)[1:] == (b"one", 1)
        send(queue, "two")
        assert take(consumer)[1:] == (b"two", 1)
        assert list(consumer.commit_sync(30.0).values()) == [None]
        send(queue, "three")
        assert take(consumer)[1:] == (b"three", 1)
    with member(cluster, name, "implicit") as consumer:
        assert take(consumer)[1:] == (b"three", 2)
