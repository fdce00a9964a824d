"""Plays scenarios: a cluster for each job, reset before each; a driver process for each; failures are repeated."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from understudy.client import Cluster, start
from understudy.errors import UnderstudyError
from understudy.exam import scenarios as _all_scenarios  # noqa: F401 - registers them
from understudy.exam import security, witnesses
from understudy.exam.driver import AnyDriver, CallError, DriverHang, DriverProblem, NotSupported
from understudy.exam.exercise import TIMEOUT_MS, Exercise, NotExercised, Violation
from understudy.exam.level import Level
from understudy.exam.scenario import STEERING, Scenario
from understudy.exam.verdicts import ExamResult, Library, Result, Verdict, of_violation
from understudy.version import __version__

PLAYS: Final = 3
"""How often a failing scenario is played before it counts as failed."""
JOBS: Final = 6
"""How many scenarios are played at a time. Most of their time is the library's waiting."""
BROKEN: Final = frozenset({Verdict.FAIL, Verdict.NON_STRICT})
EVIDENCE: Final = 14
ROUTINE: Final = frozenset({"Fetch", "Heartbeat", "ApiVersions", "GetTelemetrySubscriptions"})
OPTIONS: Final[dict[str, Any]] = {
    "brokers": 3,
    "topics": {"t": 1, "u": 1, "many": 3},
    "listeners": security.listeners(),
    "add_scram": security.users(),
    "settings": {
        **security.settings(),
        "group.initial.rebalance.delay.ms": 0,
        "default.replication.factor": 3,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        "auto.create.topics.enable": False,
    },
}


