"""Groups that go over between the protocols, at the machine (groups C.10): what is remembered, who is called back."""

import struct

import pytest

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.group import GroupType
from broker.coordination.group.modern.consumer.member import MemberState
from broker.coordination.group.modern.consumer.timers import join_timer, sync_timer
from broker.coordination.group.modern.timers import rebalance_timer, session_timer
from broker.coordination.group.outcome_builder import GroupOutcome
from broker.settings.releases import release
from protocol.consumer_protocol import read_assignment, read_subscription, write_assignment
from protocol.errors import ErrorCode
from protocol.java import HashMap, TimelineMap
from protocol.log_records.consumer_group import ConsumerKind, ConsumerRecord
from protocol.log_records.group import GroupMetadata, GroupMetadataTombstone
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.group.consumer_harness import Cluster, Consumer, group
from tests.coordination.group.harness import Client, Context, G, assembled, stable
from tests.coordination.group.subscriptions import subscription

K = ConsumerKind
FOO = write_assignment({"foo": [0, 1, 2]}, 1)
OWNS_FOO = struct.pack(">hih3siih3siiii", 1, 1, 3, b"foo", -1, 1, 3, b"foo", 3, 0, 1, 2)
"""A subscription of a member that has all of foo."""


@pytest.fixture
def context() -> Context:
    """A shard that knows the topic foo of three partitions."""
    cluster = Cluster()
    cluster.create("foo", 3)
    return Context(topics=cluster)


def classic(context: Context, **more: object) -> Client:
    """A member of a stable classic group, with all of foo."""
    member = Client(context, [("range", subscription("foo"))], **more)  # type: ignore[arg-type]
    member.start()
    context.advance(0)
    member.joined()
    assert member.sync({member.member_id: FOO}).code is ErrorCode.NONE
    return member


def test_a_classic_group_goes_over(context: Context) -> None:
    """Its tombstone, its members and their target as they were, then the newcomer's records."""
    old = classic(context)
    before = len(context.log)
    new = Consumer(context, "new")
    assert (new.join().member_epoch, new.owned) == (2, {})
    changes = [(each.reason.kind, each.state_before, each.state_after) for each in context.last.changes]
    assert changes == [
        ("became a consumer group", "Stable", "Stable"),
        ("member joined", "Stable", "Stable"),
        ("members reconcile with the target assignment", "Stable", "Reconciling"),
    ]
    assert isinstance(context.records[before], GroupMetadataTombstone)
    consumer_records = [
        (each.kind, each.name) for each in context.records[before + 1 :] if isinstance(each, ConsumerRecord)
    ]
    assert consumer_records == [
        (K.MEMBER_METADATA, old.member_id),
        (K.GROUP_METADATA, ""),
        (K.TARGET_MEMBER, old.member_id),
        (K.TARGET_METADATA, ""),
        (K.CURRENT_MEMBER, old.member_id),
        (K.MEMBER_METADATA, "new"),
        (K.GROUP_METADATA, ""),
        (K.TARGET_MEMBER, "new"),
        (K.TARGET_MEMBER, old.member_id),
        (K.TARGET_METADATA, ""),
        (K.CURRENT_MEMBER, "new"),
    ]
    assert context.due_in(*session_timer(GroupType.CONSUMER, G, old.member_id)) == 10_000
    assert context.due_in("member", G, old.member_id) is None
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    for size in range(len(context.log) + 1):
        assert len(context.reloaded(size).log) == size


def test_parked_requests_are_sent_back_to_join(context: Context) -> None:
    """They get REBALANCE_IN_PROGRESS; the member is in the consumer group already."""
    old = classic(context)
    late = Client(context, [("range", subscription("foo"))]).start()
    assert late.parked.parked
    Consumer(context, "new").join()
    assert late.parked.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert late.heartbeat() is ErrorCode.ILLEGAL_GENERATION  # it is a member already
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_a_policy_that_keeps_a_classic_group(context: Context, policy: str) -> None:
    """With a policy that forbids it, in any case of letters, a classic group is not converted."""
    old = classic(context)
    context.settings.values["group.consumer.migration.policy"] = policy
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.GROUP_ID_NOT_FOUND
    assert old.heartbeat() is ErrorCode.NONE


