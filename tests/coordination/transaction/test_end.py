"""EndTxn in every state: transactions C.3 as tables."""

import itertools

import pytest

from broker.coordination.transaction.rules import Ending, EndRequest, end_by_newer_client, end_by_older_client
from broker.coordination.transaction.states import VALID_PREVIOUS, state_diagram
from protocol.errors import KafkaError
from protocol.log_records.transaction import TransactionRecord, TransactionState

S = TransactionState
GO, NONE = Ending.PREPARE, Ending.REPEAT
LOGGED = (S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


def stored(state: S, epoch: int, *, producer_id: int = 1000, previous: int = 1000) -> TransactionRecord:
    """A record in that state."""
    partitions = None if state is S.EMPTY else frozenset({("foo", 0)})
    return TransactionRecord("tx", producer_id, epoch, 60_000, state, partitions, 5, 5, previous)


def outcome(decide: object, *arguments: object, transition_pending: bool) -> Ending | int:
    """What was decided, or the code of the refusal."""
    try:
        return decide(*arguments, transition_pending=transition_pending)  # type: ignore[operator, no-any-return]
    except KafkaError as error:
        return int(error.code)


OLDER = {
    # Of each state what a commit does, and what an abort does.
    S.ONGOING: (GO, GO),
    S.COMPLETE_COMMIT: (NONE, 48),
    S.COMPLETE_ABORT: (48, NONE),
    S.PREPARE_COMMIT: (51, 48),
    S.PREPARE_ABORT: (48, 51),
    S.EMPTY: (48, 48),
}


@pytest.mark.parametrize("state", LOGGED)
def test_an_older_client_ends_by_the_table(state: S) -> None:
    """Each state with commit and abort (transactions C.3.1 T7 to T12)."""
    outcomes = tuple(
        outcome(end_by_older_client, stored(state, 3), EndRequest(1000, 3, committed), transition_pending=False)
        for committed in (True, False)
    )
    assert outcomes == OLDER[state]


@pytest.mark.parametrize("state", LOGGED)
@pytest.mark.parametrize("committed", [True, False])
def test_an_older_client_is_known_before_anything_else(state: S, committed: bool) -> None:
    """Producer id, epoch, outstanding markers, in that order (transactions C.3.1 T4, T5, T6)."""
    record = stored(state, 3)
    assert outcome(end_by_older_client, record, EndRequest(1001, 9, committed), transition_pending=True) == 49
    assert outcome(end_by_older_client, record, EndRequest(1000, 2, committed), transition_pending=True) == 90
    assert outcome(end_by_older_client, record, EndRequest(1000, 4, committed), transition_pending=True) == 90
    assert outcome(end_by_older_client, record, EndRequest(1000, 3, committed), transition_pending=True) == 51


NEWER = {
    # state: (abort current, abort retry, commit current, commit retry)
    S.ONGOING: (GO, 90, GO, 90),
    S.EMPTY: (GO, 90, 48, 90),
    S.COMPLETE_ABORT: (GO, NONE, 48, 48),
    S.COMPLETE_COMMIT: (GO, 48, 48, NONE),
    S.PREPARE_COMMIT: (90, 48, 90, 51),
    S.PREPARE_ABORT: (90, 51, 90, 48),
}


@pytest.mark.parametrize("state", LOGGED)
def test_a_newer_client_ends_by_the_table(state: S) -> None:
    """All four columns of every row (transactions C.3.2 U6)."""
    outcomes = tuple(
        outcome(end_by_newer_client, stored(state, 3), EndRequest(1000, epoch, committed), transition_pending=False)
        for committed, epoch in itertools.product((False, True), (3, 2))
    )
    assert outcomes == NEWER[state]


@pytest.mark.parametrize("state", LOGGED)
@pytest.mark.parametrize("committed", [True, False])
def test_a_newer_client_waits_for_the_markers_before_it_is_known(state: S, committed: bool) -> None:
    """Outstanding markers, producer id, epoch, in that order (transactions C.3.2 U3, U4, U5)."""
    record = stored(state, 3)
    assert outcome(end_by_newer_client, record, EndRequest(1001, 9, committed), transition_pending=True) == 51
    assert outcome(end_by_newer_client, record, EndRequest(1001, 9, committed), transition_pending=False) == 49
    for epoch in (1, 4, 9):
        assert outcome(end_by_newer_client, record, EndRequest(1000, epoch, committed), transition_pending=False) == 90


def test_a_retry_over_the_rotation_is_recognised() -> None:
    """The producer at (p, 32766) is given (q, 0) again for the same decision, and only then (transactions E2-10)."""
    done = stored(S.COMPLETE_COMMIT, 0, producer_id=2000, previous=1000)
    assert outcome(end_by_newer_client, done, EndRequest(1000, 32766, True), transition_pending=False) is NONE
    assert outcome(end_by_newer_client, done, EndRequest(1000, 32766, False), transition_pending=False) == 48
    assert outcome(end_by_newer_client, done, EndRequest(1000, 32765, True), transition_pending=False) == 49
    later = stored(S.COMPLETE_COMMIT, 1, producer_id=2000, previous=1000)
    assert outcome(end_by_newer_client, later, EndRequest(1000, 32766, True), transition_pending=False) == 49
    ongoing = stored(S.ONGOING, 0, producer_id=2000, previous=1000)
    assert outcome(end_by_newer_client, ongoing, EndRequest(1000, 32766, True), transition_pending=False) == 90


PREVIOUS = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {S.ONGOING, S.PREPARE_EPOCH_FENCE, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}


def test_the_transition_table_is_kafkas() -> None:
    """Which states may follow which (transactions B.2)."""
    assert {state: set(befores) for state, befores in VALID_PREVIOUS.items()} == PREVIOUS


def test_the_diagram_shows_every_step_of_the_table() -> None:
    """The documentation's picture is drawn from the table."""
    lines = state_diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    for after, befores in PREVIOUS.items():
        for before in befores - {after}:
            assert f"    {before.text} --> {after.text}" in lines
