"""DeleteGroups at the handler: groups A.13."""

from broker.handlers import leave_group
from broker.handlers.delete_groups import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.handlers.group_harness import Stage
from tests.versions import every_version


async def deleted(
    stage: Stage, *names: str, version: int = 2, denied: set[tuple[AclOperation, str]] | None = None
) -> list[tuple[str, int]]:
    """The results."""
    answer = await stage.ask(API, DeleteGroupsRequest(list(names)), version, denied or ())
    return [(result.group_id, int(result.error_code)) for result in answer.results]


@every_version(API)
async def test_CLS_44_empty_groups_are_deleted(version: int) -> None:
    """NON_EMPTY_GROUP with members, GROUP_ID_NOT_FOUND for an absent group; a repeated name counts once.

    In the order of the table of the coordinators' partitions.
    """
    stage = Stage()
    member_id, _ = await stage.join()
    assert await deleted(stage, "g", "none", "g", version=version) == [("none", 69), ("g", 68)]
    await stage.ask(leave_group.API, LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), 5)
    assert await deleted(stage, "g", version=version) == [("g", 0)]
    assert await deleted(stage, "g", version=version) == [("g", 69)]


async def test_a_refused_group_does_not_fail_the_others() -> None:
    """A missing permission, another coordinator, and the errors of its log."""
    stage = Stage()
    member_id, _ = await stage.join()
    await stage.ask(leave_group.API, LeaveGroupRequest("g", members=[MemberIdentity(member_id)]), 5)
    assert await deleted(stage, "g", denied={(AclOperation.DELETE, "g")}) == [("g", 30)]
    stage.log_of("g").refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    assert await deleted(stage, "g", "") == [("", 69), ("g", 15)]
    stage.coordinators.groups.clear()
    assert await deleted(stage, "g") == [("g", 16)]
    refused = API.refuse(DeleteGroupsRequest(["a", "a"]), KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), 2)
    assert [(result.group_id, int(result.error_code)) for result in refused.results] == [("a", -1)]
