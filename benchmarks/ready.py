"""A data source with ready-made rows: the rest of a query's cost is Spark's own part."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.reading import read_segments
from pipeline.schemas import ddl, segments
from pipeline.workers import settle

PARTS = 4
_BATCHES: dict[str, pa.RecordBatch] = {}
"""Batches of a worker, built once and reused."""


class Ready(DataSource):
    """Data source of `records` rows in the columns of `kafka_segments`: repeats the first batch of `path`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "ready"

    def schema(self) -> str:
        """Return the columns of `kafka_segments`."""
        return ddl(segments())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for `spark.read`."""
        return _Reader(self.options["path"], schema.names, int(self.options["records"]) // PARTS)


class _Reader(DataSourceReader):
    def __init__(self, path: str, names: list[str], records: int) -> None:
        self._path, self._names, self._records = path, names, records

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(self._records) for _ in range(PARTS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        settle()
        if self._path not in _BATCHES:
            _BATCHES[self._path] = next(read_segments(self._path, columns=self._names))
        left = partition.value
        while left:
            rows = _BATCHES[self._path].slice(0, left)
            left -= rows.num_rows
            yield rows
