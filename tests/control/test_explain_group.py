"""Timelines of groups, and explanations of refusals: one for every fencing or state error there is."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.group_table import rows
from tests.control.harness import ControlPlane
from tests.scenarios.groups import consumers
from tests.scenarios.groups.members import SETTINGS, Member, commit, coordinated
from tests.serving import until

E = ErrorCode


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Of a broker whose groups begin at once."""
    return plane_of(topics=["t:2"], settings={**SETTINGS, "group.consumer.max.size": 2})


def joined(plane: ControlPlane, *, instance_id: str | None = None) -> Member:
    """The only member of g, in a generation that is stable."""
    member = Member(coordinated(plane.server), instance_id=instance_id)
    member.start()
    member.joined()
    assert sync(member) is E.NONE
    return member


def sync(member: Member, generation: int | None = None) -> ErrorCode:
    """Ask for the assignment."""
    epoch = member.generation if generation is None else generation
    request = SyncGroupRequest("g", epoch, member.member_id, [], member.instance_id)
    code: ErrorCode = member.wire.call(ApiKey.SYNC_GROUP, 4, request).error_code
    return code


def heartbeat(member: Member, generation: int | None = None) -> ErrorCode:
    """One heartbeat of the member; its error code."""
    epoch = member.generation if generation is None else generation
    request = HeartbeatRequest("g", epoch, member.member_id, member.instance_id)
    code: ErrorCode = member.wire.call(ApiKey.HEARTBEAT, 4, request).error_code
    return code


def leave(member: Member) -> ErrorCode:
    """Go."""
    request = LeaveGroupRequest("g", member.member_id, [MemberIdentity(member.member_id)])
    code: ErrorCode = member.wire.call(ApiKey.LEAVE_GROUP, 4, request).error_code
    return code


# --- timelines -------------------------------------------------------------------------------------------------------


def test_a_timeline_has_each_step_with_its_rule(plane: ControlPlane) -> None:
    """The request, and the group's state and generation before and after it."""
    member = joined(plane)
    assert leave(member) is E.NONE
    events = plane.kafka.groups["g"].show().timeline
    assert [(e.event, e.state_before, e.state_after, e.epoch_before, e.epoch_after) for e in events] == [
        ("asked to join", "", "", -1, -1),
        ("was given its member id", "Empty", "Empty", 0, 0),
        ("asked to join", "Empty", "Empty", 0, 0),
        ("member joined", "Empty", "Empty", 0, 0),
        ("a rebalance begins", "Empty", "PreparingRebalance", 0, 0),
        ("all members have joined", "PreparingRebalance", "CompletingRebalance", 0, 1),
        ("asked for its assignment", "CompletingRebalance", "CompletingRebalance", 1, 1),
        ("assigned", "CompletingRebalance", "Stable", 1, 1),
        ("asked to leave", "Stable", "Stable", 1, 1),
        ("member left", "Stable", "Stable", 1, 1),
        ("a rebalance begins", "Stable", "PreparingRebalance", 1, 1),
        ("all members have left", "PreparingRebalance", "Empty", 1, 2),
    ]
    join = events[2]
    assert (join.api, join.version, join.client_id, join.rule) == ("JoinGroup", 9, "test", "groups A.4")
    assert join.member_id == member.member_id == events[8].member_id
    assert [event.at_ms for event in events] == sorted(event.at_ms for event in events)
    assert "all members have joined" in plane.ctl_text("groups", "show", "g", "--json")
    assert plane.http("GET", "/v1/groups/g")["timeline"][0]["event"] == "asked to join"


