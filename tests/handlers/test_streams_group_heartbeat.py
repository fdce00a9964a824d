"""StreamsGroupHeartbeat and StreamsGroupDescribe at the handler: permissions, features, topics (groups E.1, E.8)."""

from typing import Any

import pytest

from broker.handlers.streams_group_describe import API as DESCRIBE
from broker.handlers.streams_group_heartbeat import API
from broker.handlers.streams_group_topology_description_update import API as UPDATE
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import Endpoint, StreamsGroupHeartbeatRequest, Subtopology, Topology
from protocol.messages.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest
from tests.handlers.group_harness import Stage

E = ErrorCode


def joining(*topics: str, **fields: Any) -> StreamsGroupHeartbeatRequest:
    """The first heartbeat of m1, whose only subtopology reads these topics."""
    return StreamsGroupHeartbeatRequest(
        "g",
        "m1",
        rebalance_timeout_ms=1000,
        topology=Topology(0, [Subtopology("0", topics)]),
        process_id="p1",
        client_tags=None,
        task_offsets=None,
        task_end_offsets=None,
        **fields,
    )


@pytest.fixture
def stage() -> Stage:
    """A broker that serves streams groups, and assigns at once."""
    broker = Stage(group_streams_initial_rebalance_delay_ms="0")
    broker.image.features["streams.version"] = 1
    return broker


async def test_a_member_joins_and_is_described(stage: Stage) -> None:
    """A member that joins gets all tasks at once, and is described with them and the topology."""
    joined = await stage.ask(API, joining("foo"), 0)
    assert (joined.error_code, [(each.subtopology_id, list(each.partitions)) for each in joined.active_tasks]) == (
        E.NONE,
        [("0", [0, 1, 2])],
    )
    (group,) = (await stage.ask(DESCRIBE, StreamsGroupDescribeRequest(["g"]), 0)).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    (member,) = group.members
    assert member.assignment == member.target_assignment
    assert [(each.subtopology_id, list(each.source_topics)) for each in group.topology.subtopologies] == [
        ("0", ["foo"])
    ]


async def test_the_feature_and_the_protocol_have_to_be_on(stage: Stage) -> None:
    """Without the feature or the protocol the heartbeat gets UNSUPPORTED_VERSION."""
    stage.image.features["streams.version"] = 0
    assert (await stage.ask(API, joining("foo"), 0)).error_code is E.UNSUPPORTED_VERSION
    (group,) = (await stage.ask(DESCRIBE, StreamsGroupDescribeRequest(["g"]), 0)).groups
    assert group.error_code is E.UNSUPPORTED_VERSION
    other = Stage(group_coordinator_rebalance_protocols="classic,consumer")
    other.image.features["streams.version"] = 1
    assert (await other.ask(API, joining("foo"), 0)).error_code is E.UNSUPPORTED_VERSION


async def test_topics_that_a_topology_may_not_name(stage: Stage) -> None:
    """Kafka's own, and invalid names; both are named in the message."""
    refused = await stage.ask(API, joining("foo", "__consumer_offsets"), 0)
    assert refused.error_code is E.STREAMS_INVALID_TOPOLOGY
    assert refused.error_message == (
        "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited."
    )
    refused = await stage.ask(API, joining("a b", "foo", "c!"), 0)
    assert refused.error_message == "Topic names a b,c! are not valid topic names."


async def test_topics_that_the_client_may_not_describe(stage: Stage) -> None:
    """Refuse a heartbeat that names them, also if they do not exist, and hide a group that reads them."""
    secret = {(AclOperation.DESCRIBE, "gone")}
    assert (await stage.ask(API, joining("foo", "gone"), 0, secret)).error_code is E.TOPIC_AUTHORIZATION_FAILED
    assert (await stage.ask(API, joining("foo", "gone"), 0)).error_code is E.NONE
    (hidden,) = (await stage.ask(DESCRIBE, StreamsGroupDescribeRequest(["g"]), 0, secret)).groups
    assert (hidden.error_code, hidden.topology, len(hidden.members)) == (E.TOPIC_AUTHORIZATION_FAILED, None, 0)
    (shown,) = (await stage.ask(DESCRIBE, StreamsGroupDescribeRequest(["g"]), 0)).groups
    assert (shown.error_code, len(shown.members)) == (E.NONE, 1)


