"""Several scenarios are played at a time, each on a cluster of its own."""

import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from understudy.client import Cluster
from understudy.errors import ControlError, StartError, UnderstudyError, Unreachable
from understudy.exam import driver, runner
from understudy.exam.driver import Driver, DriverHang, DriverProblem, NotStarted, NotSupported
from understudy.exam.exercise import Exercise, NotExercised, Outcome, Producer, Violation
from understudy.exam.level import Level
from understudy.exam.runner import Runner
from understudy.exam.scenario import Scenario
from understudy.exam.verdicts import Result, Verdict
from understudy.results import Record

PATIENCE_S = 30


class Silent:
    """A driver that answers each command with nothing."""

    library, version = "silent", "1"
    capabilities: frozenset[str] = frozenset()

    def hello(self) -> None:
        """Nothing to ask for."""

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:  # noqa: ARG002 - as each driver has them
        """An empty result."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing to end."""


class Opened:
    """Clusters without a server, and those that are open."""

    def __init__(self) -> None:
        self.open: list[Cluster] = []
        self.count = 0
        self.closed = threading.Event()

    @contextmanager
    def __call__(self) -> Iterator[Cluster]:
        """One more cluster."""
        cluster = cast(
            "Cluster",
            SimpleNamespace(
                reset=lambda **_: None,
                info=lambda: SimpleNamespace(as_version="4.4"),
                journal=SimpleNamespace(find=lambda **_: []),
            ),
        )
        self.count += 1
        self.open.append(cluster)
        try:
            yield cluster
        finally:
            self.open.remove(cluster)
            self.closed.set()


def scenarios(count: int, play: Any) -> list[Scenario]:
    """Scenarios that do the same."""
    none: frozenset[str] = frozenset()
    about = ("a title", Level.MUST, "a rule", none, none, "what is correct", "what is lost")
    return [Scenario(f"made/{number}", *about, play) for number in range(count)]


def test_a_cluster_that_cannot_be_steered_is_replaced() -> None:
    """A broker that does not start again, as its port is taken, is no fault of the library: once more, elsewhere."""
    opened, plays = Opened(), list[Cluster]()

    def play(exercise: Exercise) -> None:
        plays.append(exercise.cluster)
        if len(plays) == 1:
            raise ControlError(500, "port 1 cannot be bound")

    result = Runner(Silent, opened=opened).run(scenarios(2, play))
    assert [each.verdict for each in result.results] == [Verdict.PASS, Verdict.PASS]
    assert (opened.count, len(plays)) == (2, 3)
    assert plays[0] is not plays[1]


def test_a_scenario_whose_steering_fails_twice_is_not_exercised() -> None:
    """If steering fails twice, the verdict is "not exercised", with the cause; neither cluster is used any further."""
    opened = Opened()

    def play(_exercise: Exercise) -> None:
        raise ControlError(500, "port 1 cannot be bound")

    (result,) = Runner(Silent, opened=opened).run(scenarios(1, play)).results
    assert (result.verdict, opened.count) == (Verdict.NOT_EXERCISED, 2)
    assert "port 1 cannot be bound" in result.problem


def test_a_cluster_that_does_not_answer_is_replaced() -> None:
    """A machine that stalls for half a minute does not end an exam of hours; the second time, it is no verdict."""
    opened, plays = Opened(), list[Cluster]()

    def play(exercise: Exercise) -> None:
        plays.append(exercise.cluster)
        if len(plays) in {1, 3, 4}:
            raise Unreachable("no answer within 30 s")

    result = Runner(Silent, opened=opened).run(scenarios(3, play))
    assert [each.verdict for each in result.results] == [Verdict.PASS, Verdict.NOT_EXERCISED, Verdict.PASS]
    assert (opened.count, len(plays)) == (4, 5)


class Late(Silent):
    """A driver whose n-th processes do not answer `hello` in time."""

    def __init__(self, late: Collection[int], starts: Iterator[int]) -> None:
        self.late, self.number = late, next(starts)

    def hello(self) -> None:
        """What a driver does that the machine does not let start."""
        if self.number in self.late:
            raise NotStarted("hello was not answered within 40 s")


@pytest.mark.parametrize(
    ("late", "verdicts"),
    [
        ({1}, [Verdict.PASS, Verdict.PASS]),
        ({3}, [Verdict.PASS, Verdict.PASS]),
        ({3, 4}, [Verdict.NOT_EXERCISED, Verdict.PASS]),
    ],
)
def test_a_driver_that_does_not_start_is_no_verdict_on_the_library(late: set[int], verdicts: list[Verdict]) -> None:
    """It is started once more, for its name (1, 2) and for a scenario; then the scenario is not exercised."""
    starts = count(1) if 1 in late else count(2)
    result = Runner(lambda: Late(late, starts), opened=Opened()).run(scenarios(2, lambda _exercise: None))
    assert [each.verdict for each in result.results] == verdicts
    assert ["hello" in each.problem for each in result.results] == [each is not Verdict.PASS for each in verdicts]


