"""DescribeLogDirs: core B.12, LOGD-01."""

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
from tests.handlers.admin_harness import AdminStage, FakeLog, directory_id
from tests.versions import every_version


def stage(offline: OSError | None = None) -> AdminStage:
    """foo-0 of 100 bytes on broker 1, foo-1 on broker 2; broker 1's directory may have failed."""
    admin = AdminStage(2)
    admin.topic("foo", [1], [2])
    admin.host("foo", 0, {1: FakeLog(100)})
    admin.cluster.nodes[1].log_dirs[0].context.offline = offline
    return admin


@every_version(API)
async def test_LOGD_01_one_directory_with_what_it_holds(version: int) -> None:
    """Sizes of logs, no lag; since v4 the space of the file system."""
    answer = await stage().ask(API, DescribeLogDirsRequest(None), version)
    assert answer.error_code is ErrorCode.NONE
    (log_dir,) = answer.results
    assert (log_dir.error_code, log_dir.log_dir, log_dir.is_cordoned) == (ErrorCode.NONE, "/data/1", False)
    ((name, partitions),) = [(t.name, t.partitions) for t in log_dir.topics]
    assert (name, partitions) == ("foo", (DescribeLogDirsPartition(0, 100, 0, is_future_key=False),))
    if version >= 4:
        assert log_dir.total_bytes >= log_dir.usable_bytes > 0
    else:
        assert (log_dir.total_bytes, log_dir.usable_bytes) == (-1, -1)


async def test_only_existing_partitions_of_the_request_are_described() -> None:
    """DescribeLogDirs describes each existing partition of the request once."""
    wanted = [DescribableLogDirTopic("foo", [0, 0, 1, 9]), DescribableLogDirTopic("no", [0])]
    (log_dir,) = (await stage().ask(API, DescribeLogDirsRequest(wanted))).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in log_dir.topics] == [("foo", [0])]


async def test_of_two_directories_each_has_its_logs() -> None:
    """A future log is in the directory to which the replica moves, with the records that it does not have yet."""
    admin = AdminStage(1, {"log.dirs": "/a,/b", "cordoned.log.dirs": "/b"})
    admin.topic("foo", [1], [1])
    admin.host("foo", 1, {1: (current := FakeLog(100))})
    current.high_watermark = current.log_end_offset = 7
    future = FakeLog(40)
    future.topic, future.partition, future.log_end_offset = "foo", 1, 3
    admin.cluster.nodes[1].log_dirs[1].futures["foo", 1] = cast("Any", future)
    admin.cluster.metadata.submit(lambda _: admin.machine.broker_reported(1, cordoned=[directory_id(1, 1)]))
    answer = await admin.ask(API, DescribeLogDirsRequest(None))
    assert [(r.log_dir, r.is_cordoned, [(t.name, t.partitions) for t in r.topics]) for r in answer.results] == [
        ("/a", False, [("foo", (DescribeLogDirsPartition(0, 0, 0), DescribeLogDirsPartition(1, 100, 0)))]),
        ("/b", True, [("foo", (DescribeLogDirsPartition(1, 40, 4, is_future_key=True),))]),
    ]
    admin.cluster.nodes[1].log_dirs[1].context.offline = OSError(5, "broken")
    answer = await admin.ask(API, DescribeLogDirsRequest([DescribableLogDirTopic("foo", [1])]))
    assert [(r.error_code, r.log_dir, [len(t.partitions) for t in r.topics]) for r in answer.results] == [
        (ErrorCode.NONE, "/a", [1]),
        (ErrorCode.KAFKA_STORAGE_ERROR, "/b", []),
    ]


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
    admin = stage()
    for index in (3, 1, 2):
        admin.host("foo", index, {1: FakeLog()})
    for topics in (None, [DescribableLogDirTopic("foo", [0, 1, 2, 3])]):
        (log_dir,) = (await admin.ask(API, DescribeLogDirsRequest(topics))).results
        assert [[p.partition_index for p in t.partitions] for t in log_dir.topics] == [[2, 3, 0, 1]]
