"""All logs of one data directory: create, load, delete; checkpoints, lock, clean stop (core F.1, F.5, F.7).

Kafka: LogManager. The directory itself is a `Files` tree: in memory or on disk.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

from protocol.errors import KafkaError
from protocol.pauses import pause
from protocol.types import uuid_from_text, uuid_text
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    META_PROPERTIES,
    RECOVERY_POINT,
    CheckpointError,
    decode_clean_shutdown,
    decode_offsets,
    decode_properties,
    encode_clean_shutdown,
    encode_offsets,
    encode_properties,
    node_id_of,
)
from storage.files import sync_file
from storage.log import retention
from storage.log.config import DEFAULT_LOG_CONFIG, LogConfig
from storage.log.context import SYNC_NEVER, LogContext
from storage.log.partition_log import PartitionLog
from storage.log.recovery import Checkpointed, OldRecordsError, load
from storage.ownership import is_log, segment_part

Key = tuple[str, int]
"""Topic and partition."""

METADATA_TOPIC = "__cluster_metadata"
"""Managed by the quorum: the directory's checkpoints do not include its log."""

_DELETE_SUFFIX = "-delete"
_FUTURE_SUFFIX = "-future"
_STRAY_SUFFIX = "-stray"
_NAME_LIMIT = 255  # of a file name on all common file systems (LogFileUtils, core F.1)


class WrongDirectoryError(RuntimeError):
    """The data directory belongs to another node or cluster; the message is for the user."""


def partition_of(directory: str) -> Key | None:
    """Parse topic and partition of a log's directory; None for another name, or a log that is being deleted."""
    topic, dash, number = directory.rpartition("-")
    return (topic, int(number)) if dash and topic and number.isdecimal() else None


def _future_of(directory: str) -> Key | None:
    """Parse topic and partition of a future log's directory; None for another name (LocalLog.logFutureDirName)."""
    return partition_of(directory.rpartition(".")[0]) if directory.endswith(_FUTURE_SUFFIX) else None


