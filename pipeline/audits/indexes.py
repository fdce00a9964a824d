"""Reads the index files of data directories in Spark tasks, one row per entry."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.audits.sidecar_files import INDEXES, PartitionFiles, index_entries
from pipeline.schemas import ddl

_FILES_OF_A_TASK = 200
"""Starting a task costs about as much as reading so many index files."""

File = tuple[str, str]
"""A data directory, and the path of an index file within it."""


def index_table(spark: SparkSession, files: Iterable[PartitionFiles]) -> DataFrame:
    """Return a table with the columns of `beside.INDEXES`.

    This is not a Spark data source: Spark plans those in a Python worker on the driver, which does not have this code.
    """
    wanted = [(each.directory, file) for each in files for file in each.index_files]
    groups = [wanted[at : at + _FILES_OF_A_TASK] for at in range(0, len(wanted), _FILES_OF_A_TASK)]
    numbers = spark.range(0, len(groups), 1, max(1, len(groups)))
    return numbers.mapInArrow(partial(_read, groups=groups), ddl(INDEXES))


def _read(batches: Iterable[pa.RecordBatch], *, groups: Sequence[Sequence[File]]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            for directory, file in groups[number]:
                yield index_entries(directory, file)
