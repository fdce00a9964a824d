"""What Kafka 4.4 added to streams groups: static members, task offsets, client tags, the end of a group (groups E)."""

import pytest

from broker.coordination.group.modern.epochs import LEAVING_STATIC
from protocol.errors import ErrorCode
from protocol.log_records.streams_group import KeyValue, StreamsKind, StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_describe import TaskOffset as DescribedOffset
from protocol.messages.streams_group_heartbeat import Endpoint, TaskOffset
from protocol.messages.streams_group_heartbeat import KeyValue as Tag
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import Context, G
from tests.coordination.group.streams_harness import StreamsMember, bench, group


@pytest.fixture
def context() -> Context:
    """A shard that follows 4.4 and assigns at once, with the topic "in" of four partitions."""
    cluster = Cluster()
    cluster.create("in", 4)
    return bench(cluster, newer=True, assignment_interval_ms=0)


def static(context: Context, member_id: str = "m1", instance_id: str = "i") -> StreamsMember:
    """A static member that has joined."""
    member = StreamsMember(context, member_id)
    member.join(instance_id=instance_id)
    return member


def test_a_static_member_leaves_for_a_while_and_another_takes_its_place(context: Context) -> None:
    """It keeps its tasks, without a new epoch; the one that comes back has them at once."""
    first = static(context)
    assert first.beat(LEAVING_STATIC, instance_id="i").member_epoch == LEAVING_STATIC
    assert (first.seen.epoch, group(context).epoch) == (LEAVING_STATIC, 2)
    assert first.seen.assigned.active == {"0": dict.fromkeys(range(4), 0)}
    written = len(context.records)
    second = static(context, "m2")
    assert (second.epoch, second.active) == (2, {"0": [0, 1, 2, 3]})
    assert group(context).epoch == 2
    kinds = [(each.kind, each.name, each.value is None) for each in context.records[written:]
             if isinstance(each, StreamsRecord)]  # fmt: skip
    assert kinds[:6] == [
        (StreamsKind.CURRENT_MEMBER, "m1", True),
        (StreamsKind.TARGET_MEMBER, "m1", True),
        (StreamsKind.MEMBER_METADATA, "m1", True),
        (StreamsKind.MEMBER_METADATA, "m2", False),
        (StreamsKind.TARGET_MEMBER, "m2", False),
        (StreamsKind.CURRENT_MEMBER, "m2", False),
    ]
    assert list(context.reloaded().machine.groups[G].members) == ["m2"]  # type: ignore[attr-defined]


def test_a_static_member_that_was_away_comes_back_under_its_member_id(context: Context) -> None:
    """From another process, which is a new epoch, it has all tasks."""
    member = static(context)
    member.beat(LEAVING_STATIC, instance_id="i")
    member.join(instance_id="i", process_id="p2")
    assert (member.epoch, member.active, list(group(context).members)) == (3, {"0": [0, 1, 2, 3]}, ["m1"])


