"""Plants: records of share, streams and consumer groups, and the state of share partitions."""

from collections.abc import Callable
from typing import Any, Final

from protocol.log_records import consumer_group, group, metadata, share_group, share_state, streams_group
from protocol.log_records.consumer_group import AssignedPartitions, CurrentMember
from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate
from protocol.log_records.streams_group import (
    CopartitionGroup,
    CurrentTasks,
    StreamsCurrentMember,
    StreamsGroupEpoch,
    StreamsMemberMetadata,
    StreamsTargetEpoch,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TargetTasks,
)
from tests.pipeline.fault_files import Planting
from tests.pipeline.planted_topic import Place, Rows, Steps, Topic

SHARE: Final = "__share_group_state"
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4


# --- share groups ----------------------------------------------------------------------------------------------------


def _snapshot(t: Topic, *batches: RecordedBatch, **fields: Any) -> ShareSnapshot:
    values: dict[str, Any] = {"snapshot_epoch": 0, "state_epoch": 1, "leader_epoch": 0, "start_offset": 0,
                              "create_timestamp_ms": t.where.tick(), "write_timestamp_ms": t.where.now_ms,
                              "state_batches": batches, "delivery_complete_count": 0}  # fmt: skip
    return ShareSnapshot(**(values | fields))


def _snap(*batches: RecordedBatch, **fields: Any) -> Callable[[Topic], ShareSnapshot]:
    return lambda t: _snapshot(t, *batches, **fields)


def _update(*batches: RecordedBatch, **fields: Any) -> ShareUpdate:
    values: dict[str, Any] = {"snapshot_epoch": 0, "leader_epoch": 3, "start_offset": 0, "state_batches": batches}
    return ShareUpdate(**(values | fields))


def _state(t: Topic, value: Any, partition: int = 0, group_id: str | None = None) -> Place:
    """Append a record about a partition of the topic; functions make the values that need the time."""
    record = ShareRecord(group_id or t.name, t.id, partition, value(t) if callable(value) else value)
    return Place(SHARE, 0, t.where.shelf(SHARE, retention_ms="-1").records([share_state.encode(record)]))


def _states(*values: Any) -> Steps:
    """Records about a share partition, the last of which is wrong."""
    return lambda t: tuple(_state(t, value) for value in values)


def _share(t: Topic, group_id: str, *values: Any) -> Place:
    records = (share_group.ShareGroupRecord.of(group_id, each) for each in (share_group.ShareGroupEpoch(1, 5), *values))
    return t.offsets(*records, encode=share_group.encode)


def _initialized(t: Topic, *partitions: int, group_id: str | None = None) -> Place:
    """A share group whose records name these partitions."""
    topic = share_group.StateTopic(t.id, t.name, partitions)
    return _share(t, group_id or t.name, share_group.StatePartitions(initialized=(topic,)))


def _begins_beyond(t: Topic) -> set[Place]:
    """The queue goes on behind the end of the log; and a batch does."""
    for number in (0, 1):
        t.partition(number).data(5)
    _state(t, _snap(start_offset=6))
    _state(t, _snap(RecordedBatch(3, 5, ACKNOWLEDGED, 1), start_offset=3), 1)
    _initialized(t, 0, 1)
    return {t.at(6), t.at(3, 1)}


