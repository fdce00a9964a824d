"""What clients of many kinds ask of one broker, so that a journal has answers of most APIs, none of them wrong."""

from typing import Any, Final

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pipeline.live.asking import LiveCluster
from tests.pipeline.traffic import done
from tests.serving import until

PATIENCE_S: Final = 60
READER: Final[dict[str, Any]] = {
    "auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed",
    "fetch.wait.max.ms": 3000,
}  # fmt: skip


def make(bootstrap: str) -> None:
    """Producers, transactions that end either way, groups of both protocols, questions of an administrator."""
    common = {"bootstrap.servers": bootstrap}
    admin = AdminClient({**common, "client.id": "admin"})
    done(admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 2, 1)]))
    _produced(common)
    reader = Consumer({**common, **READER, "group.id": "readers", "client.id": "reader"})
    reader.subscribe(["in"])
    _processed(common, reader)
    _joined(common, reader)
    reader.close()
    after = Consumer({**common, **READER, "group.id": "after", "group.protocol": "consumer", "client.id": "after"})
    after.subscribe(["in", "out"])
    assert len(after.consume(25, PATIENCE_S)) == 25
    after.commit(asynchronous=False)
    _administered(admin)
    after.close()
    done(admin.delete_consumer_groups(["after"]))


def _produced(common: dict[str, Any]) -> None:
    producer = Producer({**common, "enable.idempotence": True, "client.id": "feeder"})
    for _ in range(4):
        for number in range(5):
            producer.produce("in", b"%d" % number, b"k", 0)
        assert producer.flush(PATIENCE_S) == 0


def _processed(common: dict[str, Any], reader: Consumer) -> None:
    """Three transactions of five records each, the second aborted, with the offsets of their inputs."""
    worker = Producer({**common, "transactional.id": "worker", "client.id": "worker"})
    worker.init_transactions(PATIENCE_S)
    for turn in range(3):
        messages = reader.consume(5, PATIENCE_S)
        assert len(messages) == 5
        worker.begin_transaction()
        for number, message in enumerate(messages):
            worker.produce("out", message.value() or b"", b"k", number % 2)
        worker.flush(PATIENCE_S)
        after = [TopicPartition("in", 0, (messages[-1].offset() or 0) + 1)]
        worker.send_offsets_to_transaction(after, reader.consumer_group_metadata(), PATIENCE_S)
        if turn == 0:
            _observed(common["bootstrap.servers"])
        (worker.abort_transaction if turn == 1 else worker.commit_transaction)(PATIENCE_S)
        if turn == 0:
            _observed(common["bootstrap.servers"])
    Producer({**common, "transactional.id": "worker", "client.id": "worker-2"}).init_transactions(PATIENCE_S)


def _observed(bootstrap: str) -> None:
    """Producers and transactions, as an audit of a running cluster asks for them."""
    with LiveCluster(bootstrap) as cluster:
        cluster.refresh()
        list(cluster.producers([("out", 0), ("out", 1), ("in", 0)]))
        cluster.transactions()


def _joined(common: dict[str, Any], reader: Consumer) -> None:
    """Another member joins the group, which gets a new generation, commits, and leaves."""
    other = Consumer({**common, **READER, "group.id": "readers", "client.id": "other"})
    other.subscribe(["in"])
    until(lambda: [reader.poll(0.05), other.poll(0.05)] and (reader.assignment() or other.assignment()), "an owner")
    for turn in range(40):
        if other.assignment() or turn > 30:
            break
        reader.poll(0.05)
        other.poll(0.05)
    owner = reader if reader.assignment() else other
    owner.commit(offsets=[TopicPartition("in", 0, 17)], asynchronous=False)
    assert owner.committed([TopicPartition("in", 0)], PATIENCE_S)[0].offset == 17
    other.close()


def _administered(admin: AdminClient) -> None:
    done(admin.create_topics([NewTopic("made", 1, 1, config={"retention.ms": "60000"})]))
    done(admin.create_partitions([NewPartitions("made", 2)]))
    done(admin.describe_configs([ConfigResource(ResourceType.TOPIC, "made")]))
    admin.describe_cluster().result(PATIENCE_S)
    admin.list_consumer_groups().result(PATIENCE_S)
    done(admin.describe_consumer_groups(["readers"]))
    for each in admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values():
        assert each.result(PATIENCE_S).topic_partitions[0].offset == 17
    place = TopicPartition("in", 0)
    specs: list[Any] = [OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.for_timestamp(1)]  # type: ignore[no-untyped-call]
    for spec in specs:
        done(admin.list_offsets({place: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED))
    done(admin.delete_records([TopicPartition("in", 0, 3)]))
    done(admin.delete_topics(["made"]))
