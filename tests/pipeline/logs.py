"""Logs for the pipeline's tests, written batch by batch, and the one way in which the tests look at rows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.reading import read_segments
from protocol.records.batch import RecordBatch, batches
from protocol.records.records import Record, build_batch, read_records

NOW_MS = 1_700_000_000_000


def write_segment(folder: Path, *batches: bytes | bytearray, base: int = 0, name: str = "t-0") -> Path:
    """A segment of these batches, as they are."""
    path = folder / name / f"{base:020d}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path


def chain(*counts: int, codec: int = 0, value_size: int = 20, **fields: Any) -> list[bytearray]:
    """Batches of so many records each, with offsets that follow each other."""
    batches = []
    offset = 0
    for count in counts:
        records = [
            Record(at, NOW_MS + at, b"k%d" % at, b"%d" % at + bytes(value_size), [("h", b"x")] if at % 3 == 0 else ())
            for at in range(offset, offset + count)
        ]
        batches.append(build_batch(records, codec=codec, partition_leader_epoch=0, **fields))
        offset += count
    return batches


def rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """All rows."""
    return [row for batch in batches for row in batch.to_pylist()]


def read(path: Path, *columns: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of `read_segments`."""
    return rows(read_segments(path, columns=columns or None, **options))


def expected(data: bytes, *, control: bool = False) -> list[tuple[Any, ...]]:
    """The records in `data` as `protocol.records` reads them one by one."""
    return [
        (record.offset, record.timestamp_ms, record.key, record.value, list(record.headers) or None)
        for batch in batches(data)
        if control or not batch.is_control
        for record in read_records(batch)
    ]


def as_tuples(record_rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows in the shape of `expected`."""
    return [
        (
            row["offset"],
            row["timestamp_ms"],
            row["key"],
            row["value"],
            None if row["headers"] is None else [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row in record_rows
    ]


RECORD = ("offset", "timestamp_ms", "key", "value", "headers")
"""The columns that `as_tuples` needs."""


def header(data: bytes, index: int) -> RecordBatch:
    """The header of batch `index`."""
    return list(batches(data))[index]
