"""Several log directories of a broker: core B.12, F.1 (KIP-112, KIP-113, KIP-858, KIP-1066).

Each row runs on a real Kafka too: ``TARGET=kafka``.
"""

from collections.abc import Iterator

import pytest

from broker.handlers import describe_log_dirs
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.records.records import Record, build_batch
from tests.scenarios.core.asking import create, created, fetch, metadata, produce, produced, records_of, topic
from tests.scenarios.core.directories import Directories, until
from tests.versions import every_version

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
CORDONED = "cordoned.log.dirs"


@pytest.fixture
def directories() -> Iterator[Directories]:
    """A broker over the directories a and b."""
    broker_directories = Directories()
    yield broker_directories
    broker_directories.close()


def batch(count: int = 1) -> bytearray:
    """Records of 1,000 bytes each."""
    return build_batch([Record(index, 1_700_000_000_000, None, b"x" * 1000) for index in range(count)])


def test_new_partitions_go_to_the_directory_with_the_fewest(directories: Directories) -> None:
    """In the order of Kafka's table of the broker's new partitions, the first directory if two have as many."""
    wire = directories.wire()
    created(wire, "t", 5)
    assert directories.held("t") == {"a": [0, 2, 4], "b": [1, 3]}
    created(wire, "u", 4)
    assert directories.held("u") == {"a": [0, 2], "b": [1, 3]}
    first, second = directories.described()
    assert (first.log_dir, second.log_dir) == (directories.a, directories.b)
    assert min(first.total_bytes, first.usable_bytes, second.total_bytes, second.usable_bytes) > 0


@every_version(describe_log_dirs.API, removed=False)
def test_every_version_describes_both(directories: Directories, version: int) -> None:
    """Every version describes both directories, with their space since version 4."""
    created(directories.wire(), "t", 2)
    response = directories.wire().call(ApiKey.DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(None))
    assert [[(t.name, [p.partition_index for p in t.partitions]) for t in r.topics] for r in response.results] == [
        [("t", [1])], [("t", [0])]
    ]  # fmt: skip
    assert all((r.total_bytes > 0) == (version >= 4) for r in response.results)


def test_a_replica_moves_by_a_future_replica(directories: Directories) -> None:
    """It is filled beside the one that serves, then it takes its place; records, offsets and epochs stay."""
    wire = directories.wire()
    created(wire, "t", 1)
    for _ in range(10):
        produced(wire, "t", batch(20))
    assert directories.set(RATE, "1000") is ErrorCode.NONE
    assert directories.move(directories.b, "t") is ErrorCode.NONE
    assert directories.held("t") == {"a": [0], "b": [-1]}
    future = directories.described()[1].topics[0].partitions[0]
    assert (future.is_future_key, future.offset_lag) == (True, 200)
    until(lambda: directories.described()[1].topics[0].partitions[0].offset_lag == 0)
    assert directories.held("t") == {"a": [0], "b": [-1]}  # the rate is used up
    assert [each.name for each in (directories.place / "b").glob("t-0.*-future")]
    assert produced(wire, "t", batch(20)) == 200
    assert directories.set(RATE, None) is ErrorCode.NONE
    until(lambda: directories.held("t") == {"a": [], "b": [0]})
    assert (directories.place / "b" / "t-0").is_dir()
    assert [fetch(wire, "t", offset).high_watermark for offset in (0, 219)] == [220, 220]
    assert len(records_of(fetch(wire, "t", 0))) == 220
    assert produced(wire, "t", batch()) == 220


def test_a_move_ends_when_the_replica_is_to_stay(directories: Directories) -> None:
    """The future replica goes, and a new move begins with nothing."""
    wire = directories.wire()
    created(wire, "t", 1)
    produced(wire, "t", batch())
    assert directories.set(RATE, "1") is ErrorCode.NONE
    assert directories.move(directories.b, "t") is ErrorCode.NONE
    assert directories.move(directories.a, "t") is ErrorCode.NONE
    assert directories.held("t") == {"a": [0], "b": []}
    assert directories.move(directories.b, "t") is ErrorCode.NONE
    assert directories.held("t") == {"a": [0], "b": [-1]}