def test_a_consumer_group_has_a_timeline_too(plane: ControlPlane) -> None:
    """Its states and epochs, also where a timer moved them; members can be thrown out, and the epoch moved on."""
    member = consuming(plane)
    shown = plane.kafka.groups["g"].show()
    assert (shown.type, shown.state, shown.protocol, shown.epoch) == ("consumer", "Stable", "uniform", 2)
    (one,) = shown.members
    assert (one.member_id, one.epoch, one.assignment) == ("m1", 2, ("t-0", "t-1"))
    plane.kafka.groups["g"].rebalance()
    assert (plane.kafka.groups["g"].show().state, member.beat().member_epoch) == ("Assigning", 2)
    plane.kafka.groups["g"].evict("m1")
    reported = [(e.event, e.state_after, e.epoch_after) for e in plane.kafka.groups["g"].show().timeline]
    assert reported == [
        ("asked to join", "", -1),
        ("member joined", "Empty", 1),
        ("all members have the target assignment", "Stable", 2),
        ("a new epoch without a target assignment yet", "Assigning", 3),
        ("member evicted", "Assigning", 3),
        ("all members have left", "Empty", 4),
    ]
    assert member.code() == 25
    pattern = (
        r"no longer a member: at \S+ member 'm1' of client `test` was removed by the control plane \(groups evict\)"
    )
    assert re.match(pattern, plane.kafka.groups["g"].why().why)


@pytest.mark.verb("groups show")
def test_a_real_consumer_has_a_timeline_too(plane: ControlPlane) -> None:
    """With what happened by the clock alone; a reset forgets it."""
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "client.id": "app",
                         "session.timeout.ms": 6000, "heartbeat.interval.ms": 5900})  # fmt: skip
    reported: list[int] = []
    consumer.subscribe(["t"], on_assign=lambda _c, partitions: reported.append(len(partitions)))
    until(lambda: consumer.poll(0.05) or reported, "the assignment")
    plane.kafka.clock.advance(seconds=7)
    events = plane.kafka.groups["g"].show().timeline
    assert {"app"} == {event.client_id for event in events if event.client_id}
    assert ("all members have left", None) in {(event.event, event.api) for event in events}
    consumer.close()
    plane.server.reset()
    joined(plane)
    assert {event.client_id for event in plane.kafka.groups["g"].show().timeline if event.api} == {"test"}


def test_a_coordinator_that_loads_again_adds_no_events(plane: ControlPlane) -> None:
    """Records replayed from the log are no events."""
    joined(plane)
    before = plane.kafka.groups["g"].show().timeline
    plane.kafka.coordinators.move(type="group", key="g", broker=1)
    assert plane.kafka.groups["g"].show().timeline == before


# --- why -------------------------------------------------------------------------------------------------------------


def old_generation(plane: ControlPlane) -> ErrorCode:
    """A heartbeat out of another generation."""
    return heartbeat(joined(plane), 7)


def stranger(plane: ControlPlane) -> ErrorCode:
    """A heartbeat of a member that has never joined."""
    return heartbeat(Member(joined(plane).wire, member_id="unknown", generation=1))


def gone(plane: ControlPlane) -> ErrorCode:
    """A heartbeat after leaving."""
    member = joined(plane)
    assert leave(member) is E.NONE
    return heartbeat(member)


def timed_out(plane: ControlPlane) -> ErrorCode:
    """A heartbeat after the session."""
    member = joined(plane)
    plane.kafka.clock.advance(seconds=11)
    return heartbeat(member)


def rebalancing(plane: ControlPlane) -> ErrorCode:
    """A heartbeat while a newcomer makes all members join again."""
    member = joined(plane)
    Member(coordinated(plane.server)).start()
    until(lambda: plane.kafka.groups["g"].show().state == "PreparingRebalance", "the rebalance")
    return heartbeat(member)


def replaced(plane: ControlPlane) -> ErrorCode:
    """A heartbeat of a static member whose instance id another member has taken."""
    member = joined(plane, instance_id="i")
    other = Member(coordinated(plane.server), instance_id="i")
    other.start()
    other.joined()
    return heartbeat(member)