OF_SHARE_GROUPS: Final[Rows] = {
    # a snapshot that is wrong in itself
    "share-batch-overlap": ("share-state-record", _states(_snap(RecordedBatch(0, 4, 2, 1), RecordedBatch(4, 6, 2, 1)))),
    "share-batch-order": ("share-state-record", _states(_snap(RecordedBatch(7, 9, 2, 1), RecordedBatch(0, 4, 2, 1)))),
    "share-batch-backwards": ("share-state-record", _states(_snap(RecordedBatch(7, 5, 2, 1)))),
    "share-batch-negative": ("share-state-record", _states(_snap(RecordedBatch(-3, 5, 2, 1), start_offset=-1))),
    "share-batch-acquired": ("share-state-record", _states(_snap(RecordedBatch(0, 5, 1, 1)))),
    "share-batch-state": ("share-state-record", _states(_snap(RecordedBatch(0, 5, 9, 1)))),
    "share-batch-count": ("share-state-record", _states(_snap(RecordedBatch(0, 5, 2, -1)))),
    "share-batch-below-start": ("share-state-record", _states(_snap(RecordedBatch(0, 5, 2, 1), start_offset=3))),
    "share-start-negative": ("share-state-record", _states(_snap(start_offset=-4))),
    "share-epoch-negative": ("share-state-record", _states(_snap(state_epoch=-2))),
    "share-complete-count": ("share-state-record", _states(_snap(delivery_complete_count=-3))),
    "share-written-before": ("share-state-record", _states(_snap(write_timestamp_ms=5))),
    "share-acknowledged-without-delivery": (
        "share-state-record", _states(_snap(RecordedBatch(0, 4, ACKNOWLEDGED, 0)))),
    "share-archiving-without-delivery": ("share-state-record", _states(_snap(RecordedBatch(0, 4, ARCHIVING, 0)))),
    "share-archived-without-delivery": ("share-state-record", _states(_snap(RecordedBatch(0, 4, ARCHIVED, 0)))),
    # a record after others
    "share-state-epoch-back": (
        "share-state-order", _states(_snap(state_epoch=4), _snap(snapshot_epoch=1, state_epoch=3))),
    "share-leader-epoch-back": (
        "share-state-order", _states(_snap(), _update(leader_epoch=4), _update(leader_epoch=3))),
    "share-start-back": ("share-state-order", _states(_snap(), _update(start_offset=9), _update(start_offset=8))),
    "share-start-back-in-snapshot": (
        "share-state-order", _states(_snap(start_offset=9), _snap(snapshot_epoch=1, leader_epoch=3, start_offset=8))),
    "share-snapshot-repeats": ("share-state-order", _states(_snap(snapshot_epoch=3), _snap(snapshot_epoch=3))),
    "share-snapshot-missing": ("share-state-order", _states(_snap(snapshot_epoch=3), _snap(snapshot_epoch=5))),
    "share-update-of-another": ("share-state-order", _states(_snap(snapshot_epoch=3), _update(snapshot_epoch=2))),
    "share-update-alone": ("share-state-order", _states(_update())),
    "share-update-of-the-deleted": ("share-state-order", _states(_snap(), None, _update())),
    "share-snapshot-loses-a-batch": ("share-snapshot-differs", _states(
        _snap(), _update(RecordedBatch(3, 6, ACKNOWLEDGED, 1)),
        _snap(RecordedBatch(5, 6, ACKNOWLEDGED, 1), snapshot_epoch=1, leader_epoch=3))),
    "share-snapshot-loses-a-delivery": ("share-snapshot-differs", _states(
        _snap(RecordedBatch(3, 9, AVAILABLE, 3), leader_epoch=3),
        _snap(RecordedBatch(3, 9, AVAILABLE, 2), snapshot_epoch=1, leader_epoch=3))),
    "share-delivered-too-often": (
        "share-delivery-count", _states(_snap(), _update(RecordedBatch(3, 3, AVAILABLE, 11)))),
    # six deliveries in a group whose limit is five
    "share-limit-of-the-group": ("share-delivery-count", lambda t: (
        t.metadata(metadata.ConfigRecord(32, t.name, "share.delivery.count.limit", "5")), _state(t, _snap()),
        _state(t, _update(RecordedBatch(3, 3, ARCHIVED, 6))))),
    # beside the log, the metadata and the records of the group
    "share-start-beyond-end": ("share-state-invalid", _begins_beyond),
    # as many are acknowledged as the log does not have behind the start
    "share-count-beyond-end": ("share-state-invalid", lambda t: (
        t.data(5), _initialized(t, 0), _state(t, _snap(start_offset=2, delivery_complete_count=4)), 2)),
    "share-leader-epoch-unknown": ("share-state-invalid", lambda t: (
        t.data(5), _initialized(t, 0), _state(t, _snap(leader_epoch=1, start_offset=2)), 2)),
    "share-partition-unknown": ("share-state-invalid", lambda t: (
        t.data(5), _initialized(t, 7), _state(t, _snap(start_offset=2), 7), t.at(2, 7))),
    # both partitions are initialized in the records of the group; one has no state
    "share-state-lost": ("share-state-lost", lambda t: (
        t.data(5), t.partition(1).data(5), _initialized(t, 0, 1), _state(t, _snap(), 1), t.at(None))),
    "share-state-without-group": ("share-state-lost", lambda t: (t.data(5), _state(t, _snap()), t.at(None))),
}  # fmt: skip


