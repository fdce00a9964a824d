"""The scenarios on a real Apache Kafka of three brokers, its answers spoiled by `understudy proxy`.

    python -m tests.exam.real java-4.4.0 [PATTERN ...]

As `understudy exam --upstream`, and besides it steers Kafka's processes, leaders and coordinators; the scenarios of TLS
and SASL are played on a second one of one broker. It is Kafka 4.4.0, or the one whose jars are in KAFKA_LIBS. With
EXAM_RUNS, the result is written to that folder, for `python -m tests.exam.scoreboard --on-kafka`.
"""

# ruff: noqa: T201 -- a program

import fnmatch
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.clients.drivers import command as run_command
from tests.clients.targets import CACHE, ROOT, oracle_version
from tests.differential.cluster import KafkaCluster
from tests.exam.libraries import LIBRARIES
from tests.exam.real_cluster import SETTINGS, SteeredKafka
from tests.exam.real_secured import secured
from tests.storage.kafka_tools import need_kafka
from understudy.client import Cluster
from understudy.exam.driver import Driver
from understudy.exam.exercise import BROKERS
from understudy.exam.report import progress_line
from understudy.exam.runner import Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.upstream import opened
from understudy.exam.verdicts import ExamResult, Result, Verdict

RELEASE: Final = "4.4.0"
"""The Kafka that is fetched if KAFKA_LIBS names none."""


def kafka_jars() -> Path:
    """The folder with Kafka's jars: KAFKA_LIBS, or else those of RELEASE, which are fetched once."""
    if libs := os.environ.get("KAFKA_LIBS"):
        return Path(libs)
    folder = CACHE / "java" / f"kafka-{RELEASE}"
    run_command([ROOT / "tools" / "fetch_kafka.sh", folder, "kafka", RELEASE])
    return folder


@contextmanager
def steered(folder: Path) -> Iterator[Cluster]:
    """Three brokers, behind the proxies of the exam."""
    kafka = KafkaCluster(folder, brokers=BROKERS, settings=SETTINGS)
    try:
        kafka.start()
        with opened(kafka.addresses[0], factory=partial(SteeredKafka, kafka)) as cluster:
            yield cluster
    finally:
        kafka.stop(clean=False)


def examined(library: str, patterns: Sequence[str]) -> ExamResult:
    """Play scenarios of these ids with a library, on the Kafka of KAFKA_LIBS; prints a line for each.

    With EXAM_RUNS, the result is written there, as `LIBRARY.json`.
    """
    command = LIBRARIES[library].build()
    need_kafka()
    chosen = [
        each
        for each in SCENARIOS.values()
        if not patterns or any(fnmatch.fnmatchcase(each.id, pattern) for pattern in patterns)
    ]
    done: list[Result] = []

    def report(result: Result) -> None:
        done.append(result)
        print(progress_line(result, len(done), len(chosen)), flush=True)

    for opener in (steered, secured):
        part = [each for each in chosen if ("listeners" in each.steers) == (opener is secured)]
        if part:
            with tempfile.TemporaryDirectory() as folder:
                runner = Runner(lambda: Driver(command), opened=partial(opener, Path(folder)))
                result = runner.run(part, report)
    result = replace(result, results=tuple(done))
    if runs := os.environ.get("EXAM_RUNS"):
        kept = {**result.as_json(), "kafka": oracle_version()}
        (Path(runs) / f"{library}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")
    return result


def main() -> int:
    """Play the scenarios; exit code 1: a MUST was broken."""
    name, *patterns = sys.argv[1:]
    os.environ["KAFKA_LIBS"] = str(kafka_jars())
    result = examined(name, patterns)
    print(*(f"{verdict.value}: {result.count(verdict)}" for verdict in Verdict), sep="\n")
    return int(result.failed)


if __name__ == "__main__":
    sys.exit(main())
