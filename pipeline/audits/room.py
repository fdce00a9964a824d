"""Where tables are kept that many queries ask: files on this machine, on a cluster Spark's own memory and disks."""

import tempfile
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

SMALL_ROWS: Final = 2000
"""Tables of no more rows are a part of the queries' plans: what is asked of an empty one is answered without work."""


class Room:
    """The tables that one audit, or one report, keeps. `forget` gives everything back."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._cached: list[DataFrame] = []
        self._is_here = (spark.conf.get("spark.master") or "").startswith("local")
        self._files: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path | None:
        """Where tasks may leave files that all tasks can read; None: there is no such place."""
        if self._is_here and self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="understudy-tables-")
        return None if self._files is None else Path(self._files.name)

    def kept(self, name: str, frame: DataFrame) -> DataFrame:
        """The same rows, computed once: what is asked of them does not plan again how they are made."""
        if self.folder is None:
            rows = frame.limit(SMALL_ROWS + 1).toArrow()
            if len(rows) <= SMALL_ROWS:
                return self.spark.createDataFrame(rows, frame.schema)
            return frame.localCheckpoint()
        path = self.folder / name
        frame.write.parquet(str(path))
        count = sum(pq.read_metadata(each).num_rows for each in path.glob("*.parquet"))
        if count > SMALL_ROWS:
            return self.spark.read.schema(frame.schema).parquet(str(path))
        return self.spark.createDataFrame(pq.read_table(path).select(frame.columns), frame.schema)

    def cached(self, frame: DataFrame) -> DataFrame:
        """The same rows, kept by Spark in columns once they have been asked for."""
        self._cached.append(frame.cache())
        return frame

    def forget(self) -> None:
        """Drop what was kept."""
        for frame in self._cached:
            frame.unpersist()
        self._cached.clear()
        if self._files is not None:
            self._files.cleanup()
            self._files = None
