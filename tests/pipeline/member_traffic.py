"""Members of consumer, share and streams groups who join, get work from each other and leave, at one broker."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from uuid import UUID

from protocol.apis import ApiKey
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import Subtopology, TopicInfo
from protocol.types import uuid_text
from tests.pipeline.administrator_traffic import BETWEEN, coordinator_found, greeted, written
from tests.pipeline.group_traffic import streamed
from tests.scenarios.core.asking import created, metadata
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.consumers import Consumer
from tests.scenarios.groups.sharers import ACCEPT, REJECT, RELEASE, RENEW, Sharer, configure
from tests.scenarios.groups.streams import StreamsMember
from tests.serving import until
from tests.wire import Wire

SETTINGS: dict[str, str] = {
    "share.coordinator.state.topic.num.partitions": "2",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
"""No one waits for an assignment."""
LEAVES = -1


def make(bootstrap: str) -> None:
    """One group of each kind, two members in each."""
    with ExitStack() as stack:
        wires = [stack.enter_context(closing(greeted(bootstrap, each))) for each in ("admin", "one", "two")]
        for group_id in ("consumers", "sharers", "streamers"):
            until(partial(coordinator_found, wires[0], group_id), "the coordinator")
        _consumed(*wires)
        _shared(*wires)
        _streamed(*wires)
        wires[0].call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest())


def _settled(members: Sequence[Consumer], counts: Sequence[int]) -> None:
    def owns() -> bool:
        for member in members:
            member.keeps_up()
        return [sum(map(len, (each.owned or {}).values())) for each in members] == list(counts)

    until(owns, f"assignments of {counts}")


def _consumed(admin: Wire, one: Wire, two: Wire) -> None:
    created(admin, "foo", 4)
    for partition in range(4):
        written(admin, "foo", batch(b"a", b"b", b"c"), partition=partition)
    first, second = (Consumer(wire, name, "consumers") for wire, name in ((one, "m1"), (two, "m2")))
    describe = partial(admin.call, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(["consumers"]))
    first.join()
    _settled([first], [4])
    describe()
    second.join()
    _settled([first, second], [2, 2])
    describe()
    for member in (first, second):
        parts = [OffsetCommitRequestPartition(each, 2, "note", 0) for each in next(iter((member.owned or {}).values()))]
        topics = [OffsetCommitRequestTopic("foo", parts)]
        request = OffsetCommitRequest("consumers", member.epoch, member.member_id, -1, topics)
        member.wire.call(ApiKey.OFFSET_COMMIT, 9, request)
        wanted = [OffsetFetchRequestTopics("foo", [0, 1, 2, 3])]
        group = OffsetFetchRequestGroup("consumers", wanted, member.member_id, member.epoch)
        member.wire.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group]))
    first.leave()
    _settled([second], [4])
    describe()
    second.leave()
    group = OffsetFetchRequestGroup("consumers", None)
    admin.call(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group]))


def _beat(wire: Wire, member: str, epoch: int, topics: Sequence[str] | None = None) -> ShareGroupHeartbeatResponse:
    request = ShareGroupHeartbeatRequest("sharers", member, epoch, None, topics)
    answered: ShareGroupHeartbeatResponse = wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
    return answered


def _subscribed(wire: Wire, member: str) -> int:
    """Join; the epoch that comes with an assignment, or after it."""
    answers = [_beat(wire, member, 0, ["jobs"])]

    def assigned() -> bool:
        answers.append(_beat(wire, member, answers[-1].member_epoch))
        return any(each.assignment is not None for each in answers)

    until(assigned, f"an assignment of {member}")
    return answers[-1].member_epoch


def _shared(admin: Wire, one: Wire, two: Wire) -> None:
    """Records accepted, released, rejected, renewed, acknowledged too late, left behind; offsets that are reset."""
    topic_id = created(admin, "jobs", 2)
    configure(admin, "sharers", share_auto_offset_reset="earliest", share_record_lock_duration_ms="5000")
    until(partial(_has_state, admin, topic_id), "the share coordinators")
    epochs = [_subscribed(one, "s1"), _subscribed(two, "s2")]
    for _ in range(4):
        written(admin, "jobs", batch(*[b"job"] * 5))
    first, second = (Sharer(wire, topic_id, name, "sharers") for wire, name in ((one, "s1"), (two, "s2")))
    taken = until(_patient(first, one, "s1", epochs[0]), "records", 100)
    assert taken == [(0, 4, 1)]
    assert second.acquired(max_records=5, batch_size=5) == [(5, 9, 1)]
    assert not first.ack(0, 2, ACCEPT)
    assert not first.ack(3, 3, RELEASE)
    assert not first.ack(4, 4, REJECT)
    assert first.ack(4, 4, ACCEPT)
    assert not second.ack(5, 5, RENEW, is_renew_ack=True)
    assert not second.ack(6, 9, ACCEPT, RELEASE, ACCEPT, ACCEPT)
    assert first.acquired(max_records=1, batch_size=1) == [(3, 3, 2)]
    assert first.fetch(acks=[(3, 3, [ACCEPT])], max_records=1, batch_size=1).responses
    assert not second.ack(5, 5, ACCEPT)
    wrong = second.acknowledge((11, 11, [ACCEPT]), share_session_epoch=99)
    assert wrong.error_code
    second.fetch(max_records=5, batch_size=5)
    topics = [DescribeShareGroupOffsetsRequestTopic("jobs", [0, 1])]
    offsets = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("sharers", topics)])
    admin.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, offsets)
    admin.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, ShareGroupDescribeRequest(["sharers"]))
    admin.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest())
    for member in (first, second):
        member.fetch(epoch=-1)
    for wire, name in ((one, "s1"), (two, "s2")):
        _beat(wire, name, LEAVES)
    parts = [AlterShareGroupOffsetsRequestPartition(0, 12)]
    reset = AlterShareGroupOffsetsRequest("sharers", [AlterShareGroupOffsetsRequestTopic("jobs", parts)])
    until(
        lambda: not admin.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, reset).responses[0].partitions[0].error_code,
        "the reset",
    )
    admin.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, offsets)


def _has_state(wire: Wire, topic_id: UUID) -> bool:
    """Whether the share coordinators answer; Kafka pauses for 30 s where a member comes first."""
    keys = [f"sharers:{uuid_text(topic_id)}:{each}" for each in (0, 1)]
    wire.call(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=2, coordinator_keys=keys))
    topics = [ReadStateSummaryData(topic_id, [PartitionData(each, 0) for each in (0, 1)])]
    answer = wire.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, ReadShareGroupStateSummaryRequest("sharers", topics))
    return all(not each.error_code for each in answer.results[0].partitions) or BETWEEN.wait(0.2)


def _patient(member: Sharer, wire: Wire, name: str, epoch: int) -> Callable[[], list[tuple[int, int, int]] | None]:
    """Asks for five records; anew after an error, as long as the partition's state is not there."""

    def ask() -> list[tuple[int, int, int]] | None:
        _beat(wire, name, epoch)
        response = member.fetch(max_records=5, batch_size=5, max_wait_ms=100)
        parts = [each for topic in response.responses for each in topic.partitions]
        if response.error_code or any(each.error_code for each in parts):
            member.epoch = 0
        return [(run.first_offset, run.last_offset, run.delivery_count) for p in parts for run in p.acquired_records]

    return ask


def _streamed(admin: Wire, one: Wire, two: Wire) -> None:
    created(admin, "source", 4)
    created(admin, "sink", 4)
    topology = [Subtopology("0", ["source"], (), [TopicInfo("streamers-store-changelog")]), Subtopology("1", ["sink"])]
    members = [
        StreamsMember(wire, topology, name, process, "streamers")
        for wire, name, process in ((one, "t1", "p1"), (two, "t2", "p2"))
    ]
    describe = partial(admin.call, ApiKey.STREAMS_GROUP_DESCRIBE, 0, StreamsGroupDescribeRequest(["streamers"]))
    metadata(admin, "source")
    streamed(members, 8, describe)
    members[1].beat(LEAVES)