def test_a_move_survives_a_restart(directories: Directories) -> None:
    """The future replica is found again, and its move is completed."""
    wire = directories.wire()
    created(wire, "t", 1)
    produced(wire, "t", batch(20))
    assert directories.set(RATE, "1") is ErrorCode.NONE
    assert directories.move(directories.b, "t") is ErrorCode.NONE
    until(lambda: directories.described()[1].topics[0].partitions[0].offset_lag == 0)
    directories.stop(clean=False)
    directories.start()
    until(lambda: directories.held("t") == {"a": [], "b": [0]})
    assert len(records_of(fetch(directories.wire(), "t"))) == 20


def test_a_directory_may_be_chosen_before_the_partition_exists(directories: Directories) -> None:
    """The response is an error, and the new partition is there nevertheless."""
    assert directories.move(directories.b, "later", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    created(directories.wire(), "later", 2)
    assert directories.held("later") == {"a": [1], "b": [0]}


def test_a_cordoned_directory_gets_nothing_new(directories: Directories) -> None:
    """What it has stays; with all of them cordoned no topic can be created (KIP-1066)."""
    wire = directories.wire()
    created(wire, "old", 2)
    assert directories.set(CORDONED, "/nowhere") is ErrorCode.INVALID_REQUEST
    assert directories.set(CORDONED, directories.b) is ErrorCode.NONE
    until(lambda: [each.is_cordoned for each in directories.described()] == [False, True])
    created(wire, "new", 3)
    assert directories.held("new") == {"a": [0, 1, 2], "b": []}
    assert directories.move(directories.b, "new") is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert directories.set(CORDONED, "*") is ErrorCode.NONE
    until(lambda: [each.is_cordoned for each in directories.described()] == [True, True])
    (refused,) = create(wire, topic("no"))
    assert refused.error_code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log "
        "directories cordoned."
    )
    assert directories.set(CORDONED, None) is ErrorCode.NONE
    until(lambda: not any(each.is_cordoned for each in directories.described()))
    created(wire, "again", 1)
    assert directories.held("again") == {"a": [], "b": [0]}


def test_only_the_partitions_of_a_failed_directory_are_offline(directories: Directories) -> None:
    """They have no leader and get KAFKA_STORAGE_ERROR; all others go on, and a restart brings them back (KIP-112)."""
    wire = directories.wire()
    created(wire, "t", 2)
    assert directories.held("t") == {"a": [1], "b": [0]}
    produced(wire, "t", batch(), partition=0)
    directories.break_b()
    produce(wire, "t", batch(), partition=0)  # accepted by the open file
    until(lambda: directories.described()[1].error_code is ErrorCode.KAFKA_STORAGE_ERROR)
    until(lambda: metadata(wire, "t")[0].partitions[0].leader_id == -1)
    assert directories.described()[1].topics == ()
    assert [produce(wire, "t", batch(), partition=each).error_code for each in (0, 1)] == [
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
    ]  # fmt: skip
    assert fetch(wire, "t", partition=0).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    wanted = ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, -1)])
    (offsets,) = wire.call(ApiKey.LIST_OFFSETS, 8, ListOffsetsRequest(-1, [wanted], 0)).topics
    assert offsets.partitions[0].error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [
        (p.error_code, p.leader_id, p.leader_epoch, p.isr_nodes, p.offline_replicas)
        for p in metadata(wire, "t")[0].partitions
    ] == [(ErrorCode.LEADER_NOT_AVAILABLE, -1, 1, (), (1,)), (ErrorCode.NONE, 1, 0, (1,), ())]
    assert [directories.move(path, "t", each) for path, each in ((directories.b, 1), (directories.a, 0))] == [
        ErrorCode.KAFKA_STORAGE_ERROR
    ] * 2
    created(wire, "after", 2)
    assert [len(each.topics) for each in directories.described()] == [2, 0]
    directories.stop()
    directories.mend_b()
    directories.start()
    wire = directories.wire()
    until(lambda: [p.leader_id for p in metadata(wire, "t")[0].partitions] == [1, 1])
    assert directories.held("t") == {"a": [1], "b": [0]}
    assert [len(records_of(fetch(wire, "t", partition=each))) for each in (0, 1)] == [2, 1]
