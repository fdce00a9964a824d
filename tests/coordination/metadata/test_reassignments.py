"""Leaders are elected, replicas move, in-sync sets change: core B.10 and B.11 at the machine."""

from collections.abc import Sequence

import pytest

from broker.coordination.metadata.effects import PartitionChanged
from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.reassignments import balance
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import PartitionChangeRecord
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes, directory

UNKNOWN, ASSIGNMENT = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REPLICA_ASSIGNMENT
INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA
PREFERRED, UNCLEAN = Election.PREFERRED, Election.UNCLEAN


def elected(bench: Bench, election: Election, topic: str = "t", index: int = 0) -> tuple[ErrorCode, str | None] | None:
    """``None`` for success, which is carried out; else code and sentence."""
    outcome = bench.machine.elect_leaders([(topic, index)], election, TOKEN)
    ((name, error),) = answer(outcome)
    assert name == (topic, index)
    bench.do(outcome)
    return None if error is None else (error.code, error.message)


def moved(
    bench: Bench, target: Sequence[int] | None, index: int = 0, topic: str = "t", *, factor_may_change: bool = True
) -> tuple[ErrorCode, str | None] | None:
    """As ``elected``, for a reassignment."""
    outcome = bench.machine.alter_partition_reassignments(
        [(topic, index, target)], TOKEN, factor_may_change=factor_may_change
    )
    ((name, error),) = answer(outcome)
    assert name == (topic, index)
    bench.do(outcome)
    return None if error is None else (error.code, error.message)


# --- elections -------------------------------------------------------------------------------------------------------


def test_a_preferred_leader_takes_over_when_it_is_back_in_sync() -> None:
    """An election before that is refused; after it, the leader epoch is the next one."""
    bench = Bench(2)
    bench.create("t", [1, 2])
    bench.do(bench.machine.broker_stopped(1))
    expected = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    assert elected(bench, PREFERRED) == expected
    bench.arrive(1)
    assert elected(bench, PREFERRED) == expected
    bench.do(bench.machine.change_isr("t", 0, [2, 1]))
    assert elected(bench, PREFERRED) is None
    state = bench.partition("t")
    assert (state.leader, state.leader_epoch, state.isr) == (1, 2, (2, 1))


def test_an_unclean_election_takes_any_live_replica() -> None:
    """The records that only the others had are given up: the leader is alone in sync, and recovers."""
    bench = Bench(2)
    bench.create("t", [1, 2])
    bench.do(bench.machine.broker_stopped(2))
    bench.do(bench.machine.broker_stopped(1))
    expected = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    assert elected(bench, UNCLEAN) == expected
    bench.arrive(2)
    assert bench.partition("t").leader == -1
    assert elected(bench, UNCLEAN) is None
    state = bench.partition("t")
    assert (state.leader, state.isr, state.elr, state.last_known_elr, state.recovering) == (2, (2,), (), (), True)


def test_topics_may_allow_unclean_elections_by_themselves() -> None:
    """unclean.leader.election.enable of the topic, else of the broker: then no request is needed."""
    bench = Bench(2)
    bench.create("t", [1, 2], configs={"unclean.leader.election.enable": "true"})
    bench.create("u", [1, 2])
    bench.do(bench.machine.broker_stopped(2))
    bench.do(bench.machine.broker_stopped(1))
    bench.arrive(2)
    assert (bench.partition("t").leader, bench.partition("u").leader) == (2, -1)


def test_below_min_insync_replicas_the_last_ones_stay_eligible() -> None:
    """KIP-966: both can lead again without loss, in any order of their return."""
    bench = Bench(3)
    bench.create("t", [1, 2, 3], configs={"min.insync.replicas": "2"})
    for broker_id in (1, 2, 3):
        bench.do(bench.machine.broker_stopped(broker_id))
    state = bench.partition("t")
    assert (state.leader, state.isr, set(state.elr), state.last_known_elr) == (-1, (), {2, 3}, (3,))
    bench.arrive(1)
    assert bench.partition("t").leader == -1
    bench.arrive(2)
    state = bench.partition("t")
    assert (state.leader, state.isr, state.elr, state.recovering) == (2, (2,), (3,), False)
    bench.arrive(3)
    bench.do(bench.machine.change_isr("t", 0, [2, 3]))
    assert (bench.partition("t").isr, bench.partition("t").elr) == ((2, 3), ())