def test_static_members_are_fenced(context: Context) -> None:
    """Unreleased while the holder is there, fenced for another member id, unknown for an unknown instance id."""
    member = static(context)
    other = StreamsMember(context, "m2")
    assert other.refused_join(instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert other.refused(2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert other.refused(-1, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert other.refused(2, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert member.beat(instance_id="i").member_epoch == 2


def test_some_changes_of_a_static_member_begin_no_epoch(context: Context) -> None:
    """Its endpoint is recorded alone; another rack begins an epoch."""
    member = static(context)
    member.beat(instance_id="i", user_endpoint=Endpoint("host", 1))
    assert (group(context).epoch, member.result.response.endpoint_information_epoch) == (2, 1)
    member.beat(instance_id="i", rack_id="r")
    assert group(context).epoch == 3


def test_a_join_without_an_endpoint_removes_it(context: Context) -> None:
    """A join without an endpoint removes the stored one; before 4.4 it was kept."""
    member = StreamsMember(context)
    member.join(user_endpoint=Endpoint("host", 1))
    response = member.join()
    assert (member.seen.user_endpoint, response.endpoint_information_epoch) == (None, 1)
    assert response.partitions_by_user_endpoint == []


def test_a_member_that_becomes_static_begins_no_epoch(context: Context) -> None:
    """The instance id is recorded alone."""
    member = StreamsMember(context)
    member.join()
    member.join(instance_id="i")
    assert (member.epoch, group(context).epoch, member.seen.instance_id) == (2, 2, "i")
    member.beat(instance_id="i", user_endpoint=Endpoint("host", 1))
    assert group(context).epoch == 2
    member.join()
    assert (member.epoch, member.seen.instance_id) == (3, "i"), "without its instance id, as a dynamic member's"


def test_task_offsets_are_described(context: Context) -> None:
    """A list replaces the one before, null keeps it, and they go with their member."""
    member = StreamsMember(context)
    member.join(task_offsets=[TaskOffset("0", 0, 1)])  # of a group that is not there yet: not kept, as in Kafka
    member.beat(task_offsets=[TaskOffset("0", 1, 5)], task_end_offsets=[TaskOffset("0", 1, 9)])
    member.beat(task_offsets=[TaskOffset("0", 1, 6)])
    (seen,) = context.machine.streams.describe(G).members
    assert [seen.task_offsets, seen.task_end_offsets] == [[DescribedOffset("0", 1, 6)], [DescribedOffset("0", 1, 9)]]
    member.beat(task_offsets=[TaskOffset("1", 0, 1), TaskOffset("0", 2, 2), TaskOffset("0", 1, 3)])
    (seen,) = context.machine.streams.describe(G).members
    assert [(each.subtopology_id, each.partition) for each in seen.task_offsets] == [("0", 1), ("0", 2), ("1", 0)]
    assert member.result.response.task_offset_interval_ms == 60_000
    assert member.result.response.acceptable_recovery_lag == 10_000
    member.beat(-1)
    assert group(context).task_offsets == {}


def test_missing_client_tags_are_a_status(context: Context) -> None:
    """Once tags are configured, which is a new epoch, with the tags in its record."""
    member = StreamsMember(context)
    member.join(client_tags=[Tag("zone", "a")])
    context.rack_tags = ("zone", "cluster")
    member.beat()
    assert (member.statuses, group(context).epoch) == ([6], 3)
    assert member.details[0].startswith("Missing required client tags for rack-aware standby assignment: [cluster].")
    assert group(context).assignment_configs["rack.aware.assignment.tags"] == "zone,cluster"
    member.join(client_tags=[Tag("cluster", "b"), Tag("zone", "a")])
    assert member.statuses == []
    assert member.seen.client_tags == (KeyValue("cluster", "b"), KeyValue("zone", "a"))


def test_the_last_member_takes_the_assignment_epoch_along(context: Context) -> None:
    """The target's epoch is the group's, without a time."""
    member = StreamsMember(context)
    member.join()
    member.beat(-1)
    assert context.records[-1] == StreamsRecord.of(G, StreamsTargetEpoch(3, 0))
    assert (group(context).epoch, group(context).assignment_epoch) == (3, 3)


def test_a_member_that_a_full_group_has_may_join_again(context: Context) -> None:
    """A full group lets its members rejoin and refuses others."""
    context.settings.values["group.streams.max.size"] = 1
    member = static(context)
    assert StreamsMember(context, "m2").refused_join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.beat(LEAVING_STATIC, instance_id="i").member_epoch == LEAVING_STATIC
    assert static(context, "m3").epoch == 2


@pytest.mark.parametrize(("newer", "promised"), [(False, 2), (True, 1)])
def test_the_assignor_goes_by_the_tasks_that_members_have(newer: bool, promised: int) -> None:
    """In 4.3 by their targets: there, m2 keeps a task that it was promised and that m1 has not given up."""
    cluster = Cluster()
    cluster.create("in", 3)
    context = bench(cluster, newer=newer, assignment_interval_ms=0)
    for name, process in {"m1": "p0", "m2": "p1", "m3": "p2"}.items():
        StreamsMember(context, name, process_id=process).join()
        assert "m3" in group(context).targets or group(context).targets[name].active["0"] >= {2}
    targets = {name: target.active["0"] for name, target in group(context).targets.items()}
    assert targets == {"m1": {0}, "m2": {promised}, "m3": {3 - promised}}


def test_a_task_is_reported_once(context: Context) -> None:
    """INVALID_REQUEST for a list of task offsets that names one twice, as the last check of the heartbeat."""
    member = StreamsMember(context)
    member.join(task_offsets=[TaskOffset("0", 1, 5)])
    twice = [TaskOffset("0", 1, 5), TaskOffset("0", 1, 6)]
    assert member.refused(task_offsets=twice) is ErrorCode.INVALID_REQUEST
    assert member.refused(task_end_offsets=twice) is ErrorCode.INVALID_REQUEST
    assert member.refused(9, task_offsets=twice) is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.beat(-1, task_offsets=twice).member_epoch == -1


def test_endpoints_of_a_topology_without_its_source_topics() -> None:
    """UNKNOWN_SERVER_ERROR, as on 4.4.0, which has no subtopologies to list; without an endpoint it is a status."""
    context = bench(Cluster(), newer=True, assignment_interval_ms=0)
    member = StreamsMember(context)
    assert member.refused_join(user_endpoint=Endpoint("host", 1)) is ErrorCode.UNKNOWN_SERVER_ERROR
    member.join()
    assert member.statuses == [1]


def test_a_stranger_that_leaves_shuts_the_application_down(context: Context) -> None:
    """The member is not known, and its shutdown is noted all the same, as on 4.4.0."""
    member = StreamsMember(context)
    member.join()
    assert StreamsMember(context, "stranger").refused(-1, shutdown_application=True) is ErrorCode.UNKNOWN_MEMBER_ID
    member.beat()
    assert (member.statuses, "stranger" in member.details[0]) == ([4], True)