# --- streams groups --------------------------------------------------------------------------------------------------


def _streams(t: Topic, *records: tuple[Any, str]) -> Place:
    """Records of a streams group, each with the member that it is about; the place of the last."""
    known = (streams_group.StreamsRecord.of(t.name, value, member) for value, member in records)
    return t.offsets(*known, encode=streams_group.encode)


def _only(*values: Any) -> Steps:
    """A streams group with no other records than these."""
    return lambda t: _streams(t, *((value, "") for value in values))


def _with(*records: tuple[Any, str]) -> Steps:
    """A streams group in epoch 3, and a topic `orders` with two partitions that it may read."""

    def steps(t: Topic) -> Place:
        for number in (0, 1):
            t.where.shelf("orders", number)
        return _streams(t, (StreamsGroupEpoch(3, 5), ""), *records)

    return steps


def _reading(*records: tuple[Any, str]) -> Steps:
    """As above, where one subtopology reads the topic."""
    return _with(_topology(Subtopology("0", ("orders",))), *records)


def _topology(*subtopologies: Subtopology, epoch: int = 0) -> tuple[Any, str]:
    return StreamsTopology(epoch, subtopologies), ""


def _process(member: str, process_id: str = "") -> tuple[Any, str]:
    return StreamsMemberMetadata(process_id=process_id), member


def _target(
    member: str, active: tuple[int, ...] = (), standby: tuple[int, ...] = (), warmup: tuple[TargetTasks, ...] = ()
) -> tuple[Any, str]:
    first, second = ((TargetTasks("0", numbers),) if numbers else () for numbers in (active, standby))
    return StreamsTargetMember(first, second, warmup), member


def _members(t: Topic, tasks: dict[str, tuple[int, ...]], place: str = "0") -> Place:
    """A streams group of one subtopology, which reads three partitions; each member owns some tasks."""
    for number in range(3):
        t.where.shelf("worked", number)
    owned = {member: (CurrentTasks(place, numbers),) for member, numbers in tasks.items()}
    return _streams(
        t, (StreamsGroupEpoch(3, 5), ""), _topology(Subtopology("0", ("worked",))), (StreamsTargetEpoch(3), ""),
        *(each for member, current in owned.items()
          for each in (_process(member), (StreamsCurrentMember(3, 2, 1, current), member))),
    )  # fmt: skip


def _of_a_member(value: Any) -> Steps:
    return lambda t: _streams(t, (StreamsGroupEpoch(9), ""), _process("m"), (value, "m"))


def _ahead(t: Topic) -> set[Place]:
    """Member and assignment are ahead of their group."""
    target = _streams(t, (StreamsGroupEpoch(3), ""), _process("m"), (StreamsTargetEpoch(4), ""))
    return {target, _streams(t, (StreamsCurrentMember(4, 2, 1), "m"))}


