"""AlterReplicaLogDirs: core B.12, its checks in their order."""

import pytest

from broker.handlers.alter_replica_log_dirs import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.handlers.admin_harness import AdminStage, Denied, FakeLog, directory_id

OWN, OTHER, CORDONED = "/a", "/b", "/c"
LONG = "x" * 214
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def moved(
    path: str, topic: str, index: int = 0, *, offline: OSError | None = None, denied: Denied = (), version: int = 2
) -> ErrorCode:
    """The code for one partition; foo-0 is here, foo-1 on broker 2, foo-2 here in trouble."""
    stage = AdminStage(2, {"log.dirs": f"{OWN},{OTHER},{CORDONED}"})
    stage.topic("foo", [1], [2], [1])
    stage.cluster.partitions["foo", 2].logs[1] = FakeLog(offline=True)
    stage.cluster.nodes[1].log_dirs[0].context.offline = offline
    stage.cluster.metadata.submit(lambda _: stage.machine.broker_reported(1, cordoned=[directory_id(1, 2)]))
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])])
    (result,) = (await stage.ask(API, request, version, denied=denied)).results
    (partition,) = result.partitions
    assert (result.topic_name, partition.partition_index) == (topic, index)
    code: ErrorCode = partition.error_code
    assert bool(stage.cluster.moved) == (code is ErrorCode.NONE)
    return code


@pytest.mark.parametrize(
    ("path", "topic", "index", "code"),
    [
        (OWN, "foo", 0, ErrorCode.NONE),
        (OTHER, "foo", 0, ErrorCode.NONE),
        (CORDONED, LONG, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CORDONED, "foo", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CORDONED, "no", 0, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("/elsewhere", LONG, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/elsewhere", LONG[1:], 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/elsewhere", "no", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        (OWN, "no", 0, UNKNOWN),
        (OWN, "foo", 9, UNKNOWN),
        (OWN, "foo", 1, ErrorCode.REPLICA_NOT_AVAILABLE),
        (OWN, "foo", 2, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
async def test_checks_come_in_kafkas_order(path: str, topic: str, index: int, code: ErrorCode, version: int) -> None:
    """Name, directory, its state, the partition, its replica: only then a move begins."""
    assert await moved(path, topic, index, version=version) is code


async def test_a_failed_directory_takes_nothing() -> None:
    """KAFKA_STORAGE_ERROR, before anything is looked up."""
    assert await moved(OWN, "no", offline=OSError(5, "broken")) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_it_needs_alter_on_the_cluster() -> None:
    """CLUSTER_AUTHORIZATION_FAILED on each partition."""
    denied = {(AclOperation.ALTER, ResourceType.CLUSTER)}
    assert await moved(OWN, "foo", denied=denied) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
