"""The ways in which a consumer loses its partitions, its offset or its records: each has a sentence in `groups why`.

The table in docs/troubleshooting.md has a row for each way here and for each refusal in test_explain_group, with the
sentence that these tests look for. ``WAYS`` and ``REFUSALS`` are compared with the table in tests/test_house.py.
"""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.messages.streams_group_heartbeat import Subtopology
from tests.control.conftest import ControlPlaneOf
from tests.control.group_table import rows
from tests.control.harness import ControlPlane
from tests.control.test_explain_group import consuming, joined, sync
from tests.control.test_share_groups import Share, share
from tests.scenarios.groups import consumers
from tests.scenarios.groups.members import SETTINGS, Member, assembled, commit, coordinated
from tests.scenarios.groups.sharers import SHARES
from tests.scenarios.groups.streams import StreamsMember
from tests.serving import until

E = ErrorCode
__all__ = ["share"]  # a fixture
DAY_S = 86_400


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Of a broker whose groups begin at once."""
    return plane_of(topics=["t:2"], settings={**SETTINGS, "group.consumer.max.size": 2})


# --- members that are gone -------------------------------------------------------------------------------------------


def left_for_a_reason(plane: ControlPlane) -> None:
    """As Java's consumer does when poll is not called in time."""
    member = joined(plane)
    identity = MemberIdentity(member.member_id, None, "consumer poll timeout has expired.")
    member.wire.call(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest("g", member.member_id, [identity]))


def left_and_stays_connected(plane: ControlPlane) -> object:
    """As librdkafka does when poll is not called in time."""
    member = joined(plane)
    member.leave()
    return member


def nameless_commit(plane: ControlPlane) -> None:
    """Of a consumer that has left, while another one is there."""
    joined(plane)
    assert commit(coordinated(plane.server), "t", 1) is E.UNKNOWN_MEMBER_ID


def evicted(plane: ControlPlane) -> None:
    """By the control plane."""
    plane.kafka.groups["g"].evict(joined(plane).member_id)


def session_expired(plane: ControlPlane) -> None:
    """By the clock."""
    joined(plane)
    plane.kafka.clock.advance(seconds=11)


def session_of_a_consumer_expired(plane: ControlPlane) -> None:
    """Of the consumer protocol, likewise."""
    consuming(plane)
    plane.kafka.clock.advance(seconds=46)


def missed_a_rebalance(plane: ControlPlane) -> None:
    """It sends heartbeats, but does not rejoin when another one comes."""
    member = Member(coordinated(plane.server), session_ms=300_000)
    member.start()
    member.joined()
    assert sync(member) is E.NONE
    other = Member(coordinated(plane.server), session_ms=300_000)
    other.start()
    until(lambda: plane.kafka.groups["g"].show().state == "PreparingRebalance", "the rebalance")
    plane.kafka.clock.advance(seconds=61)
    other.joined()


def sent_no_sync(plane: ControlPlane) -> None:
    """It has joined, and never asks for its assignment."""
    member = Member(coordinated(plane.server), session_ms=300_000)
    member.start()
    member.joined()
    plane.kafka.clock.advance(seconds=61)


def static_replaced(plane: ControlPlane) -> None:
    """By another one with its group.instance.id."""
    joined(plane, instance_id="i")
    other = Member(coordinated(plane.server), instance_id="i")
    other.start()
    other.joined()


def static_away(plane: ControlPlane) -> None:
    """A static consumer of the consumer protocol that is closed keeps its partitions."""
    consuming(plane, instance_id="i").leave(-2)


def closed_static(plane: ControlPlane) -> None:
    """Likewise."""
    static_away(plane)


def revoked_too_late(plane: ControlPlane) -> None:
    """It keeps what another one should get."""
    first = consumers.Consumer(coordinated(plane.server), "m1", topics=["t"], rebalance_ms=10_000)
    first.join()
    consuming(plane, "m2")
    plane.kafka.clock.advance(seconds=2)
    first.beat()
    plane.kafka.clock.advance(seconds=11)


def member_id_unused(plane: ControlPlane) -> None:
    """It was given an id, and did not come back with it."""
    Member(coordinated(plane.server)).refused()
    plane.kafka.clock.advance(seconds=11)


