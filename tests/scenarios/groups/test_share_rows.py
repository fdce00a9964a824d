"""Rows of groups that need a member of a share group: its offsets and lag, and what others may read or commit."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created, produced
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.members import coordinated
from tests.scenarios.groups.sharers import ACCEPT, SHARE_SETTINGS, SHARES, Sharer, configure, only
from tests.server import Server, until

TEN = [(0, 9, 1)]


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A broker whose clock moves only when it is pushed."""
    server = broker_with(settings=SHARE_SETTINGS)
    server.freeze()
    return server


def joined(server: Server) -> Sharer:
    """The member m1, which heartbeats and was assigned the one partition of foo, with ten records."""
    wire = coordinated(server)
    topic_id = created(wire, "foo", retention_ms="-1")
    produced(wire, "foo", batch(*[b"%d" % each for each in range(10)]))
    configure(wire, share_auto_offset_reset="earliest")
    epoch = 0

    def assigned() -> bool:
        nonlocal epoch
        names = ["foo"] if epoch == 0 else None
        answer = wire.call(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, ShareGroupHeartbeatRequest(SHARES, "m1", epoch, None, names)
        )
        epoch = answer.member_epoch
        server.advance(1_000)
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    until(assigned, "an assignment")
    return Sharer(wire, topic_id, "m1")


def start_and_lag(member: Sharer) -> tuple[int, int]:
    """Start offset and lag that the group's coordinator reports."""
    topics = [DescribeShareGroupOffsetsRequestTopic("foo", [0])]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(SHARES, topics)])
    (group,) = member.wire.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request).groups
    assert group.error_code is ErrorCode.NONE
    ((partition,),) = (topic.partitions for topic in group.topics)
    assert partition.error_code is ErrorCode.NONE
    return partition.start_offset, partition.lag


def test_SHR_32_offsets_and_lag(server: Server) -> None:
    """The start offset is written when more than the records at the front is done; the lag counts what is not."""
    member = joined(server)
    assert until(member.acquired, "records") == TEN
    seen = [start_and_lag(member)]
    for first, last in ((0, 3), (4, 5)):
        assert member.ack(first, last, ACCEPT) is ErrorCode.NONE
        seen.append(start_and_lag(member))
    assert seen == [(-1, -1), (0, 6), (4, 4)]


def test_SHR_43_who_never_heartbeats_is_served(server: Server) -> None:
    """Membership is not checked where records are fetched; without a member's initialized partition nothing is."""
    member = joined(server)
    stranger = Sharer(server.wire(), member.topic_id, "m9")
    assert until(stranger.acquired, "records") == TEN
    other = Sharer(server.wire(), member.topic_id, "m9", group_id="others")
    other.wire.send(ApiKey.SHARE_FETCH, 2, other.request(max_wait_ms=500))
    server.advance(500)
    assert only(other.wire.answer()).error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_OFF_18_offsets_of_a_share_group_cannot_be_committed(server: Server) -> None:
    """GROUP_ID_NOT_FOUND; those of a group that does not exist can."""
    wire = joined(server).wire
    topics = [OffsetCommitRequestTopic("foo", [OffsetCommitRequestPartition(0, 7)])]

    def code(group: str) -> ErrorCode:
        answer = wire.call(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group, -1, "", topics=topics))
        error_code: ErrorCode = answer.topics[0].partitions[0].error_code
        return error_code

    assert code(SHARES) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code("others") is ErrorCode.NONE
