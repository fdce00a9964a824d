"""Classic groups, the rows in which connections, restarts and time matter (CLS-*; groups G.1)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from tests.conftest import BrokerWith
from tests.scenarios.conftest import Lasting, LastingWith
from tests.scenarios.groups.members import (
    SETTINGS,
    Member,
    assembled,
    coordinated,
    described,
    rebalanced,
    see_members,
    see_state,
)
from tests.server import Server


@pytest.fixture
def lasting(lasting_with: LastingWith) -> Lasting:
    """A broker that can be stopped and started over its data."""
    return lasting_with(SETTINGS)


def test_CLS_10_members_are_collected_for_a_while(broker_with: BrokerWith) -> None:
    """Joins at 0, 2000 and 5500 are answered together at 9000."""
    server = broker_with(settings={**SETTINGS, "group.initial.rebalance.delay.ms": 3000})
    server.freeze()
    members = [Member(coordinated(server)) for _ in range(3)]
    for number, pause_ms in enumerate((2000, 3500, 3499)):
        members[number].start()
        see_members(server, number + 1)
        server.advance(pause_ms)
    assert described(coordinated(server)).group_state == "PreparingRebalance"
    server.advance(1)
    assert {member.joined().generation_id for member in members} == {1}


def test_CLS_13_a_generation_from_join_to_assignment(server: Server) -> None:
    """The leader sees all members and assigns, each member is given its own assignment; the group is Stable."""
    members = [Member(coordinated(server)) for _ in range(3)]
    rebalanced(server, *members)
    assert {each.member_id for each in members[0].last.members} == {member.member_id for member in members}
    assert members[1].last.members == members[2].last.members == ()
    group = described(members[0].wire)
    assert (group.group_state, group.protocol_data) == ("Stable", "range")
    assert {each.member_assignment for each in group.members} == {b"a0", b"a1", b"a2"}
    assert {each.client_host for each in group.members} == {"/127.0.0.1"}


def test_CLS_14_CLS_15_who_was_not_listed_gets_nothing(server: Server) -> None:
    """An empty assignment, now and whenever it asks again."""
    leader, follower = Member(coordinated(server)), Member(coordinated(server))
    rebalanced(server, leader)
    assembled(server, leader, follower)
    assert leader.sync({leader.member_id: b"one"}).assignment == b"one"
    assert (follower.sync().assignment, follower.sync().error_code) == (b"", ErrorCode.NONE)


def test_CLS_18_a_newcomer_rebalances(server: Server) -> None:
    """Heartbeats return REBALANCE_IN_PROGRESS until all members have joined."""
    first, second = Member(coordinated(server)), Member(coordinated(server))
    rebalanced(server, first)
    second.start()
    see_members(server, 2)
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert not second.wire.has_answer()
    first.start()
    assert first.joined().generation_id == second.joined().generation_id == 2


def test_CLS_19_who_does_not_come_back_is_out(server: Server) -> None:
    """A member that does not rejoin is removed after the rebalance timeout."""
    first, second = (Member(coordinated(server), session_ms=500_000, rebalance_ms=9_000) for _ in range(2))
    rebalanced(server, first, second)
    first.start()
    see_state(server, "PreparingRebalance")
    server.advance(9_000)
    assert [member.member_id for member in first.joined().members] == [first.member_id]
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_CLS_23_CLS_24_who_does_not_sync_is_out(server: Server) -> None:
    """Parked SyncGroups are called back by a newcomer; who sends none loses its place."""
    leader, follower, late = (Member(coordinated(server), session_ms=500_000, rebalance_ms=9_000) for _ in range(3))
    rebalanced(server, leader)
    assembled(server, leader, follower)
    follower.send_sync()
    late.start()
    assert follower.wire.answer().error_code is ErrorCode.REBALANCE_IN_PROGRESS
    follower.start()
    leader.start()
    for member in (leader, follower, late):
        member.joined()
    leader.send_sync({})
    follower.send_sync()
    assert leader.wire.answer().error_code is follower.wire.answer().error_code is ErrorCode.NONE
    server.advance(9_000)
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert late.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_CLS_25_a_silent_member_is_out(server: Server) -> None:
    """Its connection may well be open: only requests count."""
    member = Member(coordinated(server))
    rebalanced(server, member)
    server.advance(9999)
    assert member.heartbeat() is ErrorCode.NONE
    server.advance(10_000)
    assert member.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert described(member.wire).group_state == "Empty"


def test_a_member_that_hangs_up_is_still_a_member(server: Server) -> None:
    """Until its session ends; the answer to the join that it had sent goes nowhere."""
    first, second = (Member(coordinated(server), session_ms=20_000) for _ in range(2))
    rebalanced(server, first)
    second.start()
    see_members(server, 2)
    second.wire.close()
    first.start()
    assert len(first.joined().members) == 2
    first.sync({})
    server.advance(19_999)
    assert first.heartbeat() is ErrorCode.NONE
    server.advance(1)
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_CLS_34_CLS_35_a_static_member_returns(server: Server) -> None:
    """On a new connection, with its assignment, leading if it led; the other members do not notice."""
    leader = Member(coordinated(server), instance_id="i1")
    follower = Member(coordinated(server), instance_id="i2")
    rebalanced(server, leader, follower)
    for number, old in enumerate((leader, follower)):
        old.wire.close()
        back = Member(coordinated(server), instance_id=old.instance_id)
        back.start()
        assert (back.joined().generation_id, back.last.skip_assignment) == (old.generation, old is leader)
        assert back.sync().assignment == b"a%d" % number
        assert back.heartbeat() is ErrorCode.NONE


def test_CLS_37_the_second_of_one_instance_fences_the_first(server: Server) -> None:
    """A parked JoinGroup under the same instance id is answered 82."""
    leader = Member(coordinated(server))
    rebalanced(server, leader)
    first = Member(coordinated(server), instance_id="i1")
    first.start()
    see_members(server, 2)
    second = Member(coordinated(server), instance_id="i1")
    second.start()
    assert first.wire.answer().error_code is ErrorCode.FENCED_INSTANCE_ID
    leader.start()
    assert {each.group_instance_id for each in leader.joined().members} == {None, "i1"}
    assert second.joined().generation_id == leader.generation


def test_CLS_39_a_stable_group_survives_a_restart(lasting: Lasting) -> None:
    """Same generation, same assignment, and a fresh session."""
    member = Member(coordinated(lasting.server))
    rebalanced(lasting.server, member)
    lasting.server.advance(9000)
    server = lasting.restart()
    member.wire = coordinated(server)
    assert member.heartbeat() is ErrorCode.NONE
    assert member.sync().assignment == b"a0"
    server.advance(10_000)
    assert member.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_CLS_40_a_completing_group_falls_back(lasting: Lasting) -> None:
    """The generation that was not finished is lost; members join again."""
    member = Member(coordinated(lasting.server))
    rebalanced(lasting.server, member)
    assembled(lasting.server, member)
    assert member.generation == 2
    member.wire = coordinated(lasting.restart())
    assert member.sync({}).error_code is ErrorCode.ILLEGAL_GENERATION
    assembled(lasting.server, member)
    assert (member.generation, member.sync({member.member_id: b"x"}).assignment) == (2, b"x")


def test_CLS_43_CLS_44_an_empty_group_is_deleted(server: Server) -> None:
    """Not while it has members; afterwards it is not listed."""
    member = Member(coordinated(server))
    rebalanced(server, member)

    def delete() -> ErrorCode:
        code: ErrorCode = member.wire.call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(["g"])).results[0].error_code
        return code

    def listed(*states: str) -> list[tuple[str, str]]:
        groups = member.wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(states, ["classic"])).groups
        return [(group.group_id, group.protocol_type) for group in groups]

    assert delete() is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert (listed("Empty"), listed("Stable")) == ([("g", "consumer")], [])
    assert delete() is ErrorCode.NONE
    assert listed() == []
    assert delete() is ErrorCode.GROUP_ID_NOT_FOUND


def test_CLS_45_an_empty_group_without_offsets_goes(broker_with: BrokerWith) -> None:
    """An Empty group without offsets is removed at the next expiry check."""
    server = broker_with(settings={**SETTINGS, "offsets.retention.check.interval.ms": 3_000})
    server.freeze()
    member = Member(coordinated(server))
    rebalanced(server, member)
    member.leave()
    server.advance(9_000)
    assert described(coordinated(server)).error_code is ErrorCode.GROUP_ID_NOT_FOUND
