"""Starts the Spark session of the commands: local by default, with the pipeline's data sources registered."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

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


def session(register: Callable[[SparkSession], None], master: str = LOCAL, name: str = "understudy") -> SparkSession:
    """Start a session on this machine or at a master; `register` registers the data sources with it.

    Workers use this Python, because the first `python3` on the path may not have the required packages.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    settings = dict(SETTINGS)
    if master.startswith("local"):
        cores = master.removeprefix("local").strip("[]")
        count = str((os.cpu_count() or 1) if cores in {"", "*"} else int(cores.split(",")[0]))
        settings |= LOCAL_SETTINGS | {"spark.sql.shuffle.partitions": count, "spark.default.parallelism": count}
    else:
        settings |= CLUSTER_SETTINGS
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _hushed():
        spark = builder.getOrCreate()
    register(spark)
    return spark


@contextmanager
def _hushed() -> Iterator[None]:
    """Redirect the JVM's output to a file, which is shown only if it does not start.

    The JVM keeps this file as its stderr; errors of queries are returned as exceptions.
    """
    sys.stderr.flush()
    own = os.dup(2)
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        except BaseException:
            output.seek(0)
            os.write(own, output.read())
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)
