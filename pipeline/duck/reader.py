"""Decodes files into tables of DuckDB: in this process, or (`pipeline.spark_reader`) in the tasks of a Spark session.

The work is cut into pieces, such as a partition's log. What a piece becomes is small beside the piece: a row for each
batch, not for each record. All queries run in DuckDB in either case.
"""

import tempfile
from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.duck.engine import TABLE_ROWS, DuckEngine
from pipeline.pieces import Decode, Piece


class Reader(Protocol):
    """Decodes files into tables."""

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """Make these tables from all rows of all pieces; they are empty if there are none.

        Raises:
            OSError: a file cannot be read.
            DamagedError: damage, if `decode` does not report it.
            EngineError: the same, if a task of Spark met it.
        """

    def close(self) -> None:
        """Release what tables were made from."""


class LocalReader:
    """Decodes in this process; many rows go to files, so that memory does not grow with the data."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """See `Reader.read`."""
        waiting: dict[str, list[pa.RecordBatch]] = {name: [] for name in schemas}
        files: dict[str, list[str]] = {name: [] for name in schemas}
        for piece in pieces:
            for name, rows in decode(piece.what):
                waiting[name].append(rows)
                if sum(map(len, waiting[name])) >= TABLE_ROWS:
                    files[name].append(self._written(name, len(files[name]), waiting[name], schemas[name]))
        for name, schema in schemas.items():
            if files[name]:
                files[name].append(self._written(name, len(files[name]), waiting[name], schema))
                engine.parquet(name, schema, files[name])
            else:
                engine.table(name, pa.Table.from_batches(waiting[name], schema))

    def close(self) -> None:
        """Delete the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _written(self, name: str, number: int, batches: list[pa.RecordBatch], schema: pa.Schema) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="understudy-tables-")
        path = f"{self._folder.name}/{name}-{number:06d}.parquet"
        pq.write_table(pa.Table.from_batches(batches, schema), path, compression="lz4")
        batches.clear()
        return path
