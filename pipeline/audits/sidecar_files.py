"""Reads the files beside the segments: checkpoints, leader epochs, and index entries.

A directory is local or a URI that `pyarrow.fs` supports.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs

from pipeline.decoding.columns import repeated
from pipeline.locations import file_system
from protocol.types import uuid_text
from storage.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    META_PROPERTIES,
    PARTITION_METADATA,
    CheckpointError,
    decode_offsets,
    decode_partition_metadata,
)
from storage.log_dir import partition_of
from storage.ownership import segment_part
from storage.quorum_files import metadata_snapshot

_METADATA: Final = "__cluster_metadata"
_BROKER: Final = re.compile(r"(^|/)broker-\d+(/[^/]+)?$")
EVERYTHING: Final = 2**63 - 1  # the highest offset

INDEXES: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("file", pa.string()),
        pa.field("segment_base", pa.int64()),
        pa.field("kind", pa.string()),  # offset, time or transaction
        pa.field("entry", pa.int32()),  # number within the file
        pa.field("offset", pa.int64()),
        pa.field("position", pa.int64()),  # of the offset index
        pa.field("timestamp_ms", pa.int64()),  # of the time index
        pa.field("producer_id", pa.int64()),  # these four: of the transaction index
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("last_stable_offset", pa.int64()),
    ]
)
"""One row per entry of an index file."""

ENTRIES: Final = {
    "index": ("offset", np.dtype([("offset", ">u4"), ("position", ">u4")])),
    "timeindex": ("time", np.dtype([("timestamp_ms", ">i8"), ("offset", ">u4")])),
    "txnindex": (
        "transaction",
        np.dtype(
            [
                ("version", ">i2"),
                ("producer_id", ">i8"),
                ("first_offset", ">i8"),
                ("last_offset", ">i8"),
                ("last_stable_offset", ">i8"),
            ]
        ),
    ),
}


def is_brokers(directory: str) -> bool:
    """Return whether a data directory is named like one of several brokers, or is within a folder of that name."""
    return _BROKER.search(directory) is not None


class PartitionFiles(NamedTuple):
    """A partition's directory: its files, and the contents of the small ones."""

    directory: str
    topic: str
    partition: int
    topic_id: str | None
    log_start: int | None
    high_watermark: int | None
    cleaned_to: int | None
    first_segment_base: int
    last_segment_base: int
    last_segment_bytes: int
    """Size of the last segment's file before anything else is read, as a broker may be writing to it."""
    index_files: tuple[str, ...]