def other_protocol(plane: ControlPlane) -> ErrorCode:
    """A newcomer with an unknown assignor."""
    joined(plane)
    protocols = [JoinGroupRequestProtocol("strange", b"")]
    request = JoinGroupRequest("g", 10_000, "", "consumer", protocols, 60_000)
    code: ErrorCode = plane.server.wire().call(ApiKey.JOIN_GROUP, 3, request).error_code
    return code


def loading(plane: ControlPlane) -> ErrorCode:
    """Leaving while the coordinator loads; a heartbeat would hear NONE then, as in Kafka."""
    member = joined(plane)
    plane.kafka.coordinators.move(type="group", key="g", broker=1, loading_ms=60_000)
    return leave(member)


# --- why, of consumer groups (KIP-848) -------------------------------------------------------------------------------


def consuming(plane: ControlPlane, member_id: str = "m1", instance_id: str | None = None) -> consumers.Consumer:
    """A member of g that has joined."""
    member = consumers.Consumer(coordinated(plane.server), member_id, instance_id=instance_id, topics=["t"])
    assert member.join().error_code is E.NONE
    return member


def another_epoch(plane: ControlPlane) -> ErrorCode:
    """A heartbeat in an epoch that is to come."""
    return E(consuming(plane).code(7))


def stale_commit(plane: ControlPlane) -> ErrorCode:
    """A commit likewise."""
    member = consuming(plane)
    return commit(member.wire, "t", 1, 7, member.member_id)


def taken_instance(plane: ControlPlane) -> ErrorCode:
    """An instance id that another member has."""
    consuming(plane, instance_id="i")
    return E(consumers.Consumer(coordinated(plane.server), "m2", instance_id="i", topics=["t"]).join().error_code)


def full(plane: ControlPlane) -> ErrorCode:
    """One member too many."""
    for member_id in ("m1", "m2"):
        consuming(plane, member_id)
    return E(consumers.Consumer(coordinated(plane.server), "m3", topics=["t"]).join().error_code)


def nameless(plane: ControlPlane) -> ErrorCode:
    """A join without a rebalance timeout."""
    return E(consuming(plane).join(rebalance_timeout_ms=-1).error_code)


def unknown_assignor(plane: ControlPlane) -> ErrorCode:
    """One that is not configured."""
    return E(consuming(plane).join(server_assignor="sticky").error_code)


REFUSALS: list[tuple[Callable[[ControlPlane], ErrorCode], ErrorCode]] = [
    (old_generation, E.ILLEGAL_GENERATION),
    (stranger, E.UNKNOWN_MEMBER_ID),
    (gone, E.UNKNOWN_MEMBER_ID),
    (timed_out, E.UNKNOWN_MEMBER_ID),
    (rebalancing, E.REBALANCE_IN_PROGRESS),
    (replaced, E.FENCED_INSTANCE_ID),
    (other_protocol, E.INCONSISTENT_GROUP_PROTOCOL),
    (loading, E.COORDINATOR_LOAD_IN_PROGRESS),
    (another_epoch, E.FENCED_MEMBER_EPOCH),
    (stale_commit, E.STALE_MEMBER_EPOCH),
    (taken_instance, E.UNRELEASED_INSTANCE_ID),
    (full, E.GROUP_MAX_SIZE_REACHED),
    (nameless, E.INVALID_REQUEST),
    (unknown_assignor, E.UNSUPPORTED_ASSIGNOR),
]
"""What is refused; the table in docs/troubleshooting.md has the sentence."""


@pytest.mark.parametrize(("act", "code"), REFUSALS, ids=[each[0].__name__ for each in REFUSALS])
def test_every_refusal_has_a_why(
    plane: ControlPlane, act: Callable[[ControlPlane], ErrorCode], code: ErrorCode
) -> None:
    """Cause, time, requests and rule; the error code is the one in the member's response."""
    assert act(plane) is code
    reported = plane.kafka.groups["g"].why()
    assert reported.error == code.name
    assert re.match(rows()[act.__name__].pattern, reported.why), reported.why
    refused = rf" \w+ v\d of client `test` .* was refused at \S+, with {code.name}: "
    cited = r"(?:\w+\.\w+|KIP-848) \(docs/specification/groups/[a-c]-[a-z-]+\.md#[abc]-\d+(?:-\w+)*\)\.$"
    assert re.search(refused + cited, reported.why), reported.why
    shown = plane.ctl("groups", "why", "g")
    assert (shown["why"], tuple(shown["also"])) == (reported.why, reported.also)