class LogDir:
    """A data directory, one of a broker's `log.dirs`, created by `open`.

    Attributes:
        context: shared by its logs; `context.offline` is set once it has failed.
        logs: the logs of partitions.
        first_dirty: up to where compacted logs are clean (`cleaner-offset-checkpoint`).
        futures: logs that are to replace those in other directories of the broker once they have caught up (KIP-113).
        node_id: of the broker it belongs to.
        cluster_id: from `meta.properties`.
        directory_id: from `meta.properties`; None if it has none.
        formatted: whether `open` wrote `meta.properties`, since there was none.
        was_clean: whether the last shutdown was clean. Set by `open`, which removes the marker.
        previous_broker_epoch: from the marker; -1 if unknown.
    """

    def __init__(self, context: LogContext) -> None:
        self.context = context
        self.logs: dict[Key, PartitionLog] = {}
        self.futures: dict[Key, PartitionLog] = {}
        self.first_dirty: dict[Key, int] = {}
        self.node_id = -1
        self.cluster_id = ""
        self.directory_id: UUID | None = None
        self.formatted = False
        self.was_clean = False
        self.previous_broker_epoch = -1
        self._recovery_points: dict[Key, int] = {}
        self._log_starts: dict[Key, int] = {}
        self._high_watermarks: dict[Key, int] = {}
        self._written: dict[str, dict[Key, int]] = {}

    @classmethod
    def open(
        cls,
        context: LogContext,
        *,
        node_id: int,
        cluster_id: str = "",
        directory_id: UUID | None = None,
        now_ms: int,
    ) -> "LogDir":
        """Open and lock a data directory, and read its marker and checkpoints. No log is loaded yet.

        Args:
            context: the tree, and the state that its logs share.
            node_id: of the broker that opens it.
            cluster_id: written into a new directory; "" accepts that of an existing one.
            directory_id: written into a new directory; by default a new one.
            now_ms: the cluster's time.

        Raises:
            DirectoryLockedError: another process uses it.
            WrongDirectoryError: it belongs to another node or cluster.
            OSError: the disk failed.
        """
        files = context.files
        files.lock()
        log_dir = cls(context)
        log_dir.node_id = node_id
        log_dir._identify(cluster_id, directory_id)
        if files.exists(CLEAN_SHUTDOWN):
            log_dir.was_clean = True
            log_dir.previous_broker_epoch = decode_clean_shutdown(files.read_file(CLEAN_SHUTDOWN))
            files.remove(CLEAN_SHUTDOWN)
        for name in files.list():
            if name.endswith(_DELETE_SUFFIX) and files.is_directory(name):
                context.remove_at(now_ms + DEFAULT_LOG_CONFIG.file_delete_delay_ms, [name])
        log_dir._recovery_points = log_dir.read_offsets(RECOVERY_POINT)
        log_dir._log_starts = log_dir.read_offsets(LOG_START)
        log_dir._high_watermarks = log_dir.read_offsets(HIGH_WATERMARK)
        log_dir.first_dirty = log_dir.read_offsets(CLEANER)
        return log_dir

    def _identify(self, cluster_id: str, directory_id: UUID | None) -> None:
        """Read `meta.properties`, or write it."""
        files = self.context.files
        if not files.exists(META_PROPERTIES):
            self.formatted = True
            self.cluster_id = cluster_id
            self.directory_id = directory_id or self.context.new_uuid()
            files.replace(
                META_PROPERTIES,
                encode_properties(
                    {
                        "version": "1",
                        "cluster.id": cluster_id,
                        "node.id": str(self.node_id),
                        "directory.id": uuid_text(self.directory_id),
                    }
                ),
            )
            return
        properties = decode_properties(files.read_file(META_PROPERTIES))
        self.cluster_id = properties.get("cluster.id", cluster_id)
        if "directory.id" in properties:
            try:
                self.directory_id = uuid_from_text(properties["directory.id"])
            except ValueError:
                raise WrongDirectoryError(f"{META_PROPERTIES} has a malformed directory id") from None
        owner = node_id_of(properties)
        if owner not in (None, str(self.node_id)):
            raise WrongDirectoryError(f"the data directory belongs to node {owner}, not to node {self.node_id}")
        if cluster_id and cluster_id != self.cluster_id:
            raise WrongDirectoryError(f"the data directory belongs to cluster {self.cluster_id}, not to {cluster_id}")

    def read_offsets(self, name: str) -> dict[Key, int]:
        """Read an offset checkpoint; empty if it is missing or malformed (transactions F.8)."""
        files = self.context.files
        try:
            return decode_offsets(files.read_file(name)) if files.exists(name) else {}
        except CheckpointError:
            return {}

    @property
    def is_offline(self) -> bool:
        """Whether it has failed."""
        return self.context.offline is not None

    # ------------------------------------------------------------------ logs

    def load_all(self, config_for: Callable[[str], LogConfig], *, now_ms: int) -> None:
        """Load every log that is not loaded yet; `config_for` returns a topic's settings.

        A disk failure takes the directory offline, as at any other time.

        Raises:
            WrongDirectoryError: a log has records that only Kafka can read.
        """
        for name in self.context.files.list():
            key = partition_of(name)
            pause()
            if key is not None and key not in self.logs and is_log(self.context.files, name):
                self.load_log(*key, config=config_for(key[0]), now_ms=now_ms)
            elif (key := _future_of(name)) is not None and key not in self.futures:
                future = self._load(name, key, Checkpointed(), config=config_for(key[0]), clean=False, now_ms=now_ms)
                if future is not None:
                    self.futures[key] = future

    def load_log(self, topic: str, partition: int, *, config: LogConfig, now_ms: int) -> PartitionLog | None:
        """Load one log, if its directory exists (the metadata log comes first: it has the others' settings)."""
        key = (topic, partition)
        directory = f"{topic}-{partition}"
        if key in self.logs or not self.context.files.is_directory(directory):
            return self.logs.get(key)
        checkpointed = Checkpointed(
            self._recovery_points.get(key, 0), self._log_starts.get(key, 0), self._high_watermarks.get(key, 0)
        )
        log = self._load(directory, key, checkpointed, config=config, clean=self.was_clean, now_ms=now_ms)
        if log is not None:
            self.logs[key] = log
        return log

    def _load(
        self, directory: str, key: Key, checkpointed: Checkpointed, *, config: LogConfig, clean: bool, now_ms: int
    ) -> PartitionLog | None:
        try:
            return load(
                self.context, directory, *key, config=config, checkpointed=checkpointed, clean=clean, now_ms=now_ms
            )
        except OldRecordsError as error:
            raise WrongDirectoryError(str(error)) from None
        except OSError as error:
            self.context.storage_error(error, fatal=True)
            return None

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self.logs.values()))

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """Return the log of a partition, if there is one."""
        return self.logs.get((topic, partition))

    def create_log(
        self,
        topic: str,
        partition: int,
        *,
        topic_id: UUID | None = None,
        config: LogConfig = DEFAULT_LOG_CONFIG,
        now_ms: int,
    ) -> PartitionLog:
        """Return the log of a partition, creating it if it does not exist.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self.logs.get((topic, partition))
        if log is None:
            log = PartitionLog(self.context, topic, partition, topic_id=topic_id, config=config)
            self.context.check()
            with self.context.guard():
                self._set_aside(log)
                self._forget_offsets((topic, partition))
                log.begin(now_ms)
            self.logs[topic, partition] = log
        return log

    def _set_aside(self, log: PartitionLog) -> None:
        """Rename a directory that is in the place of a new log to `-stray`: the new log must not have its segments."""
        files = self.context.files
        if files.is_directory(log.directory) and any(map(segment_part, files.list(log.directory))):
            files.rename(log.directory, self._suffixed_name(log.topic, log.partition, _STRAY_SUFFIX))

    def _forget_offsets(self, key: Key) -> None:
        """Remove the offsets of a deleted log of the same name from the checkpoints (LogManager.asyncDelete).

        After a kill they would apply to the new log, and a log that ends before its start loses all its records.
        """
        for name, offsets, write in (
            (RECOVERY_POINT, self._recovery_points, self.checkpoint_recovery_points),
            (LOG_START, self._log_starts, self.checkpoint_log_starts),
            (HIGH_WATERMARK, self._high_watermarks, self.checkpoint_high_watermarks),
        ):
            if key in self._written.get(name, offsets):
                write()

    def delete_log(
        self, topic: str, partition: int, *, now_ms: int, delay_ms: int = DEFAULT_LOG_CONFIG.file_delete_delay_ms
    ) -> bool:
        """Delete a partition's log; False if there was none.

        Its directory is renamed immediately and removed after the broker's `log.segment.delete.delay.ms`: a topic's own
        `file.delete.delay.ms` applies to its segments only, as in Kafka's LogManager.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            self._delete(log, now_ms + delay_ms)
        return log is not None

    def _delete(self, log: PartitionLog, due_ms: int) -> None:
        log.close(clean=False)
        files = self.context.files
        if files.is_directory(log.directory):
            renamed = self._suffixed_name(log.topic, log.partition, _DELETE_SUFFIX)
            with self.context.guard():
                files.rename(log.directory, renamed)
            self.context.remove_at(due_ms, [renamed])

    # ------------------------------------------------------------------ moves between directories

    def create_future(self, log: PartitionLog, now_ms: int) -> PartitionLog:
        """Create the future log that is to replace a log in another directory (LogManager.getOrCreateLog).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self.context.check()
        future = PartitionLog(
            self.context, log.topic, log.partition, topic_id=log.topic_id, config=log.config,
            directory=self._suffixed_name(log.topic, log.partition, _FUTURE_SUFFIX),
        )  # fmt: skip
        with self.context.guard():
            future.begin(now_ms)
        self.futures[log.topic, log.partition] = future
        return future

    def delete_future(self, topic: str, partition: int, *, now_ms: int, delay_ms: int) -> None:
        """Delete a partition's future log, if there is one.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        future = self.futures.pop((topic, partition), None)
        if future is not None and not self.is_offline:
            self._delete(future, now_ms + delay_ms)

    def promote_future(self, replaced: PartitionLog, now_ms: int) -> PartitionLog:
        """Make a future log the partition's log, under its plain name (LogManager.replaceCurrentWithFutureLog).

        It continues with the high watermark of the log that it replaces.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        key, files = (replaced.topic, replaced.partition), self.context.files
        future = self.futures.pop(key)
        if not files.is_directory(future.directory):  # in memory, without a record
            return self.create_log(*key, topic_id=future.topic_id, config=future.config, now_ms=now_ms)
        directory, end = f"{replaced.topic}-{replaced.partition}", future.log_end_offset
        with self.context.guard():
            future.close(clean=True)
            files.rename(future.directory, directory)
        checkpointed = Checkpointed(end, future.log_start_offset, replaced.high_watermark)
        log = self._load(directory, key, checkpointed, config=future.config, clean=True, now_ms=now_ms)
        if log is None:
            self.context.check()
        assert log is not None
        self.logs[key] = log
        return log

    def make_stray(self, log: PartitionLog) -> None:
        """Close a log that is not in the cluster's metadata, and give its directory the suffix `-stray`.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        for logs in (self.logs, self.futures):
            if logs.get((log.topic, log.partition)) is log:
                del logs[log.topic, log.partition]
        if self.context.files.is_directory(log.directory):
            log.close(clean=True)
            with self.context.guard():
                self.context.files.rename(log.directory, self._suffixed_name(log.topic, log.partition, _STRAY_SUFFIX))

    def _suffixed_name(self, topic: str, partition: int, suffix: str) -> str:
        """Build a directory name with a unique suffix; the topic is cut so that it fits (LocalLog.logDeleteDirName)."""
        end = f"-{partition}.{self.context.new_uuid().hex}{suffix}"
        return topic[: _NAME_LIMIT - len(end)] + end

    def hand_over_cleaned(self, key: Key, to: "LogDir") -> None:
        """Give another directory the offset up to which a moved log is clean (LogCleanerManager.alterCheckpointDir)."""
        first_dirty = self.first_dirty.pop(key, None)
        if first_dirty is not None:
            to.first_dirty[key] = first_dirty
            for log_dir in (self, to):
                log_dir.write_offsets(CLEANER, log_dir.first_dirty)

    # ------------------------------------------------------------------ called by timers

    def run_retention(self, now_ms: int) -> int:
        """Apply retention to logs that are not compacted; return the number of deleted segments (core F.4).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR: the directory goes offline. Where it is offline, nothing is done.
        """
        if self.context.offline is not None:
            return 0
        return sum(retention.run(log, now_ms) for log in self if not log.config.compact)

    def retention_due_ms(self) -> int | None:
        """Return when time alone makes :meth:`run_retention` delete something; None for never."""
        if self.context.offline is not None:
            return None
        due_ms = (retention.due_ms(log) for log in self if not log.config.compact)
        return min((each for each in due_ms if each is not None), default=None)

    def flush_due(self, now_ms: int) -> int | None:
        """Flush the logs whose `flush.ms` has passed; return when the next one is due, if any is."""
        return min((due_ms for log in self if (due_ms := log.flusher.flush_if_due(now_ms)) is not None), default=None)

    def remove_due(self, now_ms: int) -> int:
        """Remove the files and directories whose delay has passed; return how many."""
        return self.context.remove_due(now_ms)

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint`."""
        self.write_offsets(RECOVERY_POINT, {key: log.bounds.recovery_point for key, log in self._own()})

    def checkpoint_log_starts(self) -> None:
        """Write `log-start-offset-checkpoint`: the logs that start within their first segment (transactions F.8)."""
        self.write_offsets(
            LOG_START,
            {
                key: log.log_start_offset
                for key, log in self._own()
                if log.bounds.log_start_offset
                and len(log.segments)
                and (log.tier is not None or log.log_start_offset > log.segments.first.base_offset)
            },
        )

    def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint`."""
        self.write_offsets(HIGH_WATERMARK, {key: log.high_watermark for key, log in self._own()})

    def _own(self) -> Iterator[tuple[Key, PartitionLog]]:
        return ((key, log) for key, log in self.logs.items() if key[0] != METADATA_TOPIC)

    def write_offsets(self, name: str, offsets: dict[Key, int]) -> None:
        """Write an offset checkpoint, unless the directory is offline or the checkpoint is unchanged."""
        context = self.context
        if context.offline is not None or self._written.get(name) == offsets:
            return
        try:
            context.files.replace(name, encode_offsets(offsets), durable=context.durable)
            self._written[name] = dict(offsets)
        except OSError as error:
            context.storage_error(error)

    # ------------------------------------------------------------------ stop

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and unlock the directory.

        Args:
            clean: write checkpoints and the marker, so that the next start scans nothing. False simulates a crash of
                the process: written records remain, checkpoints are not updated.
            broker_epoch: written into the marker.
        """
        for log in (*self, *self.futures.values()):
            pause()
            with suppress(KafkaError):
                log.close(clean=clean and self.context.offline is None)
        if clean:
            self.checkpoint_recovery_points()
            self.checkpoint_log_starts()
            self.checkpoint_high_watermarks()
            if self.context.offline is None:
                with suppress(KafkaError), self.context.guard():
                    self._sync_checkpoints()
                    self.context.files.replace(CLEAN_SHUTDOWN, encode_clean_shutdown(broker_epoch))
        self.logs.clear()
        self.futures.clear()
        self.context.files.close()

    def _sync_checkpoints(self) -> None:
        """Sync the checkpoints that the clean shutdown marker vouches for: it is trusted after a power cut, too."""
        files = self.context.files
        for name in (RECOVERY_POINT, LOG_START, HIGH_WATERMARK):
            if self.context.sync != SYNC_NEVER and files.exists(name):
                sync_file(files, name)
