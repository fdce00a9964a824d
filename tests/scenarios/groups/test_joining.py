"""Who gets into a classic group, and how (groups CLS-01 to CLS-28, G.1)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.sync_group import SyncGroupRequest
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.members import (
    SETTINGS,
    G,
    Member,
    assembled,
    commit,
    coordinated,
    described,
    offset_of,
    rebalanced,
    see_members,
    see_state,
)
from tests.server import Server

PARKED_LONG_MS = 500_000


def test_CLS_01_CLS_02_a_newcomer_is_named_first(server: Server) -> None:
    """79 with an id after the client's; the group is there, of no type yet; with the id it is in."""
    member = Member(coordinated(server))
    code, named = member.refused(4)
    assert code == 79
    assert named.startswith("test-")
    groups = member.wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups
    assert [(each.group_id, each.group_state, each.group_type, each.protocol_type) for each in groups] == [
        (G, "Empty", "classic", "")
    ]
    member.member_id = named
    assembled(server, member)
    assert (member.last.generation_id, member.last.leader) == (1, named)
    assert [(each.member_id, each.metadata) for each in member.last.members] == [(named, b"meta")]


def test_CLS_03_version_3_is_in_at_once(server: Server) -> None:
    """JoinGroup v3 joins at once: MEMBER_ID_REQUIRED (79) begins with v4."""
    member = Member(coordinated(server))
    member.wire.send(ApiKey.JOIN_GROUP, 3, member._join_request())
    see_members(server, 1)
    server.advance(0)
    assert (member.joined().generation_id, member.leads) == (1, True)


def test_CLS_04_a_static_member_is_in_at_once(server: Server) -> None:
    """Its id begins with its instance's."""
    member = Member(coordinated(server), instance_id="i1")
    assembled(server, member)
    assert member.member_id.startswith("i1-")


def test_CLS_05_an_unknown_member_id_is_refused(server: Server) -> None:
    """An unknown member id gets 25, and is echoed."""
    assert Member(coordinated(server), member_id="x").refused() == (25, "x")


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_CLS_06_sessions_have_their_limits(server: Server, session_ms: int) -> None:
    """A session timeout outside the group's limits is INVALID_SESSION_TIMEOUT (26)."""
    assert Member(coordinated(server), session_ms=session_ms).refused()[0] == 26


def test_CLS_07_a_group_without_a_name(server: Server) -> None:
    """24 for members; its offsets are as good as any."""
    wire = coordinated(server)
    created(wire, "foo")
    assert Member(wire, group_id="").refused()[0] == 24
    sync = SyncGroupRequest("", 1, "m", (), None, "consumer", "range")
    assert wire.call(ApiKey.SYNC_GROUP, 5, sync).error_code == 24
    assert wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("", 1, "m")).error_code == 24
    leave = LeaveGroupRequest("", members=[MemberIdentity("m", None)])
    assert wire.call(ApiKey.LEAVE_GROUP, 5, leave).error_code == 24
    wire = coordinated(server, "")
    assert commit(wire, "foo", 5, group_id="") == 0
    assert offset_of(wire, "foo", "") == 5


def test_CLS_08_protocols_have_to_meet(server: Server) -> None:
    """23 for another protocol, and for another type."""
    rebalanced(server, Member(coordinated(server)))
    assert Member(coordinated(server), protocols=("roundrobin",)).refused()[0] == 23
    assert Member(coordinated(server), protocol_type="connect").refused()[0] == 23


def test_CLS_09_the_most_wanted_protocol(server: Server) -> None:
    """Each member votes for its first common protocol, and the most votes win."""
    members = [Member(coordinated(server), protocols=order) for order in (("a", "b"), ("b", "a"), ("b", "a"))]
    assembled(server, members[0])
    members[0].wire.call(ApiKey.SYNC_GROUP, 5, SyncGroupRequest(G, 1, members[0].member_id, (), None, "consumer", "a"))
    assembled(server, *members)
    assert {member.last.protocol_name for member in members} == {"b"}


def test_CLS_11_the_windows_end_with_the_rebalance_timeout(broker_with: BrokerWith) -> None:
    """3000 ms, and 1000 more after each member that joins: together no more than members have to come back."""
    server = broker_with(settings={**SETTINGS, "group.initial.rebalance.delay.ms": 3000})
    server.freeze()
    members = [Member(coordinated(server), rebalance_ms=4000) for _ in range(3)]
    for count, (member, pause_ms) in enumerate(zip(members, (2500, 1000, 399), strict=True), 1):
        member.start()
        see_members(server, count)
        server.advance(pause_ms)
    assert not any(member.wire.has_answer() for member in members)
    server.advance(101)
    server.advance(1)
    assert {member.joined().generation_id for member in members} == {1}


@pytest.mark.parametrize("version", [5, 9])
def test_CLS_12_alone_after_the_delay(broker_with: BrokerWith, version: int) -> None:
    """A lone first member is answered after group.initial.rebalance.delay.ms (3000 ms), not before."""
    server = broker_with(settings={**SETTINGS, "group.initial.rebalance.delay.ms": 3000})
    server.freeze()
    member = Member(coordinated(server), instance_id="i1")
    member.wire.send(ApiKey.JOIN_GROUP, version, member._join_request())
    see_members(server, 1)
    server.advance(2999)
    assert not member.wire.has_answer()
    server.advance(1)
    assert member.joined().generation_id == 1