def test_a_custom_assignor_keeps_a_classic_group(context: Context) -> None:
    """Its assignment cannot be read, so the group cannot be converted."""
    member = Client(context, [("range", subscription("foo"))])
    stable(member)
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.GROUP_ID_NOT_FOUND


def test_the_last_consumer_turns_the_group_back(context: Context) -> None:
    """Everything of the consumer group goes, and a classic one is there with its members' targets, before and after."""
    first = Consumer(context)
    first.join()
    context.advance(1_000)
    late = Client(context, [("range", subscription("foo"))])
    late.join()
    epoch, before = group(context).epoch, len(context.log)
    first.beat(-1)
    *gone, last = context.records[before:]
    assert all(isinstance(each, ConsumerRecord) and each.value is None for each in gone)
    assert isinstance(last, GroupMetadata)
    assert (last.generation, last.leader, last.protocol) == (epoch, late.member_id, "range")
    again = context.reloaded().machine.groups[G]
    assert isinstance(again, ClassicGroup)
    assert again.state_name == "Stable"
    assert late.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    late.start()
    assert late.joined().generation_id == epoch + 1


@pytest.mark.parametrize("others", range(1, 6))
def test_who_takes_the_last_consumers_place_does_not_lead(context: Context, others: int) -> None:
    """Kafka adds the replacement behind the others, wherever its place in their table is, and the first one leads."""
    Consumer(context, instance_id="i").join()
    context.advance(1_000)
    for _ in range(others):
        Client(context, [("range", subscription("foo"))]).join()
    heir = Client(context, [("range", subscription("foo"))], instance_id="i").start()
    last = next(each for each in reversed(context.records) if isinstance(each, GroupMetadata))
    ids = [each.member_id for each in last.members]
    assert (len(ids), heir.joined().member_id in ids) == (others + 1, True)
    assert last.leader == next(each for each in ids if each != heir.joined().member_id)


