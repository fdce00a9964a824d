"""Pieces of files that are decoded into tables (`pipeline.duck.reader`), and what Spark's workers do with them.

A worker has neither DuckDB nor anything else that only the queries need.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Decode = Callable[[Any], Iterator[tuple[str, pa.RecordBatch]]]
"""Returns the rows of a piece with the names of their tables; a function of a module, since workers import it."""
_FILE_ROWS: Final = 1_000_000  # arbitrary: memory has to hold them


def file_options(schema: pa.Schema) -> dict[str, Any]:
    """Return how a Parquet file of these columns is written, except for the compression.

    Offsets, positions and times differ in each row and grow along a log: their differences take a third of the space
    that a dictionary does, and are written and read sooner.
    """
    longs = [each.name for each in schema if each.type == pa.int64()]
    return {
        "use_dictionary": [name for name in schema.names if name not in longs],
        "column_encoding": dict.fromkeys(longs, "DELTA_BINARY_PACKED"),
    }


class Piece(NamedTuple):
    """What one call decodes, and its size in bytes."""

    what: Any
    size: int


def decoded(
    number: int, *, decode: Decode, tasks: Sequence[Sequence[Piece]], schemas: Mapping[str, pa.Schema]
) -> Iterator[tuple[str, bytes]]:
    """Return the rows of a task's pieces as Parquet files: the table that each belongs to, and its bytes."""
    files: dict[str, _File] = {}
    for piece in tasks[number]:
        for name, rows in decode(piece.what):
            file = files.get(name) or files.setdefault(name, _File(schemas[name]))
            file.write(rows)
            if file.rows >= _FILE_ROWS:
                yield name, files.pop(name).content()
    for name, file in files.items():
        yield name, file.content()


class _File:
    """A Parquet file in memory."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._buffer = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._buffer, schema, compression="zstd", **file_options(schema))

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self.rows += len(rows)

    def content(self) -> bytes:
        """Close it, and return its bytes."""
        self._writer.close()
        content: bytes = self._buffer.getvalue().to_pybytes()
        return content