def test_CLS_16_old_generations_and_strangers(server: Server) -> None:
    """An old generation gets ILLEGAL_GENERATION (22), a stranger UNKNOWN_MEMBER_ID (25)."""
    member = Member(coordinated(server))
    rebalanced(server, member)
    assert [member.beat(member.generation - 1), member.beat(member_id="unknown"), member.beat()] == [22, 25, 0]

    def synced(generation: int, member_id: str) -> int:
        request = SyncGroupRequest(G, generation, member_id, (), None, "consumer", "range")
        return int(member.wire.call(ApiKey.SYNC_GROUP, 5, request).error_code)

    assert [synced(member.generation - 1, member.member_id), synced(member.generation, "unknown")] == [22, 25]


@pytest.mark.parametrize(("kind", "name"), [("consumer", None), (None, "range"), ("consumer", "other")])
def test_CLS_17_a_sync_names_its_protocol(server: Server, kind: str | None, name: str | None) -> None:
    """A SyncGroup v5 without type or name, or with another name, is INCONSISTENT_GROUP_PROTOCOL (23)."""
    member = Member(coordinated(server))
    rebalanced(server, member)
    request = SyncGroupRequest(G, member.generation, member.member_id, (), None, kind, name)
    assert member.wire.call(ApiKey.SYNC_GROUP, 5, request).error_code == 23


def test_CLS_20_who_joins_again_while_the_group_completes(server: Server) -> None:
    """Hears the same generation at once, the leader with its members."""
    member = Member(coordinated(server))
    assembled(server, member)
    member.start()
    again = member.joined()
    assert (again.generation_id, [each.member_id for each in again.members]) == (1, [member.member_id])


def test_CLS_21_CLS_22_who_joins_a_stable_group_again(server: Server) -> None:
    """A follower is answered with the current generation; a leader rebalances."""
    leader, follower = Member(coordinated(server)), Member(coordinated(server))
    rebalanced(server, leader, follower)
    follower.start()
    assert (follower.joined().generation_id, follower.last.members) == (leader.generation, ())
    assert leader.heartbeat() == 0
    leader.start()
    see_state(server, "PreparingRebalance")
    assert follower.heartbeat() == 27
    assert not leader.wire.has_answer()


def test_CLS_26_a_member_that_waits_to_join_is_not_silent(server: Server) -> None:
    """Its session does not end while its JoinGroup is parked."""
    first = Member(coordinated(server), session_ms=20_000)
    second = Member(coordinated(server), session_ms=6_000)
    rebalanced(server, first, second)
    second.start()  # unchanged: answered at once
    second.joined()
    second.metadata = b"other"
    second.start()
    see_state(server, "PreparingRebalance")
    assert first.heartbeat() == 27
    server.advance(7_000)
    assert not second.wire.has_answer()
    first.start()
    assert len(first.joined().members) == 2
    second.joined()


def test_CLS_38_a_static_member_may_miss_a_rebalance(server: Server) -> None:
    """It is kept when the join phase ends, and removed if it does not sync either."""
    first = Member(coordinated(server), session_ms=60_000, rebalance_ms=3_000)
    static = Member(coordinated(server), session_ms=60_000, rebalance_ms=3_000, instance_id="i1")
    rebalanced(server, first, static)
    first.metadata = b"other"
    first.start()
    see_state(server, "PreparingRebalance")
    server.advance(3_000)
    assert {member.member_id for member in first.joined().members} == {first.member_id, static.member_id}
    first.sync({})
    server.advance(3_000)
    server.advance(1)
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert static.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_CLS_27_a_member_id_that_is_never_used(server: Server) -> None:
    """Delays the others no longer than its session."""
    member = Member(coordinated(server), session_ms=20_000)
    rebalanced(server, member)
    lost = Member(coordinated(server), session_ms=6_000)
    assert lost.refused()[0] == 79
    member.start()
    see_state(server, "PreparingRebalance")
    assert not member.wire.has_answer()
    server.advance(6_000 + 501)
    assert member.joined().generation_id == 2


def test_CLS_28_a_group_that_is_full(broker_with: BrokerWith) -> None:
    """A join beyond group.max.size is GROUP_MAX_SIZE_REACHED (81), without a member id."""
    server = broker_with(settings={**SETTINGS, "group.max.size": 1})
    server.freeze()
    rebalanced(server, Member(coordinated(server)))
    second = Member(coordinated(server))
    assert second.refused() == (81, "")


def test_a_first_join_that_failed_leaves_a_group(server: Server) -> None:
    """Without a protocol the answer is 23, and yet the group is Empty (groups A.4 J5)."""
    wire = coordinated(server)
    request = JoinGroupRequest(G, 10_000, "", "", [JoinGroupRequestProtocol("range", b"")], 60_000)
    assert wire.call(ApiKey.JOIN_GROUP, 9, request).error_code == 23
    assert described(wire).group_state == "Empty"
