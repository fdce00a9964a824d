"""Plays scenarios: a cluster per job, reset before each scenario; a new driver process each time.

Failures are repeated.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from understudy.client import Cluster, start
from understudy.errors import ControlError, StartError, UnderstudyError, Unreachable
from understudy.exam import scenarios as _all_scenarios  # noqa: F401 - registers them
from understudy.exam import security, wire, witnesses
from understudy.exam.driver import AnyDriver, CallError, DriverHang, DriverProblem, NotStarted, NotSupported
from understudy.exam.exercise import BROKERS, TIMEOUT_MS, TOPICS, Exercise, NotExercised, Violation
from understudy.exam.level import Level
from understudy.exam.scenario import STEERING, Scenario
from understudy.exam.verdicts import ExamResult, Library, Result, Verdict, of_violation
from understudy.version import __version__

PLAYS: Final = 3
"""How often a failing scenario is played before it counts as failed: one failure may be the machine's."""
JOBS: Final = 6
"""Number of scenarios played in parallel. Most of the time they wait for the library.

Ours, for a machine of few cores.
"""
BROKEN: Final = frozenset({Verdict.FAIL, Verdict.NON_STRICT})
EVIDENCE: Final = 14  # lines: what fits below a verdict
UNSTEERED: Final = "the cluster or the driver did not do what the scenario needs"
WITHOUT_FAULTS: Final = frozenset(
    {"consumers/open-transaction", "consumer-protocol/plain", "groups/plain", "transactions/exactly-once-copy"}
)
"""Scenarios that report what a client does in each run, if it is no violation of level MUST."""
ROUTINE: Final = frozenset({"Fetch", "Heartbeat", "ApiVersions", "GetTelemetrySubscriptions"})
OPTIONS: Final[dict[str, Any]] = {
    "brokers": BROKERS,
    "for_tests": False,
    "topics": dict(TOPICS),
    "listeners": security.listeners(),
    "add_scram": security.users(),
    "settings": {
        **security.settings(),
        "group.initial.rebalance.delay.ms": 0,
        "default.replication.factor": BROKERS,
        "min.insync.replicas": 1,
        # A coordinator on each broker.
        "offsets.topic.num.partitions": BROKERS,
        "transaction.state.log.num.partitions": BROKERS,
        "auto.create.topics.enable": False,
    },
}


