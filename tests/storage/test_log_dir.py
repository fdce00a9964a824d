"""The data directory: its files, its lock, its failures, and topics that go (core F.1, F.5, F.7; transactions F.8)."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.records import build_marker
from storage import log_dir
from storage.append_info import AppendOrigin
from storage.checkpoints import CLEAN_SHUTDOWN
from storage.files import DirectoryLockedError, DiskFiles, MemoryFiles
from storage.indexes.txn_index import TransactionIndex
from storage.log.context import LogContext
from storage.log_dir import LogDir, WrongDirectoryError, partition_of
from tests.storage.logs import NOW_MS, TOPIC_ID, Tree, append, contents, records_batch

DAY_MS = 86_400_000


def test_a_partition_has_its_files_at_once(disk: Tree) -> None:
    """Directory, log, preallocated indexes, epochs and topic id, as a broker makes them."""
    disk.log()
    assert disk.names() == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert disk.read_file("foo-0/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert disk.read_file("foo-0/leader-epoch-checkpoint") == b"0\n0\n"
    assert len(disk.read_file("foo-0/00000000000000000000.timeindex")) == 10_485_756


def test_an_empty_partition_in_memory_has_none(tmp_path: Path) -> None:
    """Thousands of them cost next to nothing."""
    tree = Tree(None)
    tree.log()
    assert not tree.memory.exists("foo-0")
    assert list(tmp_path.iterdir()) == []


def test_the_topic_id_comes_back(tree: Tree) -> None:
    """The topic id is read back from `partition.metadata`."""
    append(tree.log(), records_batch(b"a"))
    tree.stop()
    log = tree.open().get("foo", 0)
    assert log is not None
    assert log.topic_id == TOPIC_ID


def test_LOG_16_a_deleted_topic_leaves_after_the_delay(disk: Tree) -> None:
    """Its directory is renamed at once; a topic of the same name may come meanwhile."""
    append(disk.log(), records_batch(b"a"))
    assert disk.dir is not None
    assert disk.dir.delete_log("foo", 0, now_ms=NOW_MS)
    assert not disk.dir.delete_log("foo", 0, now_ms=NOW_MS)
    (left,) = [name for name in disk.names("") if name.startswith("foo")]
    assert re.fullmatch(r"foo-0\.[0-9a-f]{32}-delete", left)
    assert disk.log().log_end_offset == 0
    disk.dir.remove_due(NOW_MS + 59_999)
    assert left in disk.names("")
    disk.dir.remove_due(NOW_MS + 60_000)
    assert [name for name in disk.names("") if name.startswith("foo")] == ["foo-0"]


def test_the_name_of_a_deleted_directory_fits(disk: Tree) -> None:
    """Long topics are cut so that 255 characters are enough."""
    topic = "t" * 249
    append(disk.log(topic, 12), records_batch(b"a"))
    assert disk.dir is not None
    disk.dir.delete_log(topic, 12, now_ms=NOW_MS)
    (left,) = [name for name in disk.names("") if name.startswith("ttt")]
    assert len(left) == 255
    assert left.startswith("t" * 212 + "-12.")


def test_a_stray_log_is_put_aside(disk: Tree) -> None:
    """It is neither removed nor loaded."""
    append(disk.log(), records_batch(b"a"))
    assert disk.dir is not None
    disk.dir.make_stray(disk.dir.logs["foo", 0])
    disk.stop()
    assert list(disk.open()) == []
    (left,) = [name for name in disk.names("") if name.startswith("foo")]
    assert re.fullmatch(r"foo-0\.[0-9a-f]{32}-stray", left)
    assert "00000000000000000000.log" in disk.names(left)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("foo-0", ("foo", 0)),
        ("a-b.c-12", ("a-b.c", 12)),
        ("foo-0.0123456789abcdef0123456789abcdef-delete", None),
        ("foo-0.0123456789abcdef0123456789abcdef-future", None),
        ("foo", None),
        ("-1", None),
    ],
)
def test_directories_of_logs_are_recognised_by_name(name: str, key: tuple[str, int] | None) -> None:
    """Topic and partition, or no log at all."""
    assert partition_of(name) == key


def test_meta_properties(tree: Tree) -> None:
    """Written once, with the directory's id; another node or cluster is turned away."""
    tree.open()
    lines = tree.read_file("meta.properties").decode().splitlines()
    assert lines == ["version=1", "cluster.id=cluster", "node.id=1", "directory.id=AAAAAAAAAAAAAAAAAAAAAQ"]
    assert tree.dir is not None
    assert tree.dir.directory_id == UUID(int=1)
    files = tree.dir.context.files
    tree.stop()
    context = LogContext(files)
    with pytest.raises(WrongDirectoryError, match="node 1, not to node 2"):
        LogDir.open(context, node_id=2, now_ms=NOW_MS)
    files.close()
    with pytest.raises(WrongDirectoryError, match="cluster"):
        LogDir.open(context, node_id=1, cluster_id="other", now_ms=NOW_MS)
    files.close()
    assert LogDir.open(context, node_id=1, now_ms=NOW_MS).cluster_id == "cluster"
    files.close()


