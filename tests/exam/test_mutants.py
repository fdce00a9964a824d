"""Each scenario passes with the reference client, and fails with the mutation of it that the table names."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.exam.mutants import FURTHER, MUTANTS
from tests.exam.reference.driver import InProcess
from understudy.client import Cluster, start
from understudy.exam.level import Level
from understudy.exam.runner import OPTIONS, Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict

SAMPLE = (
    "hostile/stray-answer",
    "admin/topic-exists",
    "telemetry/answer-lost",
    "produce/not-enough-replicas",
    "idempotence/answer-lost",
    "idempotence/not-leader",
    "transactions/fenced",
    "transactions/record-refused",
    "consumers/within-a-batch",
    "consumers/aborted-records",
    "groups/syncgroup-illegal-generation",
    "groups/evicted-member-commits",
)
"""Played in each run of the tests; all others at night."""
TIMEOUT_MS = 4_000
scenarios = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SAMPLE else [pytest.mark.nightly]) for name in SCENARIOS]
)


@pytest.fixture(scope="module")
def exam_cluster() -> Iterator[Cluster]:
    """The exam's cluster, which each play resets."""
    with start(**OPTIONS) as cluster:
        yield cluster


def test_every_scenario_has_a_mutant() -> None:
    """One that no mutation fails proves nothing."""
    assert MUTANTS.keys() == SCENARIOS.keys()


def test_every_mutation_is_used() -> None:
    """One that no scenario is played with would only look like a proof."""
    source = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("reference/*.py"))
    written = set(
        re.findall(r'"([a-z]+(?:-[a-z]+)+)"(?= (?:not )?in (?:self|network)\.mutations|, "|\}\.isdisjoint)', source)
    )
    used = {*MUTANTS.values(), *(mutation for _, mutation, _ in FURTHER)}
    assert written == {each for each in used if " " not in each}  # the others are planted in what is sent and read


@scenarios
def test_the_reference_client_passes(exam_cluster: Cluster, name: str) -> None:
    """The honest client passes the scenario, so its rule can be kept."""
    verdict, problem, evidence = Runner(InProcess).play(exam_cluster, SCENARIOS[name])
    assert verdict is Verdict.PASS, "\n".join([problem, *evidence])


class Late(InProcess):
    """Its first record expires before it is connected, as where a process has to wait for a processor."""

    first = True
    expired: tuple[int, ...] = ()

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """The first `send` is not passed on, and the next `flush` reports it as expired."""
        if command == "send" and self.first:
            self.first = False
            self.expired = tuple(each["id"] for each in fields["records"])
            return {}
        if command == "flush" and self.expired:
            error = {"class": "timeout", "code": "REQUEST_TIMED_OUT", "message": "expired"}
            outcomes, self.expired = [{"id": each, "error": error} for each in self.expired], ()
            return {"outcomes": outcomes, "pending": 0}
        return super().call(command, **fields)


@pytest.mark.parametrize("name", ["produce/message-too-large", "produce/delivery-timeout"])
def test_a_short_delivery_timeout_begins_with_a_connection(exam_cluster: Cluster, name: str) -> None:
    """Otherwise the scenario is not exercised on a busy machine: the record expires before it is sent."""
    assert Runner(Late).play(exam_cluster, SCENARIOS[name])[0] is Verdict.PASS


class Idle(InProcess):
    """It answers each command with a success, and never connects."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """Records are acknowledged, none are read."""
        if command == "send":
            self.sent += [each["id"] for each in fields["records"]]
        if command == "flush":
            outcomes, self.sent = [{"id": each, "offset": -1} for each in self.sent], []
            return {"outcomes": outcomes, "pending": 0}
        return {}


@pytest.mark.parametrize(
    "name",
    [
        "transactions/coordinator-moves",
        "consumers/within-a-batch",
        "groups/commit-and-resume",
        "groups/coordinator-moves",
        "groups/leaves-when-closed",
        "consumer-protocol/coordinator-moves",
        "consumer-protocol/heartbeat-unknown-member-id",
        "consumer-protocol/leaves-when-closed",
    ],
)
def test_a_library_that_never_connects_fails(exam_cluster: Cluster, name: str) -> None:
    """The exam goes on: that there is no such group, or no such request, is a finding about the library."""
    verdict, problem, _evidence = Runner(Idle, timeout_ms=200).play(exam_cluster, SCENARIOS[name])
    assert (verdict, bool(problem)) == (Verdict.FAIL, True)


def test_a_refused_record_that_is_not_repeated_is_a_finding(exam_cluster: Cluster) -> None:
    """A library that takes each answer for a success never sends what the scenario compares with."""
    check_broken(exam_cluster, "produce/metadata-after-leader-error", "error-is-success")


class Connected(InProcess):
    """It gives up after Metadata without brokers, unless it knew the topic when it was connected.

    A library that knows the topic may write a record while that Metadata is on its way.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("gives-up-without-leader")
        self.cluster = cluster
        self.known: dict[str, set[str]] = {}
        self.sent: Mapping[str, Any] = {}

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """Records of a topic that it knew are sent again until they are written."""
        if command == "producer":
            self.known[fields["name"]] = {each.name for each in self.cluster.topics.list()}
        if command == "send":
            self.sent = fields
        answer = super().call(command, **fields)
        while command == "flush" and self._refused(answer) and self.sent["topic"] in self.known[fields["producer"]]:
            super().call("send", **self.sent)
            answer = super().call("flush", **fields)
        return answer

    @staticmethod
    def _refused(answer: Mapping[str, Any]) -> bool:
        return any("error" in each for each in answer["outcomes"])


def test_metadata_without_brokers_is_of_a_topic_that_no_library_knows(exam_cluster: Cluster) -> None:
    """Otherwise the verdict depends on whether the record or the answer is faster."""
    scenario = SCENARIOS["hostile/metadata-without-brokers"]
    assert Runner(lambda: Connected(exam_cluster)).play(exam_cluster, scenario)[0] is Verdict.NON_STRICT


@scenarios
def test_the_mutant_fails(exam_cluster: Cluster, name: str) -> None:
    """The scenario notices that it is broken."""
    check_broken(exam_cluster, name, MUTANTS[name])


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "mutation", "level"), FURTHER)
def test_a_second_mutant_fails(exam_cluster: Cluster, name: str, mutation: str, level: str) -> None:
    """The exam notices another kind of mistake too."""
    check_broken(exam_cluster, name, mutation, Level(level))


def check_broken(exam_cluster: Cluster, name: str, mutation: str, level: Level | None = None) -> None:
    """The scenario's verdict on a mutation of the reference client is that of a broken rule of this level."""
    runner = Runner(lambda: InProcess(mutation), timeout_ms=TIMEOUT_MS)
    verdict, problem, _evidence = runner.play(exam_cluster, SCENARIOS[name])
    failed = Verdict.FAIL if (level or SCENARIOS[name].level) is Level.MUST else Verdict.NON_STRICT
    assert (verdict, bool(problem)) == (failed, True)
