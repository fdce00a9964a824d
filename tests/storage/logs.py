"""What the tests of storage have in common: batches of an exact size, and a data directory that can be reopened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from protocol.records.records import Record, build_batch, read_records
from storage.files import DiskFiles, MemoryFiles
from storage.log.config import LogConfig
from storage.log.context import Cut, LogContext
from storage.log.partition_log import AppendInfo, PartitionLog
from storage.log_dir import LogDir

NOW_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=0x000102030405060708090A0B0C0D0E0F)
SEGMENT = 200
"""A batch of `sized` fills a segment of this many bytes."""


def records_batch(*values: bytes | None, key: bytes | None = None, time_ms: int = NOW_MS, **fields: Any) -> bytearray:
    """A batch as a producer sends it: one record for each value, all at one time."""
    return build_batch([Record(index, time_ms, key, value) for index, value in enumerate(values)], **fields)


def timed_batch(*times_ms: int, **fields: Any) -> bytearray:
    """A batch with one record for each time."""
    return build_batch([Record(index, time_ms, None, b"v") for index, time_ms in enumerate(times_ms)], **fields)


def sized(
    value: bytes | None = b"", key: bytes | None = None, *, size: int = SEGMENT, time_ms: int = NOW_MS, **fields: Any
) -> bytearray:
    """One record in a batch of exactly `size` bytes: a header is the padding."""

    def padded(padding: int) -> bytearray:
        return build_batch([Record(0, time_ms, key, value, [("p", bytes(padding))])], **fields)

    for padding in range(max(size - len(padded(0)) - 6, 0), size):
        batch = padded(padding)
        if len(batch) == size:
            return batch
    raise AssertionError(f"no batch of {size} bytes")


class Tree:
    """A data directory, in memory or on disk, that tests stop and start as a broker would."""

    def __init__(self, root: Path | None, *, sync: str = "never") -> None:
        self.root = root
        self.sync = sync
        self.memory = MemoryFiles()
        self.dir: LogDir | None = None
        self.config = LogConfig()
        self.cuts: list[Cut] = []
        """What recovery has reported."""
        self._ids = 0

    def _uuid(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids)

    def open(self, *, now_ms: int = NOW_MS) -> LogDir:
        """Open the directory and load all logs."""
        files = self.memory if self.root is None else DiskFiles(self.root)
        context = LogContext(files, sync=self.sync, new_uuid=self._uuid, on_cut=self.cuts.append)
        self.dir = LogDir.open(context, node_id=1, cluster_id="cluster", now_ms=now_ms)
        self.dir.load_all(lambda _: self.config, now_ms=now_ms)
        return self.dir

    def stop(self, *, clean: bool = True) -> None:
        """Stop as after SIGTERM, or as after SIGKILL."""
        assert self.dir is not None
        self.dir.close(clean=clean)
        self.dir = None

    def log(self, topic: str = "foo", partition: int = 0, *, now_ms: int = NOW_MS, **settings: Any) -> PartitionLog:
        """A log with these settings, created if need be."""
        if self.dir is None:
            self.open(now_ms=now_ms)
        assert self.dir is not None
        self.config = LogConfig(**settings) if settings else self.config
        log = self.dir.create_log(topic, partition, topic_id=TOPIC_ID, config=self.config, now_ms=now_ms)
        log.config = self.config
        return log

    def names(self, directory: str = "foo-0") -> list[str]:
        """Names of the files in a directory."""
        assert self.dir is not None
        return list(self.dir.context.files.list(directory))

    def read_file(self, path: str) -> bytes:
        """The contents of a file."""
        assert self.dir is not None
        return self.dir.context.files.read_file(path)


MakeTree = Callable[..., Tree]


def append(
    log: PartitionLog, batch: bytearray, *, now_ms: int = NOW_MS, epoch: int = 0, commit: bool = True, **fields: Any
) -> AppendInfo:
    """Append as a leader without followers does: what is appended is committed."""
    info = log.append_as_leader(batch, leader_epoch=epoch, now_ms=now_ms, **fields)
    if commit:
        log.advance_high_watermark(log.log_end_offset)
    return info


def one_each(log: PartitionLog, count: int, **fields: Any) -> None:
    """`count` batches that fill a small segment each; values "0", "1", ..."""
    for index in range(count):
        append(log, sized(b"%d" % index, **fields))


def contents(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records from the log's start, control records left out."""
    return [
        (record.offset, record.key, record.value)
        for batch in log.reader.replay_from(log.log_start_offset)
        if not batch.is_control
        for record in read_records(batch)
        if record.offset >= log.log_start_offset
    ]


def bases(log: PartitionLog) -> list[int]:
    """Base offsets of the segments."""
    return [segment.base_offset for segment in log.segments]
