"""ConsumerGroupHeartbeat and ConsumerGroupDescribe at the handler: who may do what (groups C.2, C.12)."""

from typing import Any

import pytest

from broker.handlers.consumer_group_describe import API as DESCRIBE
from broker.handlers.consumer_group_heartbeat import API
from broker.request.context import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.handlers.group_harness import Stage

E = ErrorCode


def joining(*topics: str, regex: str | None = None) -> ConsumerGroupHeartbeatRequest:
    """The first heartbeat of m1."""
    return ConsumerGroupHeartbeatRequest(
        "g", "m1", 0, rebalance_timeout_ms=1000, subscribed_topic_names=topics, subscribed_topic_regex=regex
    )


async def test_KIP848_37_topics_that_one_may_not_know_of() -> None:
    """Refuse a heartbeat that names them, and hide a group that reads them."""
    stage = Stage()
    secret = {(AclOperation.DESCRIBE, "foo")}
    assert (await stage.ask(API, joining("foo", "bar"), 1, secret)).error_code is E.TOPIC_AUTHORIZATION_FAILED
    assert (await stage.ask(API, joining("foo", "bar"), 1)).error_code is E.NONE
    (hidden,) = (await stage.ask(DESCRIBE, ConsumerGroupDescribeRequest(["g"]), 1, secret)).groups
    assert (hidden.error_code, len(hidden.members), hidden.error_message is None) == (
        E.TOPIC_AUTHORIZATION_FAILED,
        0,
        False,
    )
    (shown,) = (await stage.ask(DESCRIBE, ConsumerGroupDescribeRequest(["g"]), 1)).groups
    assert (shown.error_code, len(shown.members)) == (E.NONE, 1)


async def test_a_group_that_one_may_not_use() -> None:
    """Heartbeats need READ, descriptions DESCRIBE; authorized operations are returned on request."""
    stage = Stage()
    refused = await stage.ask(API, joining("foo"), 1, {(AclOperation.READ, "g")})
    assert (refused.error_code, refused.member_id) == (E.GROUP_AUTHORIZATION_FAILED, None)
    await stage.ask(API, joining("foo"), 1)
    request = ConsumerGroupDescribeRequest(["g"], True)
    (group,) = (await stage.ask(DESCRIBE, request, 0, {(AclOperation.DESCRIBE, "g")})).groups
    assert group.error_code is E.GROUP_AUTHORIZATION_FAILED
    (group,) = (await stage.ask(DESCRIBE, request, 0, {(AclOperation.DELETE, "g")})).groups
    bits = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE | 1 << AclOperation.DESCRIBE_CONFIGS
    assert group.authorized_operations == bits | 1 << AclOperation.ALTER_CONFIGS


@pytest.mark.parametrize("version", [0, 1])
async def test_every_version_is_served(version: int) -> None:
    """A member joins and is described in every version that the API serves."""
    stage = Stage()
    request: Any = joining("foo")
    answer = await stage.ask(API, request, version)
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (E.NONE, 2, 5000)
    (group,) = (await stage.ask(DESCRIBE, ConsumerGroupDescribeRequest(["g"]), version)).groups
    assert (group.group_state, group.members[0].member_type) == ("Stable", 1 if version else -1)


async def test_fields_are_checked_before_a_coordinator_is_looked_for() -> None:
    """Of one that is elsewhere or not loaded (groups C.2.5 to C.2.12); assignors may be given by their class."""
    uniform = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
    stage = Stage(group_consumer_assignors=uniform)
    invalid, unknown, known = joining("foo"), joining("foo"), joining("foo")
    invalid.rebalance_timeout_ms, unknown.server_assignor, known.server_assignor = -1, "range", "uniform"

    async def codes() -> list[ErrorCode]:
        return [(await stage.ask(API, request, 1)).error_code for request in (invalid, unknown, known)]

    stage.coordinators.groups.clear()
    assert await codes() == [E.INVALID_REQUEST, E.UNSUPPORTED_ASSIGNOR, E.NOT_COORDINATOR]
    for shard in range(len(stage.logs)):
        stage.coordinate(shard, load=False)
    assert await codes() == [E.INVALID_REQUEST, E.UNSUPPORTED_ASSIGNOR, E.COORDINATOR_LOAD_IN_PROGRESS]
    for runtime in stage.coordinators.groups.values():
        runtime.load()
    assert await codes() == [E.INVALID_REQUEST, E.UNSUPPORTED_ASSIGNOR, E.NONE]
