"""A data directory -> Parquet and a manifest."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pipeline import sources
from pipeline.audits.beside import Tree
from pipeline.schemas import ddl
from pipeline.transfer import parquet, registering
from pipeline.transfer.choosing import Choice
from pipeline.transfer.manifest import NAME, Bounds, ExportedFile, Manifest, ManifestError, Store, file_of
from pipeline.workers import settle


def export(
    spark: SparkSession,
    source: str,
    out: str,
    *,
    choice: Choice | None = None,
    producers: bool = False,
    isolation: str = "read_committed",
    overwrite: bool = False,
    told_source: str | None = None,
    configs: Mapping[str, Mapping[str, str]] | None = None,
) -> Manifest:
    """Copy what is wanted of the logs in `source` to `out`, and write the manifest last.

    With `producers` everything is copied as it stands, aborted transactions and markers too, so that a load can make
    the same transactions again; else what a consumer of that isolation sees.

    Raises:
        ManifestError: `out` holds an export already, and is not to be overwritten.
        FileNotFoundError: there is no such directory, or nothing in it that is wanted.
    """
    choice = choice or Choice()
    store = Store(out)
    make_room(store, overwrite=overwrite)
    topics, found = described(spark, source, choice)
    if not topics:
        raise FileNotFoundError(f"{source} has no topic that is wanted")
    columns = parquet.schema(producers=producers)
    options = {
        "columns": ",".join(name for name in columns.names[7:] if name != "headers"),
        "includeHeaders": "true",
        "topics": ",".join(topics),
        "isolation": "read_uncommitted" if producers else isolation,
        "control": str(producers).lower(),
    }
    if choice.changes_records:
        records = spark.read.format("kafka_segments").options(**options).load(source)
        files = written(choice.applied(records), out, columns)
    else:
        files = copied(spark, {**options, "path": source}, out, columns, choice.renamed)
    manifest = Manifest(
        told_source or source,
        producers,
        "read_uncommitted" if producers else isolation,
        with_counts({choice.name_of(name): each for name, each in topics.items()}, files),
        {choice.name_of(name): each for name, each in (found if configs is None else configs).items()},
        tuple(files),
    )
    store.write(NAME, manifest.encode().encode())
    return manifest


def chosen(spark: SparkSession, store: Store, manifest: Manifest, choice: Choice, out: str) -> tuple[Store, Manifest]:
    """An export of those records of an export that are wanted, in another folder."""
    columns = parquet.schema(producers=manifest.producers)
    files = [each for each in manifest.files if choice.wants(each.topic)]
    if files:
        paths = [f"{store.path}/{each.path}" for each in files]
        records = spark.read.schema(ddl(columns)).parquet(*paths).sortWithinPartitions("topic", "partition", "offset")
        plain_choice = replace(choice, renamed={})
        made = written(plain_choice.applied(records.select(*columns.names)), out, columns)
    else:
        made = []
    plain = {
        name: {number: Bounds(each.log_start, each.log_end) for number, each in partitions.items()}
        for name, partitions in manifest.topics.items()
    }
    return Store(out), replace(manifest, topics=with_counts(plain, made), files=tuple(made))


def make_room(store: Store, *, overwrite: bool) -> None:
    """See that there is no export yet, or take its files away. Raises ManifestError."""
    if not store.exists(NAME):
        return
    if not overwrite:
        raise ManifestError(f"{store.path} holds an export already; say --overwrite to replace it")
    for each in store.read_manifest().files:
        store.remove(each.path)
    store.remove(NAME)
    registering.forget(store)


def written(records: DataFrame, out: str, columns: pa.Schema) -> list[ExportedFile]:
    """Write the records, each task its own files; what was written, in the order of the paths."""
    write = partial(_write_task, out=out, columns=columns.serialize().to_pybytes())
    answers = records.mapInArrow(write, ddl(parquet.TOLD)).toArrow().column("told").to_pylist()
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def _write_task(batches: Iterable[pa.RecordBatch], *, out: str, columns: bytes) -> Iterator[pa.RecordBatch]:
    settle()
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    yield from parquet.told(parquet.write_files(batches, out, pa.ipc.read_schema(pa.py_buffer(columns)), task))


def copied(
    spark: SparkSession, options: Mapping[str, str], out: str, columns: pa.Schema, renamed: Mapping[str, str]
) -> list[ExportedFile]:
    """Write all records as they are; what was written, in the order of the paths.

    No question is asked of a record, so none becomes a row of Spark's: each task goes from bytes to Parquet by itself.
    """
    tasks = sources.tasks("kafka_segments", options, columns.names)
    work = partial(_copy, tasks=tasks, out=out, columns=columns.serialize().to_pybytes(), renamed=dict(renamed))
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    answers = numbers.mapInArrow(work, ddl(parquet.TOLD)).toArrow().column("told").to_pylist()
    return sorted((file_of(json.loads(text)) for text in answers), key=lambda each: each.path)


def _copy(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], out: str, columns: bytes, renamed: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    schema = pa.ipc.read_schema(pa.py_buffer(columns))
    for batch in batches:
        for number in batch.column("id").to_pylist():
            rows = _renamed(sources.read(tasks[number]), renamed)
            yield from parquet.told(parquet.write_files(rows, out, schema, number))


def _renamed(found: Iterable[pa.RecordBatch], renamed: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The rows under their topic's new name; those that come together are of one topic."""
    for rows in found:
        at = rows.schema.get_field_index("topic")
        name = renamed.get(rows.column(at)[0].as_py())
        if name is None:
            yield rows
        else:
            yield rows.set_column(at, rows.schema.field(at), pa.repeat(pa.scalar(name), rows.num_rows))