def coordinator_moved_in_a_rebalance(plane: ControlPlane) -> None:
    """Members that have joined since the last completed rebalance are lost with it."""
    member = Member(coordinated(plane.server))
    member.start()
    member.joined()
    plane.kafka.coordinators.move(type="group", key="g", broker=1)
    assert member.heartbeat() is E.UNKNOWN_MEMBER_ID


# --- partitions that others have -------------------------------------------------------------------------------------


def owner_killed(plane: ControlPlane) -> None:
    """Its connection is closed, and its session goes on."""
    consuming(plane, "m1").wire.close()
    consuming(plane, "m2")


def only_member_killed(plane: ControlPlane) -> None:
    """Likewise."""
    joined(plane).wire.close()


def revoking(plane: ControlPlane) -> None:
    """It has not given up yet what another one should get."""
    first = consuming(plane, "m1")
    consuming(plane, "m2")
    plane.kafka.clock.advance(seconds=2)
    first.beat()


def no_topic(plane: ControlPlane) -> None:
    """What it subscribes to does not exist."""
    consumers.Consumer(coordinated(plane.server), "m1", topics=["orders"]).join()


def no_match(plane: ControlPlane) -> None:
    """Its regular expression matches nothing."""
    consumers.Consumer(coordinated(plane.server), "m1", topics=None, regex="x.*").join()


def too_many_members(plane: ControlPlane) -> None:
    """There are fewer partitions."""
    plane.kafka.topics.create("one", partitions=1)
    for member_id in ("m1", "m2"):
        consumers.Consumer(coordinated(plane.server), member_id, topics=["one"]).join()
    plane.kafka.clock.advance(seconds=2)


def rebalance_waits(plane: ControlPlane) -> None:
    """For a member that does not poll."""
    joined(plane)
    Member(coordinated(plane.server)).start()
    until(lambda: plane.kafka.groups["g"].show().state == "PreparingRebalance", "the rebalance")


def leader_silent(plane: ControlPlane) -> None:
    """The leader has not sent the assignment."""
    member = Member(coordinated(plane.server))
    member.start()
    member.joined()


def target_not_due(plane: ControlPlane) -> None:
    """The second member waits for the next assignment."""
    consuming(plane, "m1")
    consuming(plane, "m2")


def streams_not_ready(plane: ControlPlane) -> None:
    """Its source topic does not exist."""
    StreamsMember(coordinated(plane.server), [Subtopology("0", ["orders"])]).join()


def streams_without_a_task(plane: ControlPlane) -> None:
    """A second member, where the one task of a topic with one partition has been assigned."""
    plane.kafka.topics.create("one", partitions=1)
    topology = [Subtopology("0", ["one"])]
    first = StreamsMember(coordinated(plane.server), topology)
    first.join()
    until(lambda: (first.beat(), first.active)[1], "the task")
    first.confirm()
    second = StreamsMember(coordinated(plane.server), topology, member_id="m2", process_id="p2")
    second.join()
    until(lambda: (second.beat(), first.confirm(), second.epoch == first.epoch)[2], "the assignment of both")


def subscribes_to_nothing(plane: ControlPlane) -> None:
    """A classic consumer whose own regular expression matches no topic."""
    no_topic = bytes(6) + b"\xff" * 4  # version 0, an empty list, no user data
    member = Member(coordinated(plane.server), metadata=no_topic)
    member.start()
    member.joined()
    assert sync(member) is E.NONE


# --- offsets ---------------------------------------------------------------------------------------------------------


def fetch_stable(plane: ControlPlane) -> ErrorCode:
    """OffsetFetch with require_stable, as a consumer with read_committed sends it."""
    topics = [OffsetFetchRequestTopics("t", [0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)], require_stable=True)
    response = coordinated(plane.server).call(ApiKey.OFFSET_FETCH, 8, request)
    (group,) = response.groups
    code: ErrorCode = group.topics[0].partitions[0].error_code if group.topics else group.error_code
    return code


