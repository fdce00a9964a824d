"""Runs of the simulator: the same again from a seed, promises kept, planted mistakes found."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.settings.model import ConfigResourceType
from broker.time.rng import new_seed
from simulator.clients.consumer_member import MODERN_GROUP
from simulator.clients.streams_member import STREAMS_GROUP
from simulator.command import Options, report
from simulator.hanging import SKIPPED as SKIPPED_MARKER
from simulator.hanging import UNREPLICATED as LOST_RECORD
from simulator.plan import CHANGE, COORDINATORS, HOLD, LAG, RELEASE, WORLD, plan
from simulator.result import Result
from simulator.run import KINDS, Run, run
from simulator.workload import CONSUMER, RULES, SHARE, STREAMS
from tests.mutants.registry import REGISTRY
from tests.simulator.ledger import ALL, BY_SEED, Entry, Finding, commit

ROOT = Path(__file__).parents[2]
MINUTES = 0.5
FRESH_S = 7_200
REGRESSIONS = [
    (300, 0.5),
    (712433391, 0.5),
    (510230019, 0.5),
    (510230061, 0.5),
    (820000164, 0.5),
    (973771300, 0.5),
    (15134245, 0.5),
    (484489834, 0.5),
    (484490410, 0.5),
]
"""Seed and minutes of runs that once broke a promise; without the kinds that came later."""
REGRESSIONS_OF_THREE_KINDS = [70011, 70025, 81000232, 81000312, 81000326, 82000200, 82000249, 82000322, 83000288]
"""Seeds of runs with all kinds but an administrator that once broke a promise.

The first two: coordinators did not wait for dead replicas in sync. 81000312 and 81000326: a leader that came back left
a follower what it did not have itself. The others were mistakes of the simulator.
"""
THREE_KINDS = (CONSUMER, SHARE, LAG)
SIX_KINDS = (*THREE_KINDS, CHANGE, RULES, HOLD)
TEN_KINDS = (*SIX_KINDS, RELEASE, WORLD, STREAMS, COORDINATORS)
REGRESSIONS_OF_RULES = [(1001, (RULES, HOLD)), (310025, (RULES, HOLD)), (310060, (RULES, HOLD)), (1040, SIX_KINDS)]
"""Seed and kinds of runs with further broken rules that once broke a promise, by mistakes of the simulator."""
REGRESSIONS_OF_STATES = [
    (41014, (RELEASE,)),
    (42030, (STREAMS,)),
    (43012, (*SIX_KINDS, RELEASE, WORLD, STREAMS)),
    (43015, (*SIX_KINDS, RELEASE, WORLD, STREAMS)),
    (43016, (*SIX_KINDS, RELEASE, WORLD, STREAMS)),
    (1130016, (*SIX_KINDS, RELEASE, WORLD, STREAMS)),
    (1130028, (*SIX_KINDS, RELEASE, WORLD, STREAMS)),
    (3113172, (CHANGE, CONSUMER, RELEASE, SHARE)),
    (41923353, (CHANGE, CONSUMER, LAG, RULES, STREAMS, WORLD)),
    (307331772, (CHANGE, CONSUMER, HOLD, WORLD)),
    (536944534, (HOLD, LAG, RELEASE, RULES, STREAMS)),
    (152854582, (CONSUMER, LAG, RELEASE, WORLD)),
    (955461214, (CONSUMER, HOLD, LAG, RELEASE, RULES)),
    (794686989, (HOLD, LAG, RELEASE, SHARE, STREAMS, WORLD)),
    (171103526, (RELEASE, RULES, SHARE, WORLD)),
    (4, (COORDINATORS, SHARE)),
    (323, (COORDINATORS, SHARE)),
    (1037, (COORDINATORS, LAG)),
    (92000, SIX_KINDS),
    (268203326, (CHANGE, COORDINATORS, HOLD, RULES, SHARE, WORLD)),
    (629626584, (CONSUMER, COORDINATORS, HOLD, LAG, RULES, SHARE, WORLD)),
    (262984555, TEN_KINDS),
    (337077349, TEN_KINDS),
    (705336909, TEN_KINDS),
    (547234200, (CHANGE, LAG, RULES, SHARE)),
    (490009924, (CONSUMER, COORDINATORS, HOLD, LAG, RELEASE)),
    (224813842, (CHANGE, CONSUMER, COORDINATORS, HOLD, LAG, SHARE, STREAMS)),
    (224813841, (CHANGE, CONSUMER, COORDINATORS, HOLD, LAG, RELEASE, RULES)),
    (951113113, TEN_KINDS),
    (998010365, TEN_KINDS),
    (874908412, TEN_KINDS),
    (294973749, TEN_KINDS),
    (82243353, (CHANGE, COORDINATORS, HOLD, LAG, RELEASE, RULES, STREAMS)),
    (1042, (LAG,)),
]
"""Seed and kinds of runs with other releases, streams groups and snapshots that once broke a promise.