def test_checkpoints_are_written_for_the_timers(tree: Tree) -> None:
    """High watermarks and recovery points; the metadata log is in none of them."""
    log = tree.log()
    append(log, records_batch(b"a", b"b"))
    append(tree.log("__cluster_metadata"), records_batch(b"a"))
    assert tree.dir is not None
    tree.dir.checkpoint_high_watermarks()
    tree.dir.checkpoint_recovery_points()
    assert tree.read_file("replication-offset-checkpoint") == b"0\n1\nfoo 0 2\n"
    assert tree.read_file("recovery-point-offset-checkpoint") == b"0\n1\nfoo 0 0\n"


def test_an_unchanged_checkpoint_is_not_written_again(tree: Tree) -> None:
    """Advancing the clock by a week makes 120,000 rounds of them, and nearly all change nothing."""
    log = tree.log()
    append(log, records_batch(b"a"))
    assert tree.dir is not None
    tree.dir.checkpoint_high_watermarks()
    tree.dir.context.files.replace("replication-offset-checkpoint", b"touched")
    tree.dir.checkpoint_high_watermarks()
    assert tree.read_file("replication-offset-checkpoint") == b"touched"
    append(log, records_batch(b"b"))
    tree.dir.checkpoint_high_watermarks()
    assert tree.read_file("replication-offset-checkpoint") == b"0\n1\nfoo 0 2\n"


def test_a_second_process_is_kept_out(disk: Tree) -> None:
    """With an error of one sentence; the lock goes with the process that holds it."""
    disk.open()
    code = (
        "import sys\n"
        "from storage.files import DirectoryLockedError, DiskFiles\n"
        "try: DiskFiles(sys.argv[1]).lock()\n"
        "except DirectoryLockedError as error: print(error)\n"
    )
    run = [sys.executable, "-c", code, str(disk.root)]
    assert "in use by another process" in subprocess.run(run, check=True, capture_output=True, text=True).stdout
    disk.stop()
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == ""


def test_the_lock_error_is_one_sentence(tmp_path: Path) -> None:
    """POSIX locks are the process's own; the error type is what the command prints."""
    assert issubclass(DirectoryLockedError, RuntimeError)
    files = DiskFiles(tmp_path)
    files.lock()
    files.lock()
    files.close()
    assert (tmp_path / ".lock").exists()


def test_a_full_disk_takes_the_directory_offline_and_loses_nothing() -> None:
    """KAFKA_STORAGE_ERROR from then on; what was acknowledged is there after the next start."""
    tree = Tree(None)
    log, other = tree.log(), tree.log("bar")
    append(log, records_batch(b"a"))
    append(other, records_batch(b"b"))
    tree.memory.fail_next_write(keep=30)
    for each in (log, other):
        with pytest.raises(KafkaError) as caught:
            append(each, records_batch(b"lost"))
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline
    assert "No space left" in str(caught.value.message)
    tree.stop()
    assert not tree.memory.exists(CLEAN_SHUTDOWN)
    tree.open()
    assert [contents(tree.log(topic)) for topic in ("foo", "bar")] == [[(0, None, b"a")], [(0, None, b"b")]]
    assert not tree.log().offline


def test_a_failing_sync_refuses_the_batch() -> None:
    """With sync=every nothing is acknowledged that is not durable."""
    tree = Tree(None, sync="every")
    log = tree.log()
    append(log, records_batch(b"a"))
    tree.memory.fail_next_sync()
    with pytest.raises(KafkaError) as caught:
        append(log, records_batch(b"b"))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    tree.memory = tree.memory.crash()
    tree.open()
    assert contents(tree.log()) == [(0, None, b"a")]


@pytest.mark.parametrize("moment", ["create", "roll", "checkpoint", "epoch", "close"])
def test_failures_at_other_moments_take_the_directory_offline(moment: str) -> None:
    """Any write may fail; clients get KAFKA_STORAGE_ERROR and nothing more."""
    tree = Tree(None)
    log = tree.log()
    append(log, records_batch(b"a"))
    assert tree.dir is not None
    tree.memory.fail_next_write(OSError(errno.EIO, "Input/output error"))
    match moment:
        case "create":
            with pytest.raises(KafkaError):
                append(tree.log("bar"), records_batch(b"b"))
        case "roll":
            with pytest.raises(KafkaError):
                log.roll(NOW_MS)
        case "checkpoint":
            tree.dir.checkpoint_high_watermarks()
        case "epoch":
            with pytest.raises(KafkaError):
                log.epochs.assign(1, log.log_end_offset)
        case _:
            tree.dir.close()
            assert not tree.memory.exists(CLEAN_SHUTDOWN)
    assert tree.dir.context.offline is not None
    tree.memory = tree.memory.snapshot()
    tree.open()
    assert contents(tree.log()) == [(0, None, b"a")]


