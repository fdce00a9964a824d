"""Sequence diagrams of groups: members, their requests, generations."""

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.control.harness import ControlPlane
from tests.control.test_diagrams import texts
from tests.serving import until


def test_a_group_s_generations(plane: ControlPlane) -> None:
    """Members as lanes, their requests at the coordinator, its states. Heartbeats only where they are asked for."""
    settings = {"group.id": "g", "auto.offset.reset": "earliest", "heartbeat.interval.ms": 50, "client.id": "reader"}
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, **settings})
    consumer.subscribe(["t"])
    plane.kafka.topics["t"].write("v")
    until(lambda: consumer.poll(0.1), "the record")
    until(lambda: consumer.poll(0.1) or plane.kafka.journal.find(api="Heartbeat"), "a heartbeat")
    consumer.close()

    diagram = plane.kafka.diagrams.show(group="g")

    assert [lane.title for lane in diagram.lanes] == ["reader", "group coordinator", "broker 1"]
    assert diagram.lanes[2].detail == ""
    states = texts(diagram, "state")
    assert "all members have joined: PreparingRebalance -> CompletingRebalance, generation 1" in states
    notes = [shape for shape in diagram.shapes if shape.style == "label state"]
    assert "assigned: CompletingRebalance -> Stable" in [note.text for note in notes]  # it had three lines
    assert all(note.x + 6.6 * len(note.text) <= diagram.width for note in notes)
    apis = [text.split()[0] for text in texts(diagram, "request")]
    assert {"JoinGroup", "SyncGroup", "LeaveGroup"} <= set(apis)
    assert "Heartbeat" not in apis
    polls = texts(plane.kafka.diagrams.show(group="g", polls=True), "request")
    assert [text for text in polls if text.startswith("Heartbeat v")]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_one_generation_of_a_group(plane: ControlPlane, protocol: str) -> None:
    """From what led to it, through its commits, to the rebalance that ended it; those of no other generation."""
    shared = {"bootstrap.servers": plane.bootstrap, "group.id": "g", "group.protocol": protocol}
    first = Consumer({**shared, "client.id": "first", "enable.auto.commit": False})
    first.subscribe(["t"])
    until(lambda: first.poll(0.1) or len(first.assignment()) == 2, "both partitions")
    alone = plane.kafka.groups["g"].show().epoch
    first.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    second = Consumer({**shared, "client.id": "second", "enable.auto.commit": False})
    second.subscribe(["t"])
    until(lambda: first.poll(0.1) or second.poll(0.1) or len(second.assignment()) == 1, "one partition each")
    both = plane.kafka.groups["g"].show().epoch
    second.commit(offsets=[TopicPartition("t", second.assignment()[0].partition, 0)], asynchronous=False)
    second.close()
    first.close()

    noun = "generation" if protocol == "classic" else "group epoch"
    commits = {}
    for epoch in (alone, both):
        diagram = plane.kafka.diagrams.show(group="g", generation=epoch, limit=1000)
        assert diagram.title == f"Group g, {noun} {epoch}"
        steps = [step for step in diagram.steps if step.text.startswith("OffsetCommit")]
        commits[epoch] = [diagram.lanes[step.source].title for step in steps if step.kind == "request"]
    assert commits == {alone: ["first"], both: ["second"]}
    status, problem = plane.refused("GET", "/v1/diagrams?group=g&generation=99")
    assert (status, f"group 'g' has no {noun} 99" in problem["detail"]) == (404, True)
    status, problem = plane.refused("GET", "/v1/diagrams?transactional_id=x&generation=1")
    assert (status, problem["field"]) == (422, "generation")


def test_commits_of_members_in_turn_are_one_step_each(plane: ControlPlane) -> None:
    """The newest requests of a group were commits alone, and its rebalance was left out."""
    shared = {"bootstrap.servers": plane.bootstrap, "group.id": "g", "enable.auto.commit": False}
    members = [Consumer({**shared, "client.id": name}) for name in ("first", "second")]
    for member in members:
        member.subscribe(["t"])

    def assigned() -> bool:
        return not any(member.poll(0.1) for member in members) and all(len(each.assignment()) == 1 for each in members)

    until(assigned, "one partition each")
    places = {each: TopicPartition("t", each.assignment()[0].partition, 0) for each in members}
    for _ in range(10):
        for member in members:
            member.commit(offsets=[places[member]], asynchronous=False)
    diagram = plane.kafka.diagrams.show(group="g", limit=20)
    commits = [(step.kind, step.count) for step in diagram.steps if step.text.startswith("OffsetCommit")]
    assert commits == [("request", 10), ("request", 10)]
    assert [text for text in texts(diagram, "state") if text.startswith("assigned")]
    plane.kafka.faults.add(api="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS")
    for member in members:
        member.commit(offsets=[places[member]], asynchronous=False)
    diagram = plane.kafka.diagrams.show(group="g", limit=20)
    commits = [(step.kind, step.count) for step in diagram.steps if step.text.startswith("OffsetCommit")]
    assert len(commits) == 5, "the refused one, which is sent again, and the two after it"
    for member in members:
        member.close()
