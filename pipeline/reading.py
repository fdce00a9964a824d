"""Paths -> Arrow, without Spark: the records, batches and coordinators' records of data directories, and wire journals.

A path is a broker's data directory (`log.dirs`), the folder of several (`broker-1`, ...), one partition's directory,
one segment file, or a list of those; local, or a URI that `pyarrow.fs` knows (`s3://bucket/logs`). Logs may be read
while a broker writes them: a last batch that is not whole yet is not there yet.
"""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Literal

import pyarrow as pa

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Mode = Literal["fail", "report", "skip"]
"""What becomes of damaged bytes: an error that names file, position and reason; a row that does; or nothing at all."""
Isolation = Literal["read_uncommitted", "read_committed"]
Bounds = tuple[int | None, int | None]
"""From (included) and to (not included); None: open. Offsets or milliseconds."""
OPEN: Bounds = (None, None)


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

    Raises:
        DamagedError: mode `fail`, and something is wrong.
        FileNotFoundError: no log lies there.
        ValueError: an argument that says nothing.
    """
    raise NotImplementedError


def read_batches(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    topics: Sequence[str] | None = None,
    offsets: Bounds = OPEN,
    times: Bounds = OPEN,
    mode: Mode = "report",
    crc: bool = True,
) -> Iterator[pa.RecordBatch]:
    """One row per batch (`schemas.BATCHES`), read from the headers alone; control batches are opened.

    Arguments and errors as of `read_segments`. `times` compares with the batch's largest timestamp.
    """
    raise NotImplementedError


def read_state(
    paths: Paths, kind: str, *, columns: Sequence[str] | None = None, mode: Mode = "fail"
) -> Iterator[pa.RecordBatch]:
    """The coordinators' records of one kind, a key of `schemas.STATE`, in the order of the log."""
    raise NotImplementedError


def read_journal(paths: Paths, *, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The requests of a wire journal and their answers (`docs/journal.md`), in the order of the file."""
    raise NotImplementedError