OF_STREAMS_GROUPS: Final[Rows] = {
    "streams-epoch-back": ("group-record", _only(StreamsGroupEpoch(4), StreamsGroupEpoch(3))),
    "streams-epoch-negative": ("group-record", _only(StreamsGroupEpoch(-1))),
    "streams-target-epoch-back": (
        "group-record", _only(StreamsGroupEpoch(4), StreamsTargetEpoch(4), StreamsTargetEpoch(3))),
    "streams-described-before-its-epoch": (
        "group-record", _with((StreamsGroupEpoch(3, 0, stored_description_topology_epoch=-7), ""))),
    "streams-topology-epoch-back": ("group-record", _with(
        _topology(Subtopology("0", ("orders",)), epoch=2), _topology(Subtopology("0", ("orders",)), epoch=1))),
    "streams-member-state": ("group-record", _of_a_member(StreamsCurrentMember(3, 2, 77))),
    "streams-member-state-of-another-group": ("group-record", _of_a_member(StreamsCurrentMember(3, 2, 0))),
    "streams-task-to-revoke-in-another-state": ("group-record", _reading(
        _process("a"),
        (StreamsCurrentMember(3, 2, 1, warmup_tasks_pending_revocation=(CurrentTasks("0", (0,)),)), "a"))),
    "streams-nothing-to-revoke": ("group-state", _of_a_member(StreamsCurrentMember(3, 2, 2))),
    "streams-member-epoch-negative": ("group-record", _of_a_member(StreamsCurrentMember(-3, 2, 1))),
    "streams-previous-epoch": ("group-record", _reading(_process("a"), (StreamsCurrentMember(2, 3, 1), "a"))),
    "streams-task-of-a-later-epoch": ("group-record", _reading(
        _process("a"), (StreamsCurrentMember(2, 1, 1, (CurrentTasks("0", (0,), (3,)),)), "a"))),
    "streams-task-negative": ("group-record", _reading(_process("a"), _target("a", (-7,)))),
    "streams-task-of-two": ("group-state", lambda t: _members(t, {"a": (0, 2), "b": (1, 2)})),
    "streams-task-of-nothing": ("group-state", lambda t: _members(t, {"a": (0,)}, place="5")),
    "streams-member-unknown": ("group-state", lambda t: _streams(
        t, (StreamsGroupEpoch(3), ""), (StreamsCurrentMember(3, 2, 1), "ghost"))),
    "streams-member-epoch-beyond": ("group-state", _ahead),
    "streams-group-without-itself": ("group-state", _only(StreamsTopology(0))),
    "streams-task-in-two-roles": ("group-state", _reading(_process("a"), _target("a", (0,), (0,)))),
    "streams-standby-of-no-subtopology": ("group-state", _reading(
        _process("a"), (StreamsCurrentMember(3, 2, 1, (), (CurrentTasks("7", (0,)),)), "a"))),
    "streams-warmup-of-no-subtopology": ("group-state", _reading(
        _process("a"), _target("a", warmup=(TargetTasks("7", (0,)),)))),
    "streams-task-beyond-partitions": ("group-state", _reading(_process("a"), _target("a", (5,)))),
    "streams-standby-in-one-process": ("group-state", _reading(
        _process("a", "p"), _process("b", "p"), _target("a", (0,)), _target("b", (), (0,)))),
    "streams-subtopology-twice": ("group-state", _with(
        _topology(Subtopology("0", ("orders",)), Subtopology("0", ("x",))))),
    "streams-subtopology-without-source": ("group-state", _with(_topology(Subtopology("0")))),
    "streams-source-twice": ("group-state", _with(
        _topology(Subtopology("0", ("orders",)), Subtopology("1", ("orders",))))),
    "streams-copartition-beyond-its-topics": ("group-state", _with(
        _topology(Subtopology("0", ("orders",), copartition_groups=(CopartitionGroup((0, 1)),))))),
    "streams-topology-validated-before-its-epoch": ("group-state", _reading(
        (StreamsGroupEpoch(4, 5, validated_topology_epoch=2), ""))),
}  # fmt: skip


# --- consumer groups (KIP-848) ---------------------------------------------------------------------------------------


def consumer(t: Topic, *records: tuple[Any, str]) -> Place:
    """A consumer group in epoch 3, and records about its members."""
    known = (consumer_group.ConsumerRecord.of(t.name, value, member)
             for value, member in ((consumer_group.GroupEpoch(3), ""), *records))  # fmt: skip
    return t.offsets(*known, encode=consumer_group.encode)


def owner(t: Topic, *owned: AssignedPartitions, epoch: int = 3, previous: int = 2) -> Place:
    """A consumer group of one member, with what it owns; the place of that."""
    current = CurrentMember(epoch, previous, 0, owned)
    return consumer(t, (consumer_group.MemberMetadata(), "m"), (current, "m"))


def _owner_of(*epochs: int) -> Steps:
    """A member in epoch 2 that owns a partition since these epochs."""
    return lambda t: (t.data(), owner(
        t, AssignedPartitions(t.id, (0,), epochs), epoch=2, previous=1))  # fmt: skip


def _current(value: CurrentMember, instance_id: str | None = None) -> Steps:
    """A consumer group whose only member is in this state."""
    return lambda t: consumer(t, (consumer_group.MemberMetadata(instance_id), "m"), (value, "m"))


def _partition_of_two(t: Topic) -> Place:
    for number in (1, 0):
        t.partition(number).data(3)
    owned = AssignedPartitions(t.id, (1,))
    return consumer(
        t, (consumer_group.MemberMetadata(), "a"), (consumer_group.MemberMetadata(), "b"),
        (CurrentMember(3, 2, 0, (owned,)), "a"),
        (CurrentMember(3, 2, 1, (), (owned,)), "b"),
    )  # fmt: skip