41014: two brokers lost power and a third was stopped; the first of them that registered made the second one lead, and
the third was cut to it. 43015 and 43016: the state of share partitions was written to a cluster that had been reset or
restored, and with 41923353 records. 4: assignments of a classic group were not replicated. 262984555 and 337077349:
a leader that was killed repeated its writes to the share coordinator, which before 4.4 set a start offset back.
705336909: so does a leader that lives, also in Kafka (test_start_offsets.py). 998010365: a leader that went on after a
pause did not expand the ISR, and with 1042 a follower did not rejoin it. The others were mistakes of the simulator.
"""
LEFT_OUT = 81000012
UNREPLICATED = 880807
"""A transaction whose first record was not replicated when its coordinator lost power."""
KINDS_OF_UNREPLICATED = (*THREE_KINDS, CHANGE, HOLD, RELEASE, STREAMS, COORDINATORS)
HANGING = 262984528
"""A transaction whose only record was loaded twice by new coordinators, never replicated, and then lost."""


def by_day(cases: Sequence[Any]) -> list[Any]:
    """The newest two of them; the others at night."""
    return [*(pytest.param(*_values(each), marks=pytest.mark.nightly) for each in cases[:-2]), *cases[-2:]]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def broken(result: Result, kinds: Sequence[str] | None = None) -> str:
    """The report of a run that broke promises; empty for one that kept them."""
    options = Options(result.seed, minutes=MINUTES, kinds=None if kinds is None else frozenset(kinds))
    return "\n".join(report(result, options)) if result.violations else ""


@pytest.mark.timeout(300)
def test_a_seed_does_the_same_again() -> None:
    """In the same process, and in another one that hashes strings otherwise."""
    here = run(7, 0.1)
    assert run(7, 0.1).digest == here.digest
    assert digest_of("run(7, 0.1)") == here.digest


def digest_of(call: str) -> str:
    """The hash of a run in another process, which hashes strings otherwise."""
    code = f"from simulator.run import KINDS, run; print({call}.digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    again = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return again.stdout.strip()


@pytest.mark.timeout(300)
def test_members_of_modern_groups_and_slow_followers_are_simulated_too() -> None:
    """The same again, in another process too: they own partitions, commit, acquire and acknowledge."""
    here = Run(3, 0.1, kinds=SIX_KINDS)
    result = here.result()
    assert not result.violations, broken(result)
    assert here.history.ownership.newest
    assert any(group == MODERN_GROUP for group, _ in here.history.committed)
    delivered = [one for own in here.history.deliveries.records.values() for one in own.values()]
    assert {"accepted", "rejected"} <= {one.fate for one in delivered}
    assert max(one.last.count for one in delivered if one.last is not None) > 1
    assert digest_of(f"run(3, 0.1, kinds={SIX_KINDS})") == result.digest


@pytest.mark.timeout(300)
def test_members_of_streams_groups_own_tasks() -> None:
    """They are given all of them, read and commit; where standbys are configured, some have one."""
    here = Run(50002, 0.2, kinds=(STREAMS,))
    result = here.result()
    assert not result.violations, broken(result)
    tasks = {place for group, place in here.history.ownership.newest if group == STREAMS_GROUP}
    assert tasks == {(topic, index) for topic in "ab" for index in range(here.topics[topic])}
    assert any(group == STREAMS_GROUP for group, _ in here.history.committed)


@pytest.mark.timeout(300)
def test_the_cluster_goes_back_to_snapshots_and_is_reset() -> None:
    """Clients start again in the state that they know of; the same in another process."""
    here = Run(51005, 0.5, kinds=(WORLD,))
    result = here.result()
    assert not result.violations, broken(result)
    story = "\n".join(here.trace.story(here.trace.lines))
    missing = [each for each in ("is taken", "back to snapshot", "the cluster is reset") if each not in story]
    assert missing == []
    assert digest_of("run(51005, 0.5, kinds=('world',))") == result.digest


@pytest.mark.timeout(300)
def test_features_and_releases_change() -> None:
    """Up, down, refused; in the end all features have the highest level of the release that is played."""
    here = Run(41014, 0.5, kinds=(RELEASE,))
    result = here.result()
    assert not result.violations, broken(result)
    story = "\n".join(here.trace.story(here.trace.lines))
    steps = [
        "type 1: NONE",
        "type 2: NONE",
        "type 1: INVALID_UPDATE_VERSION",
        "type 3: INVALID_UPDATE_VERSION",
        "start as",
    ]
    assert [each for each in steps if each not in story] == []
    cluster = here.servers.cluster
    own = {name: most for name, (_, most) in cluster.release.supported.items() if not name.startswith(("m", "k"))}
    assert {name: cluster.image.features.get(name) for name in own} == own


def test_later_kinds_leave_the_rest_of_a_plan_as_it_is() -> None:
    """Faults keep their numbers and times: what followers do comes of a chance of its own."""
    plain, lagging = plan(7, 0.5, 3), plan(7, 0.5, 3, (LAG,))
    assert [each for each in lagging if each.kind != LAG] == plain
    changing = plan(7, 0.5, 3, (LAG, CHANGE))
    assert {*lagging} < {*changing}
    assert sorted(each.number for each in changing) == list(range(len(changing)))
    assert {*changing} < {*plan(7, 0.5, 3, (LAG, CHANGE, RELEASE, WORLD))}
    assert {*changing} < {*plan(7, 0.5, 3, (LAG, CHANGE, COORDINATORS))}


def test_an_administrator_changes_settings_replicas_and_leaders() -> None:
    """Each kind of change happens, and is taken back before the calm."""
    here = Run(4, 0.2, kinds=(CHANGE,))
    result = here.result()
    assert not result.violations, broken(result)
    story = "\n".join(here.trace.story(here.trace.lines))
    assert all(each in story for each in ("has the settings {'", "is to have the replicas", "preferred leaders lead"))
    image = here.servers.cluster.image
    assert {len(state.replicas) for _, _, state in image.all_partitions()} == {3}
    assert not any(image.config(ConfigResourceType.TOPIC, topic) for topic in here.topics)


@pytest.mark.timeout(300)
def test_further_rules_are_broken_while_transactions_are_held() -> None:
    """Requests are repeated, markers are forged, members are late: all get the protocol's answers."""
    here = Run(40, 0.5, kinds=(RULES, HOLD))
    result = here.result()
    assert not result.violations, broken(result)
    story = "\n".join(here.trace.story(here.trace.lines))
    steps = [
        "commit, repeated: NONE",
        "comes back, repeated: NONE",
        "of an older coordinator: TRANSACTION_COORDINATOR_FENCED",
        "of a stranger: UNKNOWN_MEMBER_ID",
        "and does not join: REBALANCE_IN_PROGRESS",
        "of 3 replicas in sync: NOT_ENOUGH_REPLICAS",
        ": UNSTABLE_OFFSET_COMMIT",
        "are held",
    ]
    missing = [each for each in steps if each not in story]
    assert missing == []


