"""What members of share and streams groups do to a cluster of one broker, none of which an audit may complain of."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_heartbeat import Subtopology
from tests.scenarios.core.asking import created, produced
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.sharers import ACCEPT, REJECT, RELEASE, Sharer, configure, share_state_loaded
from tests.scenarios.groups.streams import StreamsMember
from tests.serving import until
from tests.wire import Wire

SETTINGS = {
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.prune.interval.ms": "2000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "1500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
"""Snapshots after few updates, and by the clock."""
PER_ROUND, LEAVES = 20, -1
INITIALIZED_S = 600.0
"""Kafka asks the share coordinator again half a minute after an attempt that failed, and a busy machine is slow."""


def make(bootstrap: str, *, reset: bool = True) -> None:
    """A queue of records accepted, released and rejected, offsets that are reset and deleted, streams members."""
    with closing(Wire(bootstrap)) as wire:
        for group_id in ("queue", "other"):
            _coordinated(wire, group_id)
        topics = {name: created(wire, name, 2) for name in ("jobs", "gone")}
        for group_id in ("queue", "other"):
            configure(wire, group_id, share_auto_offset_reset="earliest", share_record_lock_duration_ms="1000")
        for group_id in ("queue", "other"):
            for topic_id in topics.values():
                share_state_loaded(wire, topic_id, 0, 1, group_id=group_id)
            _beat(wire, group_id, "m1", 0)
            for name, topic_id in topics.items():
                _work(bootstrap, wire, name, group_id, topic_id)
            _leave(wire, group_id, "m1")
        if reset:
            _administered(wire)
        _streams(wire)


def _coordinated(wire: Wire, group_id: str) -> None:
    def ready() -> bool:
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        (coordinator,) = wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
        return coordinator.error_code is ErrorCode.NONE

    until(ready, f"the coordinator of {group_id}")


def _beat(wire: Wire, group_id: str, member: str, epoch: int) -> None:
    request = ShareGroupHeartbeatRequest(group_id, member, epoch, None, ["gone", "jobs"] if epoch == 0 else None)

    def taken() -> bool:
        code: ErrorCode = wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request).error_code
        return code is ErrorCode.NONE

    until(taken, f"{member} in {group_id}")


def _leave(wire: Wire, group_id: str, member: str) -> None:
    _beat(wire, group_id, member, LEAVES)


def _work(bootstrap: str, wire: Wire, topic: str, group_id: str, topic_id: UUID) -> None:
    """Records in rounds, of which every third run is released and every fifth rejected."""
    with closing(Wire(bootstrap)) as own:
        member = Sharer(own, topic_id, group_id=group_id)
        rounds = 0
        for _ in range(6):
            produced(wire, topic, batch(*[b"job"] * PER_ROUND))

            errors: list[ErrorCode] = []

            def arrived(errors: list[ErrorCode] = errors) -> list[tuple[int, int, int]] | None:
                _beat(wire, group_id, "m1", 0)  # the coordinator initializes partitions while it hears of members
                return _acquired(member, errors) or None

            try:
                runs = until(arrived, "records", INITIALIZED_S)
            except AssertionError as late:
                raise AssertionError(f"{late} of {topic} for {group_id}; errors: {Counter(errors)}") from None
            while runs:
                rounds += 1
                acks: list[tuple[int, int, Sequence[int]]] = []
                for first, last, count in runs:
                    middle = (first + last) // 2
                    verdict = RELEASE if rounds % 3 == 0 and count < 4 else REJECT if rounds % 5 == 0 else ACCEPT
                    acks.append((first, middle, [verdict]))
                    if middle < last:
                        acks.append((middle + 1, last, [ACCEPT]))
                response = member.acknowledge(*acks)
                assert response.error_code is ErrorCode.NONE
                runs = _acquired(member, errors)


def _acquired(member: Sharer, errors: list[ErrorCode]) -> list[tuple[int, int, int]]:
    """What was acquired; nothing as long as the partition's state is not there yet. After an error, a new session."""
    response = member.fetch(max_wait_ms=100)
    partitions = [each for topic in response.responses for each in topic.partitions]
    codes = {response.error_code, *(each.error_code for each in partitions)} - {ErrorCode.NONE}
    if codes:
        errors += sorted(codes)
        member.epoch = 0
    runs = [run for each in partitions for run in each.acquired_records]
    return [(run.first_offset, run.last_offset, run.delivery_count) for run in runs]


def _administered(wire: Wire) -> None:
    """What `kafka-share-groups` does: offsets reset twice and deleted, and a group deleted."""
    for to in (3, 1, 30):
        parts = [AlterShareGroupOffsetsRequestPartition(0, to), AlterShareGroupOffsetsRequestPartition(1, 0)]
        reset = AlterShareGroupOffsetsRequest("queue", [AlterShareGroupOffsetsRequestTopic("jobs", parts)])
        answer = wire.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, reset)
        assert [each.error_code for topic in answer.responses for each in topic.partitions] == [ErrorCode.NONE] * 2
    deleted = DeleteShareGroupOffsetsRequest("queue", [DeleteShareGroupOffsetsRequestTopic("gone")])
    answer = wire.call(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, deleted)
    assert [topic.error_code for topic in answer.responses] == [ErrorCode.NONE]
    (result,) = wire.call(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(["other"])).results
    assert result.error_code is ErrorCode.NONE


def _streams(wire: Wire) -> None:
    topology = [Subtopology("0", ["jobs"]), Subtopology("1", ["gone"])]
    _coordinated(wire, "streams")
    streamed([StreamsMember(wire, topology, f"s{number}", f"p{number}", "streams") for number in (1, 2)], 4)


def streamed(members: Sequence[StreamsMember], tasks: int, describe: Callable[[], object] = str) -> None:
    """Two members of one topology, the second of which comes later, and the first leaves; described between."""

    def settled(*owners: StreamsMember) -> None:
        def shared() -> bool:
            for member in owners:
                member.confirm()
            return all(sum(map(len, each.active.values())) == tasks // len(owners) for each in owners)

        until(shared, f"tasks of {len(owners)} members")
        describe()

    first, second = members
    assert first.join().error_code is ErrorCode.NONE
    settled(first)
    assert second.join().error_code is ErrorCode.NONE
    settled(first, second)
    assert first.beat(LEAVES).error_code is ErrorCode.NONE
    settled(second)
