"""Offsets of consumer groups, fenced by the member's epoch (groups OFF-12 to OFF-17, G.2)."""

from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
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
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.scenarios.core.asking import created
from tests.scenarios.groups.consumers import INTERVAL_MS, Consumer, described, settled
from tests.scenarios.groups.members import G, commit, coordinated, offset_of
from tests.server import Server
from tests.wire import Wire


@pytest.fixture
def wire(consumers: Server) -> Wire:
    """A connection to the coordinator, with the topics foo and bar of one partition."""
    connection = coordinated(consumers)
    created(connection, "foo")
    created(connection, "bar")
    consumers.advance(100)
    return connection


def moved(server: Server, member: Consumer, epoch: int) -> None:
    """Let other members come and go until the member is in that epoch, with what it has."""
    for number in range(epoch):
        if member.epoch == epoch:
            return
        other = Consumer(member.wire, f"other-{number}", topics=["bar"])
        other.join()
        server.advance(INTERVAL_MS)
        settled(member, other)
        if member.epoch < epoch:
            other.leave()
            server.advance(INTERVAL_MS)
            settled(member)
    assert member.epoch == epoch


def codes(wire: Wire, epoch: int, *topics: str, version: int = 9, member_id: str = "m1") -> list[int]:
    """OffsetCommit of partition 0 of each topic."""
    named = [OffsetCommitRequestTopic(topic, [OffsetCommitRequestPartition(0, 7)]) for topic in topics]
    request = OffsetCommitRequest(G, epoch, member_id, topics=named)
    answer = wire.call(ApiKey.OFFSET_COMMIT, version, request)
    return [int(each.error_code) for topic in answer.topics for each in topic.partitions]


def fetched(wire: Wire, member_id: str | None, epoch: int) -> int:
    """OffsetFetch of all topics as a member: the group's code."""
    wanted = OffsetFetchRequestGroup(G, None, member_id, epoch)
    (group,) = wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[wanted])).groups
    return int(group.error_code)


def test_OFF_12_13_an_older_epoch_is_good_for_what_one_has_since(consumers: Server, wire: Wire) -> None:
    """The member's own, a later one, one that it has left."""
    member = Consumer(wire)
    member.join()
    moved(consumers, member, 4)
    assert (codes(wire, 4, "foo"), codes(wire, 5, "foo"), codes(wire, 3, "foo")) == ([0], [113], [0])
    assert (codes(wire, 2, "foo"), codes(wire, 1, "foo"), codes(wire, 3, "bar")) == ([0], [113], [113])
    assert codes(wire, 4, "bar") == [0]


def test_OFF_14_one_partition_spoils_all(consumers: Server, wire: Wire) -> None:
    """Of two topics that came in different epochs."""
    member = Consumer(wire)
    member.join()
    consumers.advance(INTERVAL_MS)
    member.beat(subscribed_topic_names=["foo", "bar"], owned=member.owned)
    assert member.epoch == 3
    assert codes(wire, 2, "foo", "bar") == [113, 113]
    assert (offset_of(wire, "foo"), codes(wire, 2, "foo"), codes(wire, 3, "foo", "bar")) == (-1, [0], [0, 0])


def test_OFF_15_16_who_may_not_commit(wire: Wire) -> None:
    """An old version, no member, an unknown member; without members an offset can be committed."""
    member = Consumer(wire)
    member.join()
    assert codes(wire, 2, "foo", version=8) == [35]
    assert codes(wire, -1, "foo", member_id="") == [25]
    assert codes(wire, 2, "foo", member_id="m2") == [25]
    member.leave()
    assert codes(wire, -1, "foo", member_id="") == [0]


def test_OFF_17_who_may_fetch(wire: Wire) -> None:
    """The member in its epoch, and a request without a member."""
    Consumer(wire).join()
    assert [fetched(wire, "m1", 2), fetched(wire, "m1", 1), fetched(wire, "m1", 3)] == [0, 113, 113]
    assert [fetched(wire, "m2", 2), fetched(wire, None, -1)] == [25, 0]


def test_offsets_of_what_is_not_read_may_be_deleted(wire: Wire) -> None:
    """Though the group has members; the group itself only when it has none."""
    member = Consumer(wire)
    member.join()
    assert codes(wire, 2, "foo", "bar") == [0, 0]
    topics = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in ("foo", "bar")]
    answer = wire.call(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(G, topics))
    assert {each.name: int(each.partitions[0].error_code) for each in answer.topics} == {"foo": 86, "bar": 0}
    assert (offset_of(wire, "foo"), offset_of(wire, "bar")) == (7, -1)

    def deleted() -> int:
        return int(wire.call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([G])).results[0].error_code)

    assert deleted() == 68
    member.leave()
    assert (deleted(), described(wire).error_code, offset_of(wire, "foo")) == (0, 69, -1)


def test_other_kinds_are_described_elsewhere(wire: Wire) -> None:
    """A consumer group is none of the classic ones, and the other way round."""
    Consumer(wire).join()
    (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([G])).groups
    assert (int(group.error_code), group.group_state) == (69, "Dead")
    assert commit(wire, "foo", 3, group_id="simple") == 0
    description = described(wire, "simple")
    assert (int(description.error_code), description.error_message is None) == (69, False)
    assert int(described(wire, "").error_code) == 24
    assert int(described(wire, "unknown").error_code) == 69


def test_topics_by_id(wire: Wire) -> None:
    """As clients of the new protocol name them."""
    member = Consumer(wire)
    member.join()
    (topic_id,) = member.owned or {UUID(int=0): []}
    assert commit(wire, topic_id, 11, 2, "m1") == 0
    wanted = OffsetFetchRequestTopics("", [0], topic_id)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(G, [wanted], "m1", 2)])
    (group,) = wire.call(ApiKey.OFFSET_FETCH, 10, request).groups
    assert group.topics[0].partitions[0].committed_offset == 11
