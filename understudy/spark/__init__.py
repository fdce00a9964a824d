"""Kafka's logs and wire journals as Spark DataFrames, without a cluster and without a jar.

    from understudy.spark import register

    register(spark)
    spark.read.format("kafka_segments").load("/var/lib/kafka/data")

Needs the extra `spark`. See docs/tables-and-export.md.
"""

import sys
from typing import TYPE_CHECKING

from understudy.spark.shipping import ship
from understudy.spark.sources import SOURCES

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["register"]


def prepare(context: "SparkContext") -> None:
    """Let an application's tasks run our code: on a cluster it is shipped to the executors, as `register` does."""
    if (context.master or "").startswith("local"):
        # The Python that starts workers: another one might not have the packages.
        context.pythonExec = sys.executable
    else:
        ship(context.applicationId, context.addArchive)


def register(spark: "SparkSession") -> None:
    """Register the data sources `kafka_segments`, `kafka_batches`, `kafka_state` and `wire_journal` with a session.

    On a cluster, the code is shipped to the executors, including compiled packages; they need their own Python, pyarrow
    and numpy, like all of Spark's Python data sources, and the driver's platform. It may be called repeatedly.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        ship(spark.session_id, lambda path: spark.addArtifacts(path, archive=True))  # type: ignore[attr-defined]
    else:
        prepare(spark.sparkContext)
    for source in SOURCES:
        spark.dataSource.register(source)
