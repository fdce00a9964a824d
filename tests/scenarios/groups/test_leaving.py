"""Who leaves a classic group, and what is left (groups CLS-29 to CLS-42, G.1)."""

from protocol.apis import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest
from tests.scenarios.groups.members import (
    G,
    Member,
    assembled,
    coordinated,
    described,
    rebalanced,
    see_state,
)
from tests.server import Server
from tests.wire import Wire


def left(wire: Wire, *members: tuple[str, str | None], v: int = 3, group: str = G) -> tuple[int, list[int]]:
    """LeaveGroup of these (member, instance): the code at the top, and of each."""
    request = LeaveGroupRequest(group, members[0][0], [MemberIdentity(*member) for member in members])
    answer = wire.call(ApiKey.LEAVE_GROUP, v, request)
    return int(answer.error_code), [int(each.error_code) for each in answer.members]


def test_CLS_29_two_leave_one_of_whom_is_unknown(server: Server) -> None:
    """Of two that leave, the unknown one gets 25, and those who stay rebalance."""
    first, second = Member(coordinated(server)), Member(coordinated(server))
    rebalanced(server, first, second)
    assert left(second.wire, (second.member_id, None), ("zz", None)) == (0, [0, 25])
    assert first.heartbeat() == 27


def test_CLS_30_CLS_31_an_administrator_names_the_instance(server: Server) -> None:
    """It is enough; with another's member id it is not: 82."""
    member = Member(coordinated(server), instance_id="i1")
    rebalanced(server, member)
    assert left(member.wire, ("other", "i1")) == (0, [82])
    assert left(member.wire, ("", "i1")) == (0, [0])
    assert described(member.wire).group_state == "Empty"


def test_CLS_32_a_group_that_is_not_there(server: Server) -> None:
    """25 for each; before v3 at the top."""
    wire = coordinated(server)
    assert left(wire, ("m", None), v=4, group="none") == (0, [25])
    assert left(wire, ("m", None), v=2, group="none")[0] == 25


def test_CLS_33_the_last_one_leaves(server: Server) -> None:
    """The group stays, empty, and keeps its type."""
    member = Member(coordinated(server))
    rebalanced(server, member)
    member.leave()
    group = described(member.wire)
    assert (group.group_state, group.protocol_type, list(group.members)) == ("Empty", "consumer", [])


def test_CLS_36_a_static_member_returns_with_other_protocols(server: Server) -> None:
    """The protocol that all share is another one: the others are answered 27."""
    first = Member(coordinated(server), instance_id="i1", protocols=("a", "b"))
    second = Member(coordinated(server), instance_id="i2", protocols=("a", "b"))
    for members in ((first,), (first, second)):
        assembled(server, *members)
        for each in reversed(members):
            each.wire.send(ApiKey.SYNC_GROUP, 4, _sync(each))
        for each in members:
            assert each.wire.answer().error_code == 0
    back = Member(coordinated(server), instance_id="i2", protocols=("b",))
    back.start()
    see_state(server, "PreparingRebalance")
    assert first.heartbeat() == 27
    assert not back.wire.has_answer()


def _sync(member: Member) -> SyncGroupRequest:
    return SyncGroupRequest(member.group_id, member.generation, member.member_id, (), member.instance_id)


def test_CLS_42_an_unknown_group_is_dead(server: Server) -> None:
    """Without an error up to v5, with 69 since."""
    wire = coordinated(server)
    for version, code in ((5, 0), (6, 69)):
        (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, version, DescribeGroupsRequest(["none"])).groups
        assert (int(group.error_code), group.group_state) == (code, "Dead")
