"""Verdicts and their meaning, and a scenario's result with its evidence."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Final

from understudy.exam.level import Level
from understudy.exam.scenario import Scenario


class Verdict(Enum):
    """The outcome of a scenario for one library."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NON_STRICT = "non-strict"
    NOT_SUPPORTED = "not supported"
    NOT_EXERCISED = "not exercised"
    FLAKY = "flaky"


ABOUT: Final[Mapping[Verdict, str]] = {
    Verdict.PASS: "The situation arose, and no witness contradicts the rule.",
    Verdict.FAIL: "A rule of level MUST was broken, each time that the scenario was played; or a call did not return.",
    Verdict.NON_STRICT: "A rule of level SHOULD or MAY was broken, each time; or one of level MUST, but not each time.",
    Verdict.NOT_SUPPORTED: "The library has no such feature.",
    Verdict.NOT_EXERCISED: "The situation did not arise: the library never sent the request that was to fail.",
    Verdict.FLAKY: "The scenario failed at first and passed when it was repeated.",
}


@dataclass(frozen=True)
class Result:
    """A scenario's verdict: `problem` is the violated rule in one sentence, `evidence` the requests around it."""

    scenario: Scenario
    verdict: Verdict
    problem: str = ""
    evidence: tuple[str, ...] = ()
    seconds: float = 0.0
    plays: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `--format json`."""
        return {
            "id": self.scenario.id,
            "title": self.scenario.title,
            "level": self.scenario.level.value,
            "rule": self.scenario.rule,
            "verdict": self.verdict.value,
            "problem": self.problem,
            "correct": self.scenario.correct,
            "loss": self.scenario.loss,
            "evidence": list(self.evidence),
            "seconds": round(self.seconds, 3),
            "plays": self.plays,
        }


@dataclass(frozen=True)
class Library:
    """The library under examination, as its driver describes it."""

    name: str
    version: str
    capabilities: tuple[str, ...]


@dataclass(frozen=True)
class ExamResult:
    """All results of one library. `kafka` is the release that the cluster emulates, empty for a running cluster.

    `seconds` is the duration of the whole exam, in which `jobs` scenarios were played in parallel.
    """

    library: Library
    understudy: str
    kafka: str
    results: tuple[Result, ...]
    seconds: float = 0.0
    jobs: int = 1

    def count(self, verdict: Verdict) -> int:
        """Return the number of scenarios with this verdict."""
        return Counter(result.verdict for result in self.results)[verdict]

    @property
    def cluster(self) -> str:
        """Return the cluster that the library was examined against, for the header of a report."""
        if not self.kafka:
            return f"a cluster that runs elsewhere, behind the proxy of Understudy {self.understudy}"
        return f"Understudy {self.understudy}, which emulates Kafka {self.kafka}"

    @property
    def failed(self) -> bool:
        """Return whether a scenario has the verdict *fail*."""
        return self.count(Verdict.FAIL) > 0

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `--format json`, which later runs compare with (`--against`)."""
        return {
            "generator": f"understudy {self.understudy}",
            "kind": "exam",
            "kafka": self.kafka,
            "library": asdict(self.library),
            "seconds": round(self.seconds, 3),
            "jobs": self.jobs,
            "counts": {verdict.value: self.count(verdict) for verdict in Verdict},
            "results": [result.as_json() for result in self.results],
        }


def of_violation(level: Level) -> Verdict:
    """Return the verdict on a violated rule."""
    return Verdict.FAIL if level is Level.MUST else Verdict.NON_STRICT


def changes(before: Mapping[str, Any], now: Iterable[Result]) -> list[str]:
    """Return verdicts that differ from an earlier run's JSON, one line each."""
    earlier = {earlier_result["id"]: earlier_result["verdict"] for earlier_result in before.get("results", ())}
    return [
        f"{result.scenario.id}: {earlier[result.scenario.id]}, now {result.verdict.value}"
        for result in now
        if result.scenario.id in earlier and earlier[result.scenario.id] != result.verdict.value
    ]
