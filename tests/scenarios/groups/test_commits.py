"""Committed offsets: by which member, and how they are fetched (groups OFF-02 to OFF-23, G.2)."""

from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
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
    see_members,
)
from tests.server import Server, until
from tests.wire import Wire

NO_TOPIC = UUID("5f0c7bb6-6a3c-4d0e-9a54-7c1f00c0ffee")


def committed(wire: Wire, *partitions: OffsetCommitRequestPartition, v: int = 8, **who: Any) -> list[int]:
    """OffsetCommit for partitions of foo: the codes."""
    topics = [OffsetCommitRequestTopic("foo", list(partitions))]
    answer = wire.call(ApiKey.OFFSET_COMMIT, v, OffsetCommitRequest(G, topics=topics, **who))
    return [int(each.error_code) for each in answer.topics[0].partitions]


def one(offset: int = 5, index: int = 0, metadata: str = "") -> OffsetCommitRequestPartition:
    """An offset."""
    return OffsetCommitRequestPartition(index, offset, metadata)


@pytest.mark.parametrize(("version", "code"), [(8, 22), (9, 69)])
def test_OFF_02_a_generation_of_no_group(server: Server, version: int, code: int) -> None:
    """22; since v9 the group is what is missing."""
    wire = coordinated(server)
    created(wire, "foo")
    assert committed(wire, one(), v=version, generation_id_or_member_epoch=3) == [code]


def test_OFF_04_who_is_not_that_member(server: Server) -> None:
    """An old generation, a stranger, another's instance."""
    member = Member(coordinated(server), instance_id="i1")
    created(member.wire, "foo")
    rebalanced(server, member)
    now = member.generation

    def code(generation: int, member_id: str, instance: str | None = None) -> int:
        who: dict[str, Any] = {"member_id": member_id, "group_instance_id": instance}
        return committed(member.wire, one(), generation_id_or_member_epoch=generation, **who)[0]

    assert code(now - 1, member.member_id) == 22
    assert code(now, "unknown") == 25
    assert code(now, "unknown", "i1") == 82
    assert code(now, member.member_id, "i1") == 0


def test_OFF_06_a_member_commits_while_others_join(server: Server) -> None:
    """What it read before it gives its partitions up."""
    first, second = Member(coordinated(server)), Member(coordinated(server))
    created(first.wire, "foo")
    rebalanced(server, first)
    second.start()
    see_members(server, 2)
    assert first.heartbeat() == 27
    assert first.commit("foo", 5) == 0
    assert offset_of(first.wire, "foo") == 5


def test_OFF_07_metadata_that_is_too_long(server: Server) -> None:
    """12 for that partition alone; quirk: units of UTF-16 are counted, not bytes."""
    wire = coordinated(server)
    created(wire, "foo", 4)
    metadata = ("m" * 4097, "m" * 4096, "ü" * 4096, "😀" * 2049)
    offsets = [one(index=index, metadata=text) for index, text in enumerate(metadata)]
    assert committed(wire, *offsets) == [12, 0, 0, 12]


def test_OFF_10_an_id_that_no_topic_has(server: Server) -> None:
    """An unknown topic id gets 100, and the other topics are committed."""
    wire = coordinated(server)
    known = created(wire, "foo")
    topics = [OffsetCommitRequestTopic("", [one()], topic_id) for topic_id in (NO_TOPIC, known)]
    answer = wire.call(ApiKey.OFFSET_COMMIT, 10, OffsetCommitRequest(G, topics=topics))
    reported = {each.topic_id: int(each.partitions[0].error_code) for each in answer.topics}
    assert reported == {NO_TOPIC: 100, known: 0}


def test_OFF_20_offsets_of_a_deleted_topic_are_not_returned(server: Server) -> None:
    """Though all offsets are requested."""
    wire = coordinated(server)
    for topic in ("foo", "bar"):
        created(wire, topic)
        assert commit(wire, topic, 5) == 0
    request = DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=10_000)
    assert wire.call(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code == 0
    (group,) = wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, None)])).groups
    assert [topic.name for topic in group.topics] == ["bar"]


