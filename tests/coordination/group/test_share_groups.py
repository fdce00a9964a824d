"""Share groups: members, epochs, assignment, initialization and administration (groups D.1, D.2, D.10)."""

from typing import Any

import pytest

from broker.coordination.group.group import Joiner
from broker.coordination.group.modern.share.offsets import AlteredOffsets, Deletion, ShareOffsets
from broker.settings.releases import release
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.share_group import (
    ShareGroupEpoch,
    ShareGroupKind,
    ShareGroupRecord,
    ShareTargetEpoch,
    StatePartitions,
    StateTopic,
)
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.coordination.group.consumer_harness import Cluster
from tests.coordination.group.harness import Answer, Context, G
from tests.coordination.group.share_harness import (
    INTERVAL_MS,
    RETRY_MS,
    SESSION_MS,
    ShareConsumer,
    assembled,
    group,
    initialize,
)


@pytest.fixture
def cluster() -> Cluster:
    """With the topics foo (3 partitions) and bar (2)."""
    topics = Cluster()
    topics.create("foo", 3)
    topics.create("bar", 2)
    return topics


@pytest.fixture
def context(cluster: Cluster) -> Context:
    """A shard without groups."""
    return Context(topics=cluster)


def test_a_member_that_is_there_stays_although_its_heartbeats_cannot_be_remembered(context: Context) -> None:
    """Its session begins again with each of them."""
    member = ShareConsumer(context)
    member.join()
    for _ in range(2):
        context.advance(SESSION_MS - 1)
        context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
        assert member.refused(subscribed_topic_names=["foo", "bar"]) is ErrorCode.MESSAGE_TOO_LARGE
    assert context.due_in("share-session", G, member.member_id) == SESSION_MS


def test_records_of_the_first_heartbeats(context: Context, cluster: Cluster) -> None:
    """In Kafka's order; the initialization is the last record."""
    ShareConsumer(context).join()
    kinds = [record.kind for record in context.records if isinstance(record, ShareGroupRecord)]
    assert kinds == [
        ShareGroupKind.MEMBER_METADATA,
        ShareGroupKind.GROUP_METADATA,
        ShareGroupKind.TARGET_MEMBER,
        ShareGroupKind.TARGET_METADATA,
        ShareGroupKind.CURRENT_MEMBER,
        ShareGroupKind.STATE_PARTITIONS,
    ]
    foo = cluster.by_name["foo"].id
    initialize(context)
    topic = StateTopic(foo, "foo", (0, 1, 2))
    assert [record.value for record in context.records[-2:] if isinstance(record, ShareGroupRecord)] == [
        StatePartitions((topic,), (), ()),
        StatePartitions((), (topic,), ()),
    ]


