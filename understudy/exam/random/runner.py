"""Plays random schedules as scenarios: a cluster per job, a new driver for each play, findings repeated and shrunk."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Final

from understudy.client import Cluster
from understudy.errors import UnderstudyError
from understudy.exam import wire
from understudy.exam.driver import AnyDriver, NotSupported, Starved
from understudy.exam.exercise import TOPICS, Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.random import files, oracle, shrink
from understudy.exam.random.draw import drawn, needs_of
from understudy.exam.random.files import Played
from understudy.exam.random.oracle import Finding
from understudy.exam.random.play import Play
from understudy.exam.random.schedule import Schedule
from understudy.exam.runner import OPTIONS, Runner, evidence_of
from understudy.exam.scenario import Scenario
from understudy.exam.verdicts import Result, Verdict

DIAGRAM: Final = 60
"""Requests in a diagram: two screens."""
PLAYS: Final = 5
"""How often a schedule with a finding is played in total: arbitrary, to separate rare findings from constant ones."""
STARVED_PLAYS: Final = 3
"""How often a schedule is played at most for one play in which the machine had time for it: ours."""
TIMEOUT_MS: Final = 4_000  # arbitrary: two request timeouts
SETTINGS: Final = {
    **OPTIONS["settings"],
    "broker.session.timeout.ms": 1_000,  # within TIMEOUT_MS clients meet the new leaders of a broker that is killed
    "group.share.delivery.count.limit": 10,  # lost responses are deliveries, too
}
WIRE: Final = "wire-"
RULE: Final = "what `understudy audit --history` checks; docs/exam.md"
CORRECT: Final = "Keeps what it reports to the application, and works again once the faults are over."
LOSS: Final = "What the finding names: records, copies or offsets, or a program that hangs or ends."


class RandomRunner(Runner):
    """The random exam of one library."""

    def __init__(
        self, driver: Callable[[], AnyDriver], *, plays: int = PLAYS, shrinks: bool = False, **options: Any
    ) -> None:
        super().__init__(driver, plays=plays, timeout_ms=TIMEOUT_MS, **{"settings": SETTINGS, **options})
        self.shrinks = shrinks
        self.schedules: dict[str, Schedule] = {}
        """Id of a scenario -> its schedule."""
        self.findings: dict[str, dict[str, Any]] = {}
        """Id of a scenario with a finding -> the document of its file."""
        self.starved: Counter[int] = Counter()
        """Seed -> plays that were repeated, since the machine had no time for them."""

    def scenario(self, schedule: Schedule, name: str) -> Scenario:
        """Return a schedule as a scenario of the exam."""
        self.schedules[name] = schedule
        title = f"{len(schedule.steps)} steps of {', '.join(schedule.used())}"
        needs = needs_of(schedule)
        return Scenario(name, title, Level.MUST, RULE, needs, frozenset(), CORRECT, LOSS, lambda _exercise: None)

    def seeds(self, seeds: Collection[int], capabilities: Collection[str]) -> list[Scenario]:
        """Return the schedules of some seeds as scenarios; none if the library supports too little."""
        schedules = [drawn(seed, capabilities) for seed in seeds]
        return [self.scenario(each, f"random/{each.seed}") for each in schedules if each is not None]

    def played(self, cluster: Cluster, schedule: Schedule) -> Played:
        """Play a schedule once on a new cluster; again, if the machine had no time for it.

        Raises:
            NotSupported: the driver refuses a command of its capabilities.
            Starved: the machine had no time for it, in each of STARVED_PLAYS plays.
        """
        for _ in range(STARVED_PLAYS - 1):
            with suppress(Starved):
                return self._played_once(cluster, schedule)
            self.starved[schedule.seed] += 1
        return self._played_once(cluster, schedule)

    def _played_once(self, cluster: Cluster, schedule: Schedule) -> Played:
        cluster.reset(disconnect=True)
        driver = self.driver()
        exercise = Exercise(cluster, driver, timeout_ms=self.timeout_ms)
        play = Play(exercise, schedule, self.driver)
        self._playing.add(driver)
        try:
            history = play.run()
        finally:
            try:
                play.healing.all()
            finally:
                self._playing.discard(driver)
                exercise.driver.__exit__(None, None, None)
        whole = oracle.completed(history, log_of(play, schedule))
        findings = [*oracle.findings(whole), *wire_findings(exercise)]
        if not findings:
            return Played([])
        return Played(findings, evidence_of(cluster), diagram_of(cluster, schedule), whole.events)

    def judge(self, cluster: Cluster, scenario: Scenario, capabilities: frozenset[str]) -> Result:
        """Play a schedule; with a finding, several times, and then shrunk. It fails if a finding was repeated."""
        if missing := sorted(scenario.needs - capabilities):
            return Result(scenario, Verdict.NOT_SUPPORTED, f"needs {', '.join(missing)}")
        schedule, began = self.schedules[scenario.id], time.monotonic()
        try:
            first = self.played(cluster, schedule)
        except NotSupported as reason:
            return Result(scenario, Verdict.NOT_SUPPORTED, str(reason))
        except NotExercised as reason:
            return Result(scenario, Verdict.NOT_EXERCISED, str(reason))
        except Starved as hang:
            problem = f"the machine had no time for it in {STARVED_PLAYS} plays: {hang}"
            return Result(scenario, Verdict.NOT_EXERCISED, problem, seconds=time.monotonic() - began)
        if not first.findings:
            return Result(scenario, Verdict.PASS, seconds=time.monotonic() - began)
        shown, count, plays = self._repeated(cluster, schedule, first)
        if self.shrinks and count > 1:
            check = shown.findings[0].check

            def finds(part: Schedule) -> bool:
                return not self._ended.is_set() and self._played_or_nothing(cluster, part).has(check)

            fewer = shrink.shrunk(schedule, count / plays, finds, clock_s=time.monotonic)
            is_same = len(fewer.steps) == len(schedule.steps)
            again = Played([]) if is_same else self._played_or_nothing(cluster, fewer)
            if again.has(check):
                schedule = fewer
                shown, count, plays = self._repeated(cluster, schedule, again.first(check))
        problem = f"in {count} of {plays} plays: {shown.findings[0]}"
        verdict = Verdict.FAIL if count > 1 or self.plays == 1 else Verdict.FLAKY
        self.findings[scenario.id] = files.document(schedule, problem, shown)
        starved = self.starved[schedule.seed]
        more = [f"also {each}" for each in shown.findings[1:]]
        more += [f"not counted, as the machine had no time for them: {starved} plays"] if starved else []
        lines = (*more, *schedule.lines(), *shown.evidence)
        return Result(scenario, verdict, problem, lines, time.monotonic() - began, plays)

    def _played_or_nothing(self, cluster: Cluster, schedule: Schedule) -> Played:
        """Play a schedule; if the machine has no time for it, nothing is found."""
        try:
            return self.played(cluster, schedule)
        except Starved:
            return Played([])

    def _repeated(self, cluster: Cluster, schedule: Schedule, first: Played) -> tuple[Played, int, int]:
        """Play again; return the play with its most frequent finding first, how often that occurred, and the plays."""
        counts = Counter({each.check for each in first.findings})
        plays = 1
        with suppress(Starved):  # fewer plays, and their number is in the result
            while plays < self.plays and not self._ended.is_set():
                counts.update({each.check for each in self.played(cluster, schedule).findings})
                plays += 1
        check = max(
            (each.check for each in first.findings), key=lambda check: (not check.startswith(WIRE), counts[check])
        )
        return first.first(check), counts[check], plays


def wire_findings(exercise: Exercise) -> list[Finding]:
    """Return the rules of the wire of level MUST that were broken, without those that are broken in each run."""
    entries = exercise.cluster.journal.find(limit=10_000)  # more than a schedule sends
    broken = [
        Finding(f"{WIRE}{each.entry.api}", str(each))
        for each in wire.problems(exercise.clients, entries, habits=False)
        if each.level is Level.MUST
    ]
    names = {each.name for each in exercise.clients}
    mine = [each for each in entries if each.client_id in names]
    return [*broken, *oracle.resumed_elsewhere(mine)]


def log_of(play: Play, schedule: Schedule) -> dict[tuple[str, int], list[tuple[int, str]]]:
    """Return the records of the topics in use, as a consumer with read_committed receives them."""
    used = {about[name] for about in schedule.used().values() for name in ("topic", "output") if name in about}
    return {
        (topic, partition): [(offset, value) for at, offset, value in rows if at == partition]
        for topic in sorted(used)
        for rows in [play.visible(topic)]
        for partition in range(TOPICS[topic])
    }


def diagram_of(cluster: Cluster, schedule: Schedule) -> str:
    """Return the sequence diagram of a transactional id, a group or a connection that a schedule uses."""
    used = schedule.used().values()
    if not hasattr(cluster, "diagrams"):
        return ""
    try:
        for name in ("transactional_id", "group"):
            for about in used:
                if name in about:
                    return cluster.diagrams.show(**{name: about[name]}, limit=DIAGRAM).text
        # The last request is enough: some of the newest are not the exam's.
        sent = [each for each in cluster.journal.find(limit=2_000) if (each.client_id or "").startswith("exam-")]
        return cluster.diagrams.show(connection=sent[-1].connection, limit=DIAGRAM).text if sent else ""
    except UnderstudyError as error:
        return f"no diagram: {error}"
