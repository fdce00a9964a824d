"""Decodes files in the tasks of a Spark session (`pipeline.duck.reader`).

Each task returns its rows as Parquet, which the driver puts into files for DuckDB. A job has some gigabytes of input,
so that neither the driver's Java nor Spark's limit for results has to hold the rows of all.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.audits.engine import EngineError
from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import LocalReader
from pipeline.pieces import FILES, Decode, Piece, decoded
from pipeline.rendering.text import last_line
from pipeline.schemas import ddl
from pipeline.splits import pack

SMALL_BYTES = 8 << 20
"""Up to this size this process decodes the pieces sooner than Spark starts the tasks."""
_JOB_BYTES = 8 << 30
"""Input of one job."""


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
        work = partial(decoded, decode=decode, tasks=tasks, schemas=dict(schemas))
        try:
            arrow_table = numbers.mapInArrow(work, ddl(FILES)).toArrow()
        except PySparkException as error:
            raise EngineError(last_line(error)) from error
        for rows in arrow_table.to_batches():
            yield from zip(rows.column("name").to_pylist(), rows.column("content").to_pylist(), strict=True)
