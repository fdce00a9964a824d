"""Who gets which producer id and epoch: transactions A.2 and A.3 as tables."""

import pytest

from tests.coordination.transaction.harness import Bench, S

NEW = "new"

# Rule; stored epoch, last epoch and previous producer id; expected; what is given, or the code; the last epoch then.
ASSIGNMENTS = [
    ("E1", (32766, -1, 1000), (-1, -1), (NEW, 0), -1),
    ("E1", (32767, -1, 1000), (-1, -1), (NEW, 0), -1),
    ("E2", (32766, -1, 1000), (1000, 32766), (NEW, 0), 32766),
    ("E3", (32766, 32765, 1000), (1000, 32765), -1, 32765),
    ("E3", (32766, -1, 1000), (1000, 7), -1, -1),
    ("E3", (32767, -1, 1000), (1000, 32766), -1, -1),
    ("E4", (3, 2, 1000), (-1, -1), (1000, 4), -1),
    ("E4", (32765, -1, 1000), (-1, -1), (1000, 32766), -1),
    ("E6", (3, 2, 1000), (1000, 3), (1000, 4), 3),
    ("E6", (32765, -1, 1000), (1000, 32765), (1000, 32766), 32765),
    ("E7", (3, 2, 1000), (1000, 2), (1000, 3), 2),
    ("E7", (0, 32766, 500), (500, 32766), (1000, 0), 32766),
    ("E8", (3, -1, 1000), (1000, 2), 90, -1),
    ("E8", (3, 2, 1000), (1000, 9), 90, 2),
    ("E8", (3, 2, 1000), (1000, 1), 90, 2),
    ("I2", (3, 2, 1000), (1001, 3), 90, 2),
    ("I2", (0, 32766, 500), (500, 32765), 90, 32766),
    ("I2 then E8", (0, -1, 500), (500, 32766), 90, -1),
]


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize(("rule", "stored", "expected", "answer", "last_epoch"), ASSIGNMENTS)
def test_an_idle_id_is_given_its_epoch_by_the_table(
    state: S,
    rule: str,
    stored: tuple[int, int, int],
    expected: tuple[int, int],
    answer: tuple[str | int, int] | int,
    last_epoch: int,
) -> None:
    """Row by row, in each state without an open transaction (transactions A.3)."""
    bench = Bench()
    epoch, last, previous = stored
    bench.plant(state, epoch, previous=previous, last=last)
    before = len(bench.log)
    if isinstance(answer, int):
        assert bench.code(lambda: bench.init(expected=expected)) == answer, rule
        assert len(bench.log) == before, "a refusal writes nothing"
        assert bench.state()[1:] == (1000, epoch)
    else:
        producer = bench.init(expected=expected)
        assert producer.producer_epoch == answer[1], rule
        assert (producer.producer_id == 1000) == (answer[0] != NEW), rule
        assert (bench.last.state, bench.last.previous_producer_id) == (S.EMPTY, 1000), "even a retry writes a record"
    assert bench.machine.transactions["tx"].last_epoch == last_epoch


def test_a_new_id_starts_at_epoch_0_and_ignores_the_requests_producer() -> None:
    """The server's producer id counts, not the request's (transactions A.1 A12, A.3 E5, IPI-23)."""
    bench = Bench()
    assert bench.init(expected=(4711, 4)) == (1000, 0)


def test_IPI_21_a_retry_does_not_survive_the_coordinator() -> None:
    """The last epoch is kept in memory only: a retry at a new coordinator is refused."""
    bench = Bench()
    bench.init()
    assert bench.init(expected=(1000, 0)) == (1000, 1)
    assert bench.init(expected=(1000, 0)) == (1000, 1)
    again = Bench(bench.log)
    assert again.code(lambda: again.init(expected=(1000, 0))) == 90
    assert again.init(expected=(1000, 1)) == (1000, 2)


def test_the_last_epoch_of_all_can_be_aborted_and_not_committed() -> None:
    """UNKNOWN_SERVER_ERROR: no epoch follows 32767, which a fence may leave behind (transactions B.3)."""
    bench = Bench()
    bench.plant(S.ONGOING, 32767)
    assert bench.code(lambda: bench.end((1000, 32767))) == -1
    assert bench.state() == ("Ongoing", 1000, 32767)
    rotated = bench.end((1000, 32767), False)
    assert (rotated.producer_id != 1000, rotated.producer_epoch) == (True, 0)
    assert bench.state() == ("PrepareAbort", 1000, 32767)
    bench.write_markers()
    assert bench.state() == ("CompleteAbort", *rotated)
