"""Which deliveries the simulator excuses as those of Kafka before 4.4; planted mistakes are found beside them."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from broker.coordination.share_state.machine import ShareMachine
from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate
from simulator.deliveries import Lock
from simulator.history import History
from simulator.result import Result
from simulator.run import KINDS, Run
from simulator.start_offsets import SET_BACK, Write, was_set_back
from tests.mutants.mutant import Mutant
from tests.mutants.registry import REGISTRY

SEED = 705336909
FAULTS = [0, 1, 3, 11, 18, 41, 54, 55, 82]
"""Found while share state was written again after 1 s."""
ASKED_US = 100
GOES_BACK_IN_4_4 = Mutant(
    "share coordinators set start offsets back in 4.4, too",
    ShareMachine._changed,
    "if self._behaves(Behaviour.SHARE_STATE_NEVER_GOES_BACK)",
    "if False",
)


def update(start: int, *batches: tuple[int, int, int], count: int = 0) -> ShareRecord:
    """A write of a leader; ``batches`` are first and last offset and delivery state."""
    recorded = tuple(RecordedBatch(first, last, state, 1) for first, last, state in batches)
    return ShareRecord("g", UUID(int=1), 0, ShareUpdate(0, 0, start, recorded, count))


INITIALIZED = ShareRecord("g", UUID(int=1), 0, ShareSnapshot(0, 2, 0, -1))
DELETED = ShareRecord("g", UUID(int=1), 0)
DONE, RAISED, RAISED_AGAIN = update(0, (0, 5, 2)), update(6), update(9)
LATE = update(1, (7, 7, 2))
BEGUN = [DONE, LATE, RAISED, RAISED_AGAIN]
"""The leader's writes in the order in which they began."""
EARLY = Write(1, sets_back=True, stored_us=50)
"""The late write, which had begun early."""


def set_back(offset: int, log: Sequence[ShareRecord], late: Write = EARLY) -> bool:
    """Whether a delivery of that offset is excused, of a leader whose share coordinator has this log."""
    stored = {each: Write(began, sets_back=True, stored_us=50) for began, each in enumerate(BEGUN)}
    return was_set_back(log, {**stored, LATE: late}, offset, ASKED_US)


@pytest.mark.parametrize(
    ("offset", "excused"), [(0, False), (1, True), (5, True), (6, True), (7, False), (8, True), (9, False)]
)
def test_what_a_late_write_sets_back_is_excused(offset: int, excused: bool) -> None:
    """Between both start offsets, but not what the late write itself completes, nor what is beyond them."""
    assert set_back(offset, [INITIALIZED, DONE, RAISED, RAISED_AGAIN, LATE]) is excused


@pytest.mark.parametrize(
    "log",
    [
        [INITIALIZED, DONE, LATE, RAISED],
        [INITIALIZED, DONE, RAISED, LATE, update(3)],
        [INITIALIZED, DONE, RAISED, LATE, update(1, (2, 2, 4))],
        [INITIALIZED, DONE, RAISED, LATE, DELETED],
        [INITIALIZED, update(6, count=1), LATE],
        [INITIALIZED, RAISED, INITIALIZED, update(1, count=1)],
    ],
    ids=["not set back", "raised again", "done again", "deleted", "passed by another write", "initialized again"],
)
def test_nothing_else_in_the_log_is_excused(log: Sequence[ShareRecord]) -> None:
    """The record was accepted for good since then, or no known write of a leader has passed it or set it back."""
    assert not set_back(2, log)


@pytest.mark.parametrize("late", [Write(1, sets_back=False, stored_us=50), Write(9, sets_back=True, stored_us=50)])
def test_only_a_late_write_before_4_4_is_excused(late: Write) -> None:
    """A leader that sends a lower start offset than before is wrong, and so is a coordinator of 4.4 that stores one."""
    assert not set_back(2, [INITIALIZED, DONE, RAISED, LATE], late)


def test_what_is_stored_while_the_record_is_fetched_excuses_it_still() -> None:
    """The leader may have delivered it before."""
    raised = update(3)
    stored = {each: Write(n, sets_back=True, stored_us=ASKED_US) for n, each in enumerate([LATE, RAISED, raised])}
    assert was_set_back([RAISED, LATE, raised], stored, 2, ASKED_US)
    assert not was_set_back([RAISED, LATE, raised], stored, 2, ASKED_US + 1)


def test_one_delivery_is_excused_and_the_next_one_counts() -> None:
    """Of the same record to the same member; snapshots and resets share what is excused."""
    history = History(lambda: 10)
    why = [SET_BACK, ""]
    history.deliveries.excuse_of = lambda *_: why.pop(0)
    history.deliveries.answered("g", ("t", 0), 3, "accepted")
    for count in (1, 2):
        history.deliveries.note_delivery("g", ("t", 0), 3, Lock("m", count, 20, 30, 40, lambda: True, open=False), 30)
    promise = "g: t-0 offset 3 is delivered to m, and was accepted"
    assert (history.deliveries.excused, history.violations) == ([f"{promise}, since {SET_BACK}"], [promise])
    assert history.kept().deliveries.excused is history.forgotten().deliveries.excused is history.deliveries.excused


def played(release: str) -> Result:
    """The run that found it, with few of its faults, and as that release from its start on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.request.share_state.BACKOFF_MS", 1000)
        of_seed = Run(SEED, 0.5, FAULTS, KINDS)
        of_seed.servers.play(release)
        return of_seed.result()


@pytest.mark.slow
def test_a_late_write_before_4_4_is_excused_in_a_run() -> None:
    """A living leader repeats a write, which then lands after a later one; another leader reads what it has left."""
    result = played("4.3")
    assert result.violations == []
    assert {each.rpartition(", since ")[2] for each in result.excused} == {SET_BACK}
    assert result.excused[0].startswith("shared: b-0 offset 1 is delivered to share-0.1, and was accepted")


@pytest.mark.slow
def test_the_same_counts_in_4_4() -> None:
    """There the start offset never goes back, and a coordinator that sets it back is wrong."""
    result = played("4.4")
    assert (result.violations, result.excused) == ([], [])
    with GOES_BACK_IN_4_4.alive():
        result = played("4.4")
    assert any(each.endswith("and was accepted") for each in result.violations)
    assert result.excused == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acknowledgements are not persisted", "an update of share state drops earlier ones"])
def test_a_planted_mistake_is_found_beside_the_excuse(name: str) -> None:
    """Other records that are delivered again count."""
    with REGISTRY[name].alive():
        result = played("4.3")
    assert any(each.endswith(SET_BACK) for each in result.excused)
    assert any(each.endswith("and was accepted") for each in result.violations)
