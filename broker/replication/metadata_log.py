"""The metadata log: ``__cluster_metadata-0``, as a KRaft controller keeps it.

Each start of the cluster begins a new leader epoch with a LeaderChange record, and notes it in ``quorum-state``. The
newest snapshot replaces the log before it. A real Kafka can continue the directory, and Understudy that of a real one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from broker.coordination.metadata.quorum import Quorum
from broker.coordination.outcome import TransactionalAppend
from broker.replication.coordinator_log import CoordinatorLog, LoggedBatch
from broker.replication.partition import ReplicatedPartition
from protocol.log_records import metadata
from protocol.log_records.metadata import decode, encode
from protocol.log_records.quorum import (
    is_whole,
    kraft_version_of,
    leader_change_batch,
    quorum_records,
    snapshot,
    snapshot_values,
    voter_ids,
    voters_batch,
    voters_value,
)
from protocol.pauses import pause
from protocol.records.records import ControlType
from storage.files import Files
from storage.log import truncation
from storage.log.partition_log import PartitionLog
from storage.log.validation import AppendOrigin
from storage.log_dir import WrongDirectoryError
from storage.quorum_files import (
    BOOTSTRAP,
    METADATA_DIRECTORY,
    Snapshot,
    latest_snapshot,
    seen_epoch,
    snapshots,
    write_quorum_state,
)


def next_epoch(files: Files, last_epoch: int) -> int:
    """Return the leader epoch to begin: one above the highest in the log, in its snapshots and in quorum-state."""
    newest = latest_snapshot(files)
    return max(last_epoch, seen_epoch(files), 0 if newest is None else newest.epoch) + 1


def begin_at_snapshot(log: PartitionLog, files: Files, now_ms: int) -> bool:
    """Start the log at its newest complete snapshot if it ends before that; return whether (Kafka: KafkaRaftLog).

    A power failure may lose the end of the log, and a damaged batch is cut off with all that follows; the snapshot
    contains what they held.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
    """
    for each in reversed(snapshots(files)):
        if each.end_offset <= log.log_end_offset:
            break
        if is_whole(files.read_file(each.path)):
            truncation.truncate_fully_and_start_at(log, each.end_offset, now_ms)
            return True
    return False


def usable_snapshot(log: PartitionLog, files: Files) -> Snapshot | None:
    """Return the newest complete snapshot that the log continues."""
    for each in reversed(snapshots(files)):
        goes_on = log.log_start_offset <= each.end_offset <= log.log_end_offset
        if goes_on and is_whole(files.read_file(each.path)):
            return each
    return None


def check_beginning(log: PartitionLog, files: Files) -> None:
    """Check that a snapshot covers what precedes the log start offset: otherwise all topics in it would become strays.

    Raises:
        WrongDirectoryError: there is no such snapshot.
    """
    if log.log_start_offset and usable_snapshot(log, files) is None:
        raise WrongDirectoryError(
            f"{METADATA_DIRECTORY} begins at offset {log.log_start_offset}, and no snapshot of it (*.checkpoint) is "
            "complete: its topics are lost, and their partitions would become strays; restore a copy of it"
        )


def formatted(files: Files, bootstrap: Sequence[Any], now_ms: int) -> list[Any]:
    """Return the first records of a new cluster in this directory.

    They are those that ``kafka-storage format`` has written; without them, ``bootstrap``, which is then written
    instead.
    """
    if files.exists(BOOTSTRAP):
        records = (decode(None, value) for value in snapshot_values(files.read_file(BOOTSTRAP)))
        return [record for record in records if record is not None]
    files.replace(BOOTSTRAP, snapshot([encode(record)[1] or b"" for record in bootstrap], now_ms))
    return list(bootstrap)


def copy_snapshot(leader: Files, follower: Files) -> None:
    """Copy the leader's newest snapshot to a follower, which cannot fetch what the log had before it (KIP-630)."""
    newest = latest_snapshot(leader)
    if newest is not None and not follower.exists(newest.path):
        follower.make_directory(METADATA_DIRECTORY)
        follower.replace(newest.path, leader.read_file(newest.path))


class SnapshotBatch:
    """A snapshot as a batch for replay: all its records get the last offset that it covers."""

    marker: bool | None = None
    is_transactional = False
    producer_id = -1
    producer_epoch = -1

    def __init__(self, contents: bytes, end_offset: int) -> None:
        self._contents, self._offset = contents, end_offset - 1

    def records(self) -> Iterator[tuple[int, bytes | None, bytes | None]]:
        """Yield offset, key (None) and value of each record."""
        for value in snapshot_values(self._contents):
            yield self._offset, None, value


