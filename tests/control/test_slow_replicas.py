"""Coordinators over followers that copy nothing: no answer before all replicas in sync have the record, as in Kafka."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.wire import Wire

E = ErrorCode
WRITE_TIMEOUT_MS = 5_000
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Three brokers; the first one coordinates the group g and the id tx, and the clock is frozen."""
    settings = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    plane = plane_of(brokers=3, topics=["t:1"], settings=settings)
    plane.server.make_coordinators()
    plane.kafka.coordinators.move(type="group", key="g", broker=1)
    plane.kafka.coordinators.move(type="transaction", key="tx", broker=1)
    plane.kafka.clock.freeze()
    return plane


def hold(plane: ControlPlane, topic: str, *brokers: int) -> None:
    """These followers copy nothing of the topic from now on, and stay in sync."""
    plane.http("POST", f"/v1/topics/{topic}/partitions/0/isr", {"replicas": [1, 2, 3], "held": list(brokers)})


def commit(wire: Wire, offset: int) -> None:
    """Send an OffsetCommit of a group without members, and leave its answer."""
    topics = [
        OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset, committed_leader_epoch=-1)])
    ]
    wire.send(ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest("g", generation_id_or_member_epoch=-1, topics=topics))


def committed(wire: Wire) -> ErrorCode:
    """The code of the oldest OffsetCommit that has no answer yet."""
    code: ErrorCode = wire.answer().topics[0].partitions[0].error_code
    return code


def fetched(wire: Wire) -> int:
    """The group's offset, by OffsetFetch."""
    topics = [OffsetFetchRequestTopics("t", [0], None)]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics)], require_stable=False)
    offset: int = wire.call(ApiKey.OFFSET_FETCH, 8, request).groups[0].topics[0].partitions[0].committed_offset
    return offset


def init(wire: Wire) -> None:
    """Send an InitProducerId of tx, and leave its answer."""
    wire.send(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("tx", 60_000))


def answers(wire: Wire) -> None:
    """Positive control: the broker answers others meanwhile, so what has no answer yet is held on purpose."""
    assert wire.call(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest("g", 0)).error_code is E.NONE


def test_an_offset_is_committed_when_all_replicas_in_sync_have_it(plane: ControlPlane) -> None:
    """Until then OffsetFetch answers the offset before it: another broker may lead next, and know only that."""
    wire, other = plane.server.wire(1), plane.server.wire(1)
    commit(wire, 5)
    assert committed(wire) is E.NONE

    hold(plane, OFFSETS, 3)
    commit(wire, 6)
    assert fetched(other) == 5
    assert not wire.has_answer()

    hold(plane, OFFSETS)
    assert committed(wire) is E.NONE
    assert fetched(other) == 6


def test_a_commit_that_waits_too_long_is_to_be_repeated(plane: ControlPlane) -> None:
    """COORDINATOR_NOT_AVAILABLE after offsets.commit.timeout.ms, by the cluster's clock."""
    wire, other = plane.server.wire(1), plane.server.wire(1)
    hold(plane, OFFSETS, 3)
    commit(wire, 6)
    answers(other)
    plane.kafka.clock.advance(ms=WRITE_TIMEOUT_MS - 1)
    assert not wire.has_answer()
    plane.kafka.clock.advance(ms=1)
    assert committed(wire) is E.COORDINATOR_NOT_AVAILABLE


def test_what_was_not_acknowledged_may_be_lost_with_its_leader(plane: ControlPlane) -> None:
    """The broker that had missed it leads next: NOT_COORDINATOR, and the offset before it is there."""
    wire = plane.server.wire(1)
    commit(wire, 5)
    assert committed(wire) is E.NONE
    hold(plane, OFFSETS, 3)
    commit(wire, 6)
    plane.kafka.coordinators.move(type="group", key="g", broker=3)
    assert committed(wire) is E.NOT_COORDINATOR
    assert fetched(plane.server.wire(3)) == 5


def test_a_transactional_id_is_in_transition_until_its_record_is_replicated(plane: ControlPlane) -> None:
    """Others get CONCURRENT_TRANSACTIONS, as while Kafka's coordinator has a pending state."""
    wire, other = plane.server.wire(1), plane.server.wire(1)
    hold(plane, TRANSACTIONS, 2)
    init(wire)
    answers(other)
    init(other)
    assert other.answer().error_code is E.CONCURRENT_TRANSACTIONS
    assert not wire.has_answer()

    hold(plane, TRANSACTIONS)
    first = wire.answer()
    assert (first.error_code, first.producer_epoch) == (E.NONE, 0)
    init(other)
    assert other.answer().producer_epoch == 1


def test_a_broker_that_is_killed_is_in_sync_until_its_session_is_over(plane: ControlPlane) -> None:
    """Nothing is acknowledged meanwhile; then the others go on without it."""
    wire = plane.server.wire(1)
    plane.kafka.brokers[3].kill()
    commit(wire, 5)
    answers(plane.server.wire(1))
    assert not wire.has_answer()
    plane.kafka.clock.advance(ms=9_000)
    code = committed(wire)
    assert code in (E.NONE, E.COORDINATOR_NOT_AVAILABLE)
    commit(wire, 6)
    assert committed(wire) is E.NONE
