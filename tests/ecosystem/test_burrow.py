"""Burrow, as Debian packages it: it reads the groups' commits from `__consumer_offsets` and reports their lag."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.ecosystem import cluster
from tests.ecosystem.cluster import Cluster
from tests.ecosystem.programs import fetch, running, until
from tests.ecosystem.zookeeper import zookeeper
from tests.ports import free_ports

pytestmark = [pytest.mark.nightly, pytest.mark.interop, pytest.mark.timeout(600)]

CONFIGURATION = """
[general]
pidfile = "{folder}/burrow.pid"

[logging]
filename = "{folder}/burrow.log"

[zookeeper]
servers = ["{zookeeper}"]

[client-profile.test]
kafka-version = "2.0.0"

[cluster.test]
class-name = "kafka"
servers = {brokers}
client-profile = "test"
topic-refresh = 1
offset-refresh = 1

[consumer.test]
class-name = "kafka"
cluster = "test"
servers = {brokers}
client-profile = "test"

[httpserver.default]
address = "127.0.0.1:{port}"

[storage.default]
class-name = "inmemory"
intervals = 3
min-distance = 0
"""


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    """Burrow 1.2.1 asks for ListOffsets v0, which Kafka 4.0 removed (KIP-896)."""
    running = cluster.start({}, as_version="3.9")
    try:
        yield running
    finally:
        running.close()


def burrow_answer(port: int, path: str) -> dict[str, Any]:
    """An answer of its HTTP interface; empty as long as there is none, or it knows no such thing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v3/kafka/test/{path}", timeout=20) as answer:
            document: dict[str, Any] = json.loads(answer.read())
            return document
    except (urllib.error.URLError, ConnectionError):
        return {}


def commit(kafka: Cluster, offsets: list[int]) -> None:
    """Commit offsets of `billing`, partition by partition."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "billing", "enable.auto.commit": False})
    places = [TopicPartition("orders", number, offset) for number, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_the_lag_of_a_group_follows_its_commits(kafka: Cluster, tmp_path: Path) -> None:
    """Ends and commits of each partition; less lag after each commit, and none at the end."""
    fetch("debian", "burrow")
    kafka.create({"orders": 3})
    for number in range(3):
        kafka.write("orders", [(f"{number} {each}", "one") for each in range(30)])
    commit(kafka, [0, 0, 0])  # so that there is a topic of offsets when Burrow looks for it
    ends = [kafka.end("orders", number) for number in range(3)]
    (port,) = free_ports(1)
    brokers = json.dumps(kafka.bootstrap.split(","))

    def seen() -> dict[str, Any]:
        status: dict[str, Any] = burrow_answer(port, "consumer/billing/lag").get("status", {})
        return status

    with zookeeper() as address:
        written = CONFIGURATION.format(folder=tmp_path, zookeeper=address, brokers=brokers, port=port)
        (tmp_path / "burrow.toml").write_text(written)
        with running(["Burrow", "--config-dir", str(tmp_path)], tmp_path) as burrow:
            until(lambda: burrow_answer(port, "topic/orders").get("offsets") == ends, burrow, tmp_path)
            for behind in (20, 10, 0):
                commit(kafka, [end - behind for end in ends])
                until(lambda behind=behind: seen().get("totallag") == 3 * behind, burrow, tmp_path)  # type: ignore[misc]
            assert burrow_answer(port, "consumer")["consumers"] == ["billing"]
            assert [each["current_lag"] for each in seen()["partitions"]] == [0, 0, 0]