def described(
    spark: SparkSession, source: str, choice: Choice
) -> tuple[dict[str, dict[int, Bounds]], dict[str, dict[str, str]]]:
    """The wanted topics with the bounds of their partitions' logs, and their own settings."""
    topics: dict[str, dict[int, Bounds]] = {}
    has_metadata = False
    for directory in Tree(source).directories():
        for each in Tree(directory).partitions():
            has_metadata |= each.topic == "__cluster_metadata"
            if choice.wants(each.topic):
                start = each.first_segment_base if each.log_start is None else each.log_start
                end = max(each.last_segment_base, each.high_watermark or 0)
                known = topics.setdefault(each.topic, {}).get(each.partition, Bounds(start, end))
                topics[each.topic][each.partition] = Bounds(min(known.log_start, start), max(known.log_end, end))
    ends = spark.read.format("kafka_batches").option("topics", ",".join(topics) or "-").load(source)
    for row in ends.groupBy("topic", "partition").agg({"last_offset": "max"}).toArrow().to_pylist():
        last = row["max(last_offset)"]
        partitions = topics.get(row["topic"], {})
        if last is not None and row["partition"] in partitions:
            known = partitions[row["partition"]]
            partitions[row["partition"]] = replace(known, log_end=max(known.log_end, last + 1))
    return topics, _configs(spark, source, topics) if has_metadata else {}


def _configs(spark: SparkSession, source: str, topics: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The topics' own settings, as the metadata log has them last."""
    rows = spark.read.format("kafka_state").options(kind="metadata", mode="skip").load(source)
    found: dict[str, dict[str, str]] = {}
    for row in rows.where("type = 'ConfigRecord'").orderBy("offset").toArrow().to_pylist():
        record = json.loads(row["record"])
        if record.get("resource_type") == 2 and record.get("resource_name") in topics:
            settings = found.setdefault(record["resource_name"], {})
            if record.get("value") is None:
                settings.pop(record["name"], None)
            else:
                settings[record["name"]] = record["value"]
    return found


def with_counts(
    topics: Mapping[str, Mapping[int, Bounds]], files: Iterable[ExportedFile]
) -> dict[str, dict[int, Bounds]]:
    """Bounds with what was copied of each partition."""
    counted = {name: dict(partitions) for name, partitions in topics.items()}
    for each in files:
        for part in each.parts:
            known = counted[each.topic][part.partition]
            firsts, lasts = {part.first_offset, known.first_offset}, {part.last_offset, known.last_offset}
            counted[each.topic][part.partition] = replace(
                known,
                records=known.records + part.records,
                first_offset=min(each for each in firsts if each is not None),
                last_offset=max(each for each in lasts if each is not None),
            )
    return counted


def verify(store: Store, manifest: Manifest) -> None:
    """Hold every file against its checksum. Raises ManifestError for the first that differs or lacks."""
    for each in manifest.files:
        if not store.exists(each.path):
            raise ManifestError(f"{store.path}: {each.path} is missing")
        if store.sha256(each.path) != each.sha256:
            raise ManifestError(f"{store.path}: {each.path} is not what was exported: its checksum differs")
