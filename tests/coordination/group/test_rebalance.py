"""The rebalance engine: initial delay, join phase, SyncGroup and the timers (groups A.5, A.7, A.8, A.10)."""

import pytest

from broker.coordination.group.classic.states import ENTERED_FROM, State
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import GroupMetadata
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.group.harness import START_MS, Client, Context, G, assembled, stable


def test_an_absent_or_empty_group_knows_no_member() -> None:
    """SyncGroup and Heartbeat of an absent or an Empty group: UNKNOWN_MEMBER_ID (groups A.3)."""
    context = Context()
    client = Client(context, member_id="m", generation=1)
    assert client.sync().code is client.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    context.commit("foo", {0: 1})
    assert client.sync().code is client.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_CLS_18_a_newcomer_rebalances() -> None:
    """The others get REBALANCE_IN_PROGRESS until they have joined again; then all are answered."""
    context = Context()
    first, second = stable(Client(context), Client(context))
    third = Client(context).start()
    assert first.heartbeat() is second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert first.sync().code is ErrorCode.REBALANCE_IN_PROGRESS
    second.start()
    first.start()
    assert {client.joined().generation_id for client in (first, second, third)} == {3}
    assert len(first.parked.message.members) == 3
    assert second.parked.message.members == third.parked.message.members == ()


def test_a_heartbeat_during_a_rebalance_keeps_the_session() -> None:
    """REBALANCE_IN_PROGRESS, and the timer is armed again (groups A.8)."""
    context = Context()
    first, second = stable(Client(context), Client(context))
    first.start()
    context.advance(9000)
    assert second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert context.due_in("member", G, second.member_id) == 10_000


def test_a_group_in_which_no_member_syncs_becomes_empty() -> None:
    """Removing the last members leaves an Empty group, one generation on (groups A.5 R8)."""
    context = Context()
    (client,) = assembled(Client(context, rebalance_ms=1000))
    context.advance(1000)
    assert context.records[-1] == GroupMetadata(G, "consumer", 2, None, None, START_MS + 1000)
    assert client.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_keeps_the_session() -> None:
    """A member that sends heartbeats in time stays."""
    context = Context()
    (client,) = stable(Client(context, session_ms=6000))
    for _ in range(3):
        context.advance(5999)
        assert client.heartbeat() is ErrorCode.NONE


def test_a_leader_that_falls_silent_is_followed_by_the_first_member() -> None:
    """The leader's place goes to the first in the order of Java's table (groups A.5 R9)."""
    context = Context()
    leader, *others = stable(Client(context, session_ms=6000), *(Client(context, session_ms=30_000) for _ in range(3)))
    context.advance(6000)
    assert leader.member_id not in context.group().members
    assert context.group().leader == next(iter(context.group().members))
    assert context.group().leader in {client.member_id for client in others}


def test_a_parked_sync_keeps_its_member_from_expiring() -> None:
    """The answer to a parked SyncGroup starts a new session (groups A.5 R9)."""
    context = Context()
    leader, follower = assembled(Client(context, session_ms=30_000), Client(context, session_ms=6000))
    waiting = follower.sync()
    context.advance(20_000)
    leader.sync({})
    assert waiting.code is ErrorCode.NONE
    assert context.due_in("member", G, follower.member_id) == 6000


def test_a_new_member_that_waits_too_long_has_to_join_again() -> None:
    """After 300 s its parked join is answered with UNKNOWN_MEMBER_ID and no id (groups A.5 R9)."""
    context = Context()
    first, second = stable(
        Client(context, session_ms=1_000_000, rebalance_ms=1_000_000),
        Client(context, session_ms=1_000_000, rebalance_ms=1_000_000),
    )
    newcomer = Client(context, version=3).start()
    context.advance(300_000)
    assert newcomer.parked.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer.parked.message.member_id == ""
    first.start()
    second.start()
    assert len(first.joined().members) == 2


