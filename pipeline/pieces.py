"""Pieces of files that are decoded into tables (`pipeline.duck.reader`), and what Spark's workers do with them.

A worker has neither DuckDB nor anything else that only the queries need.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.workers import settle

Decode = Callable[[Any], Iterator[tuple[str, pa.RecordBatch]]]
"""Returns the rows of a piece with the names of their tables; a function of a module, since workers import it."""
FILES: Final = pa.schema([pa.field("name", pa.string()), pa.field("content", pa.binary())])
"""Parquet files: the table that each belongs to, and its bytes."""
_FILE_ROWS: Final = 1_000_000


class Piece(NamedTuple):
    """What one call decodes, and its size in bytes."""

    what: Any
    size: int


def decoded(
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
        """Close it, and return its row of `FILES`."""
        self._writer.close()
        content = self._buffer.getvalue().to_pybytes()
        return pa.RecordBatch.from_pydict({"name": [name], "content": [content]}, schema=FILES)