class Tree:
    """A data directory, read through `pyarrow.fs`."""

    def __init__(self, path: str) -> None:
        """Open a path or URI. Raises FileNotFoundError: there is no such directory."""
        if "://" in path:
            self._files, self.root = file_system(path)
        else:
            path = os.path.abspath(path)  # noqa: PTH100 - a string; tasks on a cluster work in folders of their own
            self._files, self.root = fs.LocalFileSystem(), path
        self.path = path.rstrip("/")
        self.root = self.root.rstrip("/")
        kind = self._files.get_file_info(self.root).type
        if kind == fs.FileType.File:
            raise FileNotFoundError(f"{path} is a file; name a broker's data directory, or the folder of several")
        if kind != fs.FileType.Directory:
            raise FileNotFoundError(f"no such directory: {path}")

    def names(self, folder: str = "") -> list[tuple[str, bool]]:
        """Return name and whether it is a directory, for each entry in a folder of the tree."""
        inside = f"{self.root}/{folder}" if folder else self.root
        entries = self._files.get_file_info(fs.FileSelector(inside))
        return sorted((info.base_name, info.type == fs.FileType.Directory) for info in entries)

    def read(self, path: str) -> bytes:
        """Return a file's bytes; empty if it does not exist."""
        try:
            with self._files.open_input_stream(f"{self.root}/{path}") as stream:
                content: bytes = stream.read()
        except FileNotFoundError:
            return b""
        return content

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return int(self._files.get_file_info(f"{self.root}/{path}").size or 0)

    def directories(self) -> list[str]:
        """Return the data directories: this one, or its folders `broker-N` and those with a `meta.properties`.

        A folder without one may have the log directories of one broker (`log.dirs`).
        """
        if self.is_there(META_PROPERTIES):
            return [self.path]
        below: list[str] = []
        for name, is_directory in self.names():
            if not is_directory:
                continue
            own = self.is_there(f"{name}/{META_PROPERTIES}")
            inside = [] if own else [f"{name}/{each}" for each, is_folder in self.names(name) if is_folder]
            disks = [each for each in inside if self.is_there(f"{each}/{META_PROPERTIES}")]
            below += disks or ([name] if own or is_brokers(name) else [])
        return [f"{self.path}/{name}" for name in below] or [self.path]

    def is_there(self, path: str) -> bool:
        """Return whether a file exists."""
        return bool(self._files.get_file_info(f"{self.root}/{path}").type == fs.FileType.File)

    def offsets(self, name: str) -> dict[tuple[str, int], int] | None:
        """Return the offsets of a checkpoint; None if it does not exist or cannot be read.

        A broker creates the file empty when it starts, and writes it with the first offset (`CheckpointFile`).
        """
        content = self.read(name)
        if not content:
            return {} if self.is_there(name) else None
        try:
            return decode_offsets(content)
        except CheckpointError:
            return None

    def partitions(self) -> Iterator[PartitionFiles]:
        """Yield the directory of every partition."""
        starts, marks, cleaned = self.offsets(LOG_START), self.offsets(HIGH_WATERMARK), self.offsets(CLEANER)
        for name, is_directory in self.names():
            key = partition_of(name) if is_directory else None
            if key is None:
                continue
            names = [file for file, _ in self.names(name)]
            listed = [(part, file) for file in names if (part := segment_part(file)) is not None]
            logs = sorted((base, file) for (base, suffix), file in listed if suffix == "log")
            if not logs:
                continue
            topic_id = None
            with suppress(CheckpointError):
                raw = self.read(f"{name}/{PARTITION_METADATA}")
                topic_id = None if not raw else uuid_text(decode_partition_metadata(raw))
            yield PartitionFiles(
                self.path,
                *key,
                topic_id,
                max(_snapshot_ends(names), default=None) if key[0] == _METADATA else (starts or {}).get(key),
                (marks or {}).get(key),
                None if cleaned is None else max(cleaned.get(key, 0), _replaced_to(logs, names)),
                logs[0][0],
                logs[-1][0],
                self.size(f"{name}/{logs[-1][1]}"),
                tuple(f"{name}/{file}" for (_, suffix), file in listed if suffix in ENTRIES),
            )


def _replaced_to(logs: Sequence[tuple[int, str]], names: Iterable[str]) -> int:
    """Return the end of the last segment that the cleaner has replaced, 0 if there is none.

    The files that it replaced remain for `file.delete.delay.ms`, as `.deleted`. The checkpoint is written when all
    segments are done (`Cleaner.doClean`, `LogCleanerManager.doneCleaning`), so a broker that was killed may have an
    older one.
    """
    there = set(names)
    ends = [end for (_, file), (end, _) in pairwise(logs) if f"{file}.deleted" in there]
    return max(ends, default=0)


def _snapshot_ends(names: Iterable[str]) -> list[int]:
    """Return the end offset of the oldest metadata snapshot: the metadata log starts there, or in its segment."""
    ends = sorted(snapshot[0] for name in names if (snapshot := metadata_snapshot(name)) is not None)
    return ends[:1]


def index_entries(directory: str, path: str) -> pa.RecordBatch:
    """Return the entries of an index file, `path` within `directory`, without preallocated space and torn entries."""
    folder, _, name = path.rpartition("/")
    key, part = partition_of(folder), segment_part(name)
    assert key is not None
    assert part is not None
    base, (kind, shape) = part[0], ENTRIES[part[1]]
    raw = Tree(directory).read(path)
    entries = np.frombuffer(raw[: len(raw) // shape.itemsize * shape.itemsize], shape)
    used = np.flatnonzero(entries.view((np.void, shape.itemsize)) != np.void(bytes(shape.itemsize)))
    entries = entries[: used[-1] + 1 if len(used) else 0]
    count = len(entries)
    named = set(shape.names or ())
    columns: dict[str, Any] = {field: entries[field].astype(np.int64) for field in named - {"version"}}
    if "offset" in columns:
        columns["offset"] += base
    columns["entry"] = np.arange(count)
    same = {
        "directory": directory,
        "topic": key[0],
        "partition": key[1],
        "file": path,
        "segment_base": base,
        "kind": kind,
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) if field.name in columns
         else repeated(same.get(field.name), field.type, count) for field in INDEXES],
        schema=INDEXES,
    )  # fmt: skip