def test_the_last_member_that_expires_ends_the_initial_delay() -> None:
    """Quirk: the join phase completes early, without members (groups A.5 R9)."""
    context = Context({"group.initial.rebalance.delay.ms": 400_000})
    Client(context, version=3, rebalance_ms=500_000).start()
    context.advance(300_000)
    assert context.records[-1] == GroupMetadata(G, "consumer", 1, None, None, START_MS + 300_000)
    assert context.due_in("join", G) is None


def test_an_initial_delay_that_is_over_ends_once_where_the_log_refuses_its_end() -> None:
    """Its member is answered, and no timer ends the join phase of the Empty group again."""
    context = Context({"group.initial.rebalance.delay.ms": 400_000})
    client = Client(context, version=3, rebalance_ms=500_000).start()
    context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KafkaError):
        context.advance(300_000)
    assert client.parked.code is ErrorCode.UNKNOWN_MEMBER_ID
    context.advance(200_000)
    assert (context.group().state, context.group().generation) == (State.EMPTY, 1)


def test_a_rebalance_that_no_member_joins_waits_on() -> None:
    """With static members alone and none of them there, the join timer is armed again (groups A.5 R7.2)."""
    context = Context()
    first, second = stable(
        Client(context, instance_id="i1", session_ms=6000, rebalance_ms=1000),
        Client(context, instance_id="i2", session_ms=6000, rebalance_ms=1000),
    )
    context.perform(context.machine.rebalance(G, context.now_ms))
    context.advance(1000)
    assert context.due_in("join", G) == 1000
    assert context.group().state is State.PREPARING_REBALANCE
    assert first.heartbeat() is second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    second.start()
    context.advance(1000)
    assert second.joined().leader == second.member_id


def test_assignments_that_cannot_be_remembered_are_taken_back() -> None:
    """All parked SyncGroups get the error, and the group rebalances (groups A.7.6)."""
    context = Context()
    leader, follower = assembled(Client(context), Client(context))
    waiting = follower.sync()
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = leader.sync({leader.member_id: b"x", follower.member_id: b"y"})
    assert answer.message == waiting.message == SyncGroupResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert context.group().state is State.PREPARING_REBALANCE
    follower.start()
    assert leader.join().generation_id == follower.joined().generation_id == 3
    assert leader.sync({}).message.assignment == b""


def test_each_change_of_state_has_its_reason() -> None:
    """Why, from where to where; several in one outcome where a request ends a join phase."""
    context = Context()
    client = Client(context).start()
    begun = context.last.changes
    context.advance(0)
    joined = context.last.changes
    client.joined()
    client.sync({client.member_id: b"x"})
    assigned = context.last.changes
    context.leave(MemberIdentity(client.member_id))
    assert [[change.reason.kind for change in each] for each in (begun, joined, assigned, context.last.changes)] == [
        ["member joined", "a rebalance begins"],
        ["all members have joined"],
        ["assigned"],
        ["member left", "a rebalance begins", "all members have left"],
    ]
    last = context.last.changes[-1]
    assert last[:6] == ("g", last.reason, "PreparingRebalance", "Empty", 1, 2)
    assert (last.reason.rule, last.reason.source) == ("groups A.5 R7", "ClassicGroup")


def test_a_refused_assignment_is_no_change() -> None:
    """The group is not Stable, and nothing is reported but the rebalance that follows."""
    context = Context()
    client = Client(context).start()
    context.advance(0)
    client.joined()
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    client.sync({client.member_id: b"x"})
    assert [change.reason.kind for change in context.applied.changes] == ["a rebalance begins"]


def test_a_state_is_entered_only_from_those_of_the_table() -> None:
    """The transition table: anything else is a mistake of ours, not of a client."""
    context = Context()
    context.commit("foo", {0: 1})
    group = context.group()
    for state in State:
        if group.state not in ENTERED_FROM[state]:
            with pytest.raises(ValueError, match="is not entered from"):
                group.enter(state, 0)
    group.enter(State.PREPARING_REBALANCE, 5)
    assert (group.previous_state, group.state_timestamp_ms) == (State.EMPTY, 5)
