"""A queue, which is a share group (KIP-932), with librdkafka. Needs understudy-kafka[pytest] and confluent-kafka."""

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

import understudy


def worker(kafka: understudy.Cluster) -> ShareConsumer:
    """A member that acknowledges each task by itself."""
    consumer = ShareConsumer({
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": "workers",
        "share.acknowledgement.mode": "explicit",
    })  # fmt: skip
    consumer.subscribe(["tasks"])
    return consumer


def take(consumer: ShareConsumer) -> Message:
    """The next task that the worker is given."""
    while True:
        for message in consumer.poll(1):
            assert message.error() is None
            return message


@pytest.fixture
def tasks(kafka: understudy.Cluster) -> Producer:
    """Writes tasks, which the group reads from the first one on; its default is to begin with the next one."""
    group = ConfigResource(ResourceType.GROUP, "workers")
    group.add_incremental_config(
        ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.incremental_alter_configs([group]).values():
        done.result(10)
    return Producer({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.mark.kafka(topics={"tasks": 1})
def test_a_task_that_is_released_is_delivered_again(kafka: understudy.Cluster, tasks: Producer) -> None:
    tasks.produce("tasks", b"one task")
    tasks.flush(10)
    with worker(kafka) as one:
        one.acknowledge(take(one), AcknowledgeType.RELEASE)
        again = take(one)
        assert (again.value(), again.delivery_count()) == (b"one task", 2)
        one.acknowledge(again)
        assert list(one.commit_sync(10.0).values()) == [None]


@pytest.mark.kafka(topics={"tasks": 1})
def test_a_worker_that_hangs_loses_its_task(kafka: understudy.Cluster, tasks: Producer) -> None:
    tasks.produce("tasks", b"one task")
    tasks.flush(10)
    with worker(kafka) as hanging, worker(kafka) as other:
        lost = take(hanging)
        kafka.clock.advance(seconds=31)  # a lock lasts for 30 s
        assert take(other).value() == b"one task"
        hanging.acknowledge(lost)
        (error,) = hanging.commit_sync(10.0).values()
        assert error is not None
        assert error.args[0].name() == "INVALID_RECORD_STATE"
