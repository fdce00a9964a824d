"""The pipeline's rows that need Spark, each group in its own process, started by `benchmarks.pipeline`.

    python -m benchmarks.spark_rows GROUP FOLDER ROUNDS

`GROUP` is `local1` or `local2`, after the cores that Spark may use. The last line of the output is JSON: row -> size ->
what each round took, in seconds by the clock and of processor time of all processes together.
"""

import json
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.processors import used_s
from benchmarks.ready import Ready
from pipeline.session import session
from pipeline.transfer import export as exporting
from pipeline.transfer import load as loading
from pipeline.transfer.manifest import Manifest, Store
from pipeline.transfer.selection import Choice
from pipeline.transfer.targets import counts, targets
from pipeline.transfer.wire import Cluster
from tools.fill_directory import NOW_MS, TOPIC
from understudy.launcher import ServerProcess, command_line
from understudy.spark import register

Rounds = dict[str, dict[int, list[tuple[float, float]]]]
WARM = 4
"""Warm-up rounds, in which Java's second compiler works."""
FEW = 2_000_000
"""Records. With more, one round is long enough to warm up Java, and fewer rounds are measured."""
KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}


class Group:
    """Spark session and its measurements."""

    def __init__(self, cores: int, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        jars = os.environ.get("SPARK_KAFKA_JARS")
        if jars:
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
        self.spark: SparkSession = as_a_user(cores) if cores == 1 else session(register, f"local[{cores}]", "benchmark")
        self.results: Rounds = defaultdict(dict)

    def measure(self, name: str, size: int, work: Callable[[], object], before: Callable[[], object] | None = None,
                rounds: int | None = None, warm: int = 1) -> None:  # fmt: skip
        """Run `work` repeatedly, with `warm` extra rounds that do not count; `before` runs each time, unmeasured."""
        taken = []
        for _ in range(warm + (rounds or self.rounds)):
            if before is not None:
                before()
            begun, used = time.perf_counter(), used_s(os.getpid())
            work()
            taken.append((time.perf_counter() - begun, used_s(os.getpid()) - used))
            print(name, size, *(f"{value:.2f} s" for value in taken[-1]), flush=True)
        self.results[name][size] = taken[warm:]

    # --- reading -----------------------------------------------------------------------------------------------------

    def segments(self, size: int, path: Path) -> None:
        """Count all records, and sum the lengths of their values."""
        frame = self.spark.read.format("kafka_segments").option("topics", TOPIC).load(str(path))
        self.measure("segments", size, lambda: _summed(frame, size), warm=WARM if size <= FEW else 1)

    def limits(self, size: int, path: Path) -> None:
        """Run the same query with only the column that it needs, and on a source with ready-made rows."""
        value = self.spark.read.format("kafka_segments").option("topics", TOPIC).schema("value binary").load(str(path))
        self.measure("value", size, lambda: _summed(value, size), warm=WARM)
        self.spark.dataSource.register(Ready)
        ready = self.spark.read.format("ready").option("records", size).load(str(path / f"{TOPIC}-0"))
        self.measure("ready", size, lambda: _summed(ready, size), warm=WARM)

    def connector(self, size: int, path: Path) -> None:
        """Run the same query with Spark's own Kafka source, on a broker with the directory."""
        server = ServerProcess(command_line(data_dir=path, port=0, control_port="off"))
        try:
            options = {"kafka.bootstrap.servers": server.ready.bootstrap_servers[0], "subscribe": TOPIC}
            options |= {"startingOffsets": "earliest", "kafka.fetch.max.wait.ms": "10"}
            frame = self.spark.read.format("kafka").options(**options).load()
            self.measure("connector", size, lambda: _summed(frame, size), warm=WARM)
        finally:
            server.stop()

    def batches(self, count: int, path: Path) -> None:
        """Count the batches."""
        frame = self.spark.read.format("kafka_batches").option("topics", TOPIC).load(str(path))
        self.measure("batches", count, lambda: _equal(frame.count(), count))

    # --- copying -----------------------------------------------------------------------------------------------------

    def export(self, size: int, path: Path, out: Path, rounds: int) -> Manifest:
        """Export a directory to Parquet."""
        manifests: list[Manifest] = []
        self.measure(
            "export", size, lambda: manifests.append(exporting.export(self.spark, str(path), str(out))),
            lambda: shutil.rmtree(out, ignore_errors=True), rounds,
        )  # fmt: skip
        _equal(manifests[-1].records, size)
        return manifests[-1]

    def load(self, size: int, out: Path, manifest: Manifest, directory: Path, rounds: int) -> None:
        """Load Parquet into a directory, with checksums compared; creating the topics is not measured."""
        wanted = targets(Store(str(out)), manifest, Choice())

        def make() -> None:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            server = ServerProcess(command_line(data_dir=directory, port=0, control_port="off"))
            try:
                with Cluster(server.ready.bootstrap_servers[0]) as cluster:
                    cluster.create({name: (count, KEPT) for name, (count, _) in counts(wanted).items()})
            finally:
                server.stop()

        def load() -> None:
            exporting.verify(Store(str(out)), manifest)
            _equal(loading.into_directory(self.spark, str(directory), wanted, NOW_MS), size)

        self.measure("load", size, load, make, rounds)


def as_a_user(cores: int) -> SparkSession:
    """Create a session as in docs/tables-and-export.md, with Spark's default Java settings."""
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmark")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for key, value in quiet.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _summed(frame: DataFrame, size: int) -> None:
    row: Any = frame.selectExpr("count(1) AS records", "sum(length(value)) AS bytes").collect()[0]
    _equal((row.records, row.bytes), (size, size * 180))


def _equal(actual: object, wanted: object) -> None:
    """Check a count: a figure is only valid if it is right."""
    if actual != wanted:
        raise AssertionError(f"{actual}, not {wanted}")


def directories(folder: Path, prefix: str) -> Iterable[tuple[int, Path]]:
    """List the filled directories of this kind by size, which is in their names, smallest first."""
    return sorted((int(path.name.rpartition("-")[2]), path) for path in folder.glob(f"{prefix}-*"))


def local1(group: Group) -> None:
    """Run the rows of one core: reading."""
    for size, path in directories(group.folder, "loaded"):
        group.segments(size, path)
    size, path = next(iter(directories(group.folder, "loaded")))
    group.limits(size, path)
    if os.environ.get("SPARK_KAFKA_JARS"):
        group.connector(size, path)


def local2(group: Group) -> None:
    """Run the rows of two cores: copying, listing batches."""
    for size, path in directories(group.folder, "records"):
        rounds = min(2, group.rounds) if size > FEW else group.rounds
        out = group.folder / f"export-{size}"
        manifest = group.export(size, path, out, rounds)
        group.load(size, out, manifest, group.folder / f"loaded-{size}", rounds)
        shutil.rmtree(out)
    for count, path in directories(group.folder, "batches"):
        group.batches(count, path)


def main() -> None:
    """Measure one group."""
    name, folder, rounds = sys.argv[1:]
    group = Group(int(name[-1]), Path(folder), int(rounds))
    {"local1": local1, "local2": local2}[name](group)
    group.spark.stop()
    print(json.dumps(group.results))


if __name__ == "__main__":
    main()
