"""Runs queries in a Spark session."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pipeline.audits.engine import EngineError, hash_of_name
from pipeline.rendering.text import last_line


class SparkEngine:
    """The tables of a session."""

    at_once = 3
    """Spark plans one query while another one runs."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        spark.udf.register("hash_of_name", hash_of_name, "bigint")

    def rows(self, sql: str) -> pa.Table:
        """Return the rows of a query. Raises EngineError."""
        with _errors():
            return self.spark.sql(sql).toArrow()

    def plain(self, sql: str) -> pa.Table:
        """Same as `rows`."""
        return self.rows(sql)

    def find(self, sql: str, order: Sequence[str], most: int) -> tuple[list[dict[str, Any]], int]:
        """See `Engine.find`."""
        with _errors():
            frame = self.spark.sql(sql)
            names = [name for name in order if name in frame.columns]
            found = (frame.orderBy(*names) if names else frame).limit(most).toArrow().to_pylist()
            return found, len(found) if len(found) < most else frame.count()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise EngineError(last_line(error)) from error
