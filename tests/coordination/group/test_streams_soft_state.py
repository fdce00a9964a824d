"""What streams groups keep beside their records, and a heartbeat that fails leaves behind (groups E.3, E.6, E.7)."""

from typing import Any

import pytest

from broker.coordination.group.modern.streams.member import Member, MemberState
from broker.coordination.group.modern.streams.owners import TaskOwners
from broker.coordination.group.modern.streams.reconciliation import TargetState, reconciled
from broker.coordination.group.modern.streams.states import State
from broker.coordination.group.modern.streams.tasks import AssignedTasks, TaskSets
from protocol.errors import ErrorCode
from protocol.java import TimelineMap
from protocol.log_records.group import OffsetCommit
from protocol.log_records.streams_group import StreamsGroupEpoch, StreamsKind, StreamsRecord, StreamsTargetEpoch
from protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import Context, G
from tests.coordination.group.streams_harness import StreamsMember, bench, group, info, subtopology

TWICE = [TaskOffset("0", 0, 1), TaskOffset("0", 0, 2)]
"""Offsets that fail a heartbeat after the topics were checked."""
HERE = Endpoint("host", 1)


@pytest.fixture
def cluster() -> Cluster:
    """With the topic "in" of four partitions."""
    topics = Cluster()
    topics.create("in", 4)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard that follows 4.4 and assigns at once."""
    return bench(cluster, newer=True, assignment_interval_ms=0)


def epochs(context: Context) -> list[StreamsGroupEpoch]:
    """The records of group epochs."""
    values = [each.value for each in context.records if isinstance(each, StreamsRecord)]
    return [value for value in values if isinstance(value, StreamsGroupEpoch)]


# --- the check of the topics ------------------------------------------------------------------------------------------


def test_a_failed_heartbeat_does_not_use_up_the_check_of_the_topics(context: Context, cluster: Cluster) -> None:
    """The next one finds the change, and begins an epoch."""
    member = StreamsMember(context)
    member.join()
    cluster.grow("in", 5)
    assert StreamsMember(context, "m2").refused_join(task_offsets=TWICE) is ErrorCode.INVALID_REQUEST
    assert (member.beat().member_epoch, member.active) == (3, {"0": [0, 1, 2, 3, 4]})


def test_a_heartbeat_that_fails_after_its_epoch_leaves_the_topics_to_be_checked(
    context: Context, cluster: Cluster
) -> None:
    """The epoch that it began has never come: the record of the next one has the hash of no topic, which is 0."""
    member = StreamsMember(context)
    member.join()
    cluster.delete("in")
    assert StreamsMember(context, "m2").refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (member.beat().member_epoch, member.statuses) == (2, [1])  # its tasks are to be given up
    assert [each.metadata_hash for each in epochs(context)][-1] == 0
    cluster.create("other", 1)
    member.beat(active_tasks=member.active, standby_tasks={}, warmup_tasks={})
    assert len(epochs(context)) == 2, "the topics of the group are what they were"


def test_a_topology_is_described_as_the_last_record_leaves_it(context: Context, cluster: Cluster) -> None:
    """A heartbeat that fails configures the topology for the next ones; others see it with the next record."""
    cluster.create("store", 4)
    member = StreamsMember(context, topology=(subtopology("0", ["in"], changelogs=[info("store")]),))

    def counts() -> list[int]:
        topology = context.machine.streams.describe(G).topology
        assert topology is not None
        return [each.partitions for part in topology.subtopologies or () for each in part.state_changelog_topics]

    member.join()
    assert counts() == [0], "what the first heartbeat configures is that of a group that is not there yet"
    member.beat()
    assert counts() == [0], "no record was written"
    member.beat(rack_id="r")
    assert counts() == [4]
    cluster.delete("in")
    other = StreamsMember(context, "m2", member.topology)
    assert other.refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert counts() == [4]
    context.commit("in", {0: 7}, group_id="another")
    assert counts() == [0]


# --- what is handed out of a target -----------------------------------------------------------------------------------


def test_a_refused_join_with_a_members_instance_id_takes_over_its_tasks(context: Context, cluster: Cluster) -> None:
    """As in 4.4.0, which moves them before it refuses: they are the member's again when the group is Stable."""
    cluster.create("more", 1)
    topology = (subtopology("0", ["in"]), subtopology("1", ["more"]))
    first, second = (StreamsMember(context, name, topology, process) for name, process in (("m1", "p1"), ("m2", "p2")))
    first.join(instance_id="i")
    second.join()
    promised = group(context).targets["m1"]
    stranger = StreamsMember(context, "m3", topology)
    assert stranger.refused_join(instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert (first.beat().member_epoch, first.active) == (2, {}), "it is to give up all of its tasks"
    assert group(context).targets["m1"] == promised
    first.confirm()
    for _ in range(2):
        second.confirm()
    assert group(context).state is State.STABLE
    before = group(context).assignment_timestamp_ms
    context.advance(5)
    first.confirm()
    assert (first.active, first.epoch) == ({name: sorted(each) for name, each in promised.active.items()}, 4)
    assert StreamsTargetEpoch(4, before) in [each.value for each in context.records if isinstance(each, StreamsRecord)]


@pytest.mark.parametrize("warmups", [2, 0])
def test_the_target_of_a_failed_heartbeat_is_handed_out_in_its_epoch(
    context: Context, cluster: Cluster, warmups: int
) -> None:
    """As in 4.4.0: the target of the next heartbeat is recorded, and comes with the epoch after that.

    Also if warm-up tasks were switched off meanwhile.
    """
    member, other = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    member.join()
    cluster.delete("in")
    assert StreamsMember(context, "m3").refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
    context.settings.values["group.streams.num.warmup.replicas"] = warmups
    cluster.create("in", 4)
    other.join()
    assert (other.epoch, other.active, group(context).targets["m2"].active) == (3, {}, {"0": frozenset({2, 3})})
    member.beat(active_tasks={}, standby_tasks={}, warmup_tasks={})
    assert (member.epoch, member.active) == (3, {})
    other.confirm()
    assert (other.epoch, other.active) == (4, {"0": [2, 3]})


def test_43_hands_out_its_targets(cluster: Cluster) -> None:
    """There, a refused heartbeat leaves nothing behind that others get."""
    context = bench(cluster, assignment_interval_ms=0)
    member, other = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    member.join()
    cluster.delete("in")
    assert StreamsMember(context, "m3").refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
    cluster.create("in", 4)
    other.join()
    member.beat(active_tasks={}, standby_tasks={}, warmup_tasks={})
    assert (member.epoch, other.epoch, member.active) == (3, 3, {"0": [0, 1]})


def test_a_group_without_warmup_tasks_hands_out_its_targets(cluster: Cluster) -> None:
    """Nothing of them is kept: no member gets what heartbeats leave behind that fail or are refused."""
    context = bench(cluster, newer=True, assignment_interval_ms=0, num_warmup_replicas=0)
    member, other = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    member.join(instance_id="i")
    cluster.delete("in")
    assert StreamsMember(context, "m3").refused_join(user_endpoint=HERE) is ErrorCode.UNKNOWN_SERVER_ERROR
    cluster.create("in", 4)
    other.join()
    assert StreamsMember(context, "m4").refused_join(instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID
    member.beat(active_tasks={}, standby_tasks={}, warmup_tasks={})
    assert (member.epoch, other.epoch, member.active) == (3, 3, {"0": [0, 1]})


# --- roles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("newer", "copies"), [(True, {"0": [1]}), (False, {})])
def test_a_task_becomes_a_standby_one_in_place(newer: bool, copies: dict[str, list[int]]) -> None:
    """In 4.4, while it is given up as an active one; in 4.3 afterwards."""
    cluster = Cluster()
    cluster.create("in", 2)
    cluster.create("store", 2)
    context = bench(cluster, newer=newer, assignment_interval_ms=0, num_standby_replicas=1)
    topology = (subtopology("0", ["in"], changelogs=[info("store")]),)
    first, second = (StreamsMember(context, name, topology, process) for name, process in (("m1", "p1"), ("m2", "p2")))
    first.join()
    second.join()
    first.confirm()
    assert (first.seen.state.name, first.active, first.standby) == ("UNREVOKED_TASKS", {"0": [0]}, copies)
    for _ in range(3):
        first.confirm()
        second.confirm()
    assert (first.active, first.standby) == ({"0": [0]}, {"0": [1]})
    assert (second.active, second.standby) == ({"0": [1]}, {"0": [0]})


COPY = TaskSets(standby={"0": frozenset({0})})


def promoted(newer: bool, owner: str | None) -> Member:
    """A member of p1 with a standby task that becomes active; ``owner`` is the process that still runs it."""
    member = Member("m1", process_id="p1", epoch=2, assigned=AssignedTasks(standby=COPY.standby))
    owners = TaskOwners()
    owners.add(member)
    if owner is not None:
        owners.add(Member("m2", process_id=owner, assigned=AssignedTasks({"0": {0: 2}})))
    return reconciled(member, TargetState(3, TaskSets({"0": frozenset({0})}), COPY, owners, newer))


def test_a_standby_task_becomes_active_in_place() -> None:
    """In 4.4, and it is kept until its active task is free; 4.3 has it given up first, wherever the active one is."""
    kept, gained = promoted(newer=True, owner="p2"), promoted(newer=True, owner=None)
    assert (kept.state, kept.epoch, kept.assigned) == (MemberState.UNRELEASED_TASKS, 3, AssignedTasks({}, COPY.standby))
    assert (gained.state, gained.epoch, gained.assigned) == (MemberState.STABLE, 3, AssignedTasks({"0": {0: 3}}))
    for owner in ("p2", None):
        revoked = promoted(newer=False, owner=owner)
        assert (revoked.state, revoked.epoch) == (MemberState.UNREVOKED_TASKS, 2)
        assert (revoked.assigned, revoked.revoking) == (AssignedTasks(), AssignedTasks({}, COPY.standby))


def test_a_task_of_another_member_of_the_process_is_not_taken_in_place() -> None:
    """Members of a process share its state stores."""
    member = Member("m1", process_id="p1", epoch=2)
    owners = TaskOwners()
    owners.add(Member("m2", process_id="p1", assigned=AssignedTasks(standby=COPY.standby)))
    for target in (TaskSets({"0": frozenset({0})}), COPY, TaskSets(warmup=COPY.standby)):
        after = reconciled(member, TargetState(3, target, TaskSets(), owners, newer=True))
        assert (after.state, after.assigned) == (MemberState.UNRELEASED_TASKS, AssignedTasks())
    free = reconciled(member, TargetState(3, COPY, TaskSets(), TaskOwners(), newer=True))
    assert (free.state, free.assigned) == (MemberState.STABLE, AssignedTasks(standby=COPY.standby))


def test_a_warmup_task_becomes_a_standby_one_in_place() -> None:
    """And a standby one a warm-up task: nothing is given up."""
    for before, after in ((COPY, TaskSets(warmup=COPY.standby)), (TaskSets(warmup=COPY.standby), COPY)):
        assigned = AssignedTasks({}, before.standby, before.warmup)
        member = Member("m1", process_id="p1", epoch=2, assigned=assigned)
        owners = TaskOwners()
        owners.add(member)
        reconciliation = reconciled(member, TargetState(3, after, before, owners, newer=True))
        assert (reconciliation.state, reconciliation.assigned.undated, reconciliation.revoking) == (
            MemberState.STABLE,
            after,
            AssignedTasks(),
        )


def test_a_subtopology_comes_once_in_a_list_of_tasks(context: Context) -> None:
    """UNKNOWN_SERVER_ERROR, but only for a member that has a target to reach; the same for a client tag."""
    member = StreamsMember(context)
    member.join()
    twice: dict[str, Any] = {"active_tasks": [("0", [0]), ("0", [1])], "standby_tasks": {}, "warmup_tasks": {}}
    assert member.beat(**twice).member_epoch == 2
    assert member.refused(rack_id="r", **twice) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.beat(rack_id="r").member_epoch == 3
    assert member.beat(2, **twice).member_epoch == 3, "its last epoch will do, since it has both tasks"
    beyond = {**twice, "active_tasks": [("0", [0]), ("0", [1]), ("0", [])]}
    assert member.beat(2, **beyond).member_epoch == 3
    nothing = {**twice, "active_tasks": {}, "standby_tasks": {"0": []}}
    assert member.refused(2, **nothing) is ErrorCode.FENCED_MEMBER_EPOCH, "not even of a subtopology that it has not"
    tags = [KeyValue("zone", "a"), KeyValue("zone", "b")]
    assert member.refused(client_tags=tags) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.beat(client_tags=tags[:1]).member_epoch == 4


# --- endpoints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("newer", "epoch"), [(True, 1), (False, 2)])
def test_a_join_with_the_same_tasks_and_endpoint(cluster: Cluster, newer: bool, epoch: int) -> None:
    """No news for others in 4.4; 4.3 counts every join."""
    context = bench(cluster, newer=newer, assignment_interval_ms=0)
    other, member = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    other.join()
    assert member.join(user_endpoint=HERE).endpoint_information_epoch == 1
    assert member.join(user_endpoint=HERE).endpoint_information_epoch == epoch


def test_the_first_response_of_a_group_that_offsets_have_made_has_an_endpoint_epoch(context: Context) -> None:
    """Such a group begins with an endpoint epoch; that of other new groups is 0."""
    fresh = bench(context.topics, newer=True)
    assert StreamsMember(fresh).join(user_endpoint=HERE).endpoint_information_epoch == 0
    context.commit("in", {0: 7})
    assert any(isinstance(each, OffsetCommit) for each in context.records)
    assert StreamsMember(context).join(user_endpoint=HERE).endpoint_information_epoch == 1


def test_members_are_in_the_order_of_kafkas_table(context: Context, cluster: Cluster) -> None:
    """With the sender last where endpoints are listed; targets in that of Java's, where two of them share a bucket."""
    cluster.delete("in")
    members = [StreamsMember(context, name, process_id=name) for name in ("T0", "T8", "T9", "T12", "T13", "T4")]
    for member in members:
        member.join()
    cluster.create("in", 6)
    written = len(context.records)
    members[-1].beat()
    records = [each for each in context.records[written:] if isinstance(each, StreamsRecord)]
    targets = [each.name for each in records if each.kind is StreamsKind.TARGET_MEMBER]
    assert targets == ["T4", "T12", "T8", "T9", "T13", "T0"]
    for n, member in enumerate(members):
        member.beat(user_endpoint=Endpoint(member.member_id, n))
    answer = members[-1].beat(endpoint_information_epoch=99)
    listed = [each.user_endpoint.host for each in answer.partitions_by_user_endpoint or ()]
    assert listed == ["T0", "T13", "T9", "T12", "T8", "T4"]


@pytest.mark.parametrize(("newer", "listed"), [(True, [("in", [2, 3])]), (False, [("in", [2, 3]), ("few", [2])])])
def test_partitions_behind_an_endpoint(newer: bool, listed: list[tuple[str, list[int]]]) -> None:
    """Those that the topic has, in 4.4; 4.3 lists as many numbers as it has partitions."""
    cluster = Cluster()
    cluster.create("in", 4)
    cluster.create("few", 1)
    context = bench(cluster, newer=newer, assignment_interval_ms=0)
    topology = (subtopology("0", ["in", "few"]),)
    first, second = (StreamsMember(context, name, topology, process) for name, process in (("m1", "p1"), ("m2", "p2")))
    first.join()
    second.join()
    first.confirm()
    first.confirm()
    second.beat(user_endpoint=HERE)
    (entry,) = second.result.response.partitions_by_user_endpoint or ()
    active_partitions = [(each.topic, list(each.partitions)) for each in entry.active_partitions]
    assert sorted(active_partitions) == sorted(listed)


def test_what_is_behind_endpoints_is_listed_once(context: Context, cluster: Cluster) -> None:
    """Again only when its member changes, or the topology is configured again."""
    member, other = StreamsMember(context), StreamsMember(context, "m2", process_id="p2")
    member.join(user_endpoint=HERE)
    other.join(user_endpoint=Endpoint("there", 2))

    def listed() -> Any:
        response = other.beat(endpoint_information_epoch=99)
        return next(each for each in response.partitions_by_user_endpoint or () if each.user_endpoint.host == "host")

    first = listed()
    assert listed() is first
    member.confirm()
    second = listed()
    assert (second is not first, listed() is second) == (True, True)
    cluster.grow("in", 5)
    member.beat()
    assert listed() is not second
    member.beat(-1)
    assert "m1" not in group(context).endpoints._cached


def test_a_heartbeat_without_news_costs_nothing_for_other_members(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks at none of them, copies no target and sorts no topics."""
    member = StreamsMember(context)
    member.join()
    member.beat()
    kept = group(context).targets

    def too_much(*_: object, **__: object) -> Any:
        raise AssertionError("a heartbeat goes through all of something")

    monkeypatch.setattr(TimelineMap, "values", too_much)
    monkeypatch.setattr("broker.coordination.group.modern.streams.topology.table_order", too_much)
    member.beat()
    assert group(context).refined.tasks is kept is group(context).targets


def test_an_endpoint_whose_repartition_topic_is_gone(context: Context, cluster: Cluster) -> None:
    """UNKNOWN_SERVER_ERROR, as Kafka, which expects the inputs of assigned tasks; status 3 for who asks for none."""
    cluster.create("between", 4)
    topology = (
        subtopology("0", ["in"], sinks=["between"]),
        subtopology("1", repartitions=[info("between")]),
    )
    member, other = StreamsMember(context, "m1", topology), StreamsMember(context, "m2", topology, "p2")
    member.join(user_endpoint=HERE)
    cluster.delete("between")
    assert other.refused_join(endpoint_information_epoch=7) is ErrorCode.UNKNOWN_SERVER_ERROR
    other.join()
    assert other.statuses == [3]
