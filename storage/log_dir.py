"""All logs of one data directory: create, load, delete; checkpoints, lock, clean stop (core F.1, F.5, F.7).

Kafka: LogManager. The directory itself is a `Files` tree: in memory or on disk.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

from protocol.errors import KafkaError
from protocol.types import uuid_from_text, uuid_text
from storage.checkpoints import (
    CLEAN_SHUTDOWN,
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
)
from storage.config import DEFAULT_LOG_CONFIG, LogConfig
from storage.environment import LogEnvironment
from storage.partition_log import PartitionLog
from storage.recovery import Checkpointed, OldRecordsError, load
from storage.rolling import begin

Key = tuple[str, int]
"""Topic and partition."""

METADATA_TOPIC = "__cluster_metadata"
"""Its log is looked after by the quorum: no checkpoint of the directory speaks of it."""

_DELETE_SUFFIX = "-delete"
_STRAY_SUFFIX = "-stray"
_NAME_LIMIT = 255


class WrongDirectoryError(RuntimeError):
    """The data directory belongs to another node or cluster; the message is for the user."""


def partition_of(directory: str) -> Key | None:
    """Topic and partition of a log's directory; None for another name, or a log that is going away."""
    topic, dash, number = directory.rpartition("-")
    return (topic, int(number)) if dash and topic and number.isdecimal() else None


