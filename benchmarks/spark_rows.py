"""The pipeline's rows that need Spark, each group in a process of its own: `benchmarks.pipeline` starts it.

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
from pipeline.audits.findings import ask_all, totals
from pipeline.audits.registry import chosen
from pipeline.audits.tables import Tables
from pipeline.session import session
from pipeline.transfer import exporting, loading
from pipeline.transfer.choosing import Choice
from pipeline.transfer.manifest import Manifest, Store
from pipeline.transfer.targets import counts, targets
from pipeline.transfer.wire import Cluster
from tools.fill_directory import NOW_MS, TOPIC
from understudy.launcher import ServerProcess, words
from understudy.spark import register

Rounds = dict[str, dict[int, list[tuple[float, float]]]]
WARM = 4
"""Rounds before those that count, where Java's second compiler works: it needs some."""
FEW = 2_000_000
"""Records. Of more, one round takes long enough to warm Java, and fewer rounds count."""
KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}


class Group:
    """A Spark session, and what was measured in it."""

    def __init__(self, cores: int, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        jars = os.environ.get("SPARK_KAFKA_JARS")
        if jars:
            os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {jars} pyspark-shell"
        self.spark: SparkSession = as_a_user(cores) if cores == 1 else session(register, f"local[{cores}]", "benchmark")
        self.found: Rounds = defaultdict(dict)

    def measure(self, name: str, size: int, work: Callable[[], object], before: Callable[[], object] | None = None,
                rounds: int | None = None, warm: int = 1) -> None:  # fmt: skip
        """Run `work` again and again, `warm` times more than counts; `before` each time, unmeasured."""
        taken = []
        for _ in range(warm + (rounds or self.rounds)):
            if before is not None:
                before()
            begun, used = time.perf_counter(), used_s(os.getpid())
            work()
            taken.append((time.perf_counter() - begun, used_s(os.getpid()) - used))
            print(name, size, *(f"{value:.2f} s" for value in taken[-1]), flush=True)
        self.found[name][size] = taken[warm:]

    # --- reading -----------------------------------------------------------------------------------------------------

    def segments(self, size: int, path: Path) -> None:
        """Count all records, add up the lengths of their values."""
        frame = self.spark.read.format("kafka_segments").option("topics", TOPIC).load(str(path))
        self.measure("segments", size, lambda: _summed(frame, size), warm=WARM if size <= FEW else 1)

    def limits(self, size: int, path: Path) -> None:
        """The same where only the column comes that the query needs, and from a source without work of its own."""
        value = self.spark.read.format("kafka_segments").option("topics", TOPIC).schema("value binary").load(str(path))
        self.measure("value", size, lambda: _summed(value, size), warm=WARM)
        self.spark.dataSource.register(Ready)
        ready = self.spark.read.format("ready").option("records", size).load(str(path / f"{TOPIC}-0"))
        self.measure("ready", size, lambda: _summed(ready, size), warm=WARM)

    def connector(self, size: int, path: Path) -> None:
        """The same by Spark's own Kafka source, from a broker that has the directory."""
        server = ServerProcess(words(data_dir=path, port=0, control_port="off"))
        try:
            given = {"kafka.bootstrap.servers": server.ready.bootstrap_servers[0], "subscribe": TOPIC}
            given |= {"startingOffsets": "earliest", "kafka.fetch.max.wait.ms": "10"}
            frame = self.spark.read.format("kafka").options(**given).load()
            self.measure("connector", size, lambda: _summed(frame, size), warm=WARM)
        finally:
            server.stop()

    def batches(self, count: int, path: Path) -> None:
        """Count the batches."""
        frame = self.spark.read.format("kafka_batches").option("topics", TOPIC).load(str(path))
        self.measure("batches", count, lambda: _equal(frame.count(), count))

    # --- copying -----------------------------------------------------------------------------------------------------

    def export(self, size: int, path: Path, out: Path, rounds: int) -> Manifest:
        """A directory to Parquet."""
        made: list[Manifest] = []
        self.measure(
            "export", size, lambda: made.append(exporting.export(self.spark, str(path), str(out))),
            lambda: shutil.rmtree(out, ignore_errors=True), rounds,
        )  # fmt: skip
        _equal(made[-1].records, size)
        return made[-1]

    def load(self, size: int, out: Path, manifest: Manifest, directory: Path, rounds: int) -> None:
        """Parquet to a directory, checksums compared; the broker that creates the topics is not measured."""
        wanted = targets(Store(str(out)), manifest, Choice())

        def make() -> None:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            server = ServerProcess(words(data_dir=directory, port=0, control_port="off"))
            try:
                with Cluster(server.ready.bootstrap_servers[0]) as cluster:
                    cluster.create({name: (count, KEPT) for name, (count, _) in counts(wanted).items()})
            finally:
                server.stop()

        def load() -> None:
            exporting.verify(Store(str(out)), manifest)
            _equal(loading.into_directory(self.spark, str(directory), wanted, NOW_MS), size)

        self.measure("load", size, load, make, rounds)

    # --- asking ------------------------------------------------------------------------------------------------------

    def audit(self, batches: int, path: Path, rounds: int) -> None:
        """All checks of a directory in order, which finds nothing."""

        def ask() -> None:
            tables = Tables(self.spark, str(path))
            tables.register()
            findings = ask_all(self.spark, chosen())
            found = totals(self.spark)
            tables.forget()
            _equal([finding.check.name for finding in findings], [])
            if found["batches"] < batches:
                raise AssertionError(f"{found} of {batches} batches")

        self.measure("audit", batches, ask, rounds=rounds)


def as_a_user(cores: int) -> SparkSession:
    """A session as docs/pipeline.md begins it, with Spark's own settings of Java: what reads the tables."""
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


def _equal(found: object, wanted: object) -> None:
    """A figure counts only if the counts are right."""
    if found != wanted:
        raise AssertionError(f"{found}, not {wanted}")


def directories(folder: Path, prefix: str) -> Iterable[tuple[int, Path]]:
    """The filled directories of this kind, the smallest first: their sizes stand in their names."""
    return sorted((int(path.name.rpartition("-")[2]), path) for path in folder.glob(f"{prefix}-*"))


def local1(group: Group) -> None:
    """One core: what the sources read."""
    for size, path in directories(group.folder, "loaded"):
        group.segments(size, path)
    size, path = next(iter(directories(group.folder, "loaded")))
    group.limits(size, path)
    if os.environ.get("SPARK_KAFKA_JARS"):
        group.connector(size, path)


def local2(group: Group) -> None:
    """Two cores: copying, listing batches, audits."""
    for size, path in directories(group.folder, "records"):
        rounds = min(2, group.rounds) if size > FEW else group.rounds
        out = group.folder / f"export-{size}"
        manifest = group.export(size, path, out, rounds)
        group.load(size, out, manifest, group.folder / f"loaded-{size}", rounds)
        shutil.rmtree(out)
    for count, path in directories(group.folder, "batches"):
        group.batches(count, path)
    for count, path in directories(group.folder, "audited"):
        group.audit(count, path, min(3, group.rounds))


def main() -> None:
    """Measure one group."""
    name, folder, rounds = sys.argv[1:]
    group = Group(int(name[-1]), Path(folder), int(rounds))
    {"local1": local1, "local2": local2}[name](group)
    group.spark.stop()
    print(json.dumps(group.found))


if __name__ == "__main__":
    main()
