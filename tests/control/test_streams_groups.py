"""Streams groups at the control plane: tasks by member, timelines, refusals explained, steering, faults, snapshots."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.streams_group_heartbeat import Subtopology
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.scenarios.groups.members import coordinated
from tests.scenarios.groups.streams import STREAMS_SETTINGS, StreamsMember, described
from understudy import results

E = ErrorCode
TOPOLOGY = [Subtopology("0", ["t"])]


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Of a broker whose streams groups are assigned at once, without a limit on how often."""
    return plane_of(topics=["t:2"], settings={**STREAMS_SETTINGS, "group.streams.assignment.interval.ms": 0})


def joined(plane: ControlPlane, member_id: str = "m1", process_id: str = "p1") -> StreamsMember:
    """A member of g."""
    member = StreamsMember(coordinated(plane.server), TOPOLOGY, member_id, process_id)
    assert member.join().error_code is E.NONE
    return member


def shown(plane: ControlPlane) -> results.Group:
    """The group as Python has it."""
    return plane.kafka.groups["g"].show()


def test_members_are_shown_with_their_tasks(plane: ControlPlane) -> None:
    """In Python and in the shell; a task that is being given up is still the first member's."""
    first = joined(plane)
    group = shown(plane)
    assert (group.type, group.state, group.protocol, group.epoch) == ("streams", "Stable", "sticky", 2)
    assert [(each.member_id, list(each.assignment)) for each in group.members] == [("m1", ["0_0", "0_1"])]
    second = joined(plane, "m2", "p2")
    first.confirm()
    held = {each.member_id: list(each.assignment) for each in shown(plane).members}
    assert (held["m1"], held["m2"]) == (["0_0", "0_1"], [])
    first.confirm()
    second.confirm()
    held = {each.member_id: list(each.assignment) for each in shown(plane).members}
    assert sorted(held["m1"] + held["m2"]) == ["0_0", "0_1"]
    assert "0_1" in plane.ctl_text("groups", "show", "g")


def test_the_lag_of_a_group_without_commits_is_all_of_its_input(plane: ControlPlane) -> None:
    """What kafka-streams-groups.sh shows: from the start of the log to its end; of a committed offset from there."""
    plane.kafka.topics["t"].write(*({"value": each, "partition": 0} for each in "abcde"))
    member = joined(plane)
    group = shown(plane)
    assert [(each.partition, each.offset, each.end_offset, each.lag) for each in group.lags] == [
        (0, None, 5, 5),
        (1, None, 0, 0),
    ]
    assert group.lag == 5
    topics = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, 2)])]
    commit = OffsetCommitRequest("g", member.epoch, "m1", topics=topics)
    member.wire.call(ApiKey.OFFSET_COMMIT, 9, commit)
    group = shown(plane)
    assert [(each.offset, each.lag) for each in group.lags] == [(2, 3), (None, 0)]
    assert group.lag == 3
    diagram = plane.kafka.diagrams.show(group="g", polls=True)
    assert "OffsetCommit v9 member epoch 2, t-0" in [step.text for step in diagram.steps]
    assert any("Stable, group epoch 2" in step.text for step in diagram.steps)
    assert "generation" not in diagram.text


def test_the_timeline_has_states_and_a_refusal_its_rule(plane: ControlPlane) -> None:
    """The refusal names the row of the specification, and `why` explains it with the KIP."""
    member = joined(plane)
    events = [(event.event, event.state_after) for event in shown(plane).timeline]
    assert events == [
        ("asked to join", ""),
        ("member joined", "Empty"),
        ("all members have the target assignment", "Stable"),
    ]
    assert member.beat(9).error_code is E.FENCED_MEMBER_EPOCH
    refused = shown(plane).timeline[-1]
    assert (refused.event, refused.error, refused.rule) == ("refused", "FENCED_MEMBER_EPOCH", "groups E.3.2")
    why = plane.kafka.groups["g"].why()
    assert why.error == "FENCED_MEMBER_EPOCH"
    assert "KIP-1071 (docs/specification/groups/e-streams-groups.md#e-3-2)" in why.why


def test_a_request_that_is_not_valid_names_its_rule(plane: ControlPlane) -> None:
    """An invalid heartbeat names the rule it breaks, before any coordinator is asked."""
    assert joined(plane).beat(rack_id="").error_code is E.INVALID_REQUEST
    refused = shown(plane).timeline[-1]
    assert (refused.event, refused.error, refused.rule) == ("refused", "INVALID_REQUEST", "groups E.1")


def test_a_group_is_steered(plane: ControlPlane) -> None:
    """A rebalance begins an epoch; a member that is evicted is unknown afterwards."""
    member = joined(plane)
    plane.kafka.groups["g"].rebalance()
    assert shown(plane).epoch == 3
    assert member.confirm().member_epoch == 3
    plane.kafka.groups["g"].evict("m1")
    assert member.beat().error_code is E.UNKNOWN_MEMBER_ID


def test_a_fault_refuses_heartbeats(plane: ControlPlane) -> None:
    """By the API's name, once; the next heartbeat succeeds."""
    member = joined(plane)
    plane.kafka.faults.add(api="StreamsGroupHeartbeat", error="COORDINATOR_NOT_AVAILABLE", times=1)
    assert member.beat().error_code is E.COORDINATOR_NOT_AVAILABLE
    assert member.beat().error_code is E.NONE


def test_a_session_ends_by_the_clock(plane: ControlPlane) -> None:
    """The clock is pushed past the session timeout."""
    joined(plane)
    plane.kafka.clock.freeze()
    plane.kafka.clock.advance(seconds=46)
    assert shown(plane).state == "Empty"


def test_a_snapshot_brings_a_group_back(plane: ControlPlane) -> None:
    """With its members, whose heartbeats go on."""
    member = joined(plane)
    snapshot = plane.kafka.snapshots.take()
    member.beat(-1)
    assert described(coordinated(plane.server)).group_state == "Empty"
    snapshot.restore()
    member.wire = coordinated(plane.server)
    assert member.beat(2).error_code is E.NONE
    assert described(member.wire).group_state == "Stable"
    assert member.beat(-1).error_code is E.NONE


def test_the_diagram_has_the_heartbeats_that_change_something(plane: ControlPlane) -> None:
    """Joining, a new epoch, leaving; the others only where they are asked for."""
    member = joined(plane)
    for _ in range(5):
        member.confirm()
    member.beat(-1)
    texts = [step.text for step in plane.kafka.diagrams.show(group="g").steps if step.kind == "request"]
    beats = [text for text in texts if text.startswith("StreamsGroupHeartbeat")]
    assert [text.rpartition(" ")[2] for text in beats] == ["0", "-1"]
    every = plane.kafka.diagrams.show(group="g", polls=True)
    assert len([step for step in every.steps if step.text.startswith("StreamsGroupHeartbeat")]) > len(beats)
