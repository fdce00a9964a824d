"""Peers that ask for what takes long, send more behind it, and hang up: what they asked is done, nothing else stays."""

from typing import Any

from protocol.apis import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.conftest import BrokerWith
from tests.hostile.test_limits import coordinator
from tests.serving import Server, until

SETTINGS = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
}
JOIN = JoinGroupRequest(
    "g", 60_000, "", "consumer", [JoinGroupRequestProtocol("range", b"")], rebalance_timeout_ms=2**31 - 1
)
VERSION = 3  # the newest that takes members without an id


def joins(broker: Server) -> list[dict[str, Any]]:
    """What the journal has of JoinGroup."""
    return list(broker.control("GET", "/v1/journal?api=JoinGroup")["entries"])


def pending(broker: Server) -> list[dict[str, Any]]:
    """Those of them that are being served."""
    return [each for each in joins(broker) if each["duration_ms"] is None]


def test_a_client_that_hangs_up_in_a_rebalance_leaves_no_connection(broker_with: BrokerWith) -> None:
    """The join waits for another member, for 24 days; its peer has sent heartbeats behind it, and goes."""
    broker = broker_with(settings=SETTINGS)
    first = coordinator(broker)
    assert first.call(ApiKey.JOIN_GROUP, VERSION, JOIN).member_id
    second = broker.wire()
    second.send(ApiKey.JOIN_GROUP, VERSION, JOIN)
    for _ in range(40):
        second.send(ApiKey.HEARTBEAT, 3, HeartbeatRequest("g", 1, "absent"))
    until(lambda: pending(broker), "a join that waits")
    second.close()
    until(lambda: not pending(broker), "the join is given up")
    ends = sorted(each["outcome"] for each in joins(broker))
    assert ends == ["answered", "closed: the client left before the group's answer"]
    group = first.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(["g"])).groups[0]
    assert len(group.members) == 2, "what was asked is done: the member is there until its session ends"
    assert not [line for line in broker.log_lines() if line["level"] == "error"]


def test_a_client_that_stays_is_answered(broker_with: BrokerWith) -> None:
    """The same two, and the second one waits until the first is gone."""
    broker = broker_with(settings=SETTINGS)
    first, second = coordinator(broker), broker.wire()
    first.call(ApiKey.JOIN_GROUP, VERSION, JOIN)
    second.send(ApiKey.JOIN_GROUP, VERSION, JOIN)
    until(lambda: pending(broker), "a join that waits")
    broker.advance(60_000)
    assert second.answer().generation_id == 2