OF_CONSUMER_GROUPS: Final[Rows] = {
    "consumer-partition-of-two": ("group-state", _partition_of_two),
    "consumer-partition-of-a-later-epoch": ("group-record", _owner_of(3)),
    "consumer-epochs-of-other-partitions": ("group-record", _owner_of(1, 1)),
    "consumer-epoch-of-a-partition-negative": ("group-record", _owner_of(-7)),
    "consumer-previous-epoch": ("group-record", lambda t: (t.data(), owner(t, epoch=2, previous=3))),
    "consumer-previous-epoch-negative": ("group-record", lambda t: (t.data(), owner(t, epoch=2, previous=-7))),
    "consumer-member-state-of-another-group": ("group-record", _current(CurrentMember(3, 2, 3))),
    "consumer-partition-to-revoke-in-another-state": ("group-record", lambda t: (
        t.data(), consumer(t, (consumer_group.MemberMetadata(), "m"), (
            CurrentMember(3, 2, 2, (), (AssignedPartitions(t.id, (0,)),)), "m")))),
    "consumer-nothing-to-revoke": ("group-state", _current(CurrentMember(3, 2, 1))),
    # a share group that is a streams group too
    "group-of-two-types": ("group-state", lambda t: (_share(t, t.name), _streams(t, (StreamsGroupEpoch(3), "")))),
    "classic-group-beside-a-consumer-group": ("group-state", lambda t: (
        t.offsets(group.GroupMetadata(t.name, "consumer", 3, None, None, t.where.tick())), consumer(t))),
}  # fmt: skip

PLANTS: Final[Rows] = {**OF_SHARE_GROUPS, **OF_STREAMS_GROUPS, **OF_CONSUMER_GROUPS}


def clean_groups(where: Planting) -> None:
    """A share group with a queue, its offsets reset, and deleted state; a streams group with two members."""
    queue, batch = Topic(where, "queue"), RecordedBatch
    queue.data(40)
    queue.log.leader_epoch = 3
    for value in (
        _snap(start_offset=-1, delivery_complete_count=-1),
        _update(leader_epoch=2),
        _update(batch(0, 4, ACKNOWLEDGED, 1), batch(5, 5, AVAILABLE, 2)),
        _update(batch(5, 5, ARCHIVED, 5), batch(7, 9, ACKNOWLEDGED, 1), start_offset=5),
        lambda t: _snapshot(t, batch(5, 5, ARCHIVED, 5), batch(7, 11, ACKNOWLEDGED, 1), snapshot_epoch=1,
                            leader_epoch=3, start_offset=5, write_timestamp_ms=where.now_ms + 9000),
        _update(start_offset=40, snapshot_epoch=1, leader_epoch=-1),
        _snap(snapshot_epoch=2, state_epoch=2, start_offset=3),  # kafka-share-groups --reset-offsets
        _update(leader_epoch=2, start_offset=-1, snapshot_epoch=2),
    ):  # fmt: skip
        _state(queue, value, group_id="clean-share")
    _state(queue, _snap(start_offset=2, delivery_complete_count=38), group_id="all-acknowledged")
    _initialized(queue, 0, group_id="all-acknowledged")
    for gone in (_snap(state_epoch=7, start_offset=30), None, _snap(state_epoch=1), None):
        _state(queue, gone, group_id="deleted-share")
    _initialized(queue, 0, group_id="clean-share")
    _members(Topic(where, "clean-streams"), {"a": (0, 2), "b": (1,)})
    clean_members(where)


def clean_members(where: Planting) -> None:
    """Members that revoke what they have; a static one that has left meanwhile, and the next one of its instance."""
    tasks, partitions = (CurrentTasks("0", (0,)),), (AssignedPartitions(Topic(where, "queue").id, (0,)),)
    _streams(
        Topic(where, "revoking-streams"), (StreamsGroupEpoch(3, 5), ""), _topology(Subtopology("0", ("queue",))),
        _process("m"),
        (StreamsCurrentMember(3, 2, 2, standby_tasks_pending_revocation=tasks), "m"),
    )  # fmt: skip
    _current(CurrentMember(3, 2, 1, (), partitions))(Topic(where, "revoking"))
    for epoch in (-2, 3):
        _current(CurrentMember(epoch, -2, 1), "one")(Topic(where, f"static{epoch}"))