def test_the_reason_of_a_group_that_turns_back(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last consumer leaves: first the change of the kind, then the rebalance that calls the members back."""
    classic(context)
    new = Consumer(context, "new")
    new.join()
    kinds: list[str] = []
    perform = Context.perform

    def noted(bench: Context, outcome: GroupOutcome) -> None:
        kinds.extend(change.reason.kind for change in outcome.changes)
        perform(bench, outcome)

    monkeypatch.setattr(Context, "perform", noted)
    new.beat(epoch=-1)
    assert kinds == ["member left", "became a classic group", "a rebalance begins"]


def test_without_downgrade_it_stays_a_consumer_group(context: Context) -> None:
    """Also when only classic members are left."""
    first = Consumer(context)
    first.join()
    late = Client(context, [("range", subscription("foo"))])
    late.join()
    context.settings.values["group.consumer.migration.policy"] = "upgrade"
    first.beat(-1)
    assert [member.member_id for member in group(context).members.values()] == [late.member_id]
    assert context.leave(MemberIdentity(late.member_id)).members[0].error_code is ErrorCode.NONE
    assert group(context).is_empty


def test_a_classic_member_that_does_not_come_back(context: Context) -> None:
    """Neither to sync nor to join: it is removed after its rebalance timeout."""
    Consumer(context).join()
    late = Client(context, [("range", subscription("foo"))], session_ms=200_000, rebalance_ms=3_000)
    late.join()
    assert context.due_in(*sync_timer(G, late.member_id)) == 3_000
    assert late.sync().code is ErrorCode.NONE
    context.advance(1_000)
    Consumer(context, epoch=2).beat()
    assert late.heartbeat() is late.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert context.due_in(*join_timer(G, late.member_id)) == 3_000
    context.advance(3_000)
    assert late.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_subscriptions_of_members_are_read_completely() -> None:
    """Every version of a subscription; bytes that are none; what is written is read back."""
    owned = struct.pack(">ih3sii", 1, 3, b"foo", 1, 2)
    head = struct.pack(">ih3si", 1, 3, b"foo", -1)
    for version, rest in ((0, b""), (1, owned), (2, owned + struct.pack(">i", 7)),
                          (3, owned + struct.pack(">ih1s", 7, 1, b"r"))):  # fmt: skip
        subscription = read_subscription(struct.pack(">h", version) + head + rest)
        assert subscription is not None
        assert (subscription.version, subscription.topics) == (version, ("foo",))
        assert subscription.owned == ({"foo": (2,)} if version else {})
        assert subscription.rack_id == ("r" if version == 3 else None)
    assert read_subscription(b"meta") is None
    assert read_subscription(struct.pack(">hi", 0, 2**30)) is None
    assert read_assignment(b"a0") is None
    assert read_assignment(b"") == ({}, False)
    assert read_assignment(FOO) == ({"foo": (0, 1, 2)}, False)
    assert read_assignment(FOO[:-4] + struct.pack(">i1s", 1, b"x")) == ({"foo": (0, 1, 2)}, True)


def test_members_go_over_in_the_order_of_the_new_groups_table(context: Context) -> None:
    """Kafka goes through a ``TimelineHashMap``, whose order is not that of the classic group's ``HashMap``."""
    members = assembled(*(Client(context, [("range", subscription("foo"))]) for _ in range(5)))
    for member in members[1:]:
        member.sync()
    members[0].sync({each.member_id: FOO for each in members})
    before = len(context.log)
    Consumer(context, "new").join()
    classic_order = list(HashMap((each.member_id, None) for each in members))
    table: TimelineMap[None] = TimelineMap()
    for member_id in classic_order:
        table[member_id] = None
    records = [each for each in context.records[before:] if isinstance(each, ConsumerRecord)]
    for kind in (K.MEMBER_METADATA, K.TARGET_MEMBER, K.CURRENT_MEMBER):
        assert [each.name for each in records if each.kind is kind][:5] == list(table)
    assert list(table) != classic_order


def test_what_a_member_offered_before_counts_when_it_rejoins(context: Context) -> None:
    """The same protocol must be known by all classic members, the one that rejoins included (groups C.10.2)."""
    Consumer(context, "new").join()
    member = Client(context, [("range", subscription("foo"))])
    member.join()
    answers = []
    for names in (["sticky"], ["range", "sticky"], ["sticky"]):
        member.protocols = [(name, subscription("foo")) for name in names]
        answers.append(member.ask().code)
    assert answers == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.NONE, ErrorCode.NONE]


def test_a_member_that_went_back_to_the_classic_protocol_is_called_back_again(context: Context) -> None:
    """Each call has a limit of its own, also of the same member in a group that was a classic one in between."""
    old = classic(context, rebalance_ms=7_000)
    new = Consumer(context, "new")
    for _ in range(2):
        new.join()
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        assert context.due_in(*join_timer(G, old.member_id)) == 7_000
        new.beat(-1)
        assert context.due_in(*join_timer(G, old.member_id)) is None
        old.join()
        assert old.sync({old.member_id: FOO}).code is ErrorCode.NONE
        assert context.group().state_name == "Stable"


def test_a_sync_that_comes_too_late_calls_the_member_back(context: Context) -> None:
    """REBALANCE_IN_PROGRESS, and the member is removed unless it joins again within its rebalance timeout."""
    old = classic(context, rebalance_ms=7_000)
    Consumer(context, "new").join()
    assert old.sync().message == SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert context.last.failed  # so that it waits for no records of others
    context.advance(1_000)
    assert old.sync().code is old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert context.due_in(*join_timer(G, old.member_id)) == 6_000
    context.advance(6_000)
    assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_reloaded_coordinator_limits_the_revocation_of_classic_members_too(context: Context) -> None:
    """By their rebalance timeout, while they are in the same epoch (``GroupMetadataManager.onLoaded``)."""
    old = classic(context, rebalance_ms=7_000)
    context.advance(1_000)
    Consumer(context, "new").join()
    old.protocols = [("range", OWNS_FOO)]
    old.join()
    assert group(context).member(old.member_id).state is MemberState.UNREVOKED_PARTITIONS
    key = rebalance_timer(GroupType.CONSUMER, G, old.member_id)
    assert context.due_in(*key) is None
    assert context.reloaded().due_in(*key) == 7_000