def test_eligible_leader_replicas_are_listed_as_kafkas_set_has_them() -> None:
    """By id, not in the order in which they went (PartitionChangeBuilder.maybePopulateTargetElr)."""
    bench = Bench(3)
    bench.create("t", [3, 2, 1], configs={"min.insync.replicas": "3"})
    for broker_id in (2, 1, 3):
        bench.do(bench.machine.broker_stopped(broker_id))
    assert bench.partition("t").elr == (1, 2, 3)


def test_leaders_return_to_preferred_replicas_that_may_lead() -> None:
    """Not to one that is down or out of sync, and not where the leader stays."""
    bench = Bench(3)
    bench.create("t", [1, 2], [1, 2], [3, 2], [2, 1])
    for broker_id in (1, 3):
        bench.do(bench.machine.broker_stopped(broker_id))
    bench.arrive(1)
    for index in (0, 1):
        bench.do(bench.machine.change_isr("t", index, [2, 1]))
    bench.do(bench.machine.periodic(lambda controller: balance(controller, lambda _topic, index, _state: index == 1)))
    states = [bench.partition("t", index) for index in range(4)]
    assert [(each.leader, each.leader_epoch) for each in states] == [(1, 2), (2, 1), (2, 1), (2, 0)]


def test_eligible_replicas_are_kept_by_the_factor_of_the_first_partition() -> None:
    """A reassignment to one replica leaves fewer than partition 0 has: seen on 4.4.0 (getTopicEffectiveMinIsr)."""
    bench = Bench(3)
    bench.create("t", [1, 3, 2], [3, 1, 2], configs={"min.insync.replicas": "2"})
    for broker_id in (3, 1):
        bench.do(bench.machine.fence_broker(broker_id))
    assert moved(bench, [2], 1) is None
    state = bench.partition("t", 1)
    assert (state.replicas, state.isr, state.elr) == ((2,), (2,), (1,))


# --- reassignments ---------------------------------------------------------------------------------------------------


def test_a_move_is_under_way_until_the_new_replicas_are_in_sync() -> None:
    """Meanwhile both sets hold it; at the end the old ones leave, and the leader epoch grows once."""
    bench = Bench(3)
    bench.create("t", [1, 2])
    assert moved(bench, [3, 1]) is None
    state = bench.partition("t")
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 1, 2), (3,), (2,))
    assert (state.leader, state.leader_epoch, state.isr, state.reassigning) == (1, 0, (1, 2), True)
    assert state.directories == (directory(3), directory(1), directory(2))
    outcome = bench.machine.change_isr("t", 0, [1, 2, 3])
    assert changes(outcome) == [PartitionChanged("t", 0)]
    bench.do(outcome)
    state = bench.partition("t")
    assert (state.replicas, state.isr, state.reassigning) == ((3, 1), (1, 3), False)
    assert (state.leader, state.leader_epoch, state.directories) == (1, 1, (directory(3), directory(1)))


def test_a_move_away_from_the_leader_elects_another() -> None:
    """And a leader that stays keeps its epoch unless a replica leaves."""
    bench = Bench(3)
    bench.create("t", [1])
    moved(bench, [2, 3])
    bench.do(bench.machine.change_isr("t", 0, [1, 2]))
    assert bench.partition("t").leader == 1
    bench.do(bench.machine.change_isr("t", 0, [1, 2, 3]))
    state = bench.partition("t")
    assert (state.leader, state.leader_epoch, state.replicas, state.isr) == (2, 1, (2, 3), (2, 3))


def test_a_move_holds_no_unclean_election() -> None:
    """Also where the topic allows it: the records are with the old replica, which leads again when it is back."""
    bench = Bench(2)
    bench.create("t", [1], configs={"unclean.leader.election.enable": "true"})
    bench.do(bench.machine.broker_stopped(1))
    assert moved(bench, [2]) is None
    state = bench.partition("t")
    assert (state.leader, state.isr, state.elr, state.replicas) == (-1, (), (1,), (2, 1))
    bench.arrive(1)
    assert bench.partition("t").leader == 1


def test_a_move_can_be_taken_back() -> None:
    """What was there before is there again; those that were added are out of everything."""
    bench = Bench(3)
    bench.create("t", [1, 2])
    moved(bench, [3])
    bench.do(bench.machine.change_isr("t", 0, [1, 2]))
    assert moved(bench, None) is None
    state = bench.partition("t")
    assert (state.replicas, state.isr, state.reassigning, state.leader) == ((1, 2), (1, 2), False, 1)


