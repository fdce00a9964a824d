"""Streams groups (KIP-1071) at the machine: members, epochs, tasks that change hands, timers."""

from typing import Any

import pytest

from broker.coordination.group.modern.streams.states import State
from protocol.errors import ErrorCode
from protocol.log_records.streams_group import (
    CurrentTasks,
    KeyValue,
    StreamsCurrentMember,
    StreamsGroupEpoch,
    StreamsKind,
    StreamsMemberMetadata,
    StreamsRecord,
    StreamsTargetEpoch,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TargetTasks,
)
from protocol.messages.streams_group_heartbeat import Endpoint, TaskOffset, Topology
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import START_MS, Context, G
from tests.coordination.group.streams_harness import (
    STATELESS,
    StreamsMember,
    bench,
    group,
    settle,
    subtopology,
)


@pytest.fixture
def cluster() -> Cluster:
    """With the topic "in" of four partitions."""
    topics = Cluster()
    topics.create("in", 4)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard that knows it, and assigns at once."""
    return bench(cluster)


def test_STR_01_a_first_join_writes_six_records(context: Context) -> None:
    """In Kafka's order: the member, the topology, the group's epoch, the target, the member's tasks."""
    member = StreamsMember(context)
    response = member.join()
    assert (response.member_epoch, member.active, response.status) == (2, {"0": [0, 1, 2, 3]}, [])
    assert (response.heartbeat_interval_ms, response.endpoint_information_epoch) == (5_000, 0)
    assert context.records == [
        StreamsRecord.of(G, StreamsMemberMetadata(None, None, "client", "/127.0.0.1", 60_000, 0, "p1"), "m1"),
        StreamsRecord.of(G, StreamsTopology(0, (Subtopology("0", ("in",)),))),
        StreamsRecord.of(
            G, StreamsGroupEpoch(2, group(context).metadata_hash, 0, (KeyValue("num.standby.replicas", "0"),))
        ),
        StreamsRecord.of(G, StreamsTargetMember((TargetTasks("0", (0, 1, 2, 3)),)), "m1"),
        StreamsRecord.of(G, StreamsTargetEpoch(2, START_MS)),
        StreamsRecord.of(G, StreamsCurrentMember(2, 0, 1, (CurrentTasks("0", (0, 1, 2, 3), (2, 2, 2, 2)),)), "m1"),
    ]
    assert group(context).state is State.STABLE


def test_a_heartbeat_without_news_answers_no_tasks_and_writes_nothing(context: Context) -> None:
    """Null task lists: nothing has changed."""
    member = StreamsMember(context)
    member.join()
    written = len(context.records)
    response = member.beat()
    assert (response.active_tasks, response.standby_tasks, response.warmup_tasks) == (None, None, None)
    assert (response.member_epoch, response.status, len(context.records)) == (2, [], written)


def test_a_group_that_is_empty_when_the_delay_ends_gets_no_target(cluster: Cluster) -> None:
    """The next member to join waits for the delay again."""
    context = bench(cluster, initial_rebalance_delay_ms=3_000)
    member = StreamsMember(context)
    member.join()
    member.beat(-1)
    written = len(context.records)
    context.advance(3_000)
    assert len(context.records) == written
    member.join()
    assert member.statuses == [5]


def test_a_join_within_the_assignment_interval_waits_with_status_5(context: Context) -> None:
    """The target is at most a second old; the next heartbeat after that computes the new one."""
    first, second = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    first.join()
    second.join()
    assert (second.epoch, second.active, second.statuses) == (2, {}, [5])
    assert second.details == ["Assignment delayed due to the configured assignment interval."]
    assert group(context).state is State.ASSIGNING
    context.advance(1_000)
    settle(first, second)
    assert (first.epoch, len(first.active["0"]), len(second.active["0"])) == (3, 2, 2)


def test_a_member_that_gives_nothing_up_is_removed(context: Context) -> None:
    """A member that does not revoke in time is removed after its own rebalance timeout."""
    first, second = StreamsMember(context, rebalance_ms=10_000), StreamsMember(context, "m2", process_id="p2")
    first.join()
    context.advance(1_000)
    second.join()
    first.confirm()
    context.advance(9_999)
    assert "m1" in group(context).members
    context.advance(1)
    assert "m1" not in group(context).members


def test_a_member_that_joins_again_keeps_its_endpoint(context: Context) -> None:
    """Null changes nothing, also at epoch 0; the endpoint's partitions are listed for an epoch that is not current."""
    member = StreamsMember(context)
    member.join(user_endpoint=Endpoint("host", 1))
    response = member.join()
    (entry,) = response.partitions_by_user_endpoint or ()
    assert (entry.user_endpoint.host, response.endpoint_information_epoch) == ("host", 1)
    assert [(each.topic, list(each.partitions)) for each in entry.active_partitions] == [("in", [0, 1, 2, 3])]
    assert member.beat(endpoint_information_epoch=1).partitions_by_user_endpoint is None


