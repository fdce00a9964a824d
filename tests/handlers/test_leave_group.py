"""LeaveGroup at the handler: groups A.9, by version."""

from broker.handlers.leave_group import API
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
