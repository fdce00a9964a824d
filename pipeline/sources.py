"""The data sources, without Spark: options and conditions become pickled tasks (driver), a task becomes rows (worker).

Workers receive bytes: only this code, wherever it runs, knows the classes in them.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from pipeline import journal, plan
from pipeline.bounds import Condition, both, limits
from pipeline.directory import Partition
from pipeline.locations import Location
from pipeline.options import Options
from pipeline.query import Query, pick, record_schema
from pipeline.replicas import find_partitions
from pipeline.schemas import JOURNAL, STATE_RECORDS, ddl, state_schema
from pipeline.splits import Split, join, pack
from pipeline.workers import settle

_SNAPSHOT: Final = "metadata snapshot"
"""Source of a task that reads a metadata snapshot."""


def columns(source: str, texts: Mapping[str, str]) -> str:
    """Return the columns of a source with these options, as Spark's DDL. Raises ValueError."""
    return ddl(Options(source, texts).schema())


def tasks(
    source: str, texts: Mapping[str, str], names: Sequence[str], conditions: Sequence[tuple[str, str, Any]] = ()
) -> list[bytes]:
    """Return the tasks for the workers.

    Args:
        source: name of the data source.
        texts: its options.
        names: requested columns.
        conditions: (column, operator, value), as in `bounds.Condition`; excluded rows may be returned all the same.

    Raises:
        ValueError: an unknown option or column.
        FileNotFoundError: there is nothing at the path.
    """
    options = Options(source, texts)
    wanted = tuple(names)
    limit = limits(Condition(*each) for each in conditions)
    if source == "wire_journal":
        pick(options.available(), wanted)
        ranges = [each for file in journal.find_files(options.paths) for each in journal.cut(file, options.split_bytes)]
        return journal_tasks(options, wanted, ranges)
    query = log_query(options, wanted)
    query = replace(query, times=both(query.times, limit.times))
    splits = []
    older: list[bytes] = []
    for each in partitions_of(options):
        if limit.wants(*each.key):
            has_older = source == "kafka_state" and options.kind == "metadata" and options.bounds(*each.key)[0] is None
            if has_older and (snapshot := _snapshot_before(each)) is not None:
                older.append(pickle.dumps((_SNAPSHOT, wanted, options.mode, snapshot)))
                limit.offsets = both(limit.offsets, (snapshot[0], None))
            offsets = both(options.bounds(*each.key), limit.offsets)
            splits += plan_logs(options, [each], replace(query, offsets=offsets))
    return older + log_tasks(options, wanted, query, splits)


def partitions_of(options: Options) -> list[Partition]:
    """Return the partitions that these options select."""
    partitions = find_partitions(options.paths, topics=options.topics, broker=options["broker"])
    return [each for each in partitions if options.wants(*each.key)]


def log_query(options: Options, names: tuple[str, ...]) -> Query:
    """Return the query for these columns."""
    query = options.query(names)
    if options.source == "kafka_state":
        return replace(query, schema=record_schema(STATE_RECORDS, query.mode))
    return query


def plan_logs(options: Options, partitions: Sequence[Partition], query: Query) -> list[Split]:
    """Return the splits of some partitions."""
    make = plan.plan_batches if options.source == "kafka_batches" else plan.plan_records
    return make(partitions, query, options.split_bytes)


def log_tasks(options: Options, names: tuple[str, ...], query: Query, splits: Sequence[Split]) -> list[bytes]:
    """Return tasks, each for one large split or several small ones."""
    kind = options.kind if options.source == "kafka_state" else ""
    groups = [join(group) for group in pack(splits, options.split_bytes)]
    return [pickle.dumps((options.source, names, (query, kind), group)) for group in groups]


def journal_tasks(options: Options, names: tuple[str, ...], ranges: Sequence[journal.JournalRange]) -> list[bytes]:
    """Return a task for each range of a journal."""
    return [pickle.dumps((options.source, names, options.mode, each)) for each in ranges]


def read(task: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, on a worker.

    Raises:
        DamagedError: damage in mode `fail`.
        OSError: a file cannot be read.
    """
    source, names, how, what = pickle.loads(task)  # noqa: S301 - it comes from `tasks`, over Spark's own channel
    if source == _SNAPSHOT:
        return _read_snapshot(what, state_schema("metadata", how), list(names))
    if source == "kafka_state":
        return _read_state(how[0], how[1], list(names), what)
    return _read(source, list(names), how, what)


def _read(source: str, names: list[str], how: Any, what: Any) -> Iterator[pa.RecordBatch]:
    settle()
    if source == "wire_journal":
        yield from journal.read_lines(what, pick(JOURNAL, names), how)
        return
    query, _ = how
    read_split = plan.read_batches if source == "kafka_batches" else plan.read_records
    for split in what:
        yield from read_split(split, query)


def _snapshot_before(log: Partition) -> tuple[int, Location] | None:
    """Return end offset and location of the snapshot that precedes a metadata log."""
    from pipeline.metadata_log import snapshot_before  # as in `_read_state`

    snapshot = snapshot_before(log)
    return None if snapshot is None else (snapshot.end, snapshot.location)


def _read_snapshot(place: tuple[int, Location], schema: pa.Schema, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    from pipeline.metadata_log import read_snapshot  # as in `_read_state`

    rows = read_snapshot(*place)
    return iter([pa.RecordBatch.from_pylist(rows, schema=pick(schema, names))] if rows else [])


def _read_state(query: Query, kind: str, names: list[str], splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """Do the same as `_read`, but import immediately: later the import path is reset (`understudy.server_path`)."""
    from pipeline.state import decode_state  # the decoders take long to import, and no other source needs them

    schema = pick(state_schema(kind, query.mode), names)
    decoded = (decode_state(records, kind, schema) for split in splits for records in plan.read_records(split, query))
    return (rows for rows in decoded if rows is not None)
