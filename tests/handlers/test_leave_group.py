"""LeaveGroup at the handler: groups A.9, by version."""

from broker.handlers.leave_group import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from tests.handlers.group_harness import Stage
from tests.versions import every_version


@every_version(API)
async def test_a_member_leaves(version: int) -> None:
    """One member up to version 2, many from 3 on."""
    stage = Stage()
    member_id, _ = await stage.join()
    answer = await stage.ask(API, LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), version)
    assert answer.error_code is ErrorCode.NONE
    named = member_id if version >= 3 else ""
    assert answer.members == (MemberResponse(named, None),)
    assert stage.group_coordinator("g").machine.groups["g"].is_empty


async def test_CLS_32_leaving_an_absent_group_is_refused_member_by_member() -> None:
    """UNKNOWN_MEMBER_ID in each entry; at the top level in versions with a single member."""
    stage = Stage()
    request = LeaveGroupRequest("g", members=[MemberIdentity("a"), MemberIdentity("b")])
    answer = await stage.ask(API, request, 4)
    assert answer.error_code is ErrorCode.NONE
    assert [member.error_code for member in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    old = await stage.ask(API, LeaveGroupRequest("g", members=[MemberIdentity("a")]), 2)
    assert old.error_code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_CLS_07_refusals_of_the_gate() -> None:
    """A missing name, a missing permission and another coordinator: errors at the top level, without entries."""
    stage = Stage()
    members = [MemberIdentity("a")]
    unnamed = await stage.ask(API, LeaveGroupRequest("", members=members), 5)
    denied = await stage.ask(API, LeaveGroupRequest("g", members=members), 5, {(AclOperation.READ, "g")})
    stage.coordinators.groups.clear()
    gone = await stage.ask(API, LeaveGroupRequest("g", members=members), 5)
    codes = [ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.NOT_COORDINATOR]
    assert [answer.error_code for answer in (unnamed, denied, gone)] == codes
    assert all(answer.members == () for answer in (unnamed, denied, gone))