def pending(plane: ControlPlane) -> Producer:
    """An offset in an open transaction."""
    producer = Producer(
        {"bootstrap.servers": plane.bootstrap, "transactional.id": "tx", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions()
    producer.begin_transaction()
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    producer.send_offsets_to_transaction([TopicPartition("t", 0, 7)], consumer.consumer_group_metadata())
    consumer.close()
    return producer


def offset_pending(plane: ControlPlane) -> None:
    """OffsetFetch waits for its transaction."""
    pending(plane)
    assert fetch_stable(plane) is E.UNSTABLE_OFFSET_COMMIT


def offset_expired(plane: ControlPlane) -> None:
    """A member that is still there has lost the offset of a topic to which it subscribes no more."""
    wire = coordinated(plane.server)
    commit(wire, "t", 5)
    plane.kafka.clock.advance(seconds=8 * DAY_S)
    consuming(plane)


def group_deleted(plane: ControlPlane) -> None:
    """By an administrator."""
    commit(coordinated(plane.server), "t", 5)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    admin.delete_consumer_groups(["g"])["g"].result()
    consuming(plane)


def offset_deleted(plane: ControlPlane) -> None:
    """By a tool, while no member subscribed to its topic."""
    wire = coordinated(plane.server)
    commit(wire, "t", 5)
    topics = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
    wire.call(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest("g", topics))
    consuming(plane)


def offset_of_a_deleted_topic(plane: ControlPlane) -> None:
    """The topic was deleted, and created again."""
    commit(coordinated(plane.server), "t", 5)
    plane.kafka.topics["t"].delete()
    plane.kafka.topics.create("t", partitions=2)
    consuming(plane)


def offset_lowered(plane: ControlPlane) -> None:
    """By a tool, while the group had no members."""
    commit(coordinated(plane.server), "t", 5)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    wanted = ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 2)])
    admin.alter_consumer_group_offsets([wanted])["g"].result()


def stale_fetch(plane: ControlPlane) -> None:
    """OffsetFetch of a member in another epoch."""
    member = consuming(plane)
    topics = [OffsetFetchRequestTopics("t", [0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics, member_id="m1", member_epoch=9)])
    assert member.wire.call(ApiKey.OFFSET_FETCH, 9, request).groups[0].error_code is E.STALE_MEMBER_EPOCH


def stranger_fetches(plane: ControlPlane) -> None:
    """OffsetFetch of a member that the group does not have."""
    member = consuming(plane)
    topics = [OffsetFetchRequestTopics("t", [0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics, member_id="m9", member_epoch=1)])
    assert member.wire.call(ApiKey.OFFSET_FETCH, 9, request).groups[0].error_code is E.UNKNOWN_MEMBER_ID


def injected(plane: ControlPlane) -> None:
    """A fault in OffsetFetch."""
    plane.kafka.faults.add(api="OffsetFetch", error="GROUP_AUTHORIZATION_FAILED")
    fetch_stable(plane)


def no_coordinator_yet(plane: ControlPlane) -> None:
    """A request before FindCoordinator has created the coordinators."""
    member = Member(plane.server.wire(), member_id="m", generation=1)
    assert member.heartbeat() is E.NOT_COORDINATOR


def deleted_with_members(plane: ControlPlane) -> None:
    """DeleteGroups names several groups, each with its own error."""
    joined(plane)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    assert admin.delete_consumer_groups(["g"])["g"].exception() is not None


WAYS: tuple[Callable[[ControlPlane], object], ...] = (
    left_for_a_reason, left_and_stays_connected, nameless_commit, evicted,
    session_expired, session_of_a_consumer_expired, missed_a_rebalance, sent_no_sync,
    static_replaced, static_away, closed_static, revoked_too_late, member_id_unused, coordinator_moved_in_a_rebalance,
    owner_killed, only_member_killed, revoking, no_topic, no_match, too_many_members, rebalance_waits, leader_silent,
    target_not_due,
    streams_not_ready, streams_without_a_task, subscribes_to_nothing,
    offset_pending, offset_expired, group_deleted, offset_deleted, offset_of_a_deleted_topic,
    offset_lowered, stale_fetch, stranger_fetches, injected, no_coordinator_yet, deleted_with_members,
)  # fmt: skip
"""What happens; the table in docs/troubleshooting.md has the sentence, and whether the report has it too."""


@pytest.mark.parametrize("act", WAYS, ids=[each.__name__ for each in WAYS])
def test_every_way_has_its_sentence(plane: ControlPlane, act: Callable[[ControlPlane], object]) -> None:
    """With the cause, the time, whose it is, and when it ends by itself."""
    kept = act(plane)
    check(plane, act.__name__)
    del kept


