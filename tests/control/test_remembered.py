"""What timelines and `why` remember: a refusal for as long as its id lives, after any number of later events."""

import re

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.control.harness import ControlPlane
from tests.control.test_explain_group import heartbeat, joined, sync
from tests.control.test_transactions import RawProducer
from tests.scenarios.groups.members import Member, commit
from tests.serving import until

E = ErrorCode


# --- transactions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def raw(plane: ControlPlane) -> RawProducer:
    """A producer with the id x."""
    return RawProducer(plane)


def commits(raw: RawProducer, count: int) -> None:
    """Transactions that nothing happens to."""
    for _ in range(count):
        until(lambda: raw.add(0) is E.NONE, "the last transaction's markers")
        assert raw.end() is E.NONE


def test_a_refusal_is_explained_after_a_hundred_healthy_commits(plane: ControlPlane, raw: RawProducer) -> None:
    """Half a second of work once pushed it out of a ring, and the answer was that nothing had been refused."""
    raw.epoch += 5
    assert raw.add(0) is E.PRODUCER_FENCED
    raw.epoch -= 5
    before = plane.kafka.transactions["x"].why()
    commits(raw, 100)
    after = plane.kafka.transactions["x"].why()
    assert (after.error, after.why, after.rule) == (before.error, before.why, before.rule)
    assert after.error == "PRODUCER_FENCED"
    assert plane.http("GET", "/v1/transactions/x/why")["forgotten"] == 0


def test_healthy_commits_are_folded_when_they_are_old(plane: ControlPlane, raw: RawProducer) -> None:
    """With the first and the last time, and their number; the newest are listed one by one."""
    commits(raw, 100)
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteCommit", "the markers")
    answer = plane.http("GET", "/v1/transactions/x")
    assert answer["forgotten"] == 0
    timeline = answer["timeline"]
    folded = [event for event in timeline if event["count"] > 1]
    assert len(folded) == 1
    assert folded[0]["event"].endswith(" commits")
    commits_folded = int(folded[0]["event"].split()[0])
    assert commits_folded + sum(event["event"] == "committed" for event in timeline) == 100
    assert timeline[0]["event"] == "initialised"
    assert timeline[0]["at_ms"] <= folded[0]["at_ms"] <= folded[0]["until_ms"]
    assert folded[0]["client_id"] == "raw"
    assert "commits" in plane.ctl_text("transactions", "show", "x")


def test_the_fencing_of_a_zombie_is_explained_after_many_transactions_of_its_successor(
    plane: ControlPlane, raw: RawProducer
) -> None:
    """The event that fenced it is old, but it is a cause: it is not folded."""
    successor = RawProducer(plane)
    commits(successor, 100)
    assert raw.add(0) is E.PRODUCER_FENCED
    first = plane.kafka.transactions["x"].why().why
    assert "called InitProducerId v4 without an epoch while this producer was at" in first
    commits(successor, 100)
    assert plane.kafka.transactions["x"].why().why == first


# --- producers -------------------------------------------------------------------------------------------------------


def test_a_producers_refusal_is_explained_after_many_batches(plane: ControlPlane) -> None:
    """Each on a connection of its own, so that none grows out of the one before it."""

    def produce(sequence: int) -> ErrorCode:
        wire = plane.server.wire(client_id="app")
        batch = build_batch([Record(0, 1, None, b"v")], producer_id=4711, producer_epoch=0, base_sequence=sequence)
        request = ProduceRequest(None, -1, 1000, [TopicProduceData("t", [PartitionProduceData(0, batch)])])
        answer = wire.call(ApiKey.PRODUCE, 9, request)
        wire.close()
        code: ErrorCode = answer.responses[0].partition_responses[0].error_code
        return code

    assert produce(0) is E.NONE
    assert produce(7) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    before = plane.kafka.producers[4711].why()
    for sequence in range(1, 251):
        assert produce(sequence) is E.NONE
    after = plane.kafka.producers[4711].why()
    assert (after.error, after.why) == (before.error, before.why)
    assert after.error == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    answer = plane.http("GET", "/v1/producers/4711")
    assert answer["forgotten"] == 0
    assert sum(event["batches"] for event in answer["timeline"] if event["event"].startswith("accepted")) == 251


# --- groups ----------------------------------------------------------------------------------------------------------


def rebalances(member: Member, count: int) -> None:
    """Healthy ones, each followed by a heartbeat and a commit; its subscription changes each time."""
    for number in range(count):
        member.metadata = bytes([number % 256])
        member.start()
        member.joined()
        assert sync(member) is E.NONE
        healthy(member)


def healthy(member: Member) -> None:
    """A heartbeat and a commit."""
    assert heartbeat(member) is E.NONE
    assert commit(member.wire, "t", 1, member.generation, member.member_id) is E.NONE


def test_a_refused_generation_is_explained_after_hundreds_of_heartbeats_and_commits(plane: ControlPlane) -> None:
    """They are granted, and are no events."""
    member = joined(plane)
    assert heartbeat(member, 7) is E.ILLEGAL_GENERATION
    before = plane.kafka.groups["g"].why()
    for _ in range(300):
        healthy(member)
    after = plane.kafka.groups["g"].why()
    assert (after.error, after.why, after.forgotten) == ("ILLEGAL_GENERATION", before.why, 0)


def test_a_refused_generation_is_explained_after_a_hundred_rebalances(plane: ControlPlane) -> None:
    """Thirty of them once pushed it out of a ring; now they are one event that counts."""
    member = joined(plane)
    assert heartbeat(member, 7) is E.ILLEGAL_GENERATION
    before = plane.kafka.groups["g"].why()
    rebalances(member, 100)
    after = plane.kafka.groups["g"].why()
    assert (after.error, after.why, after.forgotten) == ("ILLEGAL_GENERATION", before.why, 0)
    answer = plane.http("GET", "/v1/groups/g")
    assert answer["forgotten"] == 0
    folded = [event for event in answer["timeline"] if event["event"].endswith(" rebalances")]
    counted = sum(int(event["event"].split()[0]) for event in folded)
    assert counted + sum(event["event"] == "a rebalance begins" for event in answer["timeline"]) == 101
    assert "rebalances" in plane.ctl_text("groups", "show", "g", "--json")


def test_a_member_that_was_lost_long_ago_is_remembered(plane: ControlPlane) -> None:
    """With its last heartbeat, which is no event, after a hundred rebalances without it."""
    zombie = joined(plane)
    assert heartbeat(zombie) is E.NONE
    plane.kafka.clock.advance(seconds=11)
    rebalances(joined(plane), 100)
    assert heartbeat(zombie) is E.UNKNOWN_MEMBER_ID
    reported = plane.kafka.groups["g"].why()
    assert re.match(
        rf"no longer a member: at \S+ member '{zombie.member_id}' .* sent no heartbeat .* was Heartbeat v4 ",
        reported.why,
    )
    assert heartbeat(Member(zombie.wire, member_id="stranger", generation=1)) is E.UNKNOWN_MEMBER_ID
    assert "no request of 'stranger' is in the log" in plane.kafka.groups["g"].why().why
