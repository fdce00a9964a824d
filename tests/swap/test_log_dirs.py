"""A node with two log directories goes from Understudy to Apache Kafka and back (KIP-113, KIP-858)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from protocol.apis import ApiKey
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from storage.checkpoints import META_PROPERTIES, decode_properties
from tests.storage.kafka_tools import java, need_kafka
from tests.swap.contents import GROUPS, check_gone_on, fill, go_on
from tests.swap.looking import PATIENCE_S, look, patiently
from tests.swap.nodes import Node
from tests.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
CHECKPOINT_MS = 5_000
"""replica.high.watermark.checkpoint.interval.ms: where logs start after DeleteRecords is written by then."""
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node with the log directories `data` and `more`."""
    need_kafka()
    created = Node(tmp_path, "more")
    yield created
    created.stop(clean=False)


def placed(node: Node) -> dict[str, Any]:
    """Each log's directories, by topic and partition; that of a future log has a plus sign."""
    wire = Wire(node.bootstrap)
    response = wire.call(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
    wire.close()
    directories: dict[str, Any] = {}
    for each in response.results:
        assert not each.error_code
        for topic in each.topics:
            for p in topic.partitions:
                name = Path(each.log_dir).name + "+" * p.is_future_key
                directories.setdefault(f"{topic.name}-{p.partition_index}", []).append(name)
    return directories


def move(node: Node, topic: str, directory: str) -> None:
    """Begin to move partition 0 to another directory."""
    wire = Wire(node.bootstrap)
    path = str(node.folder / directory)
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [0])])])
    (result,) = wire.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request).results
    assert not result.partitions[0].error_code
    wire.close()


def set_rate(node: Node, value: str) -> None:
    """Set the rate at which replicas move."""
    wire = Wire(node.bootstrap)
    resource = AlterConfigsResource(4, "1", [AlterableConfig(RATE, 0, value)])
    wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))
    wire.close()


def directory_ids(node: Node) -> list[str]:
    """The ids in the two `meta.properties`."""
    roots = (node.data, node.folder / "more")
    return [decode_properties((root / META_PROPERTIES).read_bytes())["directory.id"] for root in roots]


def moved(node: Node, topic: str, directory: str) -> bool:
    """Whether partition 0 has come to a directory, before the deadline."""
    return bool(patiently(lambda: placed(node)[f"{topic}-0"], lambda seen: seen == [directory]) == [directory])


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_kafka_goes_on_in_both_directories(node: Node, clean: bool) -> None:
    """What lies where, records and groups are as before; Kafka moves a replica, and we find it there."""
    ours = node.start_ours()
    clients = fill(node.bootstrap)
    ours.advance(CHECKPOINT_MS)
    begun, answer = placed(node), look(node.bootstrap, GROUPS)
    assert {name for names in begun.values() for name in names} == {"data", "more"}
    ids = directory_ids(node)
    node.stop(clean=clean)
    node.start_kafka()
    assert (placed(node), look(node.bootstrap, GROUPS)) == (begun, answer)
    go_on(clients)
    after = look(node.bootstrap, GROUPS)
    check_gone_on(answer, after)
    assert node.kafka_complaints() == []  # later it may flush a future log just while it renames it, and complain
    source = placed(node)["codecs-0"][0]
    target = {"data": "more", "more": "data"}[source]
    move(node, "codecs", target)
    assert moved(node, "codecs", target)
    begun = placed(node)
    node.stop()
    node.start_ours()
    assert (placed(node), look(node.bootstrap, GROUPS), directory_ids(node)) == (begun, after, ids)
    clients.close()


def test_we_go_on_in_both_directories_of_kafka(node: Node) -> None:
    """A move that Kafka has begun is completed here, and one that we have begun is completed there."""
    node.start_kafka()
    clients = fill(node.bootstrap, ("classic",))
    answer = look(node.bootstrap, ("classic",))
    begun = placed(node)
    targets = {name: {"data": "more", "more": "data"}[begun[f"{name}-0"][0]] for name in ("codecs", "compacted")}
    set_rate(node, "1")
    move(node, "codecs", targets["codecs"])
    assert len(placed(node)["codecs-0"]) == 2
    node.stop()
    node.start_ours()
    assert look(node.bootstrap, ("classic",)) == answer
    set_rate(node, "1000000")
    assert moved(node, "codecs", targets["codecs"])
    set_rate(node, "1")
    move(node, "compacted", targets["compacted"])
    assert len(placed(node)["compacted-0"]) == 2
    go_on(clients)
    after = look(node.bootstrap, ("classic",))
    node.stop(clean=False)
    node.start_kafka()
    assert node.kafka_complaints() == []
    set_rate(node, "1000000")
    assert moved(node, "compacted", targets["compacted"])
    assert look(node.bootstrap, ("classic",)) == after
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("last", 2, 1)])["last"].result(PATIENCE_S)
    patiently(lambda: placed(node), lambda seen: {"last-0", "last-1"} <= seen.keys())
    clients.close()


def test_kafkas_own_tools_move_a_replica(node: Node) -> None:
    """`kafka-reassign-partitions.sh` and `kafka-log-dirs.sh` see the move that they have begun, and its end."""
    node.start_ours()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(PATIENCE_S)
    assert placed(node)["t-0"] == ["data"]
    plan = node.folder / "plan.json"
    replica = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [str(node.folder / "more")]}
    plan.write_text(json.dumps({"version": 1, "partitions": [replica]}), encoding="utf-8")
    where = ("--bootstrap-server", node.bootstrap)
    tool = ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *where, "--reassignment-json-file", str(plan))
    begun = java(*tool, "--execute", "--replica-alter-log-dirs-throttle", "1000000")
    assert "Successfully started moving log directory" in begun
    verified = patiently(lambda: java(*tool, "--verify"), lambda text: "in progress" not in text)
    assert "Reassignment of replica t-0-1 completed successfully." in verified
    described = java("org.apache.kafka.tools.LogDirsCommand", *where, "--describe", "--topic-list", "t")
    (broker,) = json.loads(described.strip().splitlines()[-1])["brokers"]
    held = {Path(each["logDir"]).name: [p["partition"] for p in each["partitions"]] for each in broker["logDirs"]}
    assert held == {"data": [], "more": ["t-0"]}