def test_an_endpoint_without_source_topics_fails_the_heartbeat(context: Context) -> None:
    """As in Kafka 4.3, whose list of endpoints expects a topology that is configured."""
    member = StreamsMember(context, topology=[subtopology("0", ["gone"])])
    assert member.refused_join(user_endpoint=Endpoint("host", 1)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.join().error_code is ErrorCode.NONE


def test_epochs_that_are_not_the_members_are_fenced(context: Context) -> None:
    """A greater one, and a smaller one, unless it is the last one and the member reports a part of its tasks."""
    member = StreamsMember(context)
    member.join()
    assert member.refused(3) is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.refused(1) is ErrorCode.FENCED_MEMBER_EPOCH
    context.advance(1_000)
    StreamsMember(context, "m2", process_id="p2").join()
    member.confirm()
    member.confirm()
    assert (member.epoch, member.seen.previous_epoch) == (3, 2)
    assert member.refused(2) is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.beat(2, active_tasks=member.active, standby_tasks={}, warmup_tasks={}).member_epoch == 3


@pytest.mark.parametrize(
    ("epoch", "fields"),
    [
        (0, {"topology": None}),
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"active_tasks": None}),
        (0, {"standby_tasks": {"0": [1]}}),
        (0, {"instance_id": "i"}),
        (0, {"member_id": " "}),
        (0, {"group_id": ""}),
        (0, {"rack_id": ""}),
        (0, {"task_offsets": [TaskOffset("0", 0, 1)]}),
        (0, {"task_end_offsets": []}),
        (2, {"topology": Topology(0, STATELESS)}),
        (2, {"active_tasks": {"0": [0]}}),
        (2, {"active_tasks": {}, "standby_tasks": {}, "warmup_tasks": {"0": [0]}}),
        (2, {"active_tasks": {"0": [4]}, "standby_tasks": {}, "warmup_tasks": {}}),
        (2, {"active_tasks": {"9": [0]}, "standby_tasks": {}, "warmup_tasks": {}}),
        (-2, {}),
        (-3, {}),
    ],
)
def test_STR_08_STR_15_heartbeats_that_are_not_valid(context: Context, epoch: int, fields: dict[str, Any]) -> None:
    """INVALID_REQUEST for each, and nothing is written."""
    member = StreamsMember(context)
    member.join()
    written = len(context.records)
    refused = member.refused_join(**fields) if epoch == 0 else member.refused(epoch, **fields)
    assert refused is ErrorCode.INVALID_REQUEST
    assert len(context.records) == written


@pytest.mark.parametrize(
    ("topology", "code"),
    [
        (Topology(-1, STATELESS), ErrorCode.UNKNOWN_SERVER_ERROR),
        (Topology(0, [*STATELESS, *STATELESS]), ErrorCode.UNKNOWN_SERVER_ERROR),
        (Topology(0, STATELESS), None),
    ],
)
def test_topologies_that_kafka_cannot_hold(context: Context, topology: Topology, code: ErrorCode | None) -> None:
    """A negative epoch, and an id of two subtopologies: Kafka's StreamsTopology throws (groups E.3.4)."""
    member = StreamsMember(context)
    if code is None:
        member.join()
    else:
        assert member.refused_join(topology=topology) is code
        assert context.records == []


def test_a_full_group_refuses_every_join(cluster: Cluster) -> None:
    """In 4.3 also that of a member that it has."""
    context = bench(cluster, max_size=1)
    member = StreamsMember(context)
    member.join()
    assert StreamsMember(context, "m2").refused_join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.refused_join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    member.beat()


def test_a_reloaded_group_goes_on(context: Context) -> None:
    """From every prefix of the log there is a state; from the whole log the same one."""
    first, second = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    first.join()
    second.join()
    settle(first, second)
    for entries in range(len(context.log)):
        context.reloaded(entries)
    other = context.reloaded()
    assert group(other).state is State.STABLE
    assert list(group(other).members.values()) == list(group(context).members.values())
    assert group(other).targets == group(context).targets
    first.context = other
    assert first.beat().active_tasks is None
    other.advance(45_000)
    assert group(other).is_empty


def test_a_deleted_group_leaves_tombstones_for_everything(context: Context) -> None:
    """The group's record before the topology's, as Kafka."""
    member = StreamsMember(context)
    member.join()
    member.beat(-1)
    written = len(context.records)
    context.ask(lambda to: context.machine.delete_groups([G], context.now_ms, to))
    assert [(each.kind, each.value) for each in context.records[written:] if isinstance(each, StreamsRecord)] == [
        (StreamsKind.TARGET_METADATA, None),
        (StreamsKind.GROUP_METADATA, None),
        (StreamsKind.TOPOLOGY, None),
    ]
    assert G not in context.machine.groups