def test_a_move_that_only_the_new_replicas_survived_is_not_taken_back() -> None:
    """It would need an unclean election, which the topic does not allow."""
    bench = Bench(3)
    bench.create("t", [1])
    moved(bench, [2, 3])
    bench.do(bench.machine.change_isr("t", 0, [1, 2]))
    bench.do(bench.machine.broker_stopped(1))
    sentence = "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    assert moved(bench, None) == (ASSIGNMENT, sentence)


def test_a_move_that_only_the_new_replicas_survived_is_taken_back_uncleanly() -> None:
    """Where the topic allows it: the first of the old replicas is in sync by decree, and leads when it is back."""
    bench = Bench(3)
    bench.create("t", [1], configs={"unclean.leader.election.enable": "true"})
    moved(bench, [2, 3])
    bench.do(bench.machine.change_isr("t", 0, [1, 2]))
    bench.do(bench.machine.broker_stopped(1))
    assert bench.partition("t").leader == 2
    assert moved(bench, None) is None
    state = bench.partition("t")
    assert (state.replicas, state.isr, state.elr, state.leader) == ((1,), (1,), (), -1)
    bench.arrive(1)
    assert bench.partition("t").leader == 1


def test_a_factor_change_may_be_forbidden() -> None:
    """KIP-860; of an ongoing move the size of the set that it leads to counts."""
    bench = Bench(3)
    bench.create("t", [1, 2])
    expected = ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 2 to 3"
    assert moved(bench, [1, 2, 3], factor_may_change=False) == expected
    assert moved(bench, [3, 2], factor_may_change=False) is None
    assert moved(bench, [3, 1], factor_may_change=False) is None
    bench.create("grows", [1])
    assert moved(bench, [2, 3], topic="grows") is None
    assert moved(bench, [2, 1], topic="grows", factor_may_change=False) is None
    expected = ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 2 to 1"
    assert moved(bench, [1], topic="grows", factor_may_change=False) == expected


# --- in-sync sets and steering ---------------------------------------------------------------------------------------


def test_a_shrunk_isr_keeps_the_leader_epoch() -> None:
    """Since metadata.version 3.6 (core B.2.1); an unchanged one is no record."""
    bench = Bench(2)
    bench.create("t", [1, 2])
    assert bench.do(bench.machine.change_isr("t", 0, [1])) == (
        PartitionChangeRecord(0, bench.image.topics["t"].id, (1,)),
    )
    assert bench.do(bench.machine.change_isr("t", 0, [1])) == ()
    assert (bench.partition("t").leader_epoch, bench.partition("t").partition_epoch) == (0, 1)


@pytest.mark.parametrize("isr", [[1, 3], [1, 2]])
def test_only_active_replicas_are_in_sync(isr: list[int]) -> None:
    """Broker 3 has no replica, broker 2 is fenced."""
    bench = Bench(3)
    bench.create("t", [1, 2])
    bench.do(bench.machine.fence_broker(2))
    with pytest.raises(KafkaError) as refused:
        bench.machine.change_isr("t", 0, isr)
    assert refused.value.code is INELIGIBLE


def test_a_leader_is_moved_or_removed_at_will() -> None:
    """Each time with the next leader epoch, also to where it is."""
    bench = Bench(3)
    bench.create("t", [1, 2, 3])
    for broker_id, epoch in ((2, 1), (2, 2), (None, 3), (1, 4)):
        bench.do(bench.machine.move_leader("t", 0, broker_id))
        state = bench.partition("t")
        assert (state.leader, state.leader_epoch, state.isr) == (
            -1 if broker_id is None else broker_id,
            epoch,
            (1, 2, 3),
        )


@pytest.mark.parametrize(
    ("topic", "broker_id", "code"), [("t", 3, INELIGIBLE), ("t", 2, INELIGIBLE), ("no", 1, UNKNOWN)]
)
def test_a_leader_needs_a_living_replica(topic: str, broker_id: int, code: ErrorCode) -> None:
    """Steering is refused where no broker could lead."""
    bench = Bench(3)
    bench.create("t", [1, 2])
    bench.do(bench.machine.fence_broker(2))
    with pytest.raises(KafkaError) as refused:
        bench.machine.move_leader(topic, 0, broker_id)
    assert refused.value.code is code
