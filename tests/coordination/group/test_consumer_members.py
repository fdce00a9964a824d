"""Consumer groups (KIP-848) at the machine: what is remembered of each step, and what comes back of it."""

from uuid import UUID

import pytest

from broker.coordination.group.group import GroupType
from broker.coordination.group.modern.consumer.member import Member, MemberState
from broker.coordination.group.modern.consumer.reconciliation import TargetState, reconciled
from broker.coordination.group.modern.consumer.states import State
from broker.coordination.group.modern.timers import session_timer
from broker.coordination.group.modern.topics import metadata_hash
from broker.settings.releases import release
from protocol.errors import ErrorCode
from protocol.log_records.consumer_group import (
    AssignedPartitions,
    ConsumerKind,
    ConsumerRecord,
    CurrentMember,
    GroupEpoch,
    MemberMetadata,
    TargetEpoch,
    TargetMember,
    TargetPartitions,
)
from protocol.log_records.group import GroupMetadata, GroupMetadataTombstone
from tests.coordination.group.consumer_harness import Cluster, Consumer, Topic, group
from tests.coordination.group.harness import START_MS, Client, Context, G

K = ConsumerKind


@pytest.fixture
def cluster() -> Cluster:
    """With the topic foo of three partitions."""
    topics = Cluster()
    topics.create("foo", 3)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard that knows it."""
    return Context(topics=cluster)


def kinds(context: Context, since: int = 0) -> list[tuple[int, str, bool]]:
    """Kind, name and whether it is a tombstone, of the consumer records from there on."""
    records = [record for record in context.records[since:] if isinstance(record, ConsumerRecord)]
    return [(record.kind, record.name, record.value is None) for record in records]


def test_a_member_that_is_there_stays_although_its_heartbeats_cannot_be_remembered(context: Context) -> None:
    """Its session begins again with each of them; who has joined in vain has none."""
    member = Consumer(context)
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
    assert member.refused(0, **joining) is ErrorCode.MESSAGE_TOO_LARGE
    assert context.due_in(*session_timer(GroupType.CONSUMER, G, "m1")) is None
    member.join()
    for _ in range(2):
        context.advance(30_000)
        context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
        assert member.refused(subscribed_topic_names=["foo", "bar"]) is ErrorCode.MESSAGE_TOO_LARGE
    assert context.due_in(*session_timer(GroupType.CONSUMER, G, "m1")) == 45_000
    assert member.seen.subscribed == {"foo"}


def test_a_first_join_writes_five_records(context: Context, cluster: Cluster) -> None:
    """In Kafka's order: the member, the group's epoch, the target, where the member is."""
    Consumer(context).join()
    foo = cluster.by_name["foo"].id
    hashed = group(context).metadata_hash
    assert hashed
    assert context.records == [
        ConsumerRecord.of(G, MemberMetadata(None, None, "client", "/127.0.0.1", ("foo",), "", 60_000), "m1"),
        ConsumerRecord.of(G, GroupEpoch(2, hashed)),
        ConsumerRecord.of(G, TargetMember((TargetPartitions(foo, (0, 1, 2)),)), "m1"),
        ConsumerRecord.of(G, TargetEpoch(2, START_MS)),
        ConsumerRecord.of(G, CurrentMember(2, 0, 0, (AssignedPartitions(foo, (0, 1, 2), (2, 2, 2)),)), "m1"),
    ]


def test_the_hash_of_topics_is_kafkas() -> None:
    """As a broker of 4.3.1 wrote it for two topics of these ids, without racks; another order is the same."""
    topics = Cluster()
    topics.by_name["foo"] = Topic("foo", UUID("b0f08347-baf1-4798-ae4a-30261d25b188"), 3)
    topics.by_name["bar"] = Topic("bar", UUID("d1abdb3c-a021-4295-8172-52eb5f07f02d"), 2)
    assert metadata_hash(["foo", "gone", "bar"], topics) == metadata_hash(["bar", "foo"], topics) == 5249340758896950692
    assert metadata_hash(["gone"], topics) == 0


def test_a_heartbeat_without_news_writes_nothing(context: Context) -> None:
    """It starts the member's session timer again."""
    member = Consumer(context)
    member.join()
    context.advance(44_999)
    before = len(context.log)
    member.beat()
    assert (len(context.log), context.due_in(*session_timer(GroupType.CONSUMER, G, "m1"))) == (before, 45_000)


def test_leaving_writes_tombstones_and_an_epoch(context: Context) -> None:
    """The member's three records; then the group's epoch, which the assignment of the empty group has too since 4.4."""
    Consumer(context).join()
    before = len(context.log)
    Consumer(context).beat(-1)
    assert kinds(context, before) == [
        (K.CURRENT_MEMBER, "m1", True),
        (K.TARGET_MEMBER, "m1", True),
        (K.MEMBER_METADATA, "m1", True),
        (K.GROUP_METADATA, "", False),
        (K.TARGET_METADATA, "", False),
    ]
    assert (group(context).state, group(context).epoch) == (State.EMPTY, 3)
    assert list(context.timers) == [("offset-expiry",)]


