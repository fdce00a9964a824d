"""Committed offsets, the rows in which topics, members and time matter (OFF-*; groups G.2)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.sync_group import SyncGroupRequest
from tests.conftest import BrokerWith
from tests.coordination.group.subscriptions import subscription
from tests.scenarios.core.asking import created
from tests.scenarios.groups.members import (
    SETTINGS,
    G,
    Member,
    assembled,
    commit,
    coordinated,
    offset_of,
    rebalanced,
)
from tests.server import Server, until
from tests.wire import Wire

QUICK = {**SETTINGS, "offsets.retention.check.interval.ms": 1_000}
"""Checks come while one can wait for them."""


def test_OFF_01_OFF_08_any_client_commits_any_offset_to_a_group_without_members(server: Server) -> None:
    """An offset may be lower than the last one, or negative."""
    wire = coordinated(server)
    created(wire, "foo")
    for offset in (5, 3, -5):
        assert commit(wire, "foo", offset) is ErrorCode.NONE
        assert offset_of(wire, "foo") == offset


def test_OFF_03_OFF_05_members_commit_for_themselves(server: Server) -> None:
    """No other client does, and not even a member while the rebalance is completing."""
    member = Member(coordinated(server))
    created(member.wire, "foo")
    assembled(server, member)
    assert member.commit("foo", 5) is ErrorCode.REBALANCE_IN_PROGRESS
    member.sync({})
    assert commit(member.wire, "foo", 5) is ErrorCode.UNKNOWN_MEMBER_ID
    assert member.commit("foo", 5) is ErrorCode.NONE


def test_OFF_11_a_topic_that_is_created_again_has_no_offsets(server: Server) -> None:
    """Deleting a topic forgets its offsets in all groups."""
    wire = coordinated(server)
    old = created(wire, "foo")
    assert commit(wire, old, 5) is ErrorCode.NONE
    assert offset_of(wire, old) == offset_of(wire, "foo") == 5
    request = DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=10_000)
    assert wire.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code is ErrorCode.NONE
    assert offset_of(wire, "foo") == -1
    assert offset_of(wire, created(wire, "foo")) == -1


def test_a_topic_that_is_not_there_has_no_offsets(server: Server) -> None:
    """ListOffsets of a missing topic gets 3, and does not create it."""
    wire = coordinated(server)
    assert commit(wire, "none", 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offset_of(wire, "none") == -1


def named_end(wire: Wire, topic: str, offset: int, retention_ms: int, member: Member | None = None) -> None:
    """OffsetCommit v2, which may set how long offsets are kept."""
    generation, member_id = (-1, "") if member is None else (member.generation, member.member_id)
    topics = [OffsetCommitRequestTopic(topic, [OffsetCommitRequestPartition(0, offset)])]
    request = OffsetCommitRequest(G, generation, member_id, retention_time_ms=retention_ms, topics=topics)
    answer = wire.call(ApiKey.OFFSET_COMMIT, 2, request)
    assert answer.topics[0].partitions[0].error_code is ErrorCode.NONE


def test_OFF_09_an_old_version_names_the_end(broker_with: BrokerWith) -> None:
    """Its offset goes with the next check behind it, another one stays."""
    server = broker_with(settings=QUICK)
    server.freeze()
    wire = coordinated(server)
    for topic, retention_ms in (("foo", 1_000), ("bar", -1)):
        created(wire, topic)
        named_end(wire, topic, 5, retention_ms)
    server.advance(4_000)
    assert (offset_of(wire, "foo"), offset_of(wire, "bar")) == (-1, 5)


def test_OFF_22_other_types_expire_nothing_while_they_have_members(broker_with: BrokerWith) -> None:
    """What a Connect group has is kept until it is empty."""
    server = broker_with(settings=QUICK)
    server.freeze()
    member = Member(coordinated(server), protocol_type="connect", session_ms=30_000)
    created(member.wire, "foo")
    assembled(server, member)
    request = SyncGroupRequest(G, member.generation, member.member_id, (), None, "connect", "range")
    assert member.wire.call(ApiKey.SYNC_GROUP, 5, request).error_code is ErrorCode.NONE
    named_end(member.wire, "foo", 5, 1_000, member)
    server.advance(4_000)
    assert offset_of(member.wire, "foo") == 5
    member.leave()
    server.advance(4_000)
    assert offset_of(member.wire, "foo") == -1


@pytest.mark.timeout(180)
def test_OFF_21_offsets_grow_old(broker_with: BrokerWith) -> None:
    """After their retention, at the next check, unless a member reads the topic."""
    server = broker_with(settings={**QUICK, "offsets.retention.minutes": 1})
    server.freeze()
    member = Member(coordinated(server), subscription("foo"), session_ms=120_000)
    for topic in ("foo", "bar"):
        created(member.wire, topic)
    rebalanced(server, member)
    for topic in ("foo", "bar"):
        assert member.commit(topic, 5) is ErrorCode.NONE
    for ms in (20_000, 20_000, 8_000):
        server.advance(ms)
        assert member.heartbeat() is ErrorCode.NONE
    assert (offset_of(member.wire, "foo"), offset_of(member.wire, "bar")) == (5, 5)
    server.advance(20_000)
    assert (offset_of(member.wire, "foo"), offset_of(member.wire, "bar")) == (5, -1)


@pytest.mark.parametrize("by_deletion", [True, False], ids=["topic deleted", "expired"])
def test_more_offsets_go_at_once_than_one_batch_takes(broker_with: BrokerWith, by_deletion: bool) -> None:
    """Their tombstones need not be one batch, of which `message.max.bytes` limits the size (groups B.3)."""
    server = broker_with(settings={**QUICK, "message.max.bytes": 2_000})
    server.freeze()
    wire = coordinated(server)
    created(wire, "foo", 100)
    for first in range(0, 100, 20):
        partitions = [OffsetCommitRequestPartition(index, 5) for index in range(first, first + 20)]
        retention_ms = -1 if by_deletion else 1_000
        topics = [OffsetCommitRequestTopic("foo", partitions)]
        request = OffsetCommitRequest(G, -1, retention_time_ms=retention_ms, topics=topics)
        answer = wire.call(ApiKey.OFFSET_COMMIT, 2, request)
        assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.NONE}
    if by_deletion:
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=10_000)
        assert wire.call(ApiKey.DELETE_TOPICS, 6, deletion).responses[0].error_code is ErrorCode.NONE
    else:
        server.advance(4_000)
    offset_fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, None)])
    until(lambda: not wire.call(ApiKey.OFFSET_FETCH, 9, offset_fetch).groups[0].topics, "the offsets are gone")
