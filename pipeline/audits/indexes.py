"""The data source `kafka_indexes`: the entries of the index files of data directories, one row each."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from pipeline.audits.beside import INDEXES, Tree, index_entries
from pipeline.schemas import ddl

_FILES_OF_A_TASK = 200


class IndexSource(DataSource):
    """`spark.read.format("kafka_indexes").option("paths", '["DIR", ...]')`: the directory of one broker each."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka_indexes"

    def schema(self) -> str:
        """The columns of `beside.INDEXES`."""
        return ddl(INDEXES)

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """The reader of the directories that the option names."""
        return _Reader(json.loads(self.options["paths"]))


class _Reader(DataSourceReader):
    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def partitions(self) -> list[InputPartition]:
        """A few hundred files a task: a task costs as much as reading them."""
        wanted = [(path, file) for path in self._paths for each in Tree(path).partitions() for file in each.index_files]
        return [
            InputPartition(wanted[at : at + _FILES_OF_A_TASK]) for at in range(0, len(wanted), _FILES_OF_A_TASK)
        ] or [InputPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries, file by file."""
        for directory, file in partition.value:
            yield index_entries(directory, file)
