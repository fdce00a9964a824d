"""The metadata log as a KRaft controller keeps it: a LeaderChange begins each epoch, a snapshot replaces the past."""

from typing import Any, cast
from uuid import UUID

import pytest

from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.image import METADATA_TOPIC, ClusterImage, Partition
from broker.coordination.metadata.machine import MetadataMachine, bootstrap_records
from broker.coordination.metadata.quorum import Quorum, QuorumController
from broker.coordination.metadata.snapshot import records_of
from broker.coordination.runtime import Runtime
from broker.replication.metadata_log import MetadataLog, begin_at_snapshot, check_beginning, formatted, next_epoch
from broker.replication.metadata_snapshots import MetadataSnapshots
from broker.replication.partition import ReplicatedPartition
from broker.settings import BrokerSettings
from broker.time.clock import ManualClock
from protocol.log_records.metadata import ConfigRecord, FeatureLevelRecord, MetadataCodec, TopicRecord, decode, encode
from protocol.log_records.metadata_security import UserScramCredentialRecord
from protocol.log_records.quorum import quorum_records, snapshot, snapshot_values
from protocol.records.batch import RecordBatch
from storage.files import MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log_dir import LogDir, WrongDirectoryError
from storage.quorum_files import BOOTSTRAP, METADATA_DIRECTORY, seen_epoch

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(cleanup_policy=(), retention_ms=-1)
TOPIC_ID = UUID(int=7)


