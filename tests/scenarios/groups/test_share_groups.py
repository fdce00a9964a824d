"""Members of share groups at the wire, their sessions by the cluster's clock, and what restarts and resets leave."""

from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.conftest import BrokerWith
from tests.scenarios.conftest import LastingWith
from tests.scenarios.core.asking import created
from tests.scenarios.groups.members import coordinated
from tests.scenarios.groups.sharers import SHARE_SETTINGS, SHARES
from tests.server import Server, until
from tests.wire import Wire

SESSION_MS, INTERVAL_MS = 45_000, 1_000


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A broker whose clock moves only when it is pushed."""
    server = broker_with(settings=SHARE_SETTINGS)
    server.freeze()
    return server


@pytest.fixture
def wire(server: Server) -> Wire:
    """A connection to the coordinator, with the topic foo of three partitions."""
    connection = coordinated(server)
    created(connection, "foo", 3)
    return connection


def beat(wire: Wire, epoch: int, member: str = "m1") -> ShareGroupHeartbeatResponse:
    """One heartbeat; it names the topic if it joins."""
    names = ["foo"] if epoch == 0 else None
    answer: ShareGroupHeartbeatResponse = wire.call(
        ApiKey.SHARE_GROUP_HEARTBEAT, 1, ShareGroupHeartbeatRequest(SHARES, member, epoch, None, names)
    )
    return answer


def described(wire: Wire) -> tuple[str, int, int]:
    """State, epoch, members."""
    (group,) = wire.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, ShareGroupDescribeRequest([SHARES])).groups
    return group.group_state, group.group_epoch, len(group.members)


def listed(wire: Wire) -> list[ListedGroup]:
    """The share groups."""
    return list(wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest((), ("Share",))).groups)


def assembled(server: Server, wire: Wire, *members: str) -> dict[str, list[int]]:
    """Members with their partitions."""
    epochs = dict.fromkeys(members, 0)
    owned: dict[str, list[int]] = {}

    def complete() -> bool:
        for member in members:
            answer = beat(wire, epochs[member], member)
            epochs[member] = answer.member_epoch
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                owned[member] = sorted(index for topic in topics for index in topic.partitions)
        server.advance(INTERVAL_MS)
        return all(owned.get(member) for member in members) and len(set(epochs.values())) == 1

    until(complete, "partitions")
    return owned


def test_SHR_01_and_04_members_get_partitions(server: Server, wire: Wire) -> None:
    """Nothing at first; then each partition has a member, and each member a partition."""
    first = beat(wire, 0)
    assert (first.error_code, first.member_epoch, first.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 5000)
    owned = assembled(server, wire, "m1", "m2", "m3", "m4")
    assert {index for indexes in owned.values() for index in indexes} == {0, 1, 2}
    assert described(wire)[0] == "Stable"
    shown: Any = server.control("GET", f"/v1/groups/{SHARES}")
    assert (shown["type"], shown["protocol"], len(shown["members"])) == ("share", "simple", 4)
    assert {each for member in shown["members"] for each in member["assignment"]} == {"foo-0", "foo-1", "foo-2"}


def test_SHR_06_a_silent_member_is_removed_by_the_clock(server: Server, wire: Wire) -> None:
    """After its session timeout, and not before; the timeline has the reason."""
    assembled(server, wire, "m1")
    epoch = described(wire)[1]
    beat(wire, epoch)
    server.advance(SESSION_MS - 1)
    assert described(wire) == ("Stable", epoch, 1)
    server.advance(1)
    assert described(wire) == ("Empty", epoch + 1, 0)
    assert beat(wire, epoch).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    events = [event["event"] for event in server.control("GET", f"/v1/groups/{SHARES}")["timeline"]]
    assert events[-1] == "refused"
    assert "all members have left" in events


def test_a_member_is_evicted_and_joins_again(server: Server, wire: Wire) -> None:
    """By the control plane, as if its session had ended."""
    assembled(server, wire, "m1")
    server.control("POST", f"/v1/groups/{SHARES}/members/m1/evict")
    assert described(wire)[0] == "Empty"
    assert assembled(server, wire, "m1") == {"m1": [0, 1, 2]}


def test_a_group_outlives_a_restart(lasting_with: LastingWith) -> None:
    """With its members, their epochs, and the partitions that have a state."""
    lasting = lasting_with(SHARE_SETTINGS)
    wire = coordinated(lasting.server)
    created(wire, "foo", 3)
    assembled(lasting.server, wire, "m1")
    before = described(wire)
    server = lasting.restart()
    wire = coordinated(server)
    assert described(wire) == before
    answer = beat(wire, before[1])
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, before[1])
    assert beat(wire, -1).error_code is ErrorCode.NONE
    assert wire.call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([SHARES])).results[0].error_code is ErrorCode.NONE
    assert listed(wire) == []


def test_a_reset_forgets_groups_and_state(server: Server, wire: Wire) -> None:
    """And the same group begins again with epoch 2."""
    assembled(server, wire, "m1")
    assert [each.group_id for each in listed(wire)] == [SHARES]
    server.reset()
    server.freeze()
    again = coordinated(server)
    assert listed(again) == []
    created(again, "foo", 3)
    assert beat(again, 0).member_epoch == 2
    assert assembled(server, again, "m1") == {"m1": [0, 1, 2]}


def test_a_share_coordinator_that_moves(broker_with: BrokerWith) -> None:
    """Its state is at the next leader, and new partitions are initialized there."""
    settings = {**SHARE_SETTINGS, "share.coordinator.state.topic.replication.factor": 2}
    server = broker_with(brokers=2, settings={**settings, "offsets.topic.replication.factor": 2})
    server.freeze()
    wire = coordinated(server)
    created(wire, "foo", 3)
    assembled(server, wire, "m1")
    topics = server.control("GET", "/v1/topics")["topics"]
    (state,) = [each for each in topics if each["name"] == "__share_group_state"]
    leaders = {each["leader"] for each in state["partitions"]}
    for broker in leaders:
        server.control("POST", f"/v1/brokers/{broker}/kill")
        server.advance(20_000)
        connection = coordinated_at(server)
        assert described(connection)[1] >= 3
        assert assembled(server, connection, "m2")["m2"]
        server.control("POST", f"/v1/brokers/{broker}/start")
        server.advance(5_000)


def coordinated_at(server: Server) -> Wire:
    """A connection to the group's coordinator, which may have moved."""
    for address in range(len(server.addresses)):
        try:
            wire = server.wire(broker=address + 1)
        except OSError:
            continue
        if wire.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, ShareGroupDescribeRequest([SHARES])).groups[0].error_code == 0:
            return wire
    raise AssertionError
