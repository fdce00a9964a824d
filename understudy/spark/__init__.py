"""Kafka's logs and wire journals as Spark DataFrames, without a cluster and without a jar.

    from understudy.spark import register

    register(spark)
    spark.read.format("kafka_segments").load("/var/lib/kafka/data")

Needs the extra `spark`. See docs/pipeline.md.
"""

import sys
from typing import TYPE_CHECKING, Any

from understudy.spark.shipping import ship
from understudy.spark.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make the data sources `kafka_segments`, `kafka_batches`, `kafka_state` and `wire_journal` known to a session.

    On a cluster, the code goes along to the executors, compiled packages included; they need Python, pyarrow and numpy
    of their own, as Spark's Python data sources do, and the driver's platform. Calling it again does no harm.
    """
    context: Any = None if _is_remote(spark) else spark.sparkContext
    if context is not None and context.master.startswith("local"):
        # The command that starts workers: another Python might not have the packages.
        context.pythonExec = sys.executable
    else:
        ship(spark)
    for source in SOURCES:
        spark.dataSource.register(source)


def _is_remote(spark: "SparkSession") -> bool:
    """Whether the session speaks Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
