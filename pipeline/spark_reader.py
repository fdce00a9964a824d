"""Decodes files in the tasks of a Spark session (`pipeline.duck.reader`).

Each task returns its rows as Parquet, which the driver puts into files for DuckDB. A job has some gigabytes of input,
so that neither the driver's Java nor Spark's limit for results has to hold the rows of all.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.audits.engine import EngineError
from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import Decode, LocalReader, Piece
from pipeline.rendering.text import last_line
from pipeline.schemas import ddl
from pipeline.splits import pack
from pipeline.workers import settle

SMALL_BYTES = 8 << 20
"""Up to this size this process decodes the pieces sooner than Spark starts the tasks."""
_JOB_BYTES = 8 << 30
"""Input of one job."""
_FILE_ROWS = 1_000_000
"""Rows of one Parquet file."""
_FILES = pa.schema([pa.field("name", pa.string()), pa.field("content", pa.binary())])


class SparkReader:
    """Decodes on Spark what is not small."""

    def __init__(self, spark: SparkSession, small_bytes: int = SMALL_BYTES) -> None:
        self.spark, self._small_bytes = spark, small_bytes
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """See `Reader.read`."""
        if not pieces or sum(each.size for each in pieces) <= self._small_bytes:
            LocalReader().read(engine, schemas, decode, pieces)
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="understudy-tables-")
        files: dict[str, list[str]] = {name: [] for name in schemas}
        tasks = [Piece(group, sum(each.size for each in group)) for group in pack(pieces)]
        for job in pack(tasks, _JOB_BYTES):
            for name, content in self._run(decode, job, schemas):
                path = Path(self._folder.name) / f"{name}-{len(files[name]):06d}.parquet"
                path.write_bytes(content)
                files[name].append(str(path))
        for name, schema in schemas.items():
            engine.parquet(name, schema, files[name])

    def close(self) -> None:
        """Delete the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _run(
        self, decode: Decode, tasks: Sequence[Piece], schemas: Mapping[str, pa.Schema]
    ) -> Iterator[tuple[str, bytes]]:
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        work = partial(_decoded, decode=decode, tasks=tasks, schemas=dict(schemas))
        try:
            found = numbers.mapInArrow(work, ddl(_FILES)).toArrow()
        except PySparkException as error:
            raise EngineError(last_line(error)) from error
        for rows in found.to_batches():
            yield from zip(rows.column("name").to_pylist(), rows.column("content").to_pylist(), strict=True)


def _decoded(
    numbers: Iterable[pa.RecordBatch], *, decode: Decode, tasks: Sequence[Piece], schemas: Mapping[str, pa.Schema]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of some tasks as the contents of Parquet files."""
    settle()
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            files: dict[str, _File] = {}
            for piece in tasks[number].what:
                for name, rows in decode(piece.what):
                    file = files.get(name) or files.setdefault(name, _File(schemas[name]))
                    file.write(rows)
                    if file.rows >= _FILE_ROWS:
                        yield files.pop(name).row(name)
            for name, file in files.items():
                yield file.row(name)


class _File:
    """A Parquet file in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._buffer = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._buffer, schema, compression="zstd")

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self.rows += len(rows)

    def row(self, name: str) -> pa.RecordBatch:
        """Close it, and return its row of `_FILES`."""
        self._writer.close()
        content = self._buffer.getvalue().to_pybytes()
        return pa.RecordBatch.from_pydict({"name": [name], "content": [content]}, schema=_FILES)
