"""A coordinator that loads any prefix of its log goes on as the one that wrote it: transactions B.9."""

import dataclasses

import pytest

from broker.coordination.outcome import WriteMarkers
from broker.coordination.transaction.states import COMPLETED_BY, IDLE
from tests.coordination.transaction.harness import BAR, FOO, Bench, S


def a_long_log() -> Bench:
    """Two ids through commits, aborts, a fence, a rotation and an expiry."""
    bench = Bench()
    bench.init("a")
    bench.init("b")
    bench.add((1000, 0), FOO, BAR, name="a", client_transaction_version=2)
    bench.add((2000, 0), BAR, name="b")
    bench.end((1000, 0), name="a")
    bench.write_markers()
    bench.end((2000, 0), False, name="b", client_transaction_version=0)
    bench.write_markers()
    bench.add((1000, 1), FOO, name="a", client_transaction_version=2)
    assert bench.code(lambda: bench.init("a")) == 51
    bench.write_markers()
    bench.init("a")
    bench.plant(S.EMPTY, 32766)
    bench.add((1000, 32766), FOO, client_transaction_version=2)
    bench.end((1000, 32766))
    bench.write_markers()
    bench.advance(604_800_000 + 3_600_000)
    assert bench.machine.transactions == {}
    return bench


LONG = a_long_log()


@pytest.mark.parametrize("length", range(len(LONG.log) + 1))
def test_every_prefix_of_a_log_loads_to_the_state_of_that_moment(length: int) -> None:
    """Known ids, their last records, markers to be sent again, timers: all from the log alone."""
    seen: dict[str, object] = {}
    for record in LONG.written[:length]:
        assert record is not None
        seen[record.transactional_id] = record
    bench = Bench(LONG.log[:length])
    known = bench.machine.transactions
    assert known == {name: record for name, record in seen.items() if hasattr(record, "state")}
    prepared = [record for record in known.values() if record.state in COMPLETED_BY]
    assert bench.effects == [
        WriteMarkers(
            record.transactional_id,
            record.producer_id,
            record.producer_epoch,
            record.state is S.PREPARE_COMMIT,
            record.partitions or frozenset(),
            record.client_transaction_version,
        )
        for record in prepared
    ]
    assert ("timeouts" in bench.timers) == any(record.state is S.ONGOING for record in known.values())
    assert ("expiries" in bench.timers) == any(record.state in IDLE for record in known.values())
    if prepared:
        bench.write_markers()
        assert all(record.state not in COMPLETED_BY for record in bench.machine.transactions.values())


def test_E2_11_a_rotation_survives_the_coordinator() -> None:
    """4.3: the Prepare record has the next producer id, the Complete record the previous one."""
    bench = Bench()
    bench.plant(S.EMPTY, 32766)
    bench.add((1000, 32766), FOO, client_transaction_version=2)
    assert bench.end((1000, 32766)) == (2000, 0)
    before = Bench(bench.log)
    before.write_markers()
    assert before.state() == ("CompleteCommit", 2000, 0)
    assert before.end((1000, 32766)) == (2000, 0)
    after = Bench(before.log)
    assert after.end((1000, 32766)) == (2000, 0)
    assert after.code(lambda: after.end((1000, 32766), committed=False)) == 48


def test_LOAD_02_markers_are_sent_again_to_all_partitions() -> None:
    """Also to those that had theirs: the old coordinator's notes are lost."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, BAR, client_transaction_version=2)
    bench.end((1000, 0))
    effect = next(each for each in bench.effects if isinstance(each, WriteMarkers))
    again = Bench(bench.log)
    assert again.effects == [effect]


def test_a_later_value_replaces_an_earlier_one() -> None:
    """Replay keeps the last record of each id, also where its epoch is lower."""
    bench = Bench()
    bench.init()
    bench.init()
    assert Bench([bench.log[1], bench.log[0]]).state() == ("Empty", 1000, 0)
    assert Bench(bench.log).state() == ("Empty", 1000, 1)


def test_unloading_answers_no_request() -> None:
    """No request is parked at this coordinator."""
    bench = Bench()
    bench.init()
    assert bench.machine.unloaded().effects == ()
    bench.machine.replay_marker(1000, 0, committed=True)
    assert dataclasses.asdict(bench.machine.transactions["tx"])["state"] is S.EMPTY
