"""Decodes the records of the reports, piece by piece (`pipeline.pieces`): sizes, and a sample of the values."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.pieces import Piece
from pipeline.plan import plan_records, read_records
from pipeline.query import Query, record_schema
from pipeline.replicas import find_partitions
from pipeline.splits import Split

RECORDS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value_bytes", pa.int32()),  # null: a tombstone
        pa.field("timestamp_ms", pa.int64()),
        pa.field("aborted", pa.bool_()),
        pa.field("batch_base_offset", pa.int64()),
    ]
)
"""One row per record of the longest replica of each partition."""
VALUES: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.binary()),
    ]
)
"""A random but repeatable sample of their values."""
SCHEMAS: Final = {"records": RECORDS, "sampled_values": VALUES}
MILLION: Final = 1_000_000  # shares of which a sample takes some: to a millionth
_QUERY: Final = Query(
    record_schema([*(name for name in RECORDS.names if name != "value_bytes"), "value"], "skip"), mode="skip"
)
_PIECE = tuple[Split, int]
"""A split, and how many of a million values are in the sample."""


def pieces_of(path: str, topics: Sequence[str], sample_ppm: int) -> list[Piece]:
    """Return the pieces of these topics for `read`."""
    query = replace(_QUERY, topics=tuple(topics))
    splits = plan_records(find_partitions(path, topics=topics), query)
    return [Piece((split, sample_ppm), split.size) for split in splits]


def read(piece: _PIECE) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of `SCHEMAS` of a split."""
    split, sample_ppm = piece
    for rows in read_records(split, _QUERY):
        sizes = pc.binary_length(rows.column("value"))
        columns = [sizes if name == "value_bytes" else rows.column(name) for name in RECORDS.names]
        yield "records", pa.RecordBatch.from_arrays(columns, schema=RECORDS)
        wanted = _drawn(split, rows.column("offset").to_numpy()) < sample_ppm
        if wanted.any():
            chosen = rows.select(VALUES.names).filter(pa.array(wanted))
            yield "sampled_values", pa.RecordBatch.from_arrays(chosen.columns, schema=VALUES)


def _drawn(split: Split, offsets: "np.typing.NDArray[np.int64]") -> "np.typing.NDArray[np.uint64]":
    """Return a number below a million for each record: the finalizer of splitmix64 over its place."""
    place = zlib.crc32(f"{split.topic}-{split.partition}".encode())
    # SplitMix64: neighbouring offsets become independent numbers.
    mixed = offsets.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(place << 20)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) % np.uint64(MILLION)
