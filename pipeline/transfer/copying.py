"""The tasks of an export: records -> Parquet files, with Spark's rows in between or without."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pipeline import sources
from pipeline.schemas import ddl
from pipeline.transfer import parquet
from pipeline.transfer.manifest import ExportedFile, file_of
from pipeline.values.columns import NO_SCHEMAS, Schemas, with_values
from pipeline.workers import settle


@dataclass(frozen=True, slots=True)
class Target:
    """A folder and the columns of its files. `run` is a part of their names; `schemas` decode keys and values."""

    out: str
    columns: pa.Schema
    run: str = "0"
    schemas: Schemas = NO_SCHEMAS

    def files(self, rows: Iterable[pa.RecordBatch], task: int) -> Iterator[pa.RecordBatch]:
        """Write the rows of a task; its files as rows."""
        made = with_values(rows, self.schemas)
        return parquet.answers(parquet.write_files(made, self.out, self.columns, task, self.run))


def written(records: DataFrame, target: Target) -> list[ExportedFile]:
    """Write the records, each task its own files; what was written, in the order of the paths."""
    work = partial(_write_task, target=target)
    answers = records.mapInArrow(work, ddl(parquet.ANSWER)).toArrow().column("answer").to_pylist()
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def _write_task(batches: Iterable[pa.RecordBatch], *, target: Target) -> Iterator[pa.RecordBatch]:
    settle()
    context = TaskContext.get()
    yield from target.files(batches, 0 if context is None else context.partitionId())


def copied(
    spark: SparkSession, options: Mapping[str, str], target: Target, renamed: Mapping[str, str]
) -> list[ExportedFile]:
    """Write all records as they are; what was written, in the order of the paths.

    No question is asked of a record, so none becomes a row of Spark's: each task goes from bytes to Parquet by itself.
    """
    base = [name for name in target.columns.names if name not in target.schemas.columns.names]
    tasks = sources.tasks("kafka_segments", options, base)
    work = partial(_copy, tasks=tasks, target=target, renamed=dict(renamed))
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    answers = numbers.mapInArrow(work, ddl(parquet.ANSWER)).toArrow().column("answer").to_pylist()
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def _copy(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], target: Target, renamed: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from target.files(_renamed(sources.read(tasks[number]), renamed), number)


def _renamed(found: Iterable[pa.RecordBatch], renamed: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The rows under their topic's new name; those that come together are of one topic."""
    for rows in found:
        at = rows.schema.get_field_index("topic")
        name = renamed.get(rows.column(at)[0].as_py())
        if name is None:
            yield rows
        else:
            yield rows.set_column(at, rows.schema.field(at), pa.repeat(pa.scalar(name), rows.num_rows))
