"""A standalone cluster whose executors have Python, pyarrow and numpy, and nothing of ours."""

import json
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from pipeline.reading import read_segments
from tests.pipeline import journal_faults
from tests.pipeline.logs import chain, write_segment
from tests.pipeline.test_journal import line, write
from tools.fill_directory import Filling, fill
from tools.spark_cluster import Standalone, standalone
from understudy.java import find_java

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600), pytest.mark.xdist_group("spark")]

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
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Standalone, dict[str, str]]]:
    """It, and the environment of a driver whose executors have nothing but what they must have."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(bare_python(folder / "bare")),
    }
    with standalone(folder / "processes", memory="1g") as running:
        yield running, environment


def run(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A driver, from somewhere else than the checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )


def test_executors_need_not_be_prepared(cluster: tuple[Standalone, dict[str, str]], tmp_path: Path) -> None:
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
    running, environment = cluster
    master = running.master
    done = run(environment, tmp_path, "-c", SCRIPT, master, str(data), *options)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert f"found {sorted([*range(6)] * 4)} 2 2\n" in done.stdout
    assert "bare [True]" in done.stdout


def test_the_commands_work_on_a_cluster(cluster: tuple[Standalone, dict[str, str]], tmp_path: Path) -> None:
    """Their tasks are functions of ours; the executors were not prepared, and the paths are not absolute."""
    running, environment = cluster
    master = running.master
    journal_faults.planted(tmp_path / "data", tmp_path / "journal")
    logs = [path for path in (tmp_path / "data").glob("*/*.log") if not path.parent.name.startswith("__")]
    records = sum(batch.num_rows for path in logs for batch in read_segments(path))

    def understudy(*arguments: str) -> tuple[int, str]:
        done = run(environment, tmp_path, "-m", "understudy", *arguments, "--master", master)
        return done.returncode, done.stdout + done.stderr[-4000:]

    checks = ("acknowledged-absent", "i28-two-owners", "index-offset")  # of the journal, with a function, of the files
    parts = [part for check in checks for part in ("--only", check)]
    code, output = understudy("audit", "data", "--journal", "journal", *parts)
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
    assert sum(batch.num_rows for batch in read_segments(tmp_path / "again") if batch.num_rows) >= records


def test_an_audit_survives_the_loss_of_a_worker(cluster: tuple[Standalone, dict[str, str]], tmp_path: Path) -> None:
    """By spark-submit; a worker is killed while it decodes. The findings are those of one process.

    This test is the last one: the cluster has one worker less behind it.
    """
    running, environment = cluster
    fill(tmp_path / "data", Filling(2_000_000, partitions=8, per_batch=1, value_bytes=60, transactions=50))
    (log,) = (tmp_path / "data" / "filled-3").glob("*.log")
    with log.open("r+b") as file:  # one bit of a record
        file.seek(log.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    program = tmp_path / "program.py"
    program.write_text("import sys\nfrom understudy.cli import main\nsys.exit(main(sys.argv[1:]))\n")
    options = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    command = ["audit", "data", "--format", "json", "--quiet", "--out"]
    before = set(running.folder.glob("worker-1/app-*"))
    with subprocess.Popen(
        [submit, "--master", running.master, *options, program, *command, "cluster.json", "--master", running.master],
        cwd=tmp_path,
        env={**environment, "JAVA_HOME": str(find_java()), "PYSPARK_DRIVER_PYTHON": sys.executable},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as driver:  # fmt: skip
        pause = threading.Event()
        while not _works(running.folder / "worker-1", before):
            assert driver.poll() is None, "it ended before a task ran there"
            pause.wait(0.05)
        running.kill(1)
        assert driver.wait(1800) == 1
    here = run(environment, tmp_path, "-m", "understudy", *command, "here.json")
    assert here.returncode == 1, here.stderr
    there, own = (json.loads((tmp_path / name).read_text()) for name in ("cluster.json", "here.json"))
    assert there["totals"] == own["totals"]
    assert there["findings"] == own["findings"] != []


def _works(worker: Path, before: set[Path]) -> bool:
    """Whether a new executor of a worker runs a task."""
    logs = [log for app in set(worker.glob("app-*")) - before for log in app.glob("*/stderr")]
    return any("Running task" in log.read_text(errors="replace") for log in logs)
