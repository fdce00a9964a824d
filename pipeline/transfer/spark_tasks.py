"""Runs exports and loads on Spark: tasks on its workers, and the selections that need its SQL."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pipeline.schemas import ddl
from pipeline.transfer.copying import Target
from pipeline.transfer.manifest import ExportedFile, file_of
from pipeline.transfer.selection import Choice
from pipeline.transfer.tasks import Run
from pipeline.workers import run, settle

ANSWER: Final = pa.schema([pa.field("answer", pa.string())])
_HASHED: Final = 1_000_000  # shares of which a sample takes some: to a millionth


def on_spark(spark: SparkSession) -> Run:
    """Return a function that runs each task as a Spark task."""
    return partial(run, spark.sparkContext)


def _answers(texts: Iterable[str]) -> Iterator[pa.RecordBatch]:
    for text in texts:
        yield pa.RecordBatch.from_pydict({"answer": [text]}, schema=ANSWER)


def applied(choice: Choice, records: DataFrame) -> DataFrame:
    """Return the selected records with all changes applied.

    Control records are kept regardless of time, key and value: without its marker a transaction would never end.
    """
    frame = _within(records, "offset", choice.offsets)
    marker = F.col("is_control") if "is_control" in records.columns else F.lit(False)
    kept = F.lit(True)
    low, high = choice.times
    if low is not None:
        kept = kept & (F.col("timestamp_ms") >= low)
    if high is not None:
        kept = kept & (F.col("timestamp_ms") < high)
    if choice.sample < 1:
        share = F.pmod(F.xxhash64(F.coalesce(F.col("key"), F.lit(b""))), F.lit(_HASHED))
        kept = kept & (share < int(choice.sample * _HASHED))
    if choice.where is not None:
        kept = kept & F.coalesce(F.expr(choice.where), F.lit(False))
    if choice.changes_records:
        frame = frame.where(marker | kept)
    types = dict(records.dtypes)
    for column, expression in choice.masks.items():
        masked = F.expr(expression).cast(types[column])
        frame = frame.withColumn(column, F.when(marker, F.col(column)).otherwise(masked))
    if choice.renamed:  # all in one step, because two topics may swap their names
        topic = F.col("topic")
        cases = [F.when(topic == old, F.lit(new)) for old, new in choice.renamed.items()]
        frame = frame.withColumn("topic", F.coalesce(*cases, topic))
    return frame


def _within(frame: DataFrame, column: str, bounds: tuple[int | None, int | None]) -> DataFrame:
    low, high = bounds
    if low is not None:
        frame = frame.where(F.col(column) >= low)
    return frame if high is None else frame.where(F.col(column) < high)


def written(records: DataFrame, target: Target) -> list[ExportedFile]:
    """Write the records, each task its own files; return the written files in path order."""
    work = partial(_write_task, target=target)
    answers = records.mapInArrow(work, ddl(ANSWER)).toArrow().column("answer").to_pylist()
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def _write_task(batches: Iterable[pa.RecordBatch], *, target: Target) -> Iterator[pa.RecordBatch]:
    settle()
    context = TaskContext.get()
    yield from _answers(target.files(batches, 0 if context is None else context.partitionId()))