@pytest.mark.timeout(300)
def test_coordinators_wait_answer_late_and_move() -> None:
    """Each kind of fault happens; a member's acknowledgement is refused, and it is given the record again."""
    here = Run(308, 0.5, kinds=(COORDINATORS, SHARE))
    result = here.result()
    assert not result.violations, broken(result)
    story = "\n".join(here.trace.story(here.trace.lines))
    steps = [
        "stop fetching __",
        "leave the ISR of __",
        "answers of transaction coordinators to leaders take up to",
        "has one of its last epochs, the last of which is held",
        "is started once more",
        "20a: COORDINATOR_NOT_AVAILABLE",
        "aborts: REQUEST_TIMED_OUT",
    ]
    assert [each for each in steps if each not in story] == []
    assert digest_of(f"run(308, 0.5, kinds={(COORDINATORS, SHARE)})") == result.digest


def test_as_many_lines_are_printed_as_were_asked_for() -> None:
    """Of a run that kept its promises, behind the line with its hash."""
    assert len(report(run(7, 0.1), Options(7, minutes=0.1, story=100))) == 101


def test_seeds_differ() -> None:
    """Another seed plays another run."""
    assert run(7, 0.1).digest != run(8, 0.1).digest


@pytest.mark.nightly
@pytest.mark.timeout(FRESH_S + 1_800)
def test_fresh_seeds_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as fit into that time, from a random one on, with all kinds and by the seed in turn.

    Each that fails is printed with its command, and both sorts as lines for the ledger. At night only: a change is not
    to blame for what a seed finds that was never played before.
    """
    seed, until, failed = new_seed() % 1_000_000_000, time.monotonic() + FRESH_S, list[str]()
    findings: dict[str, list[Finding]] = {ALL: [], BY_SEED: []}
    rounds = 0
    while time.monotonic() < until:
        rounds += 1
        for sort, kinds in ((ALL, KINDS), (BY_SEED, None)):
            result = run(seed, MINUTES, kinds=kinds)
            if result.violations:
                failed.append(broken(result, kinds))
                findings[sort].append(Finding(seed, result.violations[0]))
            seed += 1
    with capsys.disabled():
        for sort, of_sort in findings.items():
            print(Entry(commit(), "sources", sort, rounds, MINUTES, of_sort).line)  # noqa: T201
    assert not failed, "\n".join(failed)


def test_a_marker_that_kafka_leaves_out_too_excuses_the_run() -> None:
    """A partition has no leader when its transaction completes (KAFKA-20734): that is printed, and no failure."""
    result = run(LEFT_OUT, MINUTES, kinds=THREE_KINDS)
    assert result.violations == []
    assert any("was aborted" in each and "is read as committed" in each for each in result.excused)
    assert [each for each in result.excused if "transaction 5 of newer-tx-0.1" not in each] == []
    assert "KAFKA-20734" in report(result, Options(LEFT_OUT))[-1]


def test_a_transaction_that_kafka_loses_too_excuses_its_promises() -> None:
    """Its coordinator answered from a record that was not replicated, and then lost power."""
    result = run(UNREPLICATED, MINUTES, kinds=KINDS_OF_UNREPLICATED)
    assert result.violations == []
    (excused,) = result.excused
    assert "was aborted" in excused
    assert "is read as committed" in excused
    assert "was not replicated" in report(result, Options(UNREPLICATED))[-1]


@pytest.mark.timeout(300)
def test_a_transaction_that_hangs_in_kafka_too_excuses_nothing_behind_it() -> None:
    """An operator aborts it; then all that was committed behind it is read."""
    result = run(HANGING, MINUTES, kinds=KINDS)
    assert result.violations == []
    (excused,) = result.excused
    assert excused.startswith("copies-1: the transaction of producer 2000 from 10 on hangs")


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("seed", "kinds", "why", "mistake", "promise"),
    [
        (LEFT_OUT, THREE_KINDS, SKIPPED_MARKER, "an abort writes commit markers", "is read as committed"),
        (LEFT_OUT, THREE_KINDS, SKIPPED_MARKER, "only the first partition gets its marker", "a transaction hangs"),
        (UNREPLICATED, KINDS_OF_UNREPLICATED, LOST_RECORD, "an abort writes commit markers", "is read as committed"),
    ],
)
def test_a_planted_mistake_is_found_beside_an_excuse(
    seed: int, kinds: Sequence[str], why: str, mistake: str, promise: str
) -> None:
    """A promise about one transaction is excused, and the same promise about others counts."""
    with REGISTRY[mistake].alive():
        result = run(seed, MINUTES, kinds=kinds)
    assert any(each.endswith(why) for each in result.excused)
    assert any(each.endswith(promise) for each in result.violations)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("seed", "minutes"), by_day(REGRESSIONS))
def test_what_was_broken_once_is_kept(seed: int, minutes: float) -> None:
    """Seeds that found a defect are played again, and find nothing now."""
    result = run(seed, minutes, kinds=())
    assert not result.violations, broken(result)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", by_day(REGRESSIONS_OF_THREE_KINDS))
def test_what_was_broken_once_is_kept_with_three_kinds(seed: int) -> None:
    """Seeds that found a defect, with members of modern groups and slow followers."""
    result = run(seed, MINUTES, kinds=THREE_KINDS)
    assert not result.violations, broken(result)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("seed", "kinds"), [*by_day(REGRESSIONS_OF_RULES), *by_day(REGRESSIONS_OF_STATES)])
def test_what_was_broken_once_is_kept_with_other_kinds(seed: int, kinds: tuple[str, ...]) -> None:
    """Seeds of runs in which more rules are broken, or in which the cluster becomes another one."""
    result = run(seed, MINUTES, kinds=kinds)
    assert not result.violations, broken(result)
