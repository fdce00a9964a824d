"""Kafka's logs and wire journals as Spark DataFrames, without a cluster and without a jar.

    from understudy.spark import register

    register(spark)
    spark.read.format("kafka_segments").load("/var/lib/kafka/data")

Needs the extra `spark`. See docs/tables-and-export.md.
"""

import sys
from typing import TYPE_CHECKING, Any

from understudy.spark.shipping import ship
from understudy.spark.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def prepare(spark: "SparkSession") -> None:
    """Let a session's tasks run our code: on a cluster it is shipped to the executors, as `register` does."""
    context: Any = None if _is_remote(spark) else spark.sparkContext
    if context is not None and context.master.startswith("local"):
        # The Python that starts workers: another one might not have the packages.
        context.pythonExec = sys.executable
    else:
        ship(spark)


def register(spark: "SparkSession") -> None:
    """Register the data sources `kafka_segments`, `kafka_batches`, `kafka_state` and `wire_journal` with a session.

    On a cluster, the code is shipped to the executors, including compiled packages; they need their own Python, pyarrow
    and numpy, like all of Spark's Python data sources, and the driver's platform. It may be called repeatedly.
    """
    prepare(spark)
    for source in SOURCES:
        spark.dataSource.register(source)


def _is_remote(spark: "SparkSession") -> bool:
    """Return whether the session uses Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
