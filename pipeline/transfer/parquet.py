"""Writes records to Parquet files within a task: one topic per file, in order, with the manifest's entry for each."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.schemas import EXTRA, KAFKA
from pipeline.transfer.manifest import ExportedFile, Part, Store
from pipeline.values.columns import DECODED, IDS

RECORDS: Final = ("timestamp_ms", "headers")
PRODUCERS: Final = (
    "producer_id", "producer_epoch", "sequence", "is_transactional", "is_control", "batch_base_offset",
)  # fmt: skip
FILE_BYTES: Final = 256 << 20
"""Arrow data per file: 50 to 250 MB when compressed.

Ours, what engines read as one task.
"""
ROW_GROUP_ROWS: Final = 128 * 1024  # of small records some ten MB: what a reader of Parquet skips or loads as a whole
ROW_GROUP_BYTES: Final = 64 << 20
"""Arrow data per row group, which writers and readers hold in memory: arbitrary, four to a file."""


def schema(*, producers: bool, values: Sequence[str] = ()) -> pa.Schema:
    """Return the columns of an export: Spark's own, the exact time, headers.

    Optionally producer fields and `values`.
    """
    extra = RECORDS + (PRODUCERS if producers else ())
    about = pa.schema([*IDS, *DECODED])
    return pa.schema([*KAFKA, *(EXTRA.field(name) for name in extra), *(about.field(name) for name in values)])


class _OpenFile:
    """A file that is being written."""

    def __init__(self, store: Store, topic: str, name: str, columns: pa.Schema) -> None:
        self.store, self.topic = store, topic
        self.path = name
        self.bytes = self.records = 0
        self.parts: list[list[int]] = []
        self._stream = store.create(self.path)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        # Level 3 is zstd's own default.
        self._writer = pq.ParquetWriter(
            self._stream, columns, compression="zstd", compression_level=3, use_dictionary=["topic", "partition"],
            write_statistics=["topic", "partition", "offset", "timestamp", "timestamp_ms"], coerce_timestamps=None,
        )  # fmt: skip

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows of the topic."""
        self._waiting.append(rows)
        size = rows.nbytes
        self._waiting_bytes += size
        if self._waiting_bytes >= ROW_GROUP_BYTES or sum(map(len, self._waiting)) >= ROW_GROUP_ROWS:
            self._flush()
        self.bytes += size
        self.records += rows.num_rows
        offsets = rows.column("offset")
        for partition, piece in _runs(rows.column("partition")):
            first, last = offsets[piece.start].as_py(), offsets[piece.stop - 1].as_py()
            count = piece.stop - piece.start
            if self.parts and self.parts[-1][0] == partition and self.parts[-1][2] < first:
                self.parts[-1][2] = last
                self.parts[-1][3] += count  # the count of [partition, first, last, count]
            else:
                self.parts.append([partition, first, last, count])

    def _flush(self) -> None:
        """Write the pending rows as one row group, or several if they are very large."""
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting), row_group_size=ROW_GROUP_ROWS)
            self._waiting.clear()
            self._waiting_bytes = 0

    def close(self) -> ExportedFile:
        """Finish the file, and return its entry."""
        self._flush()
        self._writer.close()
        self._stream.close()
        size = self.store.files.get_file_info(self.store.full(self.path)).size
        parts = tuple(Part(*each) for each in self.parts)
        return ExportedFile(self.path, self.topic, self.records, size, self.store.sha256(self.path), parts)


def _runs(column: pa.Array) -> Iterator[tuple[Any, slice]]:
    """Return runs of equal values, and their positions."""
    encoded = pc.run_end_encode(column)
    start = 0
    for value, stop in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
        yield value, slice(start, stop)
        start = stop


def write_files(
    batches: Iterable[pa.RecordBatch], out: str, columns: pa.Schema, task: int, run: str = "0"
) -> Iterator[ExportedFile]:
    """Write the batches of a task in order; start a new file for another topic and after `FILE_BYTES`.

    `run` is part of the file names, so that different exports to one folder do not collide.
    """
    store = Store(out)
    current: _OpenFile | None = None
    number = 0
    for batch in batches:
        for topic, piece in _runs(batch.column("topic")):
            if current is not None and (current.topic != topic or current.bytes >= FILE_BYTES):
                yield current.close()
                current = None
            if current is None:
                current = _OpenFile(store, topic, _name(topic, run, task, number), columns)
                number += 1
            rows = batch.slice(piece.start, piece.stop - piece.start).select(columns.names).cast(columns)
            current.write(rows)
    if current is not None:
        yield current.close()


def _name(topic: str, run: str, task: int, number: int) -> str:
    return f"part-{quote(topic, safe='')}-{run}-{task:05d}-{number:04d}.parquet"


def answers(files: Iterable[ExportedFile]) -> Iterator[str]:
    """Return files as JSON, one text for each."""
    return (json.dumps(asdict(each)) for each in files)


def first_time_ms(store: Store, paths: Iterable[str]) -> int:
    """Return the earliest timestamp of the records in some files of an export; 0 if none has one."""
    earliest = []
    for path in paths:
        with store.files.open_input_file(store.full(path)) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(columns=["timestamp_ms"]):
                times = batch.column("timestamp_ms")
                earliest.append(pc.min(times.filter(pc.greater_equal(times, 0))).as_py())
    return min((each for each in earliest if each is not None), default=0)
