"""A standalone cluster whose executors have Python, pyarrow and numpy, and nothing of ours."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.reading import read_segments
from tests.pipeline import journal_faults
from tests.pipeline.logs import chain, write_segment
from tests.pipeline.test_journal import line, write
from tools.spark_cluster import standalone

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200), pytest.mark.xdist_group("spark")]

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Its address, and the environment of a driver whose executors have nothing but what they must have."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(bare_python(folder / "bare")),
    }
    with standalone(folder / "processes", memory="1g") as master:
        yield master, environment


def run(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A driver, from somewhere else than the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_executors_need_not_be_prepared(cluster: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    """The code goes to them, compiled packages included; zstd needs one, the coordinators' records another."""
    data = tmp_path / "data"
    for partition in range(4):
        write_segment(data, *chain(3, 3, codec=4), name=f"t-{partition}")
    write_segment(data, *chain(2), name="__consumer_offsets-0")
    write(data / "journal", line(1), line(2))
    options = [
        "spark.ui.enabled=false",
        "spark.ui.showConsoleProgress=false",
        "spark.driver.host=127.0.0.1",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.driver.memory=512m",
        "spark.executor.memory=512m",
    ]
    master, environment = cluster
    done = run(environment, tmp_path, "-c", SCRIPT, master, str(data), *options)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert f"found {sorted([*range(6)] * 4)} 2 2\n" in done.stdout
    assert "bare [True]" in done.stdout


def test_the_commands_work_on_a_cluster(cluster: tuple[str, dict[str, str]], tmp_path: Path) -> None:
    """Their tasks are functions of ours; the executors were not prepared, and the paths are not absolute."""
    master, environment = cluster
    journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    logs = [path for path in (tmp_path / "data").glob("*/*.log") if not path.parent.name.startswith("__")]
    records = sum(found.num_rows for path in logs for found in read_segments(path))

    def understudy(*arguments: str) -> tuple[int, str]:
        done = run(environment, tmp_path, "-m", "understudy", *arguments, "--master", master)
        return done.returncode, done.stdout + done.stderr[-4000:]

    checks = ("acknowledged-absent", "i28-two-owners", "index-offset")  # of the journal, with a function, of the files
    asked = [part for check in checks for part in ("--only", check)]
    code, output = understudy("audit", "data", "--journal", "journal", *asked)
    assert code == 1, output
    assert [check in output for check in checks] == [True, True, False]
    code, output = understudy("conformance", "journal", "--only", "i28-two-owners")
    assert (code, "i28-two-owners" in output) == (1, True), output
    code, output = understudy("report", "data", "--journal", "journal", "--only", "size", "--only", "lag")
    assert (code, "wire-clean" in output) == (0, True), output
    code, output = understudy("export", "data", "out", "--isolation", "read_uncommitted")
    assert (code, output.partition(" ")[0]) == (0, str(records)), output
    code, output = understudy("load", "out", "--to", "again")
    assert (code, output.partition(" ")[0]) == (0, str(records)), output
    assert sum(found.num_rows for found in read_segments(tmp_path / "again") if found.num_rows) >= records
