"""A standalone cluster whose executors have Python, pyarrow and numpy, and nothing of ours."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.pipeline.logs import chain, write_segment
from tests.pipeline.test_journal import line, write
from tools.spark_cluster import standalone

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600), pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).resolve().parents[2]
BARE = (
    "pyspark",
    "py4j",
    "pyarrow",
    "pyarrow.libs",
    "numpy",
    "numpy.libs",
    "pandas",
    "dateutil",
    "pytz",
    "six.py",
    "tzdata",
)
SCRIPT = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1])
for option in sys.argv[3:]:
    builder = builder.config(*option.split("=", 1))
spark = builder.getOrCreate()
from understudy.spark import register
register(spark)
register(spark)
records = spark.read.format("kafka_segments").option("splitBytes", "1").load(sys.argv[2])
state = spark.read.format("kafka_state").option("kind", "unknown").load(sys.argv[2])
journal = spark.read.format("wire_journal").load(sys.argv[2] + "/journal")
offsets = sorted(row.offset for row in records.filter("topic = 't'").select("offset").collect())
print("found", offsets, state.count(), journal.count())
missing = spark.sparkContext.range(1).map(lambda _: __import__("importlib.util").util.find_spec("cramjam") is None)
print("bare", missing.collect())
"""


def bare_python(folder: Path) -> Path:
    """A Python that knows no more packages than an executor must have."""
    site = folder / "site"
    site.mkdir(parents=True)
    installed = Path(sysconfig.get_path("purelib"))
    for name in BARE:
        if (installed / name).exists():
            (site / name).symlink_to(installed / name)
    program = folder / "python"
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {base} -S "$@"\n')
    program.chmod(0o755)
    return program


def test_executors_need_not_be_prepared(tmp_path: Path) -> None:
    """The code goes to them, compiled packages included; zstd needs one, the coordinators' records another."""
    data = tmp_path / "data"
    for partition in range(4):
        write_segment(data, *chain(3, 3, codec=4), name=f"t-{partition}")
    write_segment(data, *chain(2), name="__consumer_offsets-0")
    write(data / "journal", line(1), line(2))
    python = bare_python(tmp_path / "bare")
    options = [
        "spark.ui.enabled=false",
        "spark.ui.showConsoleProgress=false",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.driver.memory=512m",
        "spark.executor.memory=512m",
    ]
    with standalone(tmp_path / "cluster", memory="1g") as master:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, master, str(data), *options],
            cwd=tmp_path,
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(ROOT),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": str(python),
            },
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert f"found {sorted([*range(6)] * 4)} 2 2\n" in done.stdout
    assert "bare [True]" in done.stdout
