"""Kafka Connect in distributed mode with exactly-once sources, and MirrorMaker 2 in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ecosystem import cluster
from tests.ecosystem.cluster import Cluster, Read
from tests.ecosystem.connect import worker

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(900)]

FILES = "org.apache.kafka.connect.file.FileStream{}Connector"
MIRROR = "org.apache.kafka.connect.mirror.Mirror{}Connector"
LINES = [f"line {number}" for number in range(3_001)]


def written(path: Path, lines: list[str]) -> None:
    """Append lines to a file."""
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_a_source_is_exactly_once_and_a_sink_gets_all(kafka: Cluster, tmp_path: Path) -> None:
    """The worker is killed in the middle of the file; the answer to a commit is lost."""
    kafka.create({"lines": 1})
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    written(source, LINES[:3_000])
    configuration = {
        "connector.class": FILES.format("Source"),
        "file": str(source),
        "topic": "lines",
        "batch.size": "3"
        if kafka.control
        else "30",  # a transaction takes real brokers on a busy machine half a second
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }
    with worker(kafka.bootstrap, tmp_path) as first:
        first.put("source", configuration)
        first.until(lambda: kafka.end("lines") > 100)
        first.process.kill()
    at_death = len(kafka.read("lines"))
    assert at_death < 2_500, "it was not killed in the middle"

    kafka.lose_answer("EndTxn")
    with worker(kafka.bootstrap, tmp_path) as second:
        # What is left in its buffer at the end of the file, it only looks at when the file grows.
        second.until(lambda: len(kafka.read("lines")) > 2_500)
        second.configure("source", configuration | {"batch.size": "20000"})
        written(source, LINES[3_000:])
        second.until(lambda: len(kafka.read("lines")) >= len(LINES))
        settings = {"file": str(sink), "topics": "lines", "consumer.override.isolation.level": "read_committed"}
        second.configure("sink", settings | {"connector.class": FILES.format("Sink")})
        second.until(lambda: sink.exists() and len(sink.read_text().splitlines()) >= len(LINES))
        # A sink commits the offset after its last record, where the marker of the last transaction is.
        second.until(lambda: kafka.lag("connect-sink").get("lines") == 1)
        assert second.request("GET", "/connectors/source/offsets")["offsets"][0]["offset"] == {
            "position": source.stat().st_size
        }

    assert [record.value for record in kafka.read("lines")] == LINES
    assert sink.read_text().splitlines() == LINES
    assert {kafka.settings(f"connect-{name}")["cleanup.policy"] for name in ("config", "offset", "status")} == {
        "compact"
    }


@pytest.fixture
def other() -> Iterator[Cluster]:
    """A second cluster."""
    running = cluster.start({})
    try:
        yield running
    finally:
        running.close()


def test_mirrormaker_copies_records_settings_and_offsets_of_groups(
    kafka: Cluster, other: Cluster, tmp_path: Path
) -> None:
    """From one cluster to another, exactly once; a group can go on there."""
    kafka.create({"orders": 3})
    kafka.write("orders", [(str(number), f"first {number}") for number in range(150)])
    kafka.consume("orders", "billing")
    mirror = {
        "source.cluster.alias": "here",
        "target.cluster.alias": "there",
        "source.cluster.bootstrap.servers": kafka.bootstrap,
        "target.cluster.bootstrap.servers": other.bootstrap,
        "topics": "orders",
        "groups": "billing",
        "replication.factor": "3",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "refresh.topics.interval.seconds": "1",
        "sync.topic.configs.interval.seconds": "1",
        "offset-syncs.topic.replication.factor": "3",
        "offset.lag.max": "0",
    }
    checkpoints = {
        "checkpoints.topic.replication.factor": "3",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    once = {"exactly.once.support": "required", "source.consumer.isolation.level": "read_committed"}
    with worker(other.bootstrap, tmp_path) as connect:
        connect.configure("mirror", mirror | once | {"connector.class": MIRROR.format("Source")})
        connect.until(lambda: "here.orders" in other.topics() and len(other.read("here.orders")) >= 150)
        connect.configure("checkpoints", mirror | checkpoints | {"connector.class": MIRROR.format("Checkpoint")})
        kafka.write("orders", [(str(number), f"second {number}") for number in range(150)])
        connect.until(lambda: len(other.read("here.orders")) >= 300)
        kafka.consume("orders", "billing")
        # As above, in each of three partitions.
        connect.until(lambda: other.lag("billing").get("here.orders") == 3)

    def copied(records: list[Read]) -> list[tuple[int, str | None, str]]:
        return [(each.partition, each.key, each.value) for each in records]

    assert copied(other.read("here.orders")) == copied(kafka.read("orders"))
    assert other.settings("here.orders")["cleanup.policy"] == kafka.settings("orders")["cleanup.policy"]
    assert "there.orders" not in kafka.topics()
