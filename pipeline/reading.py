"""Paths -> Arrow, without Spark: the records, batches and coordinators' records of data directories, and wire journals.

A path is a broker's data directory (`log.dirs`), the folder of several (`broker-1`, ...), one partition's directory,
one segment file, or a list of those; local, or a URI that `pyarrow.fs` knows (`s3://bucket/logs`). Logs may be read
while a broker writes them: a last batch that is not whole yet is not there yet.
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
    """The records, partition by partition in the order of their offsets.

    Args:
        paths: what to read.
        columns: names of `schemas.KAFKA` and `schemas.EXTRA`; by default Spark's seven and `headers`. What is not asked
            for is not decoded.
        topics: only these; names, or patterns with `*` and `?`.
        offsets: only records within these offsets.
        times: only records within these times (ms).
        isolation: `read_committed` leaves out aborted records, and all from the last stable offset on.
        control: whether control records (transaction markers) are rows too.
        mode: what becomes of damaged bytes; `report` adds the column `damage` at the end.
        crc: whether checksums are compared.
        broker: only the replicas below `broker-N`; by default the longest replica of each partition.

    Raises:
        DamagedError: mode `fail`, and something is wrong.
        FileNotFoundError: no log lies there.
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
    """One row per batch (`schemas.BATCHES`), read from the headers alone; control batches are opened.

    Arguments and errors as of `read_segments`. `times` compares with the batch's largest timestamp.
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
    """The coordinators' records of one kind, a key of `schemas.STATE`, in the order of the logs.

    The records of the newest readable metadata snapshot precede those of a metadata log that does not begin at 0.

    Offsets that a transaction committed are there with the transaction's first record; `aborted` marks which never
    counted. Other arguments and errors as of `read_segments`.
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
            if (found := decode_state(records, kind, schema)) is not None:
                yield found


def read_journal(
    paths: Paths, *, columns: Sequence[str] | None = None, mode: Mode = "fail"
) -> Iterator[pa.RecordBatch]:
    """The requests of wire journals and their answers (`docs/journal.md`), run by run in the order of the files.

    Args:
        paths: folders of journals, or files of them; local, or URIs.
        columns: names of `schemas.JOURNAL`.
        mode: what becomes of a line that cannot be read. The last line of a file that is being written is not there
            yet.

    Raises:
        DamagedError: mode `fail`.
        FileNotFoundError: no journal lies there.
    """
    schema = JOURNAL if columns is None else pick(JOURNAL, columns)
    for file in journal.find_files(paths):
        yield from journal.read_lines(journal.JournalRange(file), schema, mode)