def test_a_driver_that_ends_before_it_is_started_is_a_problem_of_the_driver() -> None:
    """Only a `hello` that is late is none."""
    runner = Runner(lambda: Driver([sys.executable, "-c", ""]), opened=Opened())
    with pytest.raises(DriverProblem, match="ended"):
        runner.introduce()


def test_a_hello_that_is_late_is_another_problem_than_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process: `hello` and any other command."""
    monkeypatch.setattr(driver, "UNTIMED_S", 0.01)
    with Driver([sys.executable, "-c", "import sys; sys.stdin.read()"]) as silent:
        with pytest.raises(NotStarted):
            silent.hello()
        with pytest.raises(DriverHang) as hang:
            silent.call("begin", producer="p")
    assert not isinstance(hang.value, NotStarted)


def test_a_cluster_that_does_not_start_leaves_one_scenario_out() -> None:
    """If one has started before, only the machine is slow; if none has, the exam ends with the reason."""
    opened, attempts = Opened(), count(1)

    def play(exercise: Exercise) -> None:
        if exercise.cluster is first[0]:
            raise Unreachable("no answer within 30 s")

    first = list[Cluster]()

    @contextmanager
    def opening() -> Iterator[Cluster]:
        if next(attempts) == fails_at:
            raise StartError("the server was not ready after 120 s")
        with opened() as cluster:
            first.append(cluster)
            yield cluster

    fails_at = 2
    result = Runner(Silent, opened=opening).run(scenarios(3, play))
    assert [each.verdict for each in result.results] == [Verdict.NOT_EXERCISED, Verdict.PASS, Verdict.PASS]
    assert "not ready" in result.results[0].problem
    fails_at, attempts = 1, count(1)
    with pytest.raises(StartError):
        Runner(Silent, opened=opening).run(scenarios(3, play))


def test_a_start_that_fails_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that was free may be taken by the time that it is bound; a second failure has another cause."""
    failures = [StartError("the port is taken")]

    def start(**options: Any) -> Any:
        if failures:
            raise failures.pop()
        return options

    monkeypatch.setattr(runner, "start", start)
    assert cast("Any", runner.started({"brokers": 3})) == {"brokers": 3}
    failures += [StartError("no"), StartError("no")]
    with pytest.raises(StartError):
        runner.started({})


def test_an_outcome_that_is_reported_twice_is_a_finding() -> None:
    """An application that counts outcomes would be wrong."""

    class Repeating(Silent):
        def call(self, command: str, **fields: Any) -> Mapping[str, Any]:  # noqa: ARG002 - as above
            return {"outcomes": [{"id": 0, "offset": 0}], "pending": 0} if command == "flush" else {}

    def play(exercise: Exercise) -> None:
        producer = Producer(exercise, "p")
        producer.send(["r00"])
        producer.flush()
        assert producer.sent[0].acknowledged
        producer.flush()

    (result,) = Runner(Repeating, opened=Opened(), plays=1).run(scenarios(1, play)).results
    assert (result.verdict, result.problem) == (Verdict.FAIL, "the outcome of record 'r00' was reported twice")


def test_two_scenarios_are_played_at_a_time() -> None:
    """Each waits for the other one, on another cluster; the results are in the order of the scenarios."""
    met, clusters, opened, reported = threading.Barrier(2), set(), Opened(), list[Result]()

    def play(exercise: Exercise) -> None:
        clusters.add(id(exercise.cluster))
        met.wait(PATIENCE_S)

    chosen = scenarios(6, play)
    result = Runner(Silent, opened=opened).run(chosen, reported.append, jobs=2)
    assert [each.scenario for each in result.results] == chosen
    assert sorted(each.scenario.id for each in reported) == [each.id for each in chosen]
    assert (len(clusters), opened.count, opened.open, result.jobs) == (2, 2, [], 2)


def test_slow_scenarios_begin_first() -> None:
    """The others are played beside them; the results are in the order of the scenarios all the same."""
    begun, opened, first = list[str](), Opened(), threading.Barrier(2)

    def play(exercise: Exercise) -> None:  # noqa: ARG001 - as each scenario has it
        begun.append("slow")
        first.wait(PATIENCE_S)

    chosen = scenarios(5, lambda _exercise: begun.append("quick"))
    chosen[2:4] = [replace(each, play=play, slow=True) for each in chosen[2:4]]
    result = Runner(Silent, opened=opened).run(chosen, jobs=2)
    assert begun == ["slow", "slow", "quick", "quick", "quick"]
    assert [each.scenario for each in result.results] == chosen


def test_one_job_plays_in_order() -> None:
    """With one job the scenarios are played in order on one cluster."""
    opened, reported = Opened(), list[Result]()
    chosen = scenarios(3, lambda _exercise: None)
    Runner(Silent, opened=opened).run(chosen, reported.append)
    assert [each.scenario for each in reported] == chosen
    assert opened.count == 1


