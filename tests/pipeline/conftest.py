"""One Spark session for all tests of a worker: it costs seconds and half a gigabyte."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from understudy.cli import main
from understudy.java import find_java
from understudy.spark import register

Refused = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
FRUGAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    # Tables of a few rows: what Spark does to be fast with many costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.constraintPropagation.enabled": "false",
    # Classes of a known archive are not verified once more.
    "spark.driver.extraJavaOptions": "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
}
"""A small driver that starts soon. The nightly tests of the commands run with the commands' own settings."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session that knows the data sources. Ask for it in files marked `xdist_group("spark")` only."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java()))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in {**FRUGAL, "spark.sql.warehouse.dir": str(folder)}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        assert sys.executable
        register(session)
        yield session
        session.stop()


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """A way to run a command that is refused, with exit code 2 unless another one is expected; returns its stderr."""

    def run(*arguments: str, code: int = 2) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        assert ended.value.code == code
        return capsys.readouterr().err

    return run
