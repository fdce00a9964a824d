"""Decodes files in the tasks of a Spark application (`pipeline.duck.reader`).

Each task returns its rows as Parquet, which the driver puts into files for DuckDB. A job has some gigabytes of input,
so that neither the driver's Java nor Spark's limit for results has to hold the rows of all.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark import SparkContext

from pipeline.duck.engine import DuckEngine
from pipeline.duck.reader import Files
from pipeline.pieces import Decode, Piece, decoded
from pipeline.splits import pack
from pipeline.workers import run

SMALL_BYTES: Final = 8 << 20
"""Up to this size this process decodes the pieces sooner than Spark starts the tasks.

Ours, its order counts.
"""
_JOB_BYTES: Final = 4 << 30
"""Input of one job: arbitrary, so that progress is visible."""
_MEANTIME_BYTES: Final = 1 << 30
"""This process decodes larger pieces no sooner than Spark starts: ours, its order counts."""


class SparkReader:
    """Decodes on Spark what is not small."""

    def __init__(
        self, start: Callable[[], SparkContext], small_bytes: int = SMALL_BYTES, *, meantime: bool = True
    ) -> None:
        """Start Spark in the background, which takes seconds. `meantime`: whether this process decodes until then."""
        self._small_bytes, self._meantime = small_bytes, meantime
        self._files = Files()
        self._starter = ThreadPoolExecutor(1)
        self.started = self._starter.submit(start)
        """The application, when it has started."""

    def read(
        self, engine: DuckEngine, schemas: Mapping[str, pa.Schema], decode: Decode, pieces: Sequence[Piece]
    ) -> None:
        """See `Reader.read`."""
        tables = self._files.tables(schemas)
        is_small = sum(each.size for each in pieces) <= self._small_bytes
        waiting = sorted(pieces, key=lambda piece: piece.size, reverse=True)
        while waiting and (is_small or self._is_sooner(waiting[-1])):
            tables.decode(decode, waiting.pop())
        tasks = [Piece(group, sum(each.size for each in group)) for group in pack(waiting)]
        for job in pack(tasks, _JOB_BYTES):
            work = partial(decoded, decode=decode, tasks=[each.what for each in job], schemas=dict(schemas))
            for name, content in run(self.started.result(), work, len(job)):
                tables.add_file(name, content)
        tables.make(engine)

    def _is_sooner(self, piece: Piece) -> bool:
        return self._meantime and piece.size <= _MEANTIME_BYTES and not self.started.done()

    def close(self) -> None:
        """Delete the files. Waits for Spark if it is still starting."""
        self._files.close()
        self._starter.shutdown()