def test_a_deleted_group_leaves_tombstones_of_everything(context: Context) -> None:
    """Targets and epochs too; then it is not there, nor after a load."""
    Consumer(context).join()
    Consumer(context).beat(-1)
    before = len(context.log)
    context.ask(lambda to: context.machine.delete_groups([G], context.now_ms, to))
    gone = [(K.TARGET_METADATA, "", True), (K.PARTITION_METADATA, "", True), (K.GROUP_METADATA, "", True)]
    assert kinds(context, before) == gone
    assert not context.machine.groups
    assert not context.reloaded().machine.groups


def test_a_static_member_returns_under_another_id(context: Context) -> None:
    """Three tombstones for the old id; metadata, target and current assignment for the new one."""
    Consumer(context, instance_id="i").join()
    Consumer(context, instance_id="i").beat(-2)
    assert (group(context).member("m1").epoch, group(context).epoch) == (-2, 2)
    before = len(context.log)
    heir = Consumer(context, "m2", instance_id="i")
    answer = heir.join()
    assert (answer.member_epoch, [len(owned) for owned in heir.owned.values()]) == (2, [3])
    assert kinds(context, before) == [
        *((kind, "m1", True) for kind in (K.CURRENT_MEMBER, K.TARGET_MEMBER, K.MEMBER_METADATA)),
        *((kind, "m2", False) for kind in (K.MEMBER_METADATA, K.TARGET_MEMBER, K.CURRENT_MEMBER)),
        (K.CURRENT_MEMBER, "m2", False),
    ]
    assert context.due_in(*session_timer(GroupType.CONSUMER, G, "m1")) is None
    epochs = {epoch for epochs in heir.seen.assigned.values() for epoch in epochs.values()}
    assert epochs == {0}  # partitions of a member that was away have no epoch of their own


def test_a_timer_whose_records_are_refused_comes_again(context: Context) -> None:
    """A timer whose records the log refuses fires again half a second later."""
    Consumer(context).join()
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    context.advance(45_000)
    assert (group(context).state, context.due_in(*session_timer(GroupType.CONSUMER, G, "m1"))) == (State.STABLE, 500)
    context.advance(500)
    assert group(context).state is State.EMPTY


def test_a_refused_append_changes_nothing(context: Context) -> None:
    """The group is not even made; the next one makes it."""
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    member = Consumer(context)
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    assert member.refused(0, **first_heartbeat) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert not context.machine.groups
    assert member.join().member_epoch == 2


def test_an_empty_group_changes_its_kind(context: Context) -> None:
    """Both ways, with a tombstone of what it was before; its offsets stay."""
    context.commit("foo", {0: 5})
    before = len(context.log)
    Consumer(context).join()
    assert isinstance(context.records[before], GroupMetadataTombstone)
    Consumer(context).beat(-1)
    before = len(context.log)
    Client(context).start()
    assert kinds(context, before)[-1] == (K.GROUP_METADATA, "", True)
    assert isinstance(context.records[-1], GroupMetadata)
    assert context.offset("foo") == 5
    assert context.reloaded().group().is_empty


def test_any_prefix_of_the_log_is_loaded(context: Context, cluster: Cluster) -> None:
    """Members and epochs as they were; nothing is written by loading, and nothing is held twice."""
    first, second = Consumer(context), Consumer(context, "m2", instance_id="i")
    first.join()
    context.advance(1_000)
    second.join()
    for _ in range(3):
        first.keeps_up()
        second.keeps_up()
    cluster.create("bar", 2)
    first.beat(subscribed_topic_names=["foo", "bar"])
    context.advance(1_000)
    second.keeps_up()
    second.beat(-2)
    first.beat(-1)
    for size in range(len(context.log) + 1):
        again = context.reloaded(size)
        assert len(again.log) == size
    again = context.reloaded()
    for name in ("epoch", "assignment_epoch", "metadata_hash", "targets", "static_members", "assignment_timestamp_ms"):
        assert getattr(group(again), name) == getattr(group(context), name)
    assert {m.member_id: m for m in group(again).members.values()} == {
        m.member_id: m for m in group(context).members.values()
    }


def test_a_reloaded_coordinator_knows_which_members_revoke_partitions(context: Context) -> None:
    """Session timers start again, and so do the timeouts for revoked partitions (groups C.11)."""
    first = Consumer(context, rebalance_ms=7_000)
    first.join()
    context.advance(1_000)
    Consumer(context, "m2").join()
    first.beat()
    assert first.seen.state is MemberState.UNREVOKED_PARTITIONS
    again = context.reloaded()
    assert again.due_in("consumer-rebalance", G, "m1") == 7_000
    assert again.due_in(*session_timer(GroupType.CONSUMER, G, "m2")) == 45_000
    again.advance(7_000)
    assert [member.member_id for member in group(again).members.values()] == ["m2"]


