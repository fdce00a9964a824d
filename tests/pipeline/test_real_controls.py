"""Directories of real brokers that had an eventful life: an audit finds nothing in them, while they run and after."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from storage.checkpoints import CLEANER, decode_offsets, encode_offsets
from tests.clients.drivers import command
from tests.clients.targets import CACHE, ROOT, oracle_release
from tests.pipeline import traffic
from tests.pipeline.audited import reported
from tests.pipeline.test_after_chaos import kafka
from tests.storage.kafka_tools import RealBroker, java, need_kafka
from tests.swap.nodes import KAFKA_SETTINGS

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

OLD = CACHE / "kafka-3.9.1"


def test_metadata_that_begin_with_a_snapshot_are_no_finding(tmp_path: Path) -> None:
    """A real broker has removed the beginning of its metadata log: what is known of topics is in its snapshots."""
    need_kafka()
    broker = RealBroker(tmp_path, {**KAFKA_SETTINGS, "internal.metadata.log.segment.bytes": "3000"})
    broker.start()
    try:
        traffic.make(broker.bootstrap)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        pause = threading.Event()
        for number in range(120):  # Kafka cleans its metadata log once in a minute
            if begins_with_a_snapshot(broker.data):
                break
            for each in admin.create_topics([NewTopic(f"more-{number}", 3, 1)]).values():
                each.result(traffic.PATIENCE_S)
            if number % 2:
                for each in admin.delete_topics([f"more-{number}"]).values():
                    each.result(traffic.PATIENCE_S)
            pause.wait(1)
        assert begins_with_a_snapshot(broker.data)
        assert reported(broker.data, more_than=100) == []
    finally:
        broker.stop()
    assert reported(broker.data, more_than=100) == []


def begins_with_a_snapshot(data: Path) -> bool:
    """Whether the metadata log does not begin at 0."""
    return min(int(path.stem) for path in (data / "__cluster_metadata-0").glob("*.log")) > 0


@contextmanager
def under_load(bootstrap: str, topic: str) -> Iterator[Callable[[], int]]:
    """Transactions into a topic for as long as the block runs; yields how many have ended so far."""
    over = threading.Event()
    done: list[int] = []

    def work() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "load"})
        producer.init_transactions(traffic.PATIENCE_S)
        while not over.is_set():
            producer.begin_transaction()
            for number in range(20):
                producer.produce(topic, b"%d" % number * 50, b"%d" % number)
            if len(done) % 3:
                producer.commit_transaction(traffic.PATIENCE_S)
            else:
                producer.abort_transaction(traffic.PATIENCE_S)
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield lambda: len(done)
    finally:
        over.set()
        thread.join(traffic.PATIENCE_S)
    assert not thread.is_alive()


def reassign(bootstrap: str, folder: Path, topic: str, replicas: list[list[int]], *, verify: bool = False) -> str:
    """Kafka's own tool; what it prints."""
    plan = folder / "plan.json"
    moved = [{"topic": topic, "partition": number, "replicas": each} for number, each in enumerate(replicas)]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    options = ["--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan)]
    return java(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *options, "--verify" if verify else "--execute"
    )


def test_partitions_that_were_reassigned_under_load_are_no_finding(tmp_path: Path) -> None:
    """From brokers 1 and 2 to 2 and 3 and back; the directories of each broker are audited together."""
    need_kafka()
    with kafka(tmp_path) as brokers:
        bootstrap = ",".join(each.bootstrap for each in brokers)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        creations = admin.create_topics([NewTopic("moved", replica_assignment=[[1, 2], [2, 1]], num_partitions=2)])
        for each in creations.values():
            each.result(traffic.PATIENCE_S)
        with under_load(bootstrap, "moved") as ended:
            for replicas in ([[2, 3], [3, 2]], [[3, 1], [1, 3]]):
                reassign(bootstrap, tmp_path, "moved", replicas)
                before = ended()
                pause = threading.Event()
                while "still in progress" in reassign(bootstrap, tmp_path, "moved", replicas, verify=True):
                    pause.wait(1)
                while ended() < before + 3:
                    pause.wait(0.1)
    assert not (tmp_path / "data" / "broker-2" / "moved-0").exists()
    assert (tmp_path / "data" / "broker-3" / "moved-0").exists()
    assert reported(tmp_path / "data", more_than=100) == []


def test_a_compacted_log_that_a_new_replica_has_copied_is_no_finding(tmp_path: Path) -> None:
    """The cleaner's gaps are in all of its segments, and the new replica's own cleaner has not been there.

    Broker 1 is left without a partition, and keeps its last high watermarks.
    """
    need_kafka()
    with kafka(tmp_path) as brokers:
        bootstrap = ",".join(each.bootstrap for each in brokers)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topic = NewTopic("latest", 2, replica_assignment=[[1, 2], [3, 2]], config=traffic.TOPICS["compacted"])
        for each in admin.create_topics([topic]).values():
            each.result(traffic.PATIENCE_S)
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        pause = threading.Event()
        for number in range(600):
            for partition in (0, 1):
                key = number if number % 20 == 0 else number % 3
                producer.produce("latest", b"%d" % number * 40, b"%d" % key, partition)
            if number % 5 == 0:
                assert producer.flush(traffic.PATIENCE_S) == 0
        assert producer.flush(traffic.PATIENCE_S) == 0
        while not all(cleaned_to(tmp_path, *each) for each in ((1, 0), (2, 0), (3, 1))):
            pause.wait(0.5)
        never = {"min.compaction.lag.ms": "3600000", "max.compaction.lag.ms": "3600001"}
        entries = [ConfigEntry(*each, incremental_operation=AlterConfigOpType.SET) for each in never.items()]
        resource = ConfigResource(ResourceType.TOPIC, "latest", incremental_configs=entries)
        for each in admin.incremental_alter_configs([resource]).values():
            each.result(traffic.PATIENCE_S)
        reassign(bootstrap, tmp_path, "latest", [[2, 3], [3, 2]])
        while "still in progress" in reassign(bootstrap, tmp_path, "latest", [[2, 3], [3, 2]], verify=True):
            pause.wait(1)
    assert cleaned_to(tmp_path, 3, 0) == 0
    assert reported(tmp_path / "data", more_than=100) == []
    assert reported(tmp_path / "data" / "broker-3", more_than=100) == []


def cleaned_to(folder: Path, broker: int, partition: int) -> int:
    """How far the cleaner of a broker has come in a partition of `latest`."""
    content = (folder / "data" / f"broker-{broker}" / CLEANER).read_bytes() or encode_offsets({})
    return decode_offsets(content).get(("latest", partition), 0)


def test_a_directory_that_was_upgraded_from_3_9_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formatted, filled and killed by 3.9, then run by today's broker with today's features."""
    need_kafka()
    command([ROOT / "tools" / "fetch_kafka.sh", OLD, "broker", "3.9.1"])
    monkeypatch.setenv("KAFKA_LIBS", str(OLD))
    old = RealBroker(tmp_path, {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"})
    old.start()
    try:
        used(old.bootstrap)
        old.stop(clean=False)
        assert reported(old.data, more_than=100) == []
        monkeypatch.undo()
        old.start()
        options = ["--bootstrap-server", old.bootstrap, "upgrade", "--release-version", oracle_release()]
        java("org.apache.kafka.tools.FeatureCommand", *options)
        used(old.bootstrap)
        assert reported(old.data, more_than=100) == []
    finally:
        old.stop()
    assert reported(old.data, more_than=100) == []


def used(bootstrap: str) -> None:
    """Transactions, and a group that commits."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if "plain" not in admin.list_topics(timeout=traffic.PATIENCE_S).topics:
        for each in admin.create_topics([NewTopic("plain", 2, 1)]).values():
            each.result(traffic.PATIENCE_S)
    with under_load(bootstrap, "plain") as ended:
        pause = threading.Event()
        while ended() < 6:
            pause.wait(0.1)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    assert len(consumer.consume(50, traffic.PATIENCE_S)) == 50
    consumer.commit(asynchronous=False)
    consumer.close()
