"""Plants: the records of share groups, of share partitions and of streams groups, and how they fit together."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from protocol.log_records import consumer_group, metadata, share_group, share_state, streams_group
from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate
from tests.pipeline.fault_files import Planting, topic_id_of
from tests.pipeline.log_faults import PLANTS, Places, plant

OFFSETS, SHARE = "__consumer_offsets", "__share_group_state"
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def _state(where: Planting, group_id: str, value: Any, topic_id: UUID, partition: int = 0) -> int:
    """Append a record about a share partition; its offset."""
    shelf = where.shelf(SHARE, retention_ms="-1")
    return shelf.records([share_state.encode(ShareRecord(group_id, topic_id, partition, value))])


def _snapshot(where: Planting, *batches: RecordedBatch, **fields: Any) -> ShareSnapshot:
    values: dict[str, Any] = {"snapshot_epoch": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 0,
                              "create_timestamp_ms": where.tick(), "write_timestamp_ms": where.now_ms,
                              "state_batches": batches, "delivery_complete_count": 0}  # fmt: skip
    return ShareSnapshot(**(values | fields))


def _update(*batches: RecordedBatch, **fields: Any) -> ShareUpdate:
    values: dict[str, Any] = {"snapshot_epoch": 0, "leader_epoch": 3, "start_offset": 0, "state_batches": batches}
    return ShareUpdate(**(values | fields))


def clean_groups(where: Planting) -> None:
    """A share group with a queue, its offsets reset, and deleted state; a streams group with two members."""
    where.shelf("queue").data(40)
    where.shelf("queue").leader_epoch = 3
    topic_id = topic_id_of("queue")
    queue, batch = ("clean-share", topic_id), RecordedBatch
    for value in (
        _snapshot(where, start_offset=-1, delivery_complete_count=-1),
        _update(leader_epoch=2),
        _update(batch(0, 4, ACKNOWLEDGED, 1), batch(5, 5, AVAILABLE, 2)),
        _update(batch(5, 5, ARCHIVED, 5), batch(7, 9, ACKNOWLEDGED, 1), start_offset=5),
        _snapshot(where, batch(5, 5, ARCHIVED, 5), batch(7, 11, ACKNOWLEDGED, 1), snapshot_epoch=1, leader_epoch=3,
                  start_offset=5, write_timestamp_ms=where.now_ms + 9000),
        _update(start_offset=40, snapshot_epoch=1, leader_epoch=-1),
        _snapshot(where, snapshot_epoch=2, state_epoch=2, start_offset=3),  # kafka-share-groups --reset-offsets
        _update(leader_epoch=2, start_offset=-1, snapshot_epoch=2),
    ):  # fmt: skip
        _state(where, queue[0], value, queue[1])
    for gone in (_snapshot(where, state_epoch=7, start_offset=30), None, _snapshot(where, state_epoch=1), None):
        _state(where, "deleted-share", gone, topic_id)
    _share(where, "clean-share", share_group.StatePartitions(
        initialized=(share_group.StateTopic(topic_id, "queue", (0,)),)))  # fmt: skip
    _streams_members(where, "clean-streams", {"a": (0, 2), "b": (1,)})


def _share(where: Planting, group_id: str, *values: Any, name: str = "") -> int:
    log = where.shelf(OFFSETS, cleanup_policy="compact")
    at = -1
    for value in (share_group.ShareGroupEpoch(1, 5), *values):
        at = log.records([share_group.encode(share_group.ShareGroupRecord.of(group_id, value, name))])
    return at


def _streams(where: Planting, group_id: str, value: Any, name: str = "") -> int:
    log = where.shelf(OFFSETS, cleanup_policy="compact")
    return log.records([streams_group.encode(streams_group.StreamsRecord.of(group_id, value, name))])


def _streams_members(where: Planting, group_id: str, tasks: dict[str, tuple[int, ...]], place: str = "0") -> int:
    """A streams group of one subtopology; the offset of its last record."""
    for number in range(3):
        where.shelf("worked", number)
    _streams(where, group_id, streams_group.StreamsGroupEpoch(3, 5))
    _streams(where, group_id, streams_group.StreamsTopology(0, (streams_group.Subtopology("0", ("worked",)),)))
    _streams(where, group_id, streams_group.StreamsTargetEpoch(3))
    at = -1
    for name, numbers in tasks.items():
        owned = (streams_group.CurrentTasks(place, numbers),)
        _streams(where, group_id, streams_group.StreamsMemberMetadata(), name)
        at = _streams(where, group_id, streams_group.StreamsCurrentMember(3, 2, 0, owned), name)
    return at


# --- one record of a share partition ---------------------------------------------------------------------------------


def record_of_share(number: int, *batches: RecordedBatch, **fields: Any) -> Callable[[Planting, str], Places]:
    """A snapshot that is wrong in itself."""

    def make(where: Planting, name: str) -> Places:
        at = _state(where, name, _snapshot(where, *batches, **fields), UUID(int=9000 + number))
        return {"share-state-record": {(SHARE, 0, at)}}

    return make


PLANTS.update(
    {
        "share-batch-overlap": record_of_share(1, RecordedBatch(0, 4, 2, 1), RecordedBatch(4, 6, 2, 1)),
        "share-batch-order": record_of_share(2, RecordedBatch(7, 9, 2, 1), RecordedBatch(0, 4, 2, 1)),
        "share-batch-backwards": record_of_share(3, RecordedBatch(7, 5, 2, 1)),
        "share-batch-negative": record_of_share(4, RecordedBatch(-3, 5, 2, 1), start_offset=-1),
        "share-batch-acquired": record_of_share(5, RecordedBatch(0, 5, 1, 1)),
        "share-batch-state": record_of_share(6, RecordedBatch(0, 5, 9, 1)),
        "share-batch-count": record_of_share(7, RecordedBatch(0, 5, 2, -1)),
        "share-batch-below-start": record_of_share(8, RecordedBatch(0, 5, 2, 1), start_offset=3),
        "share-start-negative": record_of_share(9, start_offset=-4),
        "share-epoch-negative": record_of_share(10, state_epoch=-2),
        "share-complete-count": record_of_share(11, delivery_complete_count=-3),
        "share-written-before": record_of_share(12, write_timestamp_ms=5),
    }
)


# --- a record after others -------------------------------------------------------------------------------------------


def _order(expected: str, number: int, *values: Any) -> Callable[[Planting, str], Places]:
    """Records of a share partition, the last of which does not fit; functions make those that need the time."""

    def make(where: Planting, name: str) -> Places:
        at = -1
        for value in values:
            at = _state(where, name, value(where) if callable(value) else value, UUID(int=9100 + number))
        return {expected: {(SHARE, 0, at)}}

    return make


def _snap(*batches: RecordedBatch, **fields: Any) -> Callable[[Planting], ShareSnapshot]:
    return lambda where: _snapshot(where, *batches, **fields)


_ORDER = "share-state-order"
PLANTS.update(
    {
        "share-state-epoch-back": _order(_ORDER, 1, _snap(state_epoch=4), _snap(snapshot_epoch=1, state_epoch=3)),
        "share-leader-epoch-back": _order(_ORDER, 2, _snap(), _update(leader_epoch=4), _update(leader_epoch=3)),
        "share-start-back": _order(_ORDER, 3, _snap(), _update(start_offset=9), _update(start_offset=8)),
        "share-start-back-in-snapshot": _order(
            _ORDER, 4, _snap(start_offset=9), _snap(snapshot_epoch=1, leader_epoch=3, start_offset=8)
        ),
        "share-snapshot-repeats": _order(_ORDER, 5, _snap(snapshot_epoch=3), _snap(snapshot_epoch=3)),
        "share-snapshot-missing": _order(_ORDER, 6, _snap(snapshot_epoch=3), _snap(snapshot_epoch=5)),
        "share-update-of-another": _order(_ORDER, 7, _snap(snapshot_epoch=3), _update(snapshot_epoch=2)),
        "share-update-alone": _order(_ORDER, 8, _update()),
        "share-update-of-the-deleted": _order(_ORDER, 9, _snap(), None, _update()),
        "share-snapshot-loses-a-batch": _order(
            "share-snapshot-differs", 10, _snap(), _update(RecordedBatch(3, 6, ACKNOWLEDGED, 1)),
            _snap(RecordedBatch(5, 6, ACKNOWLEDGED, 1), snapshot_epoch=1, leader_epoch=3),
        ),
        "share-snapshot-loses-a-delivery": _order(
            "share-snapshot-differs", 11, _snap(RecordedBatch(3, 9, AVAILABLE, 3), leader_epoch=3),
            _snap(RecordedBatch(3, 9, AVAILABLE, 2), snapshot_epoch=1, leader_epoch=3),
        ),
        "share-delivered-too-often": _order(
            "share-delivery-count", 12, _snap(), _update(RecordedBatch(3, 3, AVAILABLE, 11))
        ),
    }
)  # fmt: skip


@plant
def share_limit_of_the_group(where: Planting, name: str) -> Places:
    """Six deliveries in a group whose limit is five."""
    limit = metadata.ConfigRecord(32, name, "share.delivery.count.limit", "5")
    where.shelf("__cluster_metadata").data(1, keys=[None], values=[metadata.encode(limit)[1]])
    _state(where, name, _snapshot(where), UUID(int=9200))
    at = _state(where, name, _update(RecordedBatch(3, 3, ARCHIVED, 6)), UUID(int=9200))
    return {"share-delivery-count": {(SHARE, 0, at)}}


@plant
def share_start_beyond_end(where: Planting, topic: str) -> Places:
    """The queue goes on behind the end of the log; and a batch does."""
    where.shelf(topic).data(5)
    where.shelf(topic, 1).data(5)
    topic_id = topic_id_of(topic)
    _state(where, topic, _snapshot(where, start_offset=6), topic_id)
    _state(where, topic, _snapshot(where, RecordedBatch(3, 5, ACKNOWLEDGED, 1), start_offset=3), topic_id, 1)
    known = share_group.StateTopic(topic_id, topic, (0, 1))
    _share(where, topic, share_group.StatePartitions(initialized=(known,)))
    return {"share-state-invalid": {(0, 6), (1, 3)}}


@plant
def share_leader_epoch_unknown(where: Planting, topic: str) -> Places:
    """The partition has had no leader but its first."""
    where.shelf(topic).data(5)
    known = share_group.StateTopic(topic_id_of(topic), topic, (0,))
    _share(where, topic, share_group.StatePartitions(initialized=(known,)))
    _state(where, topic, _snapshot(where, leader_epoch=1, start_offset=2), topic_id_of(topic))
    return {"share-state-invalid": {(0, 2)}}


@plant
def share_partition_unknown(where: Planting, topic: str) -> Places:
    """State of a partition that the topic does not have."""
    where.shelf(topic).data(5)
    known = share_group.StateTopic(topic_id_of(topic), topic, (7,))
    _share(where, topic, share_group.StatePartitions(initialized=(known,)))
    _state(where, topic, _snapshot(where, start_offset=2), topic_id_of(topic), 7)
    return {"share-state-invalid": {(7, 2)}}


@plant
def share_state_lost(where: Planting, topic: str) -> Places:
    """Both partitions are initialized in the records of the group; one has no state."""
    for number in (0, 1):
        where.shelf(topic, number).data(5)
    known = share_group.StateTopic(topic_id_of(topic), topic, (0, 1))
    _share(where, topic, share_group.StatePartitions(initialized=(known,)))
    _state(where, topic, _snapshot(where), topic_id_of(topic), 1)
    return {"share-state-lost": {(0, None)}}


@plant
def share_state_without_group(where: Planting, topic: str) -> Places:
    """State that no group names."""
    where.shelf(topic).data(5)
    _state(where, topic, _snapshot(where), topic_id_of(topic))
    return {"share-state-lost": {(0, None)}}


# --- records of groups -----------------------------------------------------------------------------------------------


def _epochs(*values: Any, name: str = "") -> Callable[[Planting, str], Places]:
    """Records of a streams group, the last of which is wrong."""

    def make(where: Planting, group_id: str) -> Places:
        at = -1
        if name:
            _streams(where, group_id, streams_group.StreamsGroupEpoch(9))
            _streams(where, group_id, streams_group.StreamsMemberMetadata(), name)
        for value in values:
            at = _streams(where, group_id, value, name)
        return {"group-record": {(OFFSETS, 0, at)}}

    return make


PLANTS.update(
    {
        "streams-epoch-back": _epochs(streams_group.StreamsGroupEpoch(4), streams_group.StreamsGroupEpoch(3)),
        "streams-epoch-negative": _epochs(streams_group.StreamsGroupEpoch(-1)),
        "streams-target-epoch-back": _epochs(
            streams_group.StreamsGroupEpoch(4), streams_group.StreamsTargetEpoch(4), streams_group.StreamsTargetEpoch(3)
        ),
        "streams-member-state": _epochs(streams_group.StreamsCurrentMember(3, 2, 77), name="m"),
        "streams-member-epoch-negative": _epochs(streams_group.StreamsCurrentMember(-3, 2, 0), name="m"),
    }
)


@plant
def streams_task_of_two(where: Planting, group_id: str) -> Places:
    """One active task at two members."""
    at = _streams_members(where, group_id, {"a": (0, 2), "b": (1, 2)})
    return {"group-state": {(OFFSETS, 0, at)}}


@plant
def streams_task_of_nothing(where: Planting, group_id: str) -> Places:
    """A task of a subtopology that the topology does not have."""
    return {"group-state": {(OFFSETS, 0, _streams_members(where, group_id, {"a": (0,)}, place="5"))}}


@plant
def streams_member_unknown(where: Planting, group_id: str) -> Places:
    """A member's assignment without the member."""
    _streams(where, group_id, streams_group.StreamsGroupEpoch(3))
    at = _streams(where, group_id, streams_group.StreamsCurrentMember(3, 2, 0), "ghost")
    return {"group-state": {(OFFSETS, 0, at)}}