def test_the_walk_has_every_fencing_and_state_error() -> None:
    """Those of groups 0.3 that a coordinator decides for a member of a classic or a consumer group."""
    assert {code for _, code in REFUSALS} == {
        E.ILLEGAL_GENERATION,
        E.UNKNOWN_MEMBER_ID,
        E.REBALANCE_IN_PROGRESS,
        E.FENCED_INSTANCE_ID,
        E.INCONSISTENT_GROUP_PROTOCOL,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.FENCED_MEMBER_EPOCH,
        E.STALE_MEMBER_EPOCH,
        E.UNRELEASED_INSTANCE_ID,
        E.GROUP_MAX_SIZE_REACHED,
        E.INVALID_REQUEST,
        E.UNSUPPORTED_ASSIGNOR,
    }


def test_nothing_was_refused_yet(plane: ControlPlane) -> None:
    """That is the answer; for an unknown group it is 404."""
    joined(plane)
    reported = plane.kafka.groups["g"].why()
    assert (reported.error, "has been refused" in reported.why) == (None, True)
    assert plane.refused("GET", "/v1/groups/h/why")[0] == 404


def test_a_fault_that_only_delayed_is_not_blamed(plane: ControlPlane) -> None:
    """The session ended meanwhile, and the coordinator decided that."""
    member = joined(plane)
    fault = plane.kafka.faults.add(api="Heartbeat", delay_ms=60_000)
    member.wire.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", member.generation, member.member_id))
    fault.wait_hits(1)
    plane.kafka.clock.advance(seconds=61)
    assert member.wire.answer().error_code is E.UNKNOWN_MEMBER_ID
    assert re.match(
        rf"no longer a member: at \S+ member '{member.member_id}' of client `test` sent no heartbeat within",
        plane.kafka.groups["g"].why().why,
    )


def test_a_member_whose_first_request_is_refused_has_joined_even_so(plane: ControlPlane) -> None:
    """It joined without an id, and was given one in the answer."""
    member = Member(coordinated(plane.server), instance_id="i")
    member.start()
    member.joined()
    plane.kafka.clock.advance(seconds=11)
    assert heartbeat(member) is E.UNKNOWN_MEMBER_ID
    reported = plane.kafka.groups["g"].why().why
    assert re.match(rf"no longer a member: at \S+ member '{member.member_id}' of .* request was JoinGroup", reported)


def test_of_several_that_leave_the_one_that_was_refused_is_explained(plane: ControlPlane) -> None:
    """The refused member of a LeaveGroup is explained, even if it is not the first."""
    member = joined(plane)
    names = [MemberIdentity(member.member_id), MemberIdentity("stranger")]
    assert member.wire.call(ApiKey.LEAVE_GROUP, 4, LeaveGroupRequest("g", "", names)).error_code is E.NONE
    assert re.match(r"not a member: 'stranger' has never joined this group", plane.kafka.groups["g"].why().why)


def test_a_fault_is_not_blamed_on_the_group(plane: ControlPlane) -> None:
    """If an injected fault caused the error, the explanation names the fault."""
    member = joined(plane)
    fault = plane.kafka.faults.add(api="Heartbeat", error="ILLEGAL_GENERATION")
    assert heartbeat(member) is E.ILLEGAL_GENERATION
    reported = plane.kafka.groups["g"].why()
    assert re.match(rf"a fault: fault {fault.id} \(.*\); the error did not come from the coordinator\.", reported.why)
    assert (reported.rule, reported.citation) == ("steering", "")