class Runner:
    """One library's exam."""

    def __init__(
        self,
        driver: Callable[[], AnyDriver],
        *,
        plays: int = PLAYS,
        timeout_ms: int = TIMEOUT_MS,
        opened: Callable[[], AbstractContextManager[Cluster]] | None = None,
        **options: Any,
    ) -> None:
        """`driver` starts a driver; each scenario gets one of its own. `options` are those of the cluster.

        `opened` opens another cluster than Understudy's own, whose attribute `offers` names the steering that it has.
        """
        self.driver, self.plays, self.timeout_ms = driver, plays, timeout_ms
        self.opened = opened or (lambda: start(**{**OPTIONS, **options}))
        self._playing: set[AnyDriver] = set()
        self._ended = threading.Event()

    def introduce(self) -> Library:
        """Start the driver once, for its name and its capabilities. Raises DriverProblem."""
        with self.driver() as driver:
            driver.hello()
            try:
                driver.call("quit")
            except (CallError, NotSupported) as error:
                raise DriverProblem(f"quit has to be answered with a result: {error}") from error
            return Library(driver.library, driver.version, tuple(sorted(driver.capabilities)))

    def run(
        self, chosen: Sequence[Scenario], report: Callable[[Result], None] = lambda _result: None, *, jobs: int = 1
    ) -> ExamResult:
        """Play the scenarios, `jobs` of them at a time; `report` is called with each result, by one job at a time.

        The results are in the order of the scenarios; with several jobs, the slow ones are played first. A job that
        fails, or Ctrl-C, ends the others and their drivers.
        """
        library = self.introduce()
        capabilities = frozenset(library.capabilities)
        waiting = iter(chosen if jobs == 1 else sorted(chosen, key=lambda each: not each.slow))
        results: dict[str, Result] = {}
        versions: set[str] = set()
        lock = threading.Lock()
        self._ended.clear()

        def job() -> None:
            with self.opened() as cluster, self._ending():
                versions.add(cluster.info().as_version)
                while not self._ended.is_set():
                    with lock:
                        scenario = next(waiting, None)
                    if scenario is None:
                        return
                    result = self.judge(cluster, scenario, capabilities)
                    with lock:
                        results[scenario.id] = result
                        report(result)

        began = time.monotonic()
        if jobs == 1:
            job()
        else:
            with ThreadPoolExecutor(jobs, "exam") as pool, self._ending():
                running = [pool.submit(job) for _ in range(jobs)]
                for each in wait(running, return_when=FIRST_EXCEPTION).done:
                    each.result()
        played = tuple(results[each.id] for each in chosen)
        return ExamResult(library, __version__, versions.pop(), played, time.monotonic() - began, jobs)

    def judge(self, cluster: Cluster, scenario: Scenario, capabilities: frozenset[str]) -> Result:
        """Play a scenario as often as its verdict needs; a library without the capabilities is not asked."""
        missing = sorted(scenario.needs - capabilities)
        if missing:
            return Result(scenario, Verdict.NOT_SUPPORTED, f"needs {', '.join(missing)}")
        missing = sorted(scenario.steers - getattr(cluster, "offers", STEERING))
        if missing:
            return Result(scenario, Verdict.NOT_EXERCISED, f"needs steering of the cluster: {', '.join(missing)}")
        began = time.monotonic()
        verdict, problem, evidence = self.play(cluster, scenario)
        plays = 1
        while verdict in BROKEN and plays < self.plays and not self._ended.is_set():
            plays += 1
            again = self.play(cluster, scenario)
            if again[0] is Verdict.PASS:  # one in which the situation did not arise shows nothing
                verdict = Verdict.FLAKY
            elif again[0] is Verdict.NON_STRICT:  # a MUST counts as broken if it was each time
                verdict, problem, evidence = again
        return Result(scenario, verdict, problem, evidence, time.monotonic() - began, plays)

    def play(self, cluster: Cluster, scenario: Scenario) -> tuple[Verdict, str, tuple[str, ...]]:
        """Play a scenario once, on a cluster that is reset before: the verdict, the problem, and the evidence."""
        cluster.reset(disconnect=True)
        failed = of_violation(scenario.level)
        try:
            with self.driver() as driver, self._registered(driver):
                driver.hello()
                scenario.play(Exercise(cluster, driver, timeout_ms=self.timeout_ms))
                driver.call("quit")
        except Violation as violation:
            weaker = failed if violation.level is Level.MUST else Verdict.NON_STRICT
            return weaker, str(violation), evidence_of(cluster)
        except CallError as error:
            return failed, f"the library reports an error: {error}", evidence_of(cluster)
        except DriverHang as error:
            return Verdict.FAIL, f"the library does not return: {error}", evidence_of(cluster)
        except DriverProblem as error:
            return Verdict.FAIL, f"the driver failed: {error}", evidence_of(cluster)
        except NotSupported as reason:
            return Verdict.NOT_SUPPORTED, str(reason), ()
        except NotExercised as reason:
            return Verdict.NOT_EXERCISED, str(reason), evidence_of(cluster)
        return Verdict.PASS, "", ()

    @contextmanager
    def _registered(self, driver: AnyDriver) -> Iterator[None]:
        """A driver that is ended with the exam. Raises DriverProblem: the exam has ended."""
        self._playing.add(driver)
        try:
            if self._ended.is_set():
                raise DriverProblem("the exam has ended")
            yield
        finally:
            self._playing.discard(driver)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the exam and its drivers if the block fails: each may be in a call that takes long."""
        try:
            yield
        except BaseException:
            self._ended.set()
            for driver in list(self._playing):
                driver.__exit__(None, None, None)
            raise


def evidence_of(cluster: Cluster) -> tuple[str, ...]:
    """The last requests, without healthy routine; the requests around a fault are among them."""
    try:
        entries = cluster.journal.find(limit=2_000)
    except UnderstudyError as error:
        return (f"the cluster does not answer: {error}",)
    shown = [each for each in entries if each.api not in ROUTINE or each.error or each.fault]
    met = [index for index, each in enumerate(shown) if each.fault]
    last = shown[-EVIDENCE:]
    around = shown[max(met[0] - 3, 0) : met[0] + EVIDENCE - 3] if met else []
    if around and around[-1].id < last[0].id:
        return (*map(witnesses.line, around), "...", *map(witnesses.line, last[-4:]))
    return tuple(map(witnesses.line, around if around and len(around) > len(last) else last))


def shard(chosen: Sequence[Scenario], index: int, count: int) -> Sequence[Scenario]:
    """The scenarios of one of several shards, which are numbered from 1."""
    return [each for number, each in enumerate(chosen) if number % count == index - 1]
