"""The Spark session of the commands: local by default, with the pipeline's data sources in it."""

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
"""What a session on this machine has besides: a quick start, and no open port to the outside."""
CLUSTER_SETTINGS: Final = {"spark.executorEnv.PYTHONPATH": "understudy/_server:understudy/_shipped"}
"""What a session on a cluster has besides. `register` sends the code along, and Spark unpacks it in each executor's
working folder as `understudy`. There the executors find the packages by their own names, for tasks that are functions.
"""


def session(register: Callable[[SparkSession], None], master: str = LOCAL, name: str = "understudy") -> SparkSession:
    """A session on this machine or at a master; `register` makes the data sources known to it.

    Workers use this very Python: the `python3` that is first on a machine's path may not have what is needed.
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
    """Output of the virtual machine goes to a file, which is shown only if it does not start.

    It keeps this file as its stderr; errors of queries come back as exceptions.
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