@pytest.mark.parametrize("version", [3, 9])
def test_the_order_in_which_a_classic_join_is_refused(context: Context, version: int) -> None:
    """The size of the group, the names of the protocols, the member id, the instance id, the subscription."""
    static = Consumer(context, "new", instance_id="i")
    static.join()
    bad = Client(context, [("range", b"")], version=version, protocol_type="other")
    context.settings.values["group.consumer.max.size"] = 1
    answers = [bad.ask().code]
    context.settings.values["group.consumer.max.size"] = 9
    answers.append(bad.ask().code)
    bad.protocol_type = "consumer"
    answers.append(bad.ask().code)
    bad.instance_id, bad.member_id = "i", "else"
    answers.append(bad.ask().code)
    bad.member_id = ""
    answers.append(bad.ask().code)
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert answers == [
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        inconsistent,
        ErrorCode.MEMBER_ID_REQUIRED if version >= 4 else inconsistent,
        ErrorCode.FENCED_INSTANCE_ID,
        inconsistent,
    ]
    assert [each.member_id for each in group(context).members.values()] == ["new"]
    assert context.due_in(*session_timer(GroupType.CONSUMER, G, "new")) == 45_000


def test_parked_requests_are_sent_back_also_if_the_group_stays_a_classic_one(context: Context) -> None:
    """They are answered before its members are looked at, one of which has a custom assignor (seen on 4.4.0)."""
    old = classic(context)
    assert old.join().leader == old.member_id
    assert old.sync({old.member_id: FOO[:-4] + struct.pack(">i1s", 1, b"x")}).code is ErrorCode.NONE
    late = Client(context, [("range", subscription("foo"))]).start()
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.GROUP_ID_NOT_FOUND
    assert late.parked.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert context.last.failed
    assert context.group().awaiting_join == {}
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    old.start()
    assert late.join().generation_id == old.joined().generation_id


def test_parked_requests_are_sent_back_also_if_the_upgrade_cannot_be_remembered(context: Context) -> None:
    """The group is a classic one again, in which those members have not joined yet."""
    old = classic(context)
    old.join()
    old.sync({old.member_id: FOO})
    late = Client(context, [("range", subscription("foo"))]).start()
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    context.refuse_append = ErrorCode.MESSAGE_TOO_LARGE
    assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.MESSAGE_TOO_LARGE
    assert late.parked.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert (context.group().state_name, context.group().awaiting_join) == ("PreparingRebalance", {})
    assert context.due_in("member", G, old.member_id) == 10_000


def test_a_classic_group_in_its_first_rebalance_has_no_protocol_yet(context: Context) -> None:
    """UNKNOWN_SERVER_ERROR, and its members have to join again (seen on 4.4.0)."""
    first = Client(context, [("range", subscription("foo"))]).start()
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    for _ in range(2):
        assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert first.parked.code is ErrorCode.REBALANCE_IN_PROGRESS
    first.start()
    context.advance(0)
    assert first.joined().generation_id == 1


@pytest.mark.parametrize(
    ("name", "code"), [("4.3", ErrorCode.UNKNOWN_SERVER_ERROR), ("4.4", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
)
def test_a_classic_join_whose_subscription_cannot_be_read(context: Context, name: str, code: ErrorCode) -> None:
    """It is refused, and no member is there (seen on 4.3.1 and 4.4.0)."""
    context = Context(topics=context.topics, behaves=release(name).has)
    Consumer(context, "new").join()
    assert Client(context, [("range", b"")], version=3).ask().code is code
    assert [each.member_id for each in group(context).members.values()] == ["new"]


def test_a_member_that_does_not_offer_the_groups_protocol_any_more(context: Context) -> None:
    """As in a first rebalance: the next protocol is not chosen yet, and its metadata for the last one are not there."""
    both = [(name, subscription("foo")) for name in ("range", "sticky")]
    first, _ = assembled(Client(context, both), Client(context, both))
    first.protocols = both[1:]
    first.start()
    assert (context.group().state_name, context.group().protocol_name) == ("PreparingRebalance", "range")
    first_heartbeat = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": ["foo"], "topic_partitions": []}
    assert Consumer(context).refused(0, **first_heartbeat) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert first.parked.code is ErrorCode.REBALANCE_IN_PROGRESS
