"""Each driver of a released library keeps the driver contract: it passes the scenarios without faults.

At night each sits the whole exam.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.drivers import IN_CI
from tests.exam.libraries import LIBRARIES, Library
from tests.exam.scoreboard import recorded
from understudy.exam.driver import Driver
from understudy.exam.exercise import Exercise
from understudy.exam.random.runner import TIMEOUT_MS, RandomRunner
from understudy.exam.random.schedule import FAULT, Schedule, Step
from understudy.exam.runner import JOBS, Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.self_test import self_test
from understudy.exam.share_consumer import share_consumer
from understudy.exam.verdicts import Verdict

QUICK = ("java-4.4.0", "franz-go", "kafkajs")
"""One of each family is played in each run of the tests, all others at night."""


def built(library: Library) -> Sequence[str]:
    """The command of a library's driver."""
    if absent := library.missing():
        text = f"{library.name} needs {', '.join(absent)}: tests/clients/setup.sh toolchains"
        pytest.fail(text) if IN_CI else pytest.skip(text)
    return library.build()


_each_library = pytest.mark.parametrize(
    "library",
    [
        pytest.param(each, marks=[] if each.name in QUICK else [pytest.mark.nightly], id=each.name)
        for each in LIBRARIES.values()
    ],
)


@pytest.mark.interop
@_each_library
def test_the_driver_passes_its_self_test(library: Library) -> None:
    """With the abilities that the library declares."""
    prefix = built(library)
    problems = self_test(Runner(lambda: Driver(prefix)))
    assert problems == []


@pytest.mark.interop
@_each_library
def test_a_producer_whose_transactions_are_refused_can_be_closed(library: Library) -> None:
    """Sarama's driver ended with a panic: the library makes no producer then. A second producer writes."""
    prefix = built(library)
    refusal = {"api": "InitProducerId", "error": "CLUSTER_AUTHORIZATION_FAILED", "times": 1}
    fault = {"name": "refused", "steps": [{"verb": "faults add", "arguments": refusal}], "lasts_ms": 10_000}
    clients = {"one": {"role": "transactional", "topic": "t", "transactional_id": "one"}}
    send = {"client": "one", "partitions": [0], "flush": True}
    schedule = Schedule(0, clients, [Step(0, FAULT, fault), Step(1, "send", send), Step(2, "send", send)])
    runner = RandomRunner(lambda: Driver(prefix))
    with runner.opened() as cluster:
        if "transactions" not in runner.introduce().capabilities:
            pytest.skip(f"{library.name} has no transactions")
        assert runner.played(cluster, schedule).findings == []
        assert refusal["error"] in [each.error for each in cluster.journal.find(api="InitProducerId")]


@pytest.mark.interop
@_each_library
def test_a_share_consumer_reports_keys(library: Library) -> None:
    """Kafka's own driver left them out."""
    prefix = built(library)
    runner = RandomRunner(lambda: Driver(prefix))
    if "share_groups" not in runner.introduce().capabilities:
        pytest.skip(f"{library.name} has no share groups")
    with runner.opened() as cluster, Driver(prefix) as driver:
        driver.hello()
        exercise = Exercise(cluster, driver, timeout_ms=TIMEOUT_MS)
        consumer, producer = share_consumer(exercise, "s"), exercise.producer()
        consumer.subscribe("t")
        for number in range(100):  # a share group begins at the end of the log
            producer.send([f"r{number}"], topic="t", partition=0, keys=["k"])
            producer.flush()
            if consumer.poll(200):
                break
        assert {each["key"] for each in consumer.read} == {"k"}


@pytest.mark.nightly
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_the_whole_exam_fails_where_the_scoreboard_does(library: Library, tmp_path: Path) -> None:
    """No rule of level MUST is broken that was not when its runs were recorded; failures are repeated.

    The result is kept where EXAM_RUNS points to, from which `make nightly` writes docs/inside/scoreboard.md.
    """
    prefix = built(library)
    result = Runner(lambda: Driver(prefix)).run(list(SCENARIOS.values()), jobs=JOBS)
    folder = Path(os.environ.get("EXAM_RUNS", tmp_path))
    (folder / f"{library.name}.json").write_text(json.dumps(result.as_json(), indent=1), encoding="utf-8")
    known = recorded().get(library.name)
    accepted = {name for name, each in known["results"].items() if each["verdict"] != "pass"} if known else set()
    accepted |= {name for name in SCENARIOS if known is None or name not in known["results"]}
    failed = [f"{each.scenario.id}: {each.problem}" for each in result.results if each.verdict is Verdict.FAIL]
    assert [each for each in failed if each.partition(":")[0] not in accepted] == []
    assert result.count(Verdict.PASS) > len(SCENARIOS) // 4
