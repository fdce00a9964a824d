"""Starts Spark for the commands, by default on this machine: the application that runs their tasks, and its SQL."""

import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipeline.audits.engine import EngineError
from pipeline.rendering.text import last_line

LOCAL: Final = "local[*]"
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # it costs more than it saves; the rest goes to disk
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.log.level": "ERROR",
}
"""Settings of every session."""
LOCAL_SETTINGS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
}
"""Additional settings of a local session: a quick start, and no port open to other machines."""
CLUSTER_SETTINGS: Final = {"spark.executorEnv.PYTHONPATH": "understudy/_server:understudy/_shipped"}
"""Additional settings of a session on a cluster. `register` ships the code, which Spark unpacks in each executor's
working folder as `understudy`; there the executors import the packages by their own names, for tasks that are
functions.
"""


def context(prepare: Callable[[SparkContext], None], master: str = LOCAL, name: str = "understudy") -> SparkContext:
    """Start an application on this machine or at a master; `prepare` lets its tasks run our code.

    Workers use this Python, because the first `python3` on the path may not have the required packages.

    Raises EngineError: Spark does not start; with what Java wrote.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = dict(SETTINGS)
    if master.startswith("local"):
        cores = master.removeprefix("local").strip("[]")
        count = str((os.cpu_count() or 1) if cores in {"", "*"} else int(cores.split(",")[0]))
        settings |= LOCAL_SETTINGS | {"spark.sql.shuffle.partitions": count, "spark.default.parallelism": count}
    else:
        settings |= CLUSTER_SETTINGS
    conf = SparkConf().setMaster(master).setAppName(name).setAll(list(settings.items()))
    with tempfile.TemporaryFile() as output:  # Java keeps it as its stderr; errors of tasks are returned as exceptions
        try:
            started = SparkContext(conf=conf, gateway=_gateway(conf, output))
        except (Py4JError, PySparkException) as error:
            output.seek(0)
            raise EngineError(f"{output.read().decode(errors='replace')}{last_line(error)}") from error
    prepare(started)
    return started


def _gateway(conf: SparkConf, output: Any) -> Any:
    """Start Spark's Java, unless this process has one already."""
    running: Any = SparkContext
    launch: Any = launch_gateway
    return running._gateway or launch(conf, {"stdout": output, "stderr": output})  # noqa: SLF001 - of all contexts


def session(register: Callable[[SparkSession], None], master: str = LOCAL, name: str = "understudy") -> SparkSession:
    """Start an application and its SQL; `register` registers the data sources. Raises as `context` does."""
    context(lambda _: None, master, name)
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    return spark
