"""The plan of a run: its faults and their times, determined by the seed in advance, so that faults can be left out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

TRAFFIC = ("lose request", "lose answer", "late request", "late answer", "stall")
KINDS = (
    "kill",
    "kill",
    "power cut",
    "disk",
    "last epoch",
    "stop",
    "pause",
    "move leader",
    "move coordinator",
    "client",
    "twin",
    "clock",
    "restart all",
    *TRAFFIC,
)
SLOW_ANSWER = "slow answer"
"""Answers that arrive after the timeouts of most clients; only in runs of a user's program."""
COMMIT_ANSWER = "commit answer"
"""Answers to commits that are lost, or arrive after the timeouts of most clients; only in runs of a user's program."""
PARTITION = "partition"
"""Some clients are separated from a broker for a while."""
LOSING = ("power cut", "disk")
"""Faults in which a broker loses bytes that it had written."""
LAG = "lag"
"""Optional kind of a run: followers that fall behind."""
CHANGE = "change"
"""Optional kind of a run: topic settings change, partitions are reassigned, preferred leaders are elected."""
_CHANGES = ("settings", "settings", "replicas", "replicas", "preferred leaders")
HOLD = "hold"
"""Optional kind of a run: transactions are held between their steps while their coordinators move or end."""
_HOLDS = (HOLD, HOLD, HOLD, "last epoch")
RELEASE = "release"
"""Optional kind of a run: feature levels change, and all brokers restart as another release."""
FEATURE = "feature"
_RELEASES = (FEATURE, FEATURE, FEATURE, RELEASE)
WORLD = "world"
"""Optional kind of a run: the cluster is restored to a snapshot, or is reset."""
SNAPSHOT, RESTORE, RESET = "snapshot", "restore", "reset"
_WORLDS = (SNAPSHOT, SNAPSHOT, SNAPSHOT, RESTORE, RESTORE, RESET)
COORDINATORS = "coordinators"
"""Optional kind of a run: coordinators wait for their followers, answer late, or move while a producer id changes."""
COORDINATOR_LAG, LATE_VERIFICATION, ROTATION = "coordinator lag", "late verification", "rotation"
_OF_COORDINATORS = (COORDINATOR_LAG, COORDINATOR_LAG, LATE_VERIFICATION, LATE_VERIFICATION, ROTATION)
FREEZE, REBALANCE, EVICTION, QUOTA = "freeze", "rebalance", "eviction", "quota"
OUTAGE, LEADERLESS, HANDOVER = "outage", "no leader", "handover"
"""Faults of :mod:`simulator.program_faults`."""
_OFTEN_MS, _SELDOM_MS = (1_000, 3_000), (3_000, 6_000)
"""Ranges of the mean time between two faults, of which a seed has one.

Often enough that faults meet, seldom enough that clients recover between them.
"""
_QUIET_MS = 1_500
"""Time from the start of a run until its first fault: clients have started and written by then."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan: ``number`` is its index in the plan, ``lasts_ms`` the time until it ends, if it lasts."""

    number: int
    at_ms: int
    kind: str
    broker: int
    lasts_ms: int
    seed: str

    def __str__(self) -> str:
        return f"{self.kind}, broker {self.broker}, {self.lasts_ms} ms"


_OF_KINDS: Mapping[str, tuple[Sequence[str], Sequence[int]]] = {
    LAG: ([LAG], _OFTEN_MS),
    CHANGE: (_CHANGES, _OFTEN_MS),
    HOLD: (_HOLDS, _OFTEN_MS),
    RELEASE: (_RELEASES, _OFTEN_MS),
    WORLD: (_WORLDS, _SELDOM_MS),
    COORDINATORS: (_OF_COORDINATORS, _OFTEN_MS),
}
"""Optional kind -> its faults, and how often they happen."""


_PROCESSES = "processes"
OF_PROGRAMS: Mapping[str, Sequence[str]] = {
    "network": (*TRAFFIC, SLOW_ANSWER, PARTITION, COMMIT_ANSWER, COMMIT_ANSWER),
    "brokers": ("kill", "kill", "stop", "pause", "move leader", "restart all", OUTAGE, OUTAGE, LEADERLESS, LEADERLESS),
    _PROCESSES: ("client", "client", "twin", FREEZE, FREEZE, HANDOVER),
    "groups": (REBALANCE, EVICTION),
    "disks": LOSING,
    "coordinators": ("move coordinator", "move coordinator", HOLD, LATE_VERIFICATION, COORDINATOR_LAG),
    "followers": (LAG,),
    "changes": _CHANGES,
    "quotas": (QUOTA,),
    "clock": ("clock",),
}
"""Kind of fault, as a user of `--application` chooses it -> the faults of this kind."""


def plan_of_program(seed: int, minutes: float, brokers: int, kinds: Collection[str]) -> list[Fault]:
    """Draw the faults of a seed for a user's program, from those of these kinds.

    One of them is always of its processes, if these are among the kinds: it is their ends that programs are to survive.
    """
    among = [each for kind, faults in OF_PROGRAMS.items() if kind in kinds for each in faults]
    return plan(seed, minutes, brokers, among=among, always=OF_PROGRAMS[_PROCESSES] if _PROCESSES in kinds else ())


def plan(
    seed: int,
    minutes: float,
    brokers: int,
    further: Collection[str] = (),
    among: Sequence[str] = KINDS,
    always: Sequence[str] = (),
) -> list[Fault]:
    """Draw the faults of a seed: some kinds of faults, more or less often, and those of the ``further`` kinds.

    ``always``: one of these is drawn besides.

    The latter have their own random generators and the last numbers, so that they do not change the other faults.
    """
    chance = Random(f"{seed} faults")  # noqa: S311 - replayed from the seed
    kinds = sorted(set(chance.sample(among, min(chance.randrange(2, 8), len(among)))))
    if always:
        kinds = sorted({*kinds, chance.choice(always)})
    if not kinds:
        return []
    # Mean times between faults: runs that hardly recover, and calmer ones.
    faults = _faults(seed, minutes, brokers, chance, kinds, chance.choice((1_500, 3_000, 6_000)), 0)
    for kind, (faults_of_kind, means_ms) in _OF_KINDS.items():
        if kind in further:
            chance = Random(f"{seed} {kind}")  # noqa: S311 - replayed from the seed
            mean_ms = chance.choice(means_ms)
            faults += _faults(seed, minutes, brokers, chance, faults_of_kind, mean_ms, len(faults))
    return sorted(faults, key=lambda fault: (fault.at_ms, fault.number))


def _faults(
    seed: int, minutes: float, brokers: int, chance: Random, kinds: Sequence[str], mean_ms: int, first: int
) -> list[Fault]:
    faults: list[Fault] = []
    at_ms = _QUIET_MS
    while True:
        at_ms += round(chance.expovariate(1 / mean_ms))
        if at_ms >= minutes * 60_000:
            return faults
        number = first + len(faults)
        # From a pause within the clients' timeouts to one beyond them (5 s).
        lasts_ms = chance.choice((200, 1_000, 3_000, 8_000))
        faults.append(
            Fault(number, at_ms, chance.choice(kinds), chance.randrange(1, brokers + 1), lasts_ms, f"{seed} {number}")
        )
