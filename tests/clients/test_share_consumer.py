"""Clients in share groups (KIP-932): Java's KafkaShareConsumer."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from tests.clients import targets
from tests.clients.clients import JAVA, compile_java
from tests.clients.drivers import HERE, command, missing
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
    if target_name == "kafka":
        targets.prepare_kafka()
    started = targets.start(1, target_name, QUICK)
    yield started
    started.close()


def test_java_acknowledges_implicitly_explicitly_and_renews(cluster: Target) -> None:
    """Every step of the Java program."""
    if absent := missing(JAVA[0]):
        pytest.skip(f"needs {', '.join(absent)}")
    command([HERE / "setup.sh", "java"])
    class_path = compile_java(CACHE / "java" / "clients-4.3.1", "share-consumer", "interop", "groups")
    done = subprocess.run(
        ["java", *JVM, "-cp", class_path, "groups.ShareConsumer", cluster.bootstrap, f"s-{uuid.uuid4().hex[:8]}"],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    sys.stderr.write(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line for line in lines if not line["ok"]] == []
    assert len(lines) == 5