async def test_a_group_that_the_client_may_not_use(stage: Stage) -> None:
    """READ for a member, DESCRIBE for a description; operations are listed on demand."""
    refused = await stage.ask(API, joining("foo"), 0, {(AclOperation.READ, "g")})
    assert (refused.error_code, refused.active_tasks) == (E.GROUP_AUTHORIZATION_FAILED, None)
    await stage.ask(API, joining("foo"), 0)
    request = StreamsGroupDescribeRequest(["g", "h", ""], include_authorized_operations=True)
    codes = {each.group_id: each.error_code for each in (await stage.ask(DESCRIBE, request, 0)).groups}
    assert codes == {"g": E.NONE, "h": E.GROUP_ID_NOT_FOUND, "": E.INVALID_GROUP_ID}
    described = (await stage.ask(DESCRIBE, request, 0, {(AclOperation.DESCRIBE, "g")})).groups
    (group,) = (each for each in described if each.group_id == "g")
    assert group.error_code is E.GROUP_AUTHORIZATION_FAILED
    described = (await stage.ask(DESCRIBE, request, 0, {(AclOperation.DELETE, "g")})).groups
    (group,) = (each for each in described if each.group_id == "g")
    bits = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE | 1 << AclOperation.DESCRIBE_CONFIGS
    assert group.authorized_operations == bits | 1 << AclOperation.ALTER_CONFIGS


async def test_the_recovery_lag_and_the_offset_interval_are_settings() -> None:
    """Those of the broker, unless the group has its own (4.4)."""
    stage = Stage(
        group_streams_initial_rebalance_delay_ms="0",
        group_streams_acceptable_recovery_lag="5000000000",
        group_streams_task_offset_interval_ms="20000",
    )
    stage.image.features["streams.version"] = 1
    joined = await stage.ask(API, joining("foo"), 1)
    assert (joined.acceptable_recovery_lag, joined.task_offset_interval_ms) == (5_000_000_000, 20_000)


async def test_version_1_has_the_fields_of_44(stage: Stage) -> None:
    """The assignor's name, the recovery lag; a topology description is refused, as without a plugin."""
    joined = await stage.ask(API, joining("foo"), 1)
    assert (joined.acceptable_recovery_lag, joined.topology_description_required) == (10_000, False)
    (group,) = (await stage.ask(DESCRIBE, StreamsGroupDescribeRequest(["g"]), 1)).groups
    assert (group.assignor_name, group.topology_description_status) == ("sticky", 0)
    request = StreamsGroupDescribeRequest(["g", "h"], include_topology_description=True)
    described = (await stage.ask(DESCRIBE, request, 1)).groups
    assert {each.group_id: (each.error_code, each.topology_description_status) for each in described} == {
        "g": (E.NONE, 1),
        "h": (E.GROUP_ID_NOT_FOUND, 0),
    }
    update = StreamsGroupTopologyDescriptionUpdateRequest("g", "m1", 0)
    refused = await stage.ask(UPDATE, update, 0)
    assert refused.error_code is E.UNSUPPORTED_VERSION
    assert refused.error_message == "The broker has no streams group topology description plugin configured."
    denied = await stage.ask(UPDATE, update, 0, {(AclOperation.READ, "g")})
    assert denied.error_code is E.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "lag"), [(0, 0), (1, -1)])
async def test_the_recovery_lag_of_a_response_without_tasks(stage: Stage, version: int, lag: int) -> None:
    """-1 since v1, both in a refusal and to a member that leaves."""
    request = joining("foo")
    request.member_epoch, request.topology = -1, None
    refused = await stage.ask(API, request, version)
    assert (refused.error_code, refused.acceptable_recovery_lag) == (E.GROUP_ID_NOT_FOUND, lag)
    await stage.ask(API, joining("foo"), version)
    left = await stage.ask(API, request, version)
    assert (left.error_code, left.acceptable_recovery_lag) == (E.NONE, lag)


async def test_fields_are_checked_before_a_coordinator_is_looked_for(stage: Stage) -> None:
    """Of one that is elsewhere or not loaded (groups E.1.5 to E.1.11)."""
    valid, invalid = joining("foo"), joining("foo", rack_id="")
    stage.coordinators.groups.clear()
    assert (await stage.ask(API, invalid, 0)).error_code is E.INVALID_REQUEST
    assert (await stage.ask(API, valid, 0)).error_code is E.NOT_COORDINATOR
    for shard in range(len(stage.logs)):
        stage.coordinate(shard, load=False)
    assert (await stage.ask(API, invalid, 0)).error_code is E.INVALID_REQUEST
    assert (await stage.ask(API, valid, 0)).error_code is E.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_heartbeat_that_fails_is_answered_with_its_error(stage: Stage) -> None:
    """Though it has begun a session: the code, and the message of the group's rule."""
    refused = await stage.ask(API, joining("gone", user_endpoint=Endpoint("host", 1)), 0)
    assert (refused.error_code, refused.member_epoch) == (E.UNKNOWN_SERVER_ERROR, 0)
    stage.log_of("g").refuse = E.NOT_ENOUGH_REPLICAS
    assert (await stage.ask(API, joining("foo"), 0)).error_code is E.COORDINATOR_NOT_AVAILABLE
