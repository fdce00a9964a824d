"""Reads data directories and wire journals into Arrow without Spark: records, batches, coordinator records.

A path is a broker's data directory (`log.dirs`), the folder of several (`broker-1`, ...), one partition's directory,
one segment file, or a list of those; local, or a URI that `pyarrow.fs` supports (`s3://bucket/logs`). Logs may be read
while a broker writes them: an incomplete last batch is ignored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline import journal, plan
from pipeline.directory import Paths
from pipeline.metadata_log import snapshot_before
from pipeline.query import OPEN, Bounds, Isolation, Mode, Query, pick, record_schema
from pipeline.replicas import find_partitions
from pipeline.schemas import BATCHES, JOURNAL, STATE_RECORDS, STATE_TOPICS, state_schema
from pipeline.state import decode_state


def read_segments(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    offsets: Bounds = OPEN,
    times: Bounds = OPEN,
    isolation: Isolation = "read_uncommitted",
    control: bool = False,
    mode: Mode = "fail",
    crc: bool = True,
    broker: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read records, partition by partition in offset order.

    Args:
        paths: what to read.
        columns: names of `schemas.KAFKA` and `schemas.EXTRA`; by default Spark's seven and `headers`. Other columns are
            not decoded.
        topics: only these; names, or patterns with `*` and `?`.
        offsets: only records within these offsets.
        times: only records within these times (ms).
        isolation: `read_committed` leaves out aborted records, and all from the last stable offset on.
        control: whether to return control records (transaction markers) too.
        mode: handling of damaged bytes; `report` adds the column `damage` at the end.
        crc: whether to verify checksums.
        broker: only the replicas below `broker-N`; by default the longest replica of each partition.

    Raises:
        DamagedError: damage in mode `fail`.
        FileNotFoundError: there is no log.
        ValueError: an invalid argument.
    """
    names = None if topics is None else tuple(topics)
    schema = record_schema(columns, mode)
    query = Query(schema, names, offsets, times, isolation, control, mode, crc, broker)
    partitions = find_partitions(paths, topics=names, broker=broker)
    for split in plan.plan_records(partitions, query):
        yield from plan.read_records(split, query)


def read_batches(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    offsets: Bounds = OPEN,
    times: Bounds = OPEN,
    mode: Mode = "report",
    crc: bool = True,
    broker: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read one row per batch (`schemas.BATCHES`) from the headers alone; control batches are decoded.

    Arguments and errors as in `read_segments`. `times` compares with the batch's largest timestamp.
    """
    names = None if topics is None else tuple(topics)
    schema = BATCHES if columns is None else pick(BATCHES, columns)
    query = Query(schema, names, offsets, times, mode=mode, crc=crc, broker=broker)
    for split in plan.plan_batches(find_partitions(paths, topics=names, broker=broker), query):
        yield from plan.read_batches(split, query)


def read_state(
    paths: Paths,
    kind: str,
    *,
    columns: Sequence[str] | None = None,
    offsets: Bounds = OPEN,
    times: Bounds = OPEN,
    mode: Mode = "fail",
    crc: bool = True,
    broker: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the coordinators' records of one kind, a key of `schemas.STATE`, in log order.

    The records of the newest readable metadata snapshot precede those of a metadata log that does not begin at 0.

    Transactional offset commits are returned even before their transaction ends; `aborted` marks those that were
    aborted. Other arguments and errors as in `read_segments`.
    """
    schema = state_schema(kind, mode)
    schema = schema if columns is None else pick(schema, columns)
    topics = STATE_TOPICS[kind]
    query = Query(record_schema(STATE_RECORDS, mode), topics, offsets, times, mode=mode, crc=crc, broker=broker)
    partitions = find_partitions(paths, topics=topics, broker=broker)
    for log in partitions if kind == "metadata" and offsets[0] is None else ():
        if (snapshot := snapshot_before(log)) is not None:
            if snapshot.rows:
                yield pa.RecordBatch.from_pylist(snapshot.rows, schema=schema)
            query = replace(query, offsets=(snapshot.end, offsets[1]))
    for split in plan.plan_records(partitions, query):
        for records in plan.read_records(split, query):
            if (table := decode_state(records, kind, schema)) is not None:
                yield table


def read_journal(
    paths: Paths, *, columns: Sequence[str] | None = None, mode: Mode = "fail"
) -> Iterator[pa.RecordBatch]:
    """Read the requests and responses of wire journals (`docs/debugging.md`), run by run in file order.

    Args:
        paths: journal folders or files; local, or URIs.
        columns: names of `schemas.JOURNAL`.
        mode: handling of unreadable lines. An incomplete last line of a file that is being written is ignored.

    Raises:
        DamagedError: damage in mode `fail`.
        FileNotFoundError: there is no journal.
    """
    schema = JOURNAL if columns is None else pick(JOURNAL, columns)
    for file in journal.find_files(paths):
        yield from journal.read_lines(journal.JournalRange(file), schema, mode)