def test_a_snapshot_of_a_tree_goes_its_own_way() -> None:
    """Both trees share what was written; what is written then is one's own."""
    tree = Tree(None)
    append(tree.log(), records_batch(b"a"))
    kept = tree.memory.snapshot()
    append(tree.log(), records_batch(b"b"))
    tree.stop(clean=False)
    tree.memory = kept
    tree.open()
    append(tree.log(), records_batch(b"c"))
    assert contents(tree.log()) == [(0, None, b"a"), (1, None, b"c")]


def test_an_empty_partition_costs_little_memory() -> None:
    """At most 3 kB, so that a cluster may have 20,000 of them."""
    code = (
        "import tracemalloc, uuid\n"
        "from storage.log.config import LogConfig\n"
        "from storage.log.context import LogContext\n"
        "from storage.files import MemoryFiles\n"
        "from storage.log_dir import LogDir\n"
        "made = LogDir.open(LogContext(MemoryFiles()), node_id=1, now_ms=0)\n"
        "made.create_log('warm', 0, now_ms=0)\n"
        "topic_id, config = uuid.UUID(int=1), LogConfig()\n"
        "tracemalloc.start()\n"
        "for p in range(1000):\n"
        "    log = made.create_log('foo', p, topic_id=topic_id, config=config, now_ms=0)\n"
        "    log.epochs.assign(0, 0)\n"
        "print(tracemalloc.get_traced_memory()[0] // 1000)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(run.stdout) < 3000


def test_memory_needs_no_lock() -> None:
    """Two directories in memory do not know each other."""
    trees = [LogDir.open(LogContext(MemoryFiles()), node_id=1, now_ms=NOW_MS) for _ in range(2)]
    for tree in trees:
        tree.close()
    assert [list(tree) for tree in trees] == [[], []]


def test_a_clean_stop_makes_the_offsets_durable_that_it_vouches_for() -> None:
    """A power cut right after it does not bring back records that were deleted."""
    tree = Tree(None, sync="roll")
    log = tree.log()
    for value in (b"a", b"b", b"c"):
        append(log, records_batch(value))
    log.delete_records_before(2)
    tree.stop()
    tree.memory = tree.memory.crash()
    tree.open()
    assert tree.dir is not None
    assert tree.dir.was_clean
    assert contents(tree.log()) == [(2, None, b"c")]


def test_an_append_that_is_half_done_takes_the_directory_offline(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a descriptor for the index of aborted transactions, too: the next batch would get the marker's offset."""
    log = tree.log()
    log.producers.rules.verification = False
    append(log, records_batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(TransactionIndex, "append", refuse)
    with pytest.raises(KafkaError) as caught:
        append(log, build_marker(7, 0, False, 0, NOW_MS), origin=AppendOrigin.COORDINATOR)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline


def test_a_log_does_not_begin_where_a_deleted_one_of_its_name_has_begun(tree: Tree) -> None:
    """Killed before the next checkpoints: the new records lie before that start, and would be deleted for it."""
    log = tree.log()
    append(log, records_batch(*[b"old"] * 10))
    log.delete_records_before(5)
    assert tree.dir is not None
    tree.dir.checkpoint_log_starts()
    tree.dir.checkpoint_recovery_points()
    tree.dir.delete_log("foo", 0, now_ms=NOW_MS)
    append(tree.log(), records_batch(b"new"))
    tree.stop(clean=False)
    tree.open()
    assert contents(tree.log()) == [(0, None, b"new")]


def test_a_log_that_could_not_be_loaded_is_not_created_again(disk: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has no descriptor left: the directory is offline, and its records are there at the next start."""
    append(disk.log(), records_batch(b"a"))
    disk.stop()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(log_dir, "load", refuse)
        opened = disk.open()
        assert opened.context.offline is not None
        with pytest.raises(KafkaError):
            disk.log()
        disk.stop(clean=False)
    disk.open()
    assert contents(disk.log()) == [(0, None, b"a")]


def test_segments_in_the_place_of_a_new_log_are_put_aside(disk: Tree) -> None:
    """A directory that was copied into a running broker's: none of its bytes become a part of the log."""
    disk.open()
    assert disk.root is not None
    (disk.root / "foo-0").mkdir()
    (disk.root / "foo-0" / f"{0:020}.log").write_bytes(b"mine")
    append(disk.log(), records_batch(b"a"))
    assert contents(disk.log()) == [(0, None, b"a")]
    (stray,) = disk.root.glob("foo-0.*-stray")
    assert (stray / f"{0:020}.log").read_bytes() == b"mine"