class LogDir:
    """A data directory. Made by `open`.

    Attributes:
        environment: what its logs share; `environment.offline` tells whether it failed.
        node_id: of the broker it belongs to.
        cluster_id: as `meta.properties` says.
        directory_id: as `meta.properties` says; None where it does not.
        was_clean: whether the last stop was clean. Told at `open`, when the marker is removed.
        previous_broker_epoch: as the marker said; -1.
    """

    def __init__(self, environment: LogEnvironment) -> None:
        self.environment = environment
        self.logs: dict[Key, PartitionLog] = {}
        self.node_id = -1
        self.cluster_id = ""
        self.directory_id: UUID | None = None
        self.was_clean = False
        self.previous_broker_epoch = -1
        self._recovery_points: dict[Key, int] = {}
        self._log_starts: dict[Key, int] = {}
        self._high_watermarks: dict[Key, int] = {}
        self._written: dict[str, dict[Key, int]] = {}

    @classmethod
    def open(
        cls,
        environment: LogEnvironment,
        *,
        node_id: int,
        cluster_id: str = "",
        directory_id: UUID | None = None,
        now_ms: int,
    ) -> "LogDir":
        """Open a data directory, lock it, and see how it was left. No log is loaded yet.

        Args:
            environment: the tree, and what its logs will share.
            node_id: of the broker that opens it.
            cluster_id: written into a new directory; "" takes what an existing one says.
            directory_id: written into a new directory; by default a fresh one.
            now_ms: the cluster's time.

        Raises:
            DirectoryLockedError: another process has it.
            WrongDirectoryError: it belongs to another node or cluster.
            OSError: the disk refused.
        """
        files = environment.files
        files.lock()
        found = cls(environment)
        found.node_id = node_id
        found._identify(cluster_id, directory_id)
        if files.exists(CLEAN_SHUTDOWN):
            found.was_clean = True
            found.previous_broker_epoch = decode_clean_shutdown(files.read_file(CLEAN_SHUTDOWN))
            files.remove(CLEAN_SHUTDOWN)
        for name in files.list():
            if name.endswith(_DELETE_SUFFIX) and files.is_directory(name):
                environment.remove_at(now_ms + DEFAULT_LOG_CONFIG.file_delete_delay_ms, [name])
        found._recovery_points = found.read_offsets(RECOVERY_POINT)
        found._log_starts = found.read_offsets(LOG_START)
        found._high_watermarks = found.read_offsets(HIGH_WATERMARK)
        return found

    def _identify(self, cluster_id: str, directory_id: UUID | None) -> None:
        """Read `meta.properties`, or write it."""
        files = self.environment.files
        if not files.exists(META_PROPERTIES):
            self.cluster_id = cluster_id
            self.directory_id = directory_id or self.environment.new_uuid()
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
                raise WrongDirectoryError(f"{META_PROPERTIES} has a directory id that is none") from None
        owner = properties.get("node.id", properties.get("broker.id", str(self.node_id)))
        if owner != str(self.node_id):
            raise WrongDirectoryError(f"the data directory belongs to node {owner}, not to node {self.node_id}")
        if cluster_id and cluster_id != self.cluster_id:
            raise WrongDirectoryError(f"the data directory belongs to cluster {self.cluster_id}, not to {cluster_id}")

    def read_offsets(self, name: str) -> dict[Key, int]:
        """An offset checkpoint; nothing if it is missing or malformed (transactions F.8)."""
        files = self.environment.files
        try:
            return decode_offsets(files.read_file(name)) if files.exists(name) else {}
        except CheckpointError:
            return {}

    # ------------------------------------------------------------------ logs

    def load_all(self, config_for: Callable[[str], LogConfig], *, now_ms: int) -> None:
        """Load every log that is not loaded yet; `config_for` answers a topic's settings.

        A disk that refuses takes the directory offline, as at any other time.

        Raises:
            WrongDirectoryError: a log has records that only Kafka can read.
        """
        for name in self.environment.files.list():
            key = partition_of(name)
            if key is not None and key not in self.logs and self.environment.files.is_directory(name):
                self.load_log(*key, config=config_for(key[0]), now_ms=now_ms)

    def load_log(self, topic: str, partition: int, *, config: LogConfig, now_ms: int) -> PartitionLog | None:
        """Load one log, if its directory is there (the metadata log comes first: it knows the others' settings)."""
        key = (topic, partition)
        directory = f"{topic}-{partition}"
        if key in self.logs or not self.environment.files.is_directory(directory):
            return self.logs.get(key)
        checkpointed = Checkpointed(
            self._recovery_points.get(key, 0), self._log_starts.get(key, 0), self._high_watermarks.get(key, 0)
        )
        try:
            log = load(
                self.environment, directory, topic, partition,
                config=config, checkpointed=checkpointed, clean=self.was_clean, now_ms=now_ms,
            )  # fmt: skip
        except OldRecordsError as error:
            raise WrongDirectoryError(str(error)) from None
        except OSError as error:
            self.environment.refuse(error)
            return None
        self.logs[key] = log
        return log

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self.logs.values()))

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, if there is one."""
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
        """The log of a partition, made empty if it is not there.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self.logs.get((topic, partition))
        if log is None:
            log = PartitionLog(self.environment, topic, partition, topic_id=topic_id, config=config)
            self.environment.check()
            with self.environment.guard():
                begin(log, now_ms)
            self.logs[topic, partition] = log
        return log

    def delete_log(
        self, topic: str, partition: int, *, now_ms: int, delay_ms: int = DEFAULT_LOG_CONFIG.file_delete_delay_ms
    ) -> bool:
        """Take a partition's log away; False: there was none.

        Its directory is renamed at once and removed after the broker's `log.segment.delete.delay.ms`: a topic's own
        `file.delete.delay.ms` is for its segments alone, as in Kafka's LogManager.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self.logs.pop((topic, partition), None)
        if log is None:
            return False
        log.close(now_ms, clean=False)
        files = self.environment.files
        if files.is_directory(log.directory):
            renamed = self._suffixed_name(topic, partition, _DELETE_SUFFIX)
            with self.environment.guard():
                files.rename(log.directory, renamed)
            self.environment.remove_at(now_ms + delay_ms, [renamed])
        return True

    def make_stray(self, topic: str, partition: int, *, now_ms: int) -> None:
        """Put a log aside that the cluster's metadata does not know: its directory gets the suffix `-stray`.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self.logs.pop((topic, partition), None)
        if log is not None and self.environment.files.is_directory(log.directory):
            log.close(now_ms, clean=True)
            with self.environment.guard():
                self.environment.files.rename(log.directory, self._suffixed_name(topic, partition, _STRAY_SUFFIX))

    def _suffixed_name(self, topic: str, partition: int, suffix: str) -> str:
        """A directory's name with a unique suffix; the topic is cut so that it fits (LocalLog.logDeleteDirName)."""
        end = f"-{partition}.{self.environment.new_uuid().hex}{suffix}"
        return topic[: _NAME_LIMIT - len(end)] + end

    # ------------------------------------------------------------------ what timers call

    def run_retention(self, now_ms: int) -> int:
        """Apply retention to every log that the cleaner does not look after; how many segments went (core F.4)."""
        return sum(log.run_retention(now_ms) for log in self if not log.config.compact)

    def flush_due(self, now_ms: int) -> int | None:
        """Sync the logs that have waited for `flush.ms`; when the next one is due, if any is."""
        return min((due_ms for log in self if (due_ms := log.flush_if_due(now_ms)) is not None), default=None)

    def remove_due(self, now_ms: int) -> int:
        """Remove the files and directories whose delay has passed; how many."""
        return self.environment.remove_due(now_ms)

    def checkpoint_recovery_points(self) -> None:
        """Write `recovery-point-offset-checkpoint`."""
        self.write_offsets(RECOVERY_POINT, {key: log.recovery_point for key, log in self._own()})

    def checkpoint_log_starts(self) -> None:
        """Write `log-start-offset-checkpoint`: the logs that start within their first segment (transactions F.8)."""
        self.write_offsets(
            LOG_START,
            {
                key: log.log_start_offset
                for key, log in self._own()
                if len(log.segments) and log.log_start_offset > log.segments.first.base_offset
            },
        )

    def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint`."""
        self.write_offsets(HIGH_WATERMARK, {key: log.high_watermark for key, log in self._own()})

    def _own(self) -> Iterator[tuple[Key, PartitionLog]]:
        return ((key, log) for key, log in self.logs.items() if key[0] != METADATA_TOPIC)

    def write_offsets(self, name: str, offsets: dict[Key, int]) -> None:
        """Write an offset checkpoint, unless the directory is offline, or it stands there already."""
        environment = self.environment
        if environment.offline is not None or self._written.get(name) == offsets:
            return
        try:
            environment.files.replace(name, encode_offsets(offsets), durable=environment.durable)
            self._written[name] = dict(offsets)
        except OSError as error:
            environment.refuse(error)

    # ------------------------------------------------------------------ stop

    def close(self, *, now_ms: int, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close every log and let go of the directory.

        Args:
            now_ms: the cluster's time.
            clean: leave checkpoints and the marker, so that the next start scans nothing. False plays a crash of the
                process: what was written is there, nothing more is said about it.
            broker_epoch: written into the marker.
        """
        for log in self:
            with suppress(KafkaError):
                log.close(now_ms, clean=clean and self.environment.offline is None)
        if clean:
            self.checkpoint_recovery_points()
            self.checkpoint_log_starts()
            self.checkpoint_high_watermarks()
            if self.environment.offline is None:
                with suppress(KafkaError), self.environment.guard():
                    self.environment.files.replace(CLEAN_SHUTDOWN, encode_clean_shutdown(broker_epoch))
        self.logs.clear()
        self.environment.files.close()
