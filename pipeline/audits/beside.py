"""What stands beside the segments: checkpoints, leader epochs, and the entries of the index files.

A directory is local or a URI that `pyarrow.fs` knows.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs

from protocol.types import uuid_text
from storage.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LEADER_EPOCHS,
    LOG_START,
    PARTITION_METADATA,
    CheckpointError,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
)
from storage.log_dir import partition_of

_SEGMENT_FILE: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex)")
_BROKER: Final = re.compile(r"broker-\d+")
EVERYTHING: Final = 2**63 - 1

INDEXES: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("file", pa.string()),
        pa.field("segment_base", pa.int64()),
        pa.field("kind", pa.string()),  # offset, time, transaction
        pa.field("entry", pa.int32()),  # number within the file
        pa.field("offset", pa.int64()),
        pa.field("position", pa.int64()),  # of offset
        pa.field("timestamp_ms", pa.int64()),  # of time
        pa.field("producer_id", pa.int64()),  # these four of transaction
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("last_stable_offset", pa.int64()),
    ]
)
"""One row per entry of an index file."""

_ENTRIES: Final = {
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
    """Whether a data directory is called as one of several brokers'."""
    return _BROKER.fullmatch(directory.rpartition("/")[2]) is not None


class PartitionFiles(NamedTuple):
    """A partition's directory: which files there are, and what the small ones say."""

    directory: str
    topic: str
    partition: int
    topic_id: str | None
    log_start: int | None
    high_watermark: int | None
    cleaned_to: int | None
    first_segment_base: int
    last_segment_base: int
    epochs: tuple[tuple[int, int], ...]
    index_files: tuple[str, ...]


class Tree:
    """A data directory, looked at through `pyarrow.fs`."""

    def __init__(self, path: str) -> None:
        """Open a path or URI. Raises FileNotFoundError: there is no such directory."""
        if "://" in path:
            self._files, self.root = fs.FileSystem.from_uri(path)
        else:
            path = os.path.abspath(path)  # noqa: PTH100 - a string; tasks on a cluster work in folders of their own
            self._files, self.root = fs.LocalFileSystem(), path
        self.path = path.rstrip("/")
        self.root = self.root.rstrip("/")
        if self._files.get_file_info(self.root).type != fs.FileType.Directory:
            raise FileNotFoundError(f"there is no directory {path}")

    def names(self, folder: str = "") -> list[tuple[str, bool]]:
        """Name and whether it is a directory, of all that lies in a folder of the tree."""
        inside = f"{self.root}/{folder}" if folder else self.root
        found = self._files.get_file_info(fs.FileSelector(inside))
        return sorted((info.base_name, info.type == fs.FileType.Directory) for info in found)

    def read(self, path: str) -> bytes:
        """A file's bytes; none if there is no such file."""
        try:
            with self._files.open_input_stream(f"{self.root}/{path}") as stream:
                content: bytes = stream.read()
        except FileNotFoundError:
            return b""
        return content

    def directories(self) -> list[str]:
        """The data directories: this one, or the `broker-N` in it."""
        below = [name for name, is_directory in self.names() if is_directory and is_brokers(name)]
        return [f"{self.path}/{name}" for name in below] or [self.path]

    def offsets(self, name: str) -> dict[tuple[str, int], int] | None:
        """An offset checkpoint; None if it is not there, or cannot be read."""
        content = self.read(name)
        try:
            return decode_offsets(content) if content else None
        except CheckpointError:
            return None

    def partitions(self) -> Iterator[PartitionFiles]:
        """Every partition's directory."""
        starts, marks, cleaned = self.offsets(LOG_START), self.offsets(HIGH_WATERMARK), self.offsets(CLEANER)
        for name, is_directory in self.names():
            key = partition_of(name) if is_directory else None
            if key is None:
                continue
            listed = [(match, file) for file, _ in self.names(name) if (match := _SEGMENT_FILE.fullmatch(file))]
            bases = [int(match[1]) for match, _ in listed if match[2] == "log"]
            if not bases:
                continue
            topic_id = None
            with suppress(CheckpointError):
                raw = self.read(f"{name}/{PARTITION_METADATA}")
                topic_id = None if not raw else uuid_text(decode_partition_metadata(raw))
            epochs: list[Any] = []
            with suppress(CheckpointError):
                epochs = decode_epochs(self.read(f"{name}/{LEADER_EPOCHS}"))
            yield PartitionFiles(
                self.path,
                *key,
                topic_id,
                (starts or {}).get(key),
                (marks or {}).get(key),
                None if cleaned is None else cleaned.get(key, 0),
                min(bases),
                max(bases),
                tuple((entry.epoch, entry.start_offset) for entry in epochs),
                tuple(f"{name}/{file}" for match, file in listed if match[2] != "log"),
            )


def index_entries(directory: str, path: str) -> pa.RecordBatch:
    """The entries of one index file, `path` within `directory`; unused space at its end and torn entries left out."""
    folder, _, name = path.rpartition("/")
    key, match = partition_of(folder), _SEGMENT_FILE.fullmatch(name)
    assert key is not None
    assert match is not None
    base, (kind, shape) = int(match[1]), _ENTRIES[match[2]]
    raw = Tree(directory).read(path)
    entries = np.frombuffer(raw[: len(raw) // shape.itemsize * shape.itemsize], shape)
    used = np.flatnonzero(entries.view((np.void, shape.itemsize)) != np.void(bytes(shape.itemsize)))
    entries = entries[: used[-1] + 1 if len(used) else 0]
    count = len(entries)
    named = set(shape.names or ())
    columns: dict[str, Any] = {field: entries[field].astype(np.int64) for field in named - {"version"}}
    if "offset" in columns:
        columns["offset"] += base
    columns |= {
        "directory": [directory] * count,
        "topic": [key[0]] * count,
        "partition": [key[1]] * count,
        "file": [path] * count,
        "segment_base": [base] * count,
        "kind": [kind] * count,
        "entry": np.arange(count),
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(count, field.type)
         for field in INDEXES],
        schema=INDEXES,
    )  # fmt: skip