@pytest.mark.parametrize(
    ("epoch", "fields", "code"),
    [
        (0, {}, ErrorCode.INVALID_REQUEST),
        (0, {"subscribed_topic_names": []}, ErrorCode.INVALID_REQUEST),
        (-2, {}, ErrorCode.INVALID_REQUEST),
        (2, {"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        (2, {}, ErrorCode.GROUP_ID_NOT_FOUND),
        (-1, {}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_SHR_03_and_05_heartbeats_that_are_refused(
    context: Context, epoch: int, fields: dict[str, Any], code: ErrorCode
) -> None:
    """Without topics, with an epoch that means nothing, and to a group that is not there."""
    assert ShareConsumer(context).refused(epoch, **fields) is code
    assert not context.records


def test_SHR_05_members_are_fenced_by_their_epochs(context: Context) -> None:
    """A greater one; a smaller one unless it is the previous one; a stranger."""
    member = ShareConsumer(context)
    assembled(context, member)
    assert member.epoch == 3
    assert member.refused(4) is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.refused(1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert member.beat(2).member_epoch == 3
    assert ShareConsumer(context, "m2").refused(3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert ShareConsumer(context, "m2").refused(-1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_SHR_04_members_share_partitions(context: Context) -> None:
    """Four members, three partitions: each partition has an owner, each member a partition."""
    members = [ShareConsumer(context, f"m{number}") for number in range(4)]
    assembled(context, *members)
    owned = [sorted(index for indexes in member.owned.values() for index in indexes) for member in members]
    assert {index for indexes in owned for index in indexes} == {0, 1, 2}
    assert sorted(map(len, owned)) == [1, 1, 2, 2]


@pytest.mark.parametrize("silent", [True, False])
def test_SHR_06_members_that_go(context: Context, silent: bool) -> None:
    """By a heartbeat or by silence: three tombstones and a new epoch; a group without members is Empty."""
    first, second = ShareConsumer(context, "m1"), ShareConsumer(context, "m2")
    assembled(context, first, second)
    epoch, written = group(context).epoch, len(context.records)
    if silent:
        for _ in range(10):
            context.advance(SESSION_MS // 9)
            first.beat()
    else:
        assert second.beat(-1).member_epoch == -1
        assert second.epoch == -1
    kinds = [record.kind for record in context.records[written:] if isinstance(record, ShareGroupRecord)]
    assert kinds[:4] == [
        ShareGroupKind.CURRENT_MEMBER,
        ShareGroupKind.TARGET_MEMBER,
        ShareGroupKind.MEMBER_METADATA,
        ShareGroupKind.GROUP_METADATA,
    ]
    assert list(group(context).members) == ["m1"]
    assert group(context).epoch == epoch + 1
    first.beat(-1)
    assert (group(context).state_name, group(context).is_empty) == ("Empty", True)
    assert not [key for key in context.timers if "share-session" in str(key)]


@pytest.mark.parametrize(("name", "moves"), [("4.3", False), ("4.4", True)])
def test_the_assignment_of_an_emptied_group(cluster: Cluster, name: str, moves: bool) -> None:
    """Since 4.4 the assignment has the group's epoch."""
    context = Context(topics=cluster, behaves=release(name).has)
    member = ShareConsumer(context)
    assembled(context, member)
    member.beat(-1)
    assert (group(context).assignment_epoch == group(context).epoch) is moves
    last = context.records[-1]
    assert isinstance(last, ShareGroupRecord)
    assert isinstance(last.value, ShareTargetEpoch if moves else ShareGroupEpoch)


def test_a_full_group_takes_no_further_member(cluster: Cluster) -> None:
    """A full share group refuses another member, and its members' heartbeats succeed."""
    context = Context({"group.share.max.size": 1}, topics=cluster)
    member = ShareConsumer(context)
    assembled(context, member)
    refused = ShareConsumer(context, "m2").refused(0, subscribed_topic_names=["foo"])
    assert refused is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.beat().error_code is ErrorCode.NONE


def test_SHR_39_kinds_exclude_each_other(context: Context) -> None:
    """A share group takes no classic member and no commit; the id of another kind is no share group."""
    ShareConsumer(context).join()
    request = JoinGroupRequest(G, 10_000, "", "consumer", [JoinGroupRequestProtocol("range", b"")], 10_000)
    joiner = Joiner("c", "/127.0.0.1", needs_member_id=True, skips_assignment=False)
    answer = context.ask(lambda to: context.machine.join(request, joiner, context.now_ms, to))
    assert answer.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert context.commit("foo", {0: 1}) is ErrorCode.GROUP_ID_NOT_FOUND
    other = Context(topics=context.topics)
    assert other.commit("foo", {0: 1}) == {0: ErrorCode.NONE}
    assert ShareConsumer(other).refused(0, subscribed_topic_names=["foo"]) is ErrorCode.GROUP_ID_NOT_FOUND


def test_an_initialization_that_fails_is_tried_again(context: Context) -> None:
    """By the next heartbeat; one without an answer after the retry interval, and one in progress not at all."""
    member = ShareConsumer(context)
    member.join()
    member.beat()
    assert len(initialize(context, failed=True)) == 1
    assert not group(context).partitions.initializing
    member.beat()
    assert len(context.initializations) == 1
    context.advance(RETRY_MS - 1)
    member.beat()
    assert len(context.initializations) == 1
    context.advance(1)
    member.beat()
    assert len(context.initializations) == 2


def test_an_initialization_counts_from_the_last_record_of_partitions(context: Context, cluster: Cluster) -> None:
    """The record has all of them; reading it begins the retry interval of each (``GroupMetadataManager.replay``)."""
    member = ShareConsumer(context)
    member.join()
    context.advance(RETRY_MS - 1)
    cluster.create("late", 1)
    member.beat(subscribed_topic_names=["foo", "late"])
    foo, late = cluster.by_name["foo"].id, cluster.by_name["late"].id
    assert [list(each.offsets) for each in context.initializations] == [[foo], [late]]
    context.advance(RETRY_MS - 1)
    member.beat()
    assert len(context.initializations) == 2
    context.advance(1)
    member.beat()
    assert sorted(context.initializations[-1].offsets) == sorted([foo, late])


@pytest.mark.parametrize(("name", "start"), [("4.3", -1), ("4.4", 0)])
def test_partitions_that_come_later(cluster: Cluster, name: str, start: int) -> None:
    """Begin at their first record since 4.4, so that no record is lost; topics that come later do not."""
    context = Context(topics=cluster, behaves=release(name).has)
    member = ShareConsumer(context, topics=("foo", "bar"))
    assembled(context, member)
    foo = cluster.by_name["foo"].id
    cluster.grow("foo", 5)
    cluster.create("new", 1)
    member.beat(subscribed_topic_names=["foo", "bar", "new"])
    (initialization,) = initialize(context)
    assert initialization.offsets == {foo: {3: start, 4: start}, cluster.by_name["new"].id: {0: -1}}
    context.advance(INTERVAL_MS)
    member.beat()
    assert member.owned[foo] == [0, 1, 2, 3, 4]


def test_a_deleted_topic_leaves_the_lists(context: Context, cluster: Cluster) -> None:
    """Its partitions leave the assignment with the next epoch."""
    member = ShareConsumer(context, topics=("foo", "bar"))
    assembled(context, member)
    foo = cluster.by_name["foo"].id
    cluster.delete("foo")
    context.perform(context.machine.topic_deleted("foo", foo, context.now_ms))
    assert group(context).partitions.initialized.keys() == {cluster.by_name["bar"].id}
    context.advance(INTERVAL_MS)
    member.beat()
    assert foo not in member.owned


def test_a_deleted_topic_leaves_the_assignment_before_the_next_target(context: Context, cluster: Cluster) -> None:
    """With the heartbeat that raises the group's epoch, though the assignment interval lasts (groups D.1 S7)."""
    member = ShareConsumer(context, topics=("foo", "bar"))
    member.join()
    initialize(context)
    context.advance(INTERVAL_MS)
    epoch = member.beat().member_epoch
    foo, bar = cluster.by_name["foo"].id, cluster.by_name["bar"].id
    assert member.owned.keys() == {foo, bar}
    cluster.delete("foo")
    context.perform(context.machine.topic_deleted("foo", foo, context.now_ms))
    assert member.beat().member_epoch == epoch
    assert member.owned.keys() == {bar}
    assert (group(context).epoch, group(context).assignment_epoch) == (epoch + 1, epoch)


def test_a_group_is_as_it_was_after_each_prefix_of_its_log(context: Context) -> None:
    """Members, targets, epochs and lists; the sessions begin again."""
    first, second = ShareConsumer(context, "m1"), ShareConsumer(context, "m2", ("foo", "bar"))
    assembled(context, first, second)
    first.beat(-1)
    again = context.reloaded()
    for name in ("epoch", "assignment_epoch", "metadata_hash", "targets", "partitions"):
        assert getattr(group(again), name) == getattr(group(context), name)
    assert list(group(again).members.values()) == list(group(context).members.values())
    assert again.timers.keys() >= {("share-session", G, "m2")}
    for entries in range(len(context.log)):
        context.reloaded(entries)
    second.context = again
    assert second.beat().error_code is ErrorCode.NONE


# --- administration ------------------------------------------------------------------------------------------------


def change(context: Context, operation: Any) -> Any:
    """The reply of an operation on the share partitions, or its code."""
    machine, answer = context.machine, Answer()
    try:
        context.perform(
            machine.shares.changed(context.now_ms, lambda offsets, builder: operation(offsets, builder, answer))
        )
    except KafkaError as error:
        return error.code
    return answer.message


def test_SHR_34_and_35_offsets_are_altered_while_there_are_no_members(context: Context, cluster: Cluster) -> None:
    """An absent group is made by it; members prevent it."""
    foo = cluster.by_name["foo"].id

    def alter(offsets: ShareOffsets, builder: Any, to: Answer) -> None:
        offsets.alter(builder, G, [("foo", {0: 7})], to)

    assert change(context, alter) == AlteredOffsets(1, {foo: {0: 7}})
    assert group(context).partitions.initializing[foo].partitions == {0}
    assert group(context).state_name == "Empty"
    context.perform(context.machine.shares.state_created(G, {foo: [0]}, context.now_ms, failed=False))
    assert context.machine.shares.initialized_partitions(G) == {foo: {0}}
    ShareConsumer(context).join()
    assert change(context, alter) is ErrorCode.NON_EMPTY_GROUP


def test_SHR_36_deletion_of_a_topics_state(context: Context, cluster: Cluster) -> None:
    """Topics without a state are named; others are deleting until the share coordinator has answered."""
    foo = cluster.by_name["foo"].id

    def begin(offsets: ShareOffsets, builder: Any, to: Answer) -> None:
        offsets.begin_deletion(builder, G, ["foo", "bar"], to)

    assert change(context, begin) is ErrorCode.GROUP_ID_NOT_FOUND
    member = ShareConsumer(context)
    assembled(context, member)
    assert change(context, begin) is ErrorCode.NON_EMPTY_GROUP
    member.beat(-1)
    deletion = Deletion({foo: frozenset({0, 1, 2})}, {foo: "foo"}, ("bar",))
    assert change(context, begin) == deletion
    assert group(context).partitions.deleting == {foo: "foo"}
    assert change(context, begin) == deletion
    assert change(context, lambda offsets, builder, to: offsets.deleted(builder, G, [foo], to)) is None
    assert group(context).partitions.topic_ids == frozenset()


def test_SHR_37_a_group_is_deleted_with_its_state(context: Context, cluster: Cluster) -> None:
    """First the state moves to deleting, then the group goes; it never expires by itself."""
    foo = cluster.by_name["foo"].id

    def begin(offsets: ShareOffsets, builder: Any, to: Answer) -> None:
        offsets.begin_group_deletion(builder, G, to)

    assert change(context, begin) == Deletion()
    member = ShareConsumer(context)
    assembled(context, member)
    assert change(context, begin) is ErrorCode.NON_EMPTY_GROUP
    member.beat(-1)
    context.advance(700_000)
    assert G in context.machine.groups
    assert change(context, begin) == Deletion({foo: frozenset({0, 1, 2})}, {foo: "foo"})
    answer = context.ask(lambda to: context.machine.delete_groups([G], context.now_ms, to))
    assert [result.error_code for result in answer.message] == [ErrorCode.NONE]
    assert G not in context.machine.groups
    assert G not in context.reloaded().machine.groups
