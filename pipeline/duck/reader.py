"""Decodes files into tables of DuckDB: in this process, or (`pipeline.spark_reader`) in the tasks of a Spark session.

The work is cut into pieces, such as a partition's log. What a piece becomes is small beside the piece: a row for each
batch, not for each record. All queries run in DuckDB in either case.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.duck.engine import TABLE_ROWS, DuckEngine
from pipeline.pieces import Decode, Piece, file_options


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
    """Decodes in this process."""

    def __init__(self) -> None:
        self._files = Files()

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """See `Reader.read`."""
        tables = self._files.tables(schemas)
        for piece in pieces:
            tables.decode(decode, piece)
        tables.make(engine)

    def close(self) -> None:
        """Delete the files."""
        self._files.close()


class Files:
    """A folder for what is too much for memory; it is made when something is."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def tables(self, schemas: Mapping[str, pa.Schema]) -> "Tables":
        """Return tables without rows."""
        return Tables(self, schemas)

    def next_path(self, name: str) -> str:
        """Return the path of another file."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="understudy-tables-")
        self._count += 1
        return f"{self._folder.name}/{name}-{self._count:06d}.parquet"

    def close(self) -> None:
        """Delete the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class Tables:
    """Tables that pieces are decoded into; many rows go to files, so that memory does not grow with the data."""

    def __init__(self, files: Files, schemas: Mapping[str, pa.Schema]) -> None:
        self._files, self._schemas = files, schemas
        self._rows: dict[str, list[pa.RecordBatch]] = {name: [] for name in schemas}
        self._paths: dict[str, list[str]] = {name: [] for name in schemas}

    def decode(self, decode: Decode, piece: Piece) -> None:
        """Add the rows of a piece."""
        for name, rows in decode(piece.what):
            self._rows[name].append(rows)
            if sum(map(len, self._rows[name])) >= TABLE_ROWS:
                self._write(name)

    def add_file(self, name: str, content: bytes) -> None:
        """Add the rows of a Parquet file."""
        path = self._files.next_path(name)
        Path(path).write_bytes(content)
        self._paths[name].append(path)

    def make(self, engine: DuckEngine) -> None:
        """Make the engine's tables."""
        for name, schema in self._schemas.items():
            if self._paths[name]:
                self._write(name)
                engine.parquet(name, schema, self._paths[name])
            else:
                engine.table(name, pa.Table.from_batches(self._rows[name], schema))

    def _write(self, name: str) -> None:
        path = self._files.next_path(name)
        schema = self._schemas[name]
        rows = pa.Table.from_batches(self._rows[name], schema)
        pq.write_table(rows, path, compression="lz4", **file_options(schema))
        self._paths[name].append(path)
        self._rows[name].clear()