@plant
def streams_member_epoch_beyond(where: Planting, group_id: str) -> Places:
    """Member and assignment are ahead of their group."""
    _streams(where, group_id, streams_group.StreamsGroupEpoch(3))
    _streams(where, group_id, streams_group.StreamsMemberMetadata(), "m")
    target = _streams(where, group_id, streams_group.StreamsTargetEpoch(4))
    at = _streams(where, group_id, streams_group.StreamsCurrentMember(4, 2, 0), "m")
    return {"group-state": {(OFFSETS, 0, target), (OFFSETS, 0, at)}}


@plant
def streams_group_without_itself(where: Planting, group_id: str) -> Places:
    """A topology, and no group."""
    return {"group-state": {(OFFSETS, 0, _streams(where, group_id, streams_group.StreamsTopology(0)))}}


@plant
def group_of_two_types(where: Planting, group_id: str) -> Places:
    """A share group that is a streams group too."""
    _share(where, group_id)
    return {"group-state": {(OFFSETS, 0, _streams(where, group_id, streams_group.StreamsGroupEpoch(3)))}}


@plant
def consumer_partition_of_two(where: Planting, group_id: str) -> Places:
    """One partition at two members of a consumer group (KIP-848)."""
    log = where.shelf(OFFSETS, cleanup_policy="compact")
    where.shelf(group_id, 1).data(3)
    where.shelf(group_id, 0).data(3)
    owned = consumer_group.AssignedPartitions(topic_id_of(group_id), (1,))
    at = -1
    for value, name in (
        (consumer_group.GroupEpoch(3), ""),
        (consumer_group.MemberMetadata(), "a"),
        (consumer_group.MemberMetadata(), "b"),
        (consumer_group.CurrentMember(3, 2, 0, (owned,)), "a"),
        (consumer_group.CurrentMember(3, 2, 1, (), (owned,)), "b"),
    ):
        at = log.records([consumer_group.encode(consumer_group.ConsumerRecord.of(group_id, value, name))])
    return {"group-state": {(OFFSETS, 0, at)}}