class Life:
    """One life of a controller over a directory, from opening it to closing it."""

    def __init__(self, files: MemoryFiles, **settings: int) -> None:
        self.files = files
        context = LogContext(files)
        self.directory = LogDir.open(context, node_id=1, cluster_id="c", now_ms=NOW_MS)
        log = self.directory.load_log(METADATA_TOPIC, 0, config=CONFIG, now_ms=NOW_MS)
        self.log = log or self.directory.create_log(METADATA_TOPIC, 0, config=CONFIG, now_ms=NOW_MS)
        begin_at_snapshot(self.log, files, NOW_MS)
        check_beginning(self.log, files)
        self.epoch = next_epoch(files, self.log.epochs.latest)
        clock = ManualClock(NOW_MS)
        state = Partition((1,), (1,), 1, leader_epoch=self.epoch)
        partition = ReplicatedPartition(METADATA_TOPIC, 0, UUID(int=1), state, clock)
        partition.logs[1] = self.log
        static = {f"metadata.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
        machine = MetadataMachine(BrokerSettings(1), new_uuid=lambda: TOPIC_ID, below=lambda _n: 0)
        self.clock = clock
        self.snapshots = MetadataSnapshots(self.log, BrokerSettings(1, static), clock, lambda: machine.image)
        self.quorum = Quorum({1: QuorumController(1, UUID(int=7), address=("b1", 3333))}, [1], 1)
        self.own = own = MetadataLog(partition, self.quorum, {1: files}, self.snapshots.written)
        own.begin(NOW_MS)
        codec = cast("Any", MetadataCodec())
        self.runtime: MetadataController = Runtime(
            machine, codec, own, clock, lambda _runtime, _effect: None, epoch=self.epoch
        )
        self.runtime.load()

    @property
    def image(self) -> ClusterImage:
        """What the machine knows."""
        return self.runtime.machine.image

    def remember(self, *records: Any) -> None:
        """Write these."""
        self.runtime.submit(lambda _now_ms: self.runtime.machine.remember(records))

    def batches(self) -> list[RecordBatch]:
        """The log's batches."""
        return list(self.log.reader.replay_from(self.log.log_start_offset))

    def end(self) -> None:
        """Close the directory."""
        self.runtime.close()
        self.snapshots.close()
        self.directory.close()


def test_a_new_log_begins_with_a_leader_change_and_the_features() -> None:
    """In leader epoch 1, as a real controller's; the state file has the same epoch."""
    life = Life(MemoryFiles())
    first, second = life.batches()
    assert (first.is_control, first.base_offset, first.partition_leader_epoch) == (True, 0, 1)
    assert (second.is_control, second.base_offset, second.record_count) == (False, 1, 9)
    assert (life.epoch, seen_epoch(life.files), life.image.offset) == (1, 1, 9)


def test_each_life_is_a_new_epoch_and_knows_what_was() -> None:
    """The old records are not written again."""
    files = MemoryFiles()
    first = Life(files)
    first.remember(TopicRecord("t", TOPIC_ID))
    first.end()
    second = Life(files)
    assert [batch.partition_leader_epoch for batch in second.batches()] == [1, 1, 1, 2]
    assert (second.epoch, seen_epoch(files), list(second.image.topics)) == (2, 2, ["t"])
    assert second.image.features == first.image.features


def test_an_epoch_that_the_node_has_seen_is_not_used_again() -> None:
    """Also where the log does not have it, as after a vote that was lost."""
    files = MemoryFiles()
    Life(files).end()
    files.replace(f"{METADATA_DIRECTORY}/quorum-state", b'{"leaderId":1,"leaderEpoch":9,"data_version":0}')
    assert Life(files).epoch == 10


def test_a_snapshot_replaces_the_beginning_of_the_log() -> None:
    """A real controller cuts its log once there is a snapshot: its records come first, then the log from its end."""
    files = MemoryFiles()
    first = Life(files)
    first.remember(TopicRecord("t", TOPIC_ID))
    cut = first.log.log_end_offset
    values = [
        encode(record)[1] or b"" for record in (FeatureLevelRecord("metadata.version", 29), TopicRecord("s", TOPIC_ID))
    ]
    files.replace(f"{METADATA_DIRECTORY}/{cut:020}-{1:010}.checkpoint", snapshot(values, NOW_MS))
    first.remember(TopicRecord("u", UUID(int=8)))
    first.end()
    second = Life(files)
    assert list(second.image.topics) == ["s", "u"]
    assert second.image.features["metadata.version"] == 29


def names(files: MemoryFiles) -> list[str]:
    """The snapshots and segments that there are."""
    return [name for name in files.list(METADATA_DIRECTORY) if name.endswith((".checkpoint", ".log"))]


def test_a_snapshot_is_written_after_so_many_bytes() -> None:
    """metadata.log.max.record.bytes.between.snapshots, counted over the whole log; a later life begins with it."""
    files = MemoryFiles()
    life = Life(files, log_max_record_bytes_between_snapshots=5000)
    for number in range(40):
        life.remember(TopicRecord(f"t{number}", UUID(int=100 + number)))
        life.clock.advance(1)
    assert names(files) == [f"{0:020}.log"]
    life.remember(TopicRecord("u" * 249, UUID(int=2)), *(ConfigRecord(2, "t1", f"k{n}", "v" * 200) for n in range(20)))
    life.clock.advance(1)
    end, image = life.log.log_end_offset, life.image
    assert names(files)[1:] == [f"{end:020}-{1:010}.checkpoint"]
    life.remember(TopicRecord("later", UUID(int=3)))
    life.end()
    following = Life(files)
    assert [len(list(batch.records())) for batch in following.runtime._log.replay()] == [69, 1, 0]
    assert (following.image.topics, following.image.configs) == (image.topics, image.configs)


def test_a_snapshot_is_written_after_so_long() -> None:
    """metadata.log.max.snapshot.interval.ms after the first record that is not in the last one; without one, none."""
    files = MemoryFiles()
    life = Life(files)
    life.clock.advance(3_600_000)
    assert len(names(files)) == 2
    life.clock.advance(7_200_000)
    assert len(names(files)) == 2
    life.remember(TopicRecord("t", TOPIC_ID))
    life.clock.advance(3_599_999)
    assert len(names(files)) == 2
    life.clock.advance(1)
    assert len(names(files)) == 3


def test_what_lies_before_an_older_snapshot_goes() -> None:
    """metadata.max.retention.bytes: the newest snapshot stays, and the log after it."""
    files = MemoryFiles()
    sizes = {"log_max_record_bytes_between_snapshots": 1, "max_retention_bytes": 3000}
    life = Life(files, **sizes)
    life.log.config = LogConfig(cleanup_policy=(), retention_ms=-1, internal_segment_bytes=500)
    for number in range(60):
        life.remember(ConfigRecord(2, "t", "k", "v" * number))
        life.clock.advance(1)
    kept = [name for name in names(files) if name.endswith(".checkpoint")]
    assert 1 <= len(kept) < 10
    assert life.log.log_start_offset == int(kept[0][:20]) > 0
    assert life.log.segments.size < 3000
    life.end()
    assert Life(files, **sizes).image.config(2, "t") == {"k": "v" * 59}


def test_who_votes_goes_from_snapshot_to_snapshot() -> None:
    """kraft.version and voters of a quorum that has them in its log (KIP-853) are not lost with it."""
    files = MemoryFiles()
    voters = [(5, b"\0\0\0\1\0"), (6, b"\0\0\2 the voters")]
    life = Life(files)
    files.replace(f"{METADATA_DIRECTORY}/{1:020}-{1:010}.checkpoint", snapshot([], NOW_MS, quorum=voters))
    assert life.snapshots.take()
    newest = files.read_file(f"{METADATA_DIRECTORY}/{names(files)[-1]}")
    assert list(quorum_records(newest)) == voters
    assert [decode(None, value) for value in snapshot_values(newest)] == list(records_of(life.image))


def test_formatting_leaves_the_features_once() -> None:
    """bootstrap.checkpoint, as kafka-storage writes it."""
    files = MemoryFiles()
    bootstrap = bootstrap_records({"transaction.version": 1})
    assert formatted(files, bootstrap, NOW_MS) == bootstrap
    contents = files.read_file(BOOTSTRAP)
    assert [decode(None, value) for value in snapshot_values(contents)] == bootstrap
    assert formatted(files, bootstrap_records(), NOW_MS) == bootstrap
    assert files.read_file(BOOTSTRAP) == contents


def test_a_formatted_directory_begins_as_it_was_formatted() -> None:
    """Features at other levels, and SCRAM credentials that ``kafka-storage format --add-scram`` put there."""
    credential = UserScramCredentialRecord("admin", 1, b"salt", b"stored", b"server", 4096)
    machine = MetadataMachine(
        BrokerSettings(1),
        new_uuid=lambda: TOPIC_ID,
        below=lambda _n: 0,
        bootstrap=[FeatureLevelRecord("metadata.version", 25), credential],
    )
    outcome = machine.loaded(NOW_MS)
    for offset, record in enumerate(outcome.records):
        machine.replay(record, offset)
    assert machine.image.features == {"metadata.version": 25}
    assert machine.image.scram == {("admin", 1): credential}
    assert machine.image.configs == {}


def test_voters_are_recorded_once_and_found_again() -> None:
    """With kraft.version 1, in the format of Kafka's control records; nothing with 0 (KIP-853)."""
    files = MemoryFiles()
    life = Life(files)
    life.own.record_voters(NOW_MS)
    assert list(quorum_records(b"".join(bytes(batch.view) for batch in life.batches()))) == []
    life.quorum.version = 1
    life.own.record_voters(NOW_MS)
    life.own.record_voters(NOW_MS)
    value = bytes.fromhex(
        "00000200000001" + "00" * 15 + "07" + "020b434f4e54524f4c4c45520362310d0500" + "000000010000" + "00"
    )
    written = list(quorum_records(b"".join(bytes(batch.view) for batch in life.batches())))
    assert written == [(5, bytes.fromhex("0000000100")), (6, value)]
    life.end()
    again = Life(files)
    assert again.quorum.version == 1
    again.own.record_voters(NOW_MS)
    assert len(list(quorum_records(b"".join(bytes(batch.view) for batch in again.batches())))) == 2
    again.quorum.controllers[1].address, again.quorum.listens = ("b1", 9093), True
    again.own.record_voters(NOW_MS)
    assert len(list(quorum_records(b"".join(bytes(batch.view) for batch in again.batches())))) == 4


def damage(files: MemoryFiles, name: str) -> None:
    """Change a byte of a file."""
    contents = bytearray(files.read_file(f"{METADATA_DIRECTORY}/{name}"))
    contents[-1] ^= 1
    files.replace(f"{METADATA_DIRECTORY}/{name}", bytes(contents))


def test_a_log_that_ends_before_its_newest_snapshot_begins_there() -> None:
    """A power cut took its end: the snapshot has what was in it, and an epoch that is not used again."""
    files = MemoryFiles()
    first = Life(files)
    first.remember(TopicRecord("t", TOPIC_ID))
    first.snapshots.take()
    cut = first.log.log_end_offset
    first.end()
    for name in files.list(METADATA_DIRECTORY):
        if not name.endswith(".checkpoint"):
            files.remove(f"{METADATA_DIRECTORY}/{name}")
    second = Life(files)
    assert (list(second.image.topics), second.log.log_start_offset, second.epoch) == (["t"], cut, 2)
    second.remember(TopicRecord("u", UUID(int=8)))
    second.end()
    assert list(Life(files).image.topics) == ["t", "u"]


def test_a_damaged_snapshot_is_passed_over() -> None:
    """Half of one has half of the topics, and the others would be strays; an older one and the log have all of them."""
    files = MemoryFiles()
    first = Life(files)
    for number in range(3):
        first.remember(TopicRecord(f"t{number}", UUID(int=100 + number)))
        first.snapshots.take()
    first.end()
    damage(files, names(files)[-1])
    assert list(Life(files).image.topics) == ["t0", "t1", "t2"]


def test_without_its_beginning_the_metadata_are_not_taken_for_whole() -> None:
    """The log begins behind its snapshots, and none of them can be read: nothing is written, let alone put aside."""
    files = MemoryFiles()
    sizes = {"log_max_record_bytes_between_snapshots": 1, "max_retention_bytes": 3000}
    life = Life(files, **sizes)
    life.log.config = LogConfig(cleanup_policy=(), retention_ms=-1, internal_segment_bytes=500)
    for number in range(60):
        life.remember(ConfigRecord(2, "t", "k", "v" * number))
        life.clock.advance(1)
    for name in names(files):
        if name.endswith(".checkpoint"):
            damage(files, name)
    with pytest.raises(WrongDirectoryError, match=r"no snapshot of it \(\*\.checkpoint\) is complete"):
        check_beginning(life.log, files)


def test_a_log_that_was_cut_begins_at_the_newest_snapshot_that_is_whole() -> None:
    """Else the topics behind its end would be unknown, and their partitions strays."""
    files = MemoryFiles()
    first = Life(files)
    ends = []
    for number in range(3):
        first.remember(TopicRecord(f"t{number}", UUID(int=100 + number)))
        first.snapshots.take()
        ends.append(first.log.log_end_offset)
    first.end()
    for name in files.list(METADATA_DIRECTORY):
        if not name.endswith(".checkpoint"):
            files.remove(f"{METADATA_DIRECTORY}/{name}")
    damage(files, names(files)[-1])
    second = Life(files)
    assert (list(second.image.topics), second.log.log_start_offset) == (["t0", "t1"], ends[1])
