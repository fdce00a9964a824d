"""Caches tables that many queries use: in files on one machine, in Spark's memory and disks on a cluster."""

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from pipeline.audits.logs import SMALL_ROWS


class TableCache:
    """The tables that one audit or report keeps. `forget` releases them."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._cached: list[DataFrame] = []
        self._is_here = (spark.conf.get("spark.master") or "").startswith("local")
        self._files: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path | None:
        """Return a folder for files that all tasks can read; None on a cluster."""
        if self._is_here and self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="understudy-tables-")
        return None if self._files is None else Path(self._files.name)

    def kept(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute the rows once, so that queries do not repeat the plan."""
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
        """Cache the rows in Spark when they are first used."""
        self._cached.append(frame.cache())
        return frame

    def forget(self) -> None:
        """Release everything."""
        for frame in self._cached:
            frame.unpersist()
        self._cached.clear()
        if self._files is not None:
            self._files.cleanup()
            self._files = None