def check(plane: ControlPlane, way: str, group: str = "g") -> None:
    """Compare the explanation and the report with the row of the table."""
    row = rows()[way]
    if row.explained:
        explained = str(plane.kafka.groups[group].why())
        assert re.search(row.pattern, explained), explained
    text = plane.kafka.report().text
    assert bool(re.search(row.pattern, text)) is row.reported, text


def initial_delay(plane_of: ControlPlaneOf) -> ControlPlane:
    """A group that waits for more members, as on a server with Kafka's own settings."""
    plane = plane_of(topics=["t:2"], settings={**SETTINGS, "group.initial.rebalance.delay.ms": 3000})
    plane.server.freeze()
    Member(coordinated(plane.server)).start()
    until(lambda: plane.kafka.groups["g"].show().state == "PreparingRebalance", "the rebalance")
    return plane


def coordinator_elsewhere(plane_of: ControlPlaneOf) -> ControlPlane:
    """A request to a broker that is not the coordinator any more."""
    plane = plane_of(brokers=2, topics=["t:2"], settings=SETTINGS)
    member = joined(plane)
    plane.kafka.coordinators.move(type="group", key="g", broker=2)
    member.wire = plane.server.wire(1)
    member.heartbeat()
    return plane


def did_not_fit(plane_of: ControlPlaneOf) -> ControlPlane:
    """A newcomer rejoins earlier than a member, and the group is full."""
    plane = plane_of(topics=["t:2"], settings={**SETTINGS, "group.max.size": 2})
    members = [Member(coordinated(plane.server)) for _ in range(3)]
    assembled(plane.server, members[0])
    assembled(plane.server, *members[:2])
    plane.kafka.groups["g"].rebalance()
    for member in (members[2], members[0]):
        member.start()
        until(lambda: len(plane.kafka.groups["g"].show().members) == 3, "the newcomer")
    assert members[1].refused()[0] == E.GROUP_MAX_SIZE_REACHED
    return plane


OF_OTHER_SERVERS = (initial_delay, did_not_fit, coordinator_elsewhere)


@pytest.mark.parametrize("act", OF_OTHER_SERVERS, ids=[each.__name__ for each in OF_OTHER_SERVERS])
def test_ways_on_other_servers_too(plane_of: ControlPlaneOf, act: Callable[[ControlPlaneOf], ControlPlane]) -> None:
    """Those that need another setting, or two brokers."""
    check(act(plane_of), act.__name__)


def records_acquired(share: Share) -> ControlPlane:
    """Records that a member of a share group has acquired, while another one waits for some."""
    plane, member = share
    request = ShareGroupHeartbeatRequest(SHARES, "m2", 0, None, ["t"])
    assert member.wire.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request).error_code is E.NONE
    return plane


def test_records_that_another_member_holds(share: Share) -> None:
    """The report names the member that has acquired the records, and when its lock ends."""
    check(records_acquired(share), records_acquired.__name__, SHARES)


def test_a_group_without_trouble_has_no_sentence(plane: ControlPlane) -> None:
    """Neither of a member that is there, nor of one that was closed, in the report."""
    member = consuming(plane)
    assert plane.kafka.groups["g"].why().also == ()
    member.leave()
    member.wire.close()
    until(lambda: "still connected" not in str(plane.kafka.groups["g"].why()), "the end of the connection")
    assert "left the group" in str(plane.kafka.groups["g"].why())
    assert "left the group" not in plane.kafka.report().text


def test_the_timeline_has_the_causes_too(plane: ControlPlane) -> None:
    """With member, client and detail; pending offsets are listed beside the committed ones."""
    left_for_a_reason(plane)
    event = next(each for each in plane.kafka.groups["g"].show().timeline if each.event == "member left")
    assert (event.client_id, event.detail) == ("test", "consumer poll timeout has expired.")
    assert event.member_id.startswith("test-")
    kept = pending(plane)
    (offset,) = plane.kafka.groups["g"].show().pending_offsets
    assert (offset.topic, offset.partition, offset.offset, offset.transactional_id) == ("t", 0, 7, "tx")
    assert offset.until_ms is not None
    assert offset.until_ms - (offset.since_ms or 0) <= 60_000
    del kept