def test_OFF_23_offsets_of_a_topic_that_is_read_stay(server: Server) -> None:
    """Offsets of a subscribed topic are not deleted (86); others are."""
    member = Member(coordinated(server), subscription("foo"))
    for topic in ("foo", "bar"):
        created(member.wire, topic)
    rebalanced(server, member)
    for topic in ("foo", "bar"):
        assert member.commit(topic, 5) == 0
    topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("foo", "bar")]
    answer = member.wire.call(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(G, topics))
    reported = {topic.name: int(topic.partitions[0].error_code) for topic in answer.topics}
    assert (int(answer.error_code), reported) == (0, {"foo": 86, "bar": 0})
    assert (offset_of(member.wire, "foo"), offset_of(member.wire, "bar")) == (5, -1)


def test_members_that_have_not_synced_commit_nothing(server: Server) -> None:
    """27 in each version that knows members."""
    member = Member(coordinated(server))
    created(member.wire, "foo")
    assembled(server, member)
    who: dict[str, Any] = {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}
    assert [committed(member.wire, one(), v=version, **who) for version in (2, 5, 9)] == [[27]] * 3


def coordinated_by_the_first(server: Server) -> tuple[str, Wire]:
    """A group that broker 1 coordinates, and a connection to it."""
    coordinated(server)
    wire = server.wire(1)
    response = wire.call(
        ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[f"g{n}" for n in range(50)])
    )
    return next(each.key for each in response.coordinators if each.node_id == 1), wire


def test_offsets_are_written_while_too_few_replicas_are_in_sync(broker_with: BrokerWith) -> None:
    """The commit fails once it has waited, and counts when they are back; stable offsets wait too (groups 0.6.3)."""
    settings = {"min.insync.replicas": 2, "offsets.topic.replication.factor": 2, "offsets.commit.timeout.ms": 1_000}
    server = broker_with(brokers=2, settings={**SETTINGS, **settings})
    group_id, wire = coordinated_by_the_first(server)
    created(wire, "foo")
    until(lambda: commit(wire, "foo", 5, group_id=group_id) is ErrorCode.NONE or None, "the first commit")
    server.control("POST", "/v1/brokers/2/stop")
    second = OffsetCommitRequest(group_id, topics=[OffsetCommitRequestTopic("foo", [one(6)])])
    wire.send(ApiKey.OFFSET_COMMIT, 9, second)
    server.advance(1_500)
    assert wire.answer().topics[0].partitions[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups = [OffsetFetchRequestGroup(group_id, topics=None)]
    (group,) = wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups)).groups
    assert (group.error_code, group.topics[0].partitions[0].committed_offset) == (ErrorCode.NONE, 5)
    wire.send(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups, require_stable=True))
    server.advance(1_500)
    (group,) = wire.answer().groups
    assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, ())
    server.control("POST", "/v1/brokers/2/start")

    def stable() -> bool | None:
        (group,) = wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups, require_stable=True)).groups
        return (bool(group.topics) and group.topics[0].partitions[0].committed_offset == 6) or None

    until(stable, "the second commit")


def test_before_4_0_offsets_are_refused_while_too_few_replicas_are_in_sync(broker_with: BrokerWith) -> None:
    """At once, and stable offsets are answered."""
    settings = {"min.insync.replicas": 2, "offsets.topic.replication.factor": 2}
    server = broker_with(brokers=2, settings={**SETTINGS, **settings}, as_version="3.9")
    group_id, wire = coordinated_by_the_first(server)
    created(wire, "foo")
    until(lambda: commit(wire, "foo", 5, group_id=group_id) is ErrorCode.NONE or None, "the first commit")
    server.control("POST", "/v1/brokers/2/stop")
    assert commit(wire, "foo", 6, group_id=group_id) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert offset_of(wire, "foo", group_id) == 5
    server.control("POST", "/v1/brokers/2/start")
    until(lambda: commit(wire, "foo", 7, group_id=group_id) is ErrorCode.NONE or None, "the third commit")
    assert offset_of(wire, "foo", group_id) == 7