class MetadataCodec:
    """Encodes records as a controller at the current ``metadata.version`` does."""

    def __init__(self, level: Callable[[], int]) -> None:
        self._level = level

    def encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """See :meth:`protocol.log_records.metadata.MetadataCodec.encode`."""
        return metadata.MetadataCodec(self._level()).encode(record)

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:
        """See :meth:`protocol.log_records.metadata.MetadataCodec.decode`."""
        return decode(key, value)


class MetadataLog(CoordinatorLog):
    """The active controller's view of the metadata log.

    ``files`` are the trees of the controllers that are up; each keeps a ``quorum-state``.
    """

    def __init__(
        self,
        partition: ReplicatedPartition,
        quorum: Quorum,
        files: dict[int, Files],
        written: Callable[[int], None] = lambda _size_bytes: None,
    ) -> None:
        """``written`` is called with the size of new records in bytes; ``quorum`` follows the control records."""
        super().__init__(partition, quorum.leader_id)
        self.files, self._written, self._quorum = files, written, quorum
        self._recorded: bytes | None = None
        """The voters as recorded in the log; ``None``: it has none."""
        self._between = pause

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """See :meth:`CoordinatorLog.append`."""
        base_offset = super().append(records, now_ms, transaction)
        self._partition.led_by(self._broker_id).flusher.flush_soon()
        self._written(sum(len(value or b"") for _, value in records))
        return base_offset

    def replay(self) -> Iterator[Any]:
        """Yield the newest snapshot, then the log from there on."""
        log = self._partition.led_by(self._broker_id)
        files = self.files[self._broker_id]
        start, cut = log.log_start_offset, usable_snapshot(log, files)
        if cut is not None:
            contents = files.read_file(cut.path)
            self._follow(contents)
            yield SnapshotBatch(contents, cut.end_offset)
            start = cut.end_offset
        size_bytes = 0
        for batch in log.reader.replay_from(start):
            size_bytes += 0 if batch.is_control else batch.size
            if batch.is_control:
                self._follow(bytes(batch.view))
            yield LoggedBatch(batch)
        self._written(size_bytes)

    def begin(self, now_ms: int) -> None:
        """Begin the partition's leader epoch: append a LeaderChange record, and write each ``quorum-state``."""
        quorum, state = self._quorum, self._partition.state
        self._broker_id = state.leader
        batch = leader_change_batch(
            state.leader,
            state.leader_epoch,
            now_ms,
            voters=quorum.voters,
            granting=quorum.following(quorum.voters),
        )
        self._partition.append(state.leader, batch, now_ms, origin=AppendOrigin.COORDINATOR)
        self.note_leader()

    def note_leader(self) -> None:
        """Write each controller's ``quorum-state``: leader, epoch, and the voters if they are configured."""
        state, quorum = self._partition.state, self._quorum
        for files in self.files.values():
            write_quorum_state(
                files, state.leader, state.leader_epoch, voters=quorum.voters, recorded=self._recorded is not None
            )

    def _follow(self, contents: bytes) -> None:
        """Read from the control records of a log or a snapshot whether voters are recorded, and which."""
        for kind, value in quorum_records(contents):
            if kind == ControlType.KRAFT_VERSION:
                self._quorum.version = kraft_version_of(value)
            else:
                self._recorded = value
                recorded = voter_ids(value)
                if len(self._quorum.controllers) > 1 and self._quorum.controllers.keys() >= set(recorded):
                    self._quorum.voters = recorded

    def record_voters(self, now_ms: int) -> None:
        """Record ``kraft.version`` and the voters, if they belong in the log and it does not have them yet.

        The voters of a real controller are kept unless this controller has a listener: a real broker finds its
        controller there.
        """
        voters = self._quorum.voter_records()
        if not self._quorum.version or self._recorded == voters_value(voters):
            return
        if self._recorded is not None and not self._quorum.listens:
            return
        epoch = self._partition.state.leader_epoch
        batch = voters_batch(self._quorum.version, voters, epoch, now_ms)
        self._partition.append(self._broker_id, batch, now_ms, origin=AppendOrigin.COORDINATOR)
        self._recorded = voters_value(voters)
        self.note_leader()
