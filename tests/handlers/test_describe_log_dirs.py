"""DescribeLogDirs: core B.12, LOGD-01."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.handlers.describe_log_dirs import API
from broker.request.context import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
)
from storage.files import DiskFiles
from tests.handlers.admin_harness import AdminStage, FakeLog, FakePartition
from tests.versions import every_version


def stage(offline: OSError | None = None) -> AdminStage:
    """foo-0 of 100 bytes on broker 1, foo-1 on broker 2; broker 1's directory may have failed."""
    made = AdminStage(2)
    made.topic("foo", [1], [2])
    made.cluster.partitions["foo", 0].logs[1] = FakeLog(100)
    for node in made.cluster.nodes.values():
        node.logs = cast("Any", SimpleNamespace(context=SimpleNamespace(offline=offline)))
    return made


@every_version(API)
async def test_LOGD_01_one_directory_with_what_it_holds(version: int) -> None:
    """Sizes of logs, no lag; since v4 the space of the file system."""
    answer = await stage().ask(API, DescribeLogDirsRequest(None), version)
    assert answer.error_code is ErrorCode.NONE
    (found,) = answer.results
    assert (found.error_code, found.log_dir, found.is_cordoned) == (ErrorCode.NONE, "/data/1", False)
    ((name, partitions),) = [(t.name, t.partitions) for t in found.topics]
    assert (name, partitions) == ("foo", (DescribeLogDirsPartition(0, 100, 0, is_future_key=False),))
    if version >= 4:
        assert found.total_bytes >= found.usable_bytes > 0
    else:
        assert (found.total_bytes, found.usable_bytes) == (-1, -1)


async def test_only_existing_partitions_of_the_request_are_described() -> None:
    """Each of them once."""
    wanted = [DescribableLogDirTopic("foo", [0, 0, 1, 9]), DescribableLogDirTopic("no", [0])]
    (found,) = (await stage().ask(API, DescribeLogDirsRequest(wanted))).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == [("foo", [0])]


async def test_the_path_is_the_data_directory(tmp_path: Path) -> None:
    """The path is an absolute one."""
    made = stage()
    made.cluster.nodes[1].files = DiskFiles(tmp_path)
    (found,) = (await made.ask(API, DescribeLogDirsRequest(None))).results
    assert found.log_dir == str(tmp_path)


async def test_a_failed_directory_is_described_by_its_error_alone() -> None:
    """KAFKA_STORAGE_ERROR, and no topics."""
    answer = await stage(OSError(5, "broken")).ask(API, DescribeLogDirsRequest(None))
    assert [(r.error_code, r.topics) for r in answer.results] == [(ErrorCode.KAFKA_STORAGE_ERROR, ())]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.NONE), (3, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)])
async def test_it_needs_describe_on_the_cluster(version: int, code: ErrorCode) -> None:
    """CLUSTER_AUTHORIZATION_FAILED at the top level since v3; before, an empty answer."""
    denied = {(AclOperation.DESCRIBE, ResourceType.CLUSTER)}
    answer = await stage().ask(API, DescribeLogDirsRequest(None), version, denied=denied)
    assert (answer.error_code, answer.results) == (code, ())


async def test_partitions_come_in_the_order_of_kafkas_table_of_logs() -> None:
    """A ConcurrentHashMap of TopicPartition: neither as they were made nor as they were asked for."""
    made = stage()
    for index in (3, 1, 2):
        made.cluster.partitions["foo", index] = FakePartition("foo", index, {1: FakeLog()})
    for asked in (None, [DescribableLogDirTopic("foo", [0, 1, 2, 3])]):
        (found,) = (await made.ask(API, DescribeLogDirsRequest(asked))).results
        assert [[p.partition_index for p in t.partitions] for t in found.topics] == [[2, 3, 0, 1]]
