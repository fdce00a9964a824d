"""Makes the table of all batches (`history.HISTORY`) in Spark tasks, each of which reads some logs from the start.

On one machine a task writes many rows to a Parquet file, from which each query reads only the columns that it needs.
On a cluster no folder is readable by all nodes, so Spark keeps the rows itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.audits.history import HISTORY, READ, History
from pipeline.directory import Partition
from pipeline.plan import plan_batches, read_batches
from pipeline.query import Query
from pipeline.replicas import find_partitions
from pipeline.schemas import ddl
from pipeline.splits import SPLIT_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_ROWS: Final = 2000
"""Smaller tables become part of Spark's plans; queries on an empty one then cost nothing."""
Log = tuple[str, Partition]
"""A data directory, and a partition in it."""
_WRITTEN: Final = pa.schema([pa.field("rows", pa.int64())])
_QUERY: Final = Query(READ, mode="report")


def log_table(spark: "SparkSession", directories: Sequence[str], folder: Path | None = None) -> "DataFrame":
    """Return all batches of all logs in some data directories.

    Args:
        spark: a session.
        directories: data directories, which are read independently.
        folder: for files that this machine's tasks can read; None: keep the rows in Spark.
    """
    groups = packed([(directory, each) for directory in directories for each in find_partitions(directory)])
    numbers = spark.range(0, len(groups), 1, len(groups))
    if folder is None:
        return numbers.mapInArrow(partial(_rows, groups=groups), ddl(HISTORY))
    folder.mkdir()
    written = numbers.mapInArrow(partial(_written, groups=groups, folder=str(folder)), ddl(_WRITTEN)).toArrow()
    if sum(written.column("rows").to_pylist()) > SMALL_ROWS:
        return spark.read.schema(ddl(HISTORY)).parquet(str(folder))
    rows = [pq.read_table(each, schema=HISTORY) for each in sorted(folder.glob("*.parquet"))]
    return spark.createDataFrame(pa.concat_tables([HISTORY.empty_table(), *rows]), ddl(HISTORY))


def packed(logs: Iterable[Log]) -> list[list[Log]]:
    """Group small logs until each group is worth a task."""
    packed: list[list[Log]] = []
    left = 0
    for each in logs:
        size = sum(segment.size for segment in each[1].segments)
        if not packed or size > left:
            packed.append([])
            left = SPLIT_BYTES
        packed[-1].append(each)
        left -= size
    return packed


def read_history(group: Iterable[Log]) -> Iterator[pa.RecordBatch]:
    """Yield each batch of some logs with its history (`history.HISTORY`)."""
    for directory, partition in group:
        splits = plan_batches([partition], _QUERY)
        yield from History(directory).rows(batch for split in splits for batch in read_batches(split, _QUERY))


def _rows(numbers: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[Log]]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            yield from read_history(groups[number])


def _written(
    numbers: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[Log]], folder: str
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            count = 0
            with pq.ParquetWriter(f"{folder}/{number:05d}.parquet", HISTORY, compression="lz4") as file:
                for rows in read_history(groups[number]):
                    file.write_batch(rows)
                    count += len(rows)
            yield pa.RecordBatch.from_pydict({"rows": [count]}, schema=_WRITTEN)
