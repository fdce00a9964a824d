"""Timers of streams groups: heartbeats that fail set them all the same, and the initial delay (groups E.2, E.3)."""

import pytest

from broker.coordination.group.modern.epochs import LEAVING_STATIC
from broker.coordination.group.modern.streams.heartbeat import delay_timer
from protocol.errors import ErrorCode
from protocol.messages.streams_group_heartbeat import Endpoint
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import Client, Context, G
from tests.coordination.group.streams_harness import StreamsMember, bench, group, info, subtopology

HERE = Endpoint("host", 1)
DELAY_MS = 3_000
STATEFUL = (subtopology("0", ["in"], changelogs=[info("store")]),)


@pytest.fixture
def cluster() -> Cluster:
    """With the topic "in" of four partitions, and a store's changelog."""
    topics = Cluster()
    topics.create("in", 4)
    topics.create("store", 4)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard that follows 4.4 and assigns at once."""
    return bench(cluster, newer=True, assignment_interval_ms=0)


# --- heartbeats that fail ---------------------------------------------------------------------------------------------


def test_a_member_that_gets_nothing_but_errors_stays(context: Context, cluster: Cluster) -> None:
    """Each heartbeat begins its session again, though endpoints without their source topic cannot be listed."""
    member = StreamsMember(context)
    member.join(user_endpoint=HERE)
    cluster.delete("in")
    for _ in range(12):
        context.advance(5_000)
        assert member.refused(endpoint_information_epoch=99) is ErrorCode.UNKNOWN_SERVER_ERROR
    cluster.create("in", 4)
    assert member.beat(endpoint_information_epoch=99).error_code is ErrorCode.NONE


def test_a_heartbeat_whose_records_are_refused_begins_the_session_again(context: Context) -> None:
    """The session ends 45 s after the refused heartbeat, and not before."""
    member = StreamsMember(context)
    member.join()
    context.advance(44_000)
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert member.refused(rack_id="r") is ErrorCode.NOT_ENOUGH_REPLICAS
    context.advance(44_999)
    assert member.seen.rack_id is None
    context.advance(1)
    assert group(context).is_empty


def test_a_static_member_expires_though_another_has_failed_to_take_its_place(context: Context) -> None:
    """A failed replacement leaves the static member's session timer running."""
    member = StreamsMember(context)
    member.join(instance_id="i")
    member.beat(LEAVING_STATIC, instance_id="i")
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    assert StreamsMember(context, "m2").refused_join(instance_id="i") is ErrorCode.NOT_ENOUGH_REPLICAS
    context.advance(45_000)
    assert group(context).is_empty


def test_the_session_of_a_member_whose_place_was_taken_ends_nothing(context: Context) -> None:
    """The old session of a replaced member does not remove its successor, which has its own."""
    member, heir = StreamsMember(context), StreamsMember(context, "m2")
    member.join(instance_id="i")
    member.beat(LEAVING_STATIC, instance_id="i")
    context.advance(44_000)
    heir.join(instance_id="i")
    written = len(context.records)
    context.advance(44_999)
    assert (list(group(context).members), len(context.records)) == (["m2"], written)


# --- the initial delay ------------------------------------------------------------------------------------------------


@pytest.fixture
def delayed(cluster: Cluster) -> Context:
    """A shard that waits for further members of a new group."""
    return bench(cluster, newer=True, assignment_interval_ms=0, initial_rebalance_delay_ms=DELAY_MS)


@pytest.mark.parametrize("appended", [True, False])
def test_a_first_join_that_fails_begins_the_delay(delayed: Context, cluster: Cluster, appended: bool) -> None:
    """The group of the next one waits for its end, when the target is computed."""
    first, second = StreamsMember(delayed), StreamsMember(delayed, "m2")
    if appended:
        cluster.delete("in")
        assert first.refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
        cluster.create("in", 4)
    else:
        delayed.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
        assert first.refused_join() is ErrorCode.NOT_ENOUGH_REPLICAS
    assert delayed.due_in(*delay_timer(G)) == DELAY_MS
    delayed.advance(DELAY_MS - 1)
    second.join()
    second.beat()
    assert second.statuses == [5]
    delayed.advance(1)
    assert group(delayed).assignment_epoch == group(delayed).epoch
    assert delayed.machine.streams._context.delays == {}


def test_the_delay_of_a_join_that_fails_is_forgotten(delayed: Context) -> None:
    """The delay of a failed join is cleared, even if no group comes of it."""
    delayed.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    StreamsMember(delayed).refused_join()
    delayed.advance(DELAY_MS)
    assert (delayed.machine.streams._context.delays, delayed.records) == ({}, [])


def test_the_target_at_the_end_of_the_delay_has_the_settings_of_its_epoch(delayed: Context) -> None:
    """What was changed since begins an epoch of its own, with the next heartbeat."""
    first, second = StreamsMember(delayed, topology=STATEFUL), StreamsMember(delayed, "m2", STATEFUL, "p2")
    first.join()
    second.join()
    delayed.settings.values["group.streams.num.standby.replicas"] = 1
    delayed.advance(DELAY_MS)
    epoch = group(delayed).epoch
    assert group(delayed).assignment_epoch == epoch
    assert [target.standby for target in group(delayed).targets.values()] == [{}, {}]
    first.beat()
    assert group(delayed).epoch == epoch + 1
    assert all(target.standby for target in group(delayed).targets.values())


@pytest.mark.parametrize("named", [True, False])
def test_a_group_that_makes_way_waits_no_longer(delayed: Context, named: bool) -> None:
    """A streams group that takes its place again begins a delay of its own, also after a join that was refused."""
    member = StreamsMember(delayed)
    member.join()
    member.beat(-1)
    delayed.advance(DELAY_MS - 1)
    classic = Client(delayed, version=3, member_id="stranger" if named else "")
    classic.ask()
    delayed.advance(0)
    assert classic.parked.code is (ErrorCode.UNKNOWN_MEMBER_ID if named else ErrorCode.NONE)
    assert delayed.due_in(*delay_timer(G)) is None
    if not named:
        classic.joined()
        delayed.leave(classic.identity())
    member.join()
    delayed.advance(DELAY_MS - 1)
    member.beat()
    assert member.statuses == [5]
    delayed.advance(1)
    member.beat()
    assert member.statuses == []
