"""Chooses where the tasks of an export or a load run: in this process, or on Spark, which is imported only then."""

from typing import TYPE_CHECKING

from pipeline.transfer.tasks import Run, in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def runner(spark: "SparkSession | None") -> Run:
    """Return a function that runs tasks: on Spark, or without a session in this process."""
    if spark is None:
        return in_process
    from pipeline.transfer.spark_tasks import on_spark  # noqa: PLC0415 - it brings Spark

    return on_spark(spark)