@pytest.mark.parametrize(("name", "again"), [("4.3", True), ("4.4", False)])
def test_the_target_of_a_replacement_is_written_when_it_differs(cluster: Cluster, name: str, again: bool) -> None:
    """Up to 4.3 always, as the member id had none (``UpdatedMembersAndTargetAssignmentView``)."""
    context = Context(topics=cluster, behaves=release(name).has)
    Consumer(context, instance_id="i", topics=["none"]).join()
    Consumer(context, instance_id="i").beat(-2)
    context.advance(1_000)
    before = len(context.records)
    Consumer(context, "m2", instance_id="i", topics=["none", "other"]).join()
    written = kinds(context, before)
    assert written.count((K.TARGET_MEMBER, "m2", False)) == 1 + again
    assert (K.TARGET_METADATA, "", False) in written


def test_targets_of_members_in_one_bucket_are_written_in_the_order_of_the_groups_own_table(cluster: Cluster) -> None:
    """Both names fall into one bucket of the assignor's table; they enter it as Kafka's timeline table lists them."""
    cluster.create("wide", 6)
    context = Context(topics=cluster)
    for name in ("m0", "m38"):
        Consumer(context, name, topics=["wide"]).join()
        context.advance(1_000)
    before = len(context.records)
    Consumer(context, "z", topics=["wide"]).join()
    written = [name for kind, name, _ in kinds(context, before) if kind is K.TARGET_MEMBER]
    assert [name for name in written if name != "z"] == ["m38", "m0"]


def test_topics_that_do_not_exist_are_subscribed_to(context: Context) -> None:
    """A member is written again without partitions only if it names no topic (``updateCurrentAssignment``)."""
    consumer = Consumer(context, topics=["none"])
    consumer.join()
    before = len(context.records)
    consumer.beat(subscribed_topic_regex="^other")
    assert (K.CURRENT_MEMBER, "m1", False) not in kinds(context, before)
    before = len(context.records)
    consumer.beat(subscribed_topic_names=[])
    assert (K.CURRENT_MEMBER, "m1", False) in kinds(context, before)


def test_a_kept_assignment_is_in_the_order_of_a_copied_map(cluster: Cluster) -> None:
    """A copy of two entries has four buckets: partition 4 comes before 3."""
    foo = cluster.by_name["foo"].id
    member = Member("m", epoch=5, state=MemberState.UNRELEASED_PARTITIONS, assigned={foo: {3: 5, 4: 5}})
    goal = TargetState(5, {foo: frozenset({2, 3, 4})}, None, False, True, {foo}, lambda *_: 4)
    assert list(reconciled(member, goal).assigned[foo]) == [4, 3]
    written = reconciled(member, goal).current_record(G).value
    assert isinstance(written, CurrentMember)
    assert list(Member("m").is_at(written).assigned[foo]) == [3, 4]


def test_expressions_are_resolved_after_a_heartbeat_that_the_log_refuses(context: Context) -> None:
    """The next heartbeat asks for it again; of two that ask in one turn, one is enough."""
    member = Consumer(context, topics=None, regex="f.*")
    context.refuse_append = ErrorCode.NOT_ENOUGH_REPLICAS
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_regex": "f.*", "topic_partitions": []}
    assert member.refused(0, **first_heartbeat) is ErrorCode.NOT_ENOUGH_REPLICAS
    context.turn()
    assert not context.machine.groups
    member.join()
    Consumer(context, "m2", topics=None, regex="fo+").join()
    before = len(context.log)
    context.turn()
    assert [name for kind, name, _ in kinds(context, before) if kind == K.REGULAR_EXPRESSION] == ["f.*"]
    context.advance(10_001)
    member.beat()
    before = len(context.log)
    context.turn()
    assert [name for kind, name, _ in kinds(context, before) if kind == K.REGULAR_EXPRESSION] == ["f.*", "fo+"]


@pytest.mark.parametrize(
    ("configured", "name"),
    [
        ("org.apache.kafka.coordinator.group.assignor.RangeAssignor", "range"),
        ("org.apache.kafka.coordinator.group.assignor.UniformAssignor", "uniform"),
        ("com.example.Assignor", "com.example.Assignor"),
    ],
)
def test_assignors_may_be_configured_by_their_classes(context: Context, configured: str, name: str) -> None:
    """Clients name them as the classes do; a class that is not Kafka's assigns uniformly."""
    context.settings.values["group.consumer.assignors"] = (configured,)
    first, second = Consumer(context), Consumer(context, "m2")
    first.join(server_assignor=name)
    assert context.machine.consumers.describe(G).assignor_name == name
    context.advance(1_000)
    second.join()
    first.beat()
    assert [len(each) for each in first.owned.values()] == [2]


def test_partitions_that_are_given_up_are_described_behind_the_others(context: Context) -> None:
    """Partitions being revoked are described behind the others, as 4.3.1 and 4.4.0 do."""
    member = Consumer(context)
    member.join(server_assignor="range")
    context.advance(1_000)
    Consumer(context, "a").join()
    member.beat()
    assert member.seen.state is MemberState.UNREVOKED_PARTITIONS
    described = {each.member_id: each for each in context.machine.consumers.describe(G).members}
    (topic,) = described["m1"].assignment.topic_partitions
    assert list(topic.partitions) == [2, 0, 1]
