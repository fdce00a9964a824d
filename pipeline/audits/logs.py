"""Decodes logs and journals for the audits' tables, piece by piece (`pipeline.pieces`)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from pipeline.audits.history import READ, History
from pipeline.audits.sidecar_files import PartitionFiles, index_entries
from pipeline.decoding.columns import repeated
from pipeline.directory import Partition, logs_below
from pipeline.journal import JournalRange, cut, find_files, read_lines
from pipeline.locations import locate
from pipeline.pieces import Piece
from pipeline.plan import plan_batches, plan_records, read_batches, read_records
from pipeline.query import Query, record_schema
from pipeline.replicas import longest_replicas, no_log
from pipeline.schemas import JOURNAL
from pipeline.splits import SPLIT_BYTES, Split

Log = tuple[str, Partition]
"""A data directory, and a partition in it."""
DECODED: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("base_offset", pa.int64()),
        pa.field("segment", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("timestamp_type", pa.int32()),
        pa.field("latest_ms", pa.int64()),
        pa.field("damage", pa.string()),  # why the records cannot be decoded
    ]
)
"""One row per batch whose records were decoded, with their highest timestamp, and per damaged range."""
COMPACTED_KEYS: Final = pa.schema(
    [
        pa.field("directory", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("is_transactional", pa.bool_()),
        pa.field("key", pa.binary()),
    ]
)
"""The records of the compacted topics."""
_BATCHES: Final = Query(READ, mode="report")
_RECORDS: Final = Query(
    record_schema(("topic", "partition", "timestampType", "timestamp_ms", "batch_base_offset", "segment", "position"),
                  "report"),
    mode="report",
)  # fmt: skip
_KEYS: Final = Query(record_schema(("topic", "partition", "offset", "is_transactional", "key"), "skip"), mode="skip")
_INDEX_BYTES: Final = SPLIT_BYTES // 200
"""Opening an index file takes as long as reading so much of a log."""


def logs_of(directories: Iterable[str], topics: Sequence[str] | None = None) -> list[Log]:
    """Return every replica, or those of some topics, in some data directories; one of several may have none.

    Raises:
        FileNotFoundError: none of the directories has a log.
    """
    logs = {directory: logs_below(locate(directory)) for directory in directories}
    if not any(logs.values()):
        raise no_log(logs)
    return [(directory, each) for directory, own in logs.items() for each in longest_replicas(own, topics=topics)]


def whole(logs: Iterable[Log]) -> list[Piece]:
    """Return a piece for each log."""
    return [Piece(log, sum(segment.size for segment in log[1].segments)) for log in logs]


def read_history(log: Log) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the batches of a log with their history (`history.HISTORY`)."""
    directory, partition = log
    splits = plan_batches([partition], _BATCHES)
    for rows in History(directory).rows(batch for split in splits for batch in read_batches(split, _BATCHES)):
        yield "history", rows


def records_of(logs: Iterable[Log]) -> list[Piece]:
    """Return the pieces of some logs for `read_decoded` and `read_keys`."""
    return [
        Piece((directory, split), split.size)
        for directory, partition in logs
        for split in plan_records([partition], _RECORDS)
    ]


def read_decoded(piece: tuple[str, Split]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Decode all records of a split; yield rows of `DECODED`."""
    directory, split = piece
    for records in read_records(split, _RECORDS):
        batches = pa.Table.from_batches([records]).group_by(
            ["topic", "partition", "batch_base_offset", "segment", "position", "timestampType", "damage"]
        ).aggregate([("timestamp_ms", "max")])  # fmt: skip
        for rows in batches.to_batches():
            columns = dict(zip(rows.schema.names, rows.columns, strict=True))
            columns |= {
                "directory": repeated(directory, pa.string(), len(rows)),
                "base_offset": columns["batch_base_offset"],
                "timestamp_type": columns["timestampType"],
                "latest_ms": columns["timestamp_ms_max"],
            }
            yield "decoded", pa.RecordBatch.from_arrays([columns[name] for name in DECODED.names], schema=DECODED)


def read_keys(piece: tuple[str, Split]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of `COMPACTED_KEYS` of a split."""
    directory, split = piece
    for records in read_records(split, _KEYS):
        named = repeated(directory, pa.string(), len(records))
        yield (
            "compacted_keys",
            pa.RecordBatch.from_arrays(
                [named if name == "directory" else records.column(name) for name in COMPACTED_KEYS.names],
                schema=COMPACTED_KEYS,
            ),
        )


def indexes_of(files: Iterable[PartitionFiles]) -> list[Piece]:
    """Return a piece for each index file."""
    return [Piece((each.directory, file), _INDEX_BYTES) for each in files for file in each.index_files]


def read_index(file: tuple[str, str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the entries of an index file (`sidecar_files.INDEXES`)."""
    yield "indexes", index_entries(*file)


def lines_of(path: str) -> list[Piece]:
    """Return the pieces of a journal. Raises FileNotFoundError: there is none."""
    files = find_files(path)
    return [Piece(each, (each.stop or file.size) - each.start) for file in files for each in cut(file, SPLIT_BYTES)]


def read_wire(span: JournalRange) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the requests and responses in a range of a journal (`schemas.JOURNAL`). Raises DamagedError."""
    for rows in read_lines(span, JOURNAL):
        yield "wire", rows
