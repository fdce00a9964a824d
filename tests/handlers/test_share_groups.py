"""ShareGroupHeartbeat and ShareGroupDescribe at their handlers: gates, errors and messages (groups D.1)."""

from collections.abc import Iterable
from typing import Any

import pytest

from broker.handlers import delete_groups, list_groups, share_group_describe, share_group_heartbeat
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.handlers.group_harness import DENIED, Stage


@pytest.fixture
async def stage() -> Stage:
    """A broker that coordinates every group and every share partition."""
    return Stage()


async def heartbeat(stage: Stage, epoch: int, denied: Iterable[DENIED] = (), **fields: Any) -> Any:
    """One heartbeat of m1 in the group g."""
    member_id = fields.pop("member_id", "m1")
    request = ShareGroupHeartbeatRequest(fields.pop("group_id", "g"), member_id, epoch, subscribed_topic_names=None)
    for name, value in fields.items():
        setattr(request, name, value)
    return await stage.ask(share_group_heartbeat.API, request, 1, denied)


async def describe(stage: Stage, *groups: str, denied: Iterable[DENIED] = (), operations: bool = False) -> list[Any]:
    """ShareGroupDescribe."""
    request = ShareGroupDescribeRequest(groups, operations)
    return list((await stage.ask(share_group_describe.API, request, 1, denied)).groups)


async def joined(stage: Stage, *topics: str) -> Any:
    """One member with all partitions; its last response."""
    await heartbeat(stage, 0, subscribed_topic_names=topics or ("foo",))
    await stage.settle()
    stage.clock.advance(1_000)
    return await heartbeat(stage, 2)


async def test_SHR_01_a_member_from_joining_to_leaving(stage: Stage) -> None:
    """Epochs, assignment, description, listing, deletion."""
    answer = await joined(stage)
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (ErrorCode.NONE, 3, 5000)
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (stage.foo, (0, 1, 2))
    (group,) = await describe(stage, "g", operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert (group.assignor_name, group.authorized_operations > 0) == ("simple", True)
    (member,) = group.members
    assert (member.member_id, member.client_host, member.subscribed_topic_names) == ("m1", "/127.0.0.1", ("foo",))
    assert member.assignment.topic_partitions[0].topic_name == "foo"
    (listed,) = (await stage.ask(list_groups.API, ListGroupsRequest((), ("share",)), 5)).groups
    assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "share", "share")
    left = await heartbeat(stage, -1)
    assert (left.error_code, left.member_id, left.member_epoch) == (ErrorCode.NONE, "m1", -1)
    (listed,) = (await stage.ask(list_groups.API, ListGroupsRequest(("empty",), ()), 5)).groups
    assert listed.group_state == "Empty"


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST, None),
        ({"member_id": "x" * 37}, ErrorCode.INVALID_REQUEST, None),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        (
            {"subscribed_topic_names": ()},
            ErrorCode.INVALID_REQUEST,
            "SubscribedTopicNames must be set in first request.",
        ),
        ({"subscribed_topic_names": ("foo",)}, ErrorCode.NONE, None),
    ],
)
async def test_SHR_02_and_03_requests_that_are_invalid(
    stage: Stage, fields: dict[str, Any], code: ErrorCode, message: str | None
) -> None:
    """Member id, group id and topics; the last one is valid."""
    answer = await heartbeat(stage, 0, **fields)
    assert (answer.error_code, answer.error_message) == (code, message)


async def test_SHR_40_the_feature_and_permissions_come_first(stage: Stage) -> None:
    """In this order: feature, group, member id, topics."""
    read_group, describe_topic = (AclOperation.READ, "g"), (AclOperation.DESCRIBE, "foo")
    wrong = {"subscribed_topic_names": ("foo",)}
    denied = [read_group, describe_topic]
    assert (await heartbeat(stage, 0, denied, **wrong)).error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert (await heartbeat(stage, 0, denied[1:], **wrong)).error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (await heartbeat(stage, 0, (), **wrong)).error_code is ErrorCode.NONE
    stage.image.features["share.version"] = 0
    assert (await heartbeat(stage, 0, denied, **wrong)).error_code is ErrorCode.UNSUPPORTED_VERSION
    assert [each.error_code for each in await describe(stage, "g")] == [ErrorCode.UNSUPPORTED_VERSION]


async def test_groups_that_cannot_be_described(stage: Stage) -> None:
    """Each has its own error, also when it is named twice."""
    await joined(stage)
    groups = await describe(stage, "g", "", "absent", "g")
    codes = {"g": ErrorCode.NONE, "": ErrorCode.INVALID_GROUP_ID, "absent": ErrorCode.GROUP_ID_NOT_FOUND}
    assert sorted(each.group_id for each in groups) == ["", "absent", "g", "g"]
    assert all(each.error_code is codes[each.group_id] for each in groups)
    assert {each.error_message for each in groups if each.group_id == "absent"} == {"Group absent not found."}
    (denied,) = await describe(stage, "g", denied=[(AclOperation.DESCRIBE, "g")])
    assert denied.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    (denied,) = await describe(stage, "g", denied=[(AclOperation.DESCRIBE, "foo")])
    assert (denied.error_code, denied.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    stage.coordinators.groups.clear()
    (elsewhere,) = await describe(stage, "g")
    assert (elsewhere.error_code, elsewhere.error_message) == (
        ErrorCode.NOT_COORDINATOR,
        "This is not the correct coordinator.",
    )


async def test_SHR_37_deletion_takes_the_state_along(stage: Stage) -> None:
    """Not while there are members, and not while the share coordinator cannot delete."""
    await joined(stage)

    async def delete() -> ErrorCode:
        request = DeleteGroupsRequest(["g"])
        code: ErrorCode = (await stage.ask(delete_groups.API, request, 2)).results[0].error_code
        return code

    states = stage.coordinators.share_states[0].machine.states
    assert len(states) == 3
    assert await delete() is ErrorCode.NON_EMPTY_GROUP
    await heartbeat(stage, -1)
    stage.share_log.refuse = ErrorCode.MESSAGE_TOO_LARGE
    assert await delete() is ErrorCode.UNKNOWN_SERVER_ERROR
    stage.share_log.refuse = None
    assert await delete() is ErrorCode.NONE
    assert not states
    assert not (await stage.ask(list_groups.API, ListGroupsRequest(), 5)).groups


async def test_topics_that_members_only_subscribe_to_are_no_secret(stage: Stage) -> None:
    """Describing needs rights on the topics that are assigned (groups D.1); seen on 4.4.0."""
    await heartbeat(stage, 0, subscribed_topic_names=("foo", "absent"))
    (shown,) = await describe(stage, "g", denied=[(AclOperation.DESCRIBE, "absent")])
    assert (shown.error_code, len(shown.members)) == (ErrorCode.NONE, 1)


async def test_fields_are_checked_before_a_coordinator_is_looked_for(stage: Stage) -> None:
    """Of one that is elsewhere or not loaded (groups D.1.5 to D.1.7)."""
    stage.coordinators.groups.clear()
    assert (await heartbeat(stage, -2)).error_code is ErrorCode.INVALID_REQUEST
    assert (await heartbeat(stage, 2)).error_code is ErrorCode.NOT_COORDINATOR
    for shard in range(len(stage.logs)):
        stage.coordinate(shard, load=False)
    assert (await heartbeat(stage, -2)).error_code is ErrorCode.INVALID_REQUEST
    assert (await heartbeat(stage, 2)).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