def test_a_cluster_that_fails_ends_the_other_job() -> None:
    """After the scenario that it plays: it has none of the other hundred. No cluster is left."""
    both, opened, played = threading.Barrier(2), Opened(), list[str]()

    def play(exercise: Exercise) -> None:
        played.append("")
        both.wait(PATIENCE_S)
        if exercise.cluster is opened.open[0]:
            raise UnderstudyError("the cluster is gone")
        assert opened.closed.wait(PATIENCE_S)

    with pytest.raises(UnderstudyError, match="is gone"):
        Runner(Silent, opened=opened).run(scenarios(100, play), jobs=2)
    assert (len(played), opened.open) == (2, [])


def test_the_driver_of_the_other_job_is_ended() -> None:
    """One that is in a call, as after Ctrl-C: the exam does not wait for it, and plays the scenario no more."""
    calling, calls, opened = threading.Event(), list[bool](), Opened()

    class Stuck(Silent):
        def __init__(self) -> None:
            self.ended = threading.Event()

        def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
            if command == "flush":
                calling.set()
                calls.append(self.ended.wait(PATIENCE_S))
                raise DriverProblem("it was ended")
            return super().call(command, **fields)

        def __exit__(self, *_error: object) -> None:
            self.ended.set()

    def play(exercise: Exercise) -> None:
        if exercise.cluster is opened.open[0]:
            assert calling.wait(PATIENCE_S)
            raise UnderstudyError("the cluster is gone")
        exercise.driver.call("flush")

    with pytest.raises(UnderstudyError, match="is gone"):
        Runner(Stuck, opened=opened).run(scenarios(100, play), jobs=2)
    assert calls == [True]


def test_a_violation_about_large_records_is_cut_off() -> None:
    """Its text goes into a line of the report, and into the files of results."""

    def play(_exercise: Exercise) -> None:
        raise Violation(f"read nothing, not {'a' * 4_000_000}")

    (result,) = Runner(Silent, opened=Opened(), plays=1).run(scenarios(1, play)).results
    assert result.problem.startswith("read nothing, not aaa")
    assert (result.problem[-3:], len(result.problem)) == ("...", 2_003)


@pytest.mark.parametrize(
    ("plays", "verdict"),
    [
        ((Level.MUST, Level.MUST, Level.MUST), Verdict.FAIL),
        ((Level.MUST, Level.SHOULD, Level.MUST), Verdict.NON_STRICT),
        ((Level.SHOULD, Level.MUST, Level.MUST), Verdict.NON_STRICT),
        ((Level.MUST, Level.MUST, None), Verdict.FLAKY),
    ],
)
def test_a_rule_of_level_must_counts_as_broken_if_it_was_each_time(
    plays: tuple[Level | None, ...], verdict: Verdict
) -> None:
    """A play that breaks a weaker rule only shows that the stronger one can be kept."""
    levels = iter(plays)

    def play(_exercise: Exercise) -> None:
        level = next(levels)
        if level is not None:
            raise Violation(f"a rule of level {level.value}", level)

    (result,) = Runner(Silent, opened=Opened()).run(scenarios(1, play)).results
    assert (result.verdict, result.plays) == (verdict, 3)
    if verdict is Verdict.NON_STRICT:
        assert result.problem == "a rule of level SHOULD"


@pytest.mark.parametrize(
    ("plays", "verdict"),
    [
        ((Violation, NotExercised, NotExercised), Verdict.FAIL),
        ((Violation, NotExercised, Violation), Verdict.FAIL),
        ((Violation, NotSupported, None), Verdict.FLAKY),
        ((NotExercised,), Verdict.NOT_EXERCISED),
    ],
)
def test_a_play_in_which_the_situation_did_not_arise_is_no_success(
    plays: tuple[type[Exception] | None, ...], verdict: Verdict
) -> None:
    """What failed before it is still a failure: only a play that passes makes it flaky."""
    kinds = iter(plays)

    def play(_exercise: Exercise) -> None:
        kind = next(kinds)
        if kind is not None:
            raise kind("a reason")

    (result,) = Runner(Silent, opened=Opened()).run(scenarios(1, play)).results
    assert (result.verdict, result.plays) == (verdict, len(plays))


def test_a_value_that_is_no_text_is_a_verdict_and_not_the_end() -> None:
    """A serializer of the driver's may put bytes of its own in front of the text."""
    written = Record(0, value=b"\xac\xed\x00\x02v")
    partition = SimpleNamespace(records=lambda **_: [written])
    topics = {"t": SimpleNamespace(partitions=[partition])}

    def play(exercise: Exercise) -> None:
        exercise.cluster.topics = cast("Any", topics)
        producer = Producer(exercise, "p")
        producer.sent.append(Outcome("v", "t", 0, offset=0))
        exercise.require_no_loss(producer)

    (result,) = Runner(Silent, opened=Opened(), plays=1).run(scenarios(1, play)).results
    assert result.verdict is Verdict.FAIL
    assert "where the log has '\\\\xac\\\\xed\\x00\\x02v'" in result.problem