class Runner:
    """The exam of one library."""

    def __init__(
        self,
        driver: Callable[[], AnyDriver],
        *,
        plays: int = PLAYS,
        timeout_ms: int = TIMEOUT_MS,
        opened: Callable[[], AbstractContextManager[Cluster]] | None = None,
        **options: Any,
    ) -> None:
        """Prepare the exam. `driver` starts a driver; each scenario gets its own. `options` are the cluster's.

        `opened` opens a cluster other than Understudy's own; its attribute `offers` names the steering that it
        supports.
        """
        self.driver, self.plays, self.timeout_ms = driver, plays, timeout_ms
        self.opened = opened or (lambda: started({**OPTIONS, **options}))
        self._playing: set[AnyDriver] = set()
        self._ended = threading.Event()

    def introduce(self) -> Library:
        """Start the driver, for its name and capabilities; once more if it does not start. Raises DriverProblem."""
        try:
            return self._introduced()
        except NotStarted:
            return self._introduced()

    def _introduced(self) -> Library:
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
        """Play the scenarios, `jobs` of them in parallel; one job at a time calls `report` with a result.

        The results are in the order of the scenarios; with several jobs, slow scenarios start first. If a job fails, or
        after Ctrl-C, the other jobs and their drivers are ended.
        """
        library = self.introduce()
        capabilities = frozenset(library.capabilities)
        waiting = iter(chosen if jobs == 1 else sorted(chosen, key=lambda each: not each.slow))
        results: dict[str, Result] = {}
        versions: set[str] = set()
        lock = threading.Lock()
        self._ended.clear()

        def following() -> Scenario | None:
            with lock:
                return next(waiting, None)

        def keep(result: Result) -> None:
            with lock:
                results[result.scenario.id] = result
                report(result)

        def job() -> None:
            scenario, again = following(), False
            while scenario is not None and not self._ended.is_set():
                try:
                    with self.opened() as cluster, self._ending():
                        versions.add(cluster.info().as_version)
                        usable = True
                        while scenario is not None and usable and not self._ended.is_set():
                            result = self._judged(cluster, scenario, capabilities)
                            usable = not result.problem.startswith(UNSTEERED)
                            again = not (usable or again)  # once more, on another cluster
                            if not again:
                                keep(result)
                                scenario = following()
                except StartError as error:
                    if not versions or scenario is None:
                        raise
                    keep(Result(scenario, Verdict.NOT_EXERCISED, f"{UNSTEERED}: {error}"))
                    scenario, again = following(), False

        began = time.monotonic()
        self._in_parallel(job, jobs)
        played = tuple(results[each.id] for each in chosen)
        return ExamResult(library, __version__, versions.pop(), played, time.monotonic() - began, jobs)

    def _in_parallel(self, job: Callable[[], None], jobs: int) -> None:
        """Run several of a job, until one of them fails."""
        if jobs == 1:
            job()
            return
        with ThreadPoolExecutor(jobs, "exam") as pool, self._ending():
            running = [pool.submit(job) for _ in range(jobs)]
            for each in wait(running, return_when=FIRST_EXCEPTION).done:
                each.result()

    def _judged(self, cluster: Cluster, scenario: Scenario, capabilities: frozenset[str]) -> Result:
        """Return the result; that cluster or driver do not answer on a slow machine is no verdict on the library."""
        try:
            return self.judge(cluster, scenario, capabilities)
        except (NotStarted, Unreachable) as error:
            return Result(scenario, Verdict.NOT_EXERCISED, f"{UNSTEERED}: {error}")

    def judge(self, cluster: Cluster, scenario: Scenario, capabilities: frozenset[str]) -> Result:
        """Play a scenario as often as its verdict requires; not at all if the library is missing a capability."""
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
            if again[0] is Verdict.PASS:  # a play in which the situation did not occur proves nothing
                verdict = Verdict.FLAKY
            elif again[0] is Verdict.NON_STRICT:  # a MUST counts as violated only if each play violated it
                verdict, problem, evidence = again
        return Result(scenario, verdict, problem, evidence, time.monotonic() - began, plays)

    def play(self, cluster: Cluster, scenario: Scenario) -> tuple[Verdict, str, tuple[str, ...]]:
        """Reset the cluster, play a scenario once, and return the verdict, the problem and the evidence."""
        cluster.reset(disconnect=True)
        clients: list[wire.Client] = []
        verdict, problem, evidence = self._attempt(cluster, scenario, clients)
        if verdict is Verdict.NOT_SUPPORTED:
            return verdict, problem, evidence
        result = with_wire(cluster, scenario, clients, verdict, problem, evidence)
        if verdict is Verdict.NOT_EXERCISED and result[0] is not Verdict.FAIL:  # a MUST may be why it did not arise
            return verdict, problem, evidence
        return result

    def _attempt(
        self, cluster: Cluster, scenario: Scenario, clients: list[wire.Client]
    ) -> tuple[Verdict, str, tuple[str, ...]]:
        """Play a scenario once, without the rules of the wire; add its clients to `clients`."""
        failed = of_violation(scenario.level)
        try:
            with self.driver() as driver, self._registered(driver):
                driver.hello()
                scenario.play(Exercise(cluster, driver, clients=clients, timeout_ms=self.timeout_ms))
                driver.call("quit")
        except Violation as violation:
            weaker = failed if violation.level is Level.MUST else Verdict.NON_STRICT
            return weaker, str(violation), evidence_of(cluster)
        except CallError as error:
            return failed, f"the library reports an error: {error}", evidence_of(cluster)
        except NotStarted as error:
            return Verdict.NOT_EXERCISED, f"{UNSTEERED}: {error}", ()
        except DriverHang as error:
            return Verdict.FAIL, f"the library does not return: {error}", evidence_of(cluster)
        except DriverProblem as error:
            return Verdict.FAIL, f"the driver failed: {error}", evidence_of(cluster)
        except NotSupported as reason:
            return Verdict.NOT_SUPPORTED, str(reason), ()
        except NotExercised as reason:
            return Verdict.NOT_EXERCISED, str(reason), evidence_of(cluster)
        except ControlError as error:
            return Verdict.NOT_EXERCISED, f"{UNSTEERED}: {error}", ()
        return Verdict.PASS, "", ()

    @contextmanager
    def _registered(self, driver: AnyDriver) -> Iterator[None]:
        """Register a driver, which ends with the exam. Raises DriverProblem if the exam has ended."""
        self._playing.add(driver)
        try:
            if self._ended.is_set():
                raise DriverProblem("the exam has ended")
            yield
        finally:
            self._playing.discard(driver)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the exam and its drivers if the block fails, as each driver may be in a long call."""
        try:
            yield
        except BaseException:
            self._ended.set()
            for driver in list(self._playing):
                driver.__exit__(None, None, None)
            raise


def started(options: Mapping[str, Any]) -> Cluster:
    """Start a cluster; once more if that fails, as a port that was free may be taken by the time it is bound."""
    try:
        return start(**options)
    except UnderstudyError:
        return start(**options)


def with_wire(
    cluster: Cluster,
    scenario: Scenario,
    clients: Sequence[wire.Client],
    verdict: Verdict,
    problem: str,
    evidence: tuple[str, ...],
) -> tuple[Verdict, str, tuple[str, ...]]:
    """Add the first broken rule of the wire to what a scenario found: it is the cause, and is reported first."""
    try:
        entries = cluster.journal.find(limit=wire.LIMIT)
    except UnderstudyError:
        return verdict, problem, evidence
    broken = wire.problems(clients, entries, habits=scenario.id in WITHOUT_FAULTS)
    if not broken:
        return verdict, problem, evidence
    worst = broken[0]
    of_both = verdict if verdict is Verdict.FAIL else of_violation(worst.level)
    if verdict in BROKEN and worst.level is Level.MAY:
        return of_both, f"{problem}; {worst}", evidence
    lines = (witnesses.line(worst.entry), *(("...", *evidence) if evidence else ()))
    return of_both, f"{worst}; {problem}" if problem else str(worst), lines


def evidence_of(cluster: Cluster) -> tuple[str, ...]:
    """Return the last requests, without successful routine ones; it includes those around a fault."""
    try:
        entries = cluster.journal.find(limit=2_000)  # arbitrary: more than most scenarios send
    except UnderstudyError as error:
        return (f"the cluster does not answer: {error}",)
    shown = [each for each in entries if each.api not in ROUTINE or each.error or each.fault]
    met = [index for index, each in enumerate(shown) if each.fault]
    last = shown[-EVIDENCE:]
    # Three before the fault show what it met; four at the end how the scenario ended.
    around = shown[max(met[0] - 3, 0) : met[0] + EVIDENCE - 3] if met else []
    if around and around[-1].id < last[0].id:
        return (*map(witnesses.line, around), "...", *map(witnesses.line, last[-4:]))
    return tuple(map(witnesses.line, around if around and len(around) > len(last) else last))


def shard(chosen: Sequence[Scenario], index: int, count: int) -> Sequence[Scenario]:
    """Return the scenarios of one of several shards, which are numbered from 1."""
    return [each for number, each in enumerate(chosen) if number % count == index - 1]
