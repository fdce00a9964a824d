"""Groups of the consumer protocol (KIP-848): heartbeats assign partitions, and commits carry the member epoch."""

import time

from understudy.exam.exercise import Consumer, Exercise, NotExercised
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.groups import (
    LOST,
    STOPPED,
    check_commit_and_resume,
    check_reads_on,
    check_shared,
    committed,
)
from understudy.exam.scenarios.values import numbered
from understudy.fault_actions import Disconnect

NEEDS = "consumer consumer_protocol"
COMMITS = f"{NEEDS} commit_offsets"
HEARTBEAT = "ConsumerGroupHeartbeat"


def member(exercise: Exercise, *topics: str) -> Consumer:
    """Return a subscribed consumer in the group `g`."""
    consumer = exercise.consumer(group="g", protocol="consumer")
    consumer.subscribe(*topics)
    return consumer


@scenario(
    "consumer-protocol/plain",
    "One member reads a topic",
    rule="KIP-848; groups B",
    needs=NEEDS,
    correct="Joins with a heartbeat, and reads its assigned partitions.",
    loss=STOPPED,
)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control; the group uses the consumer protocol."""
    check_reads_on(exercise, member=member)
    exercise.require(bool(exercise.journal(api=HEARTBEAT)), f"no {HEARTBEAT} was sent")


for _code, _skip in (
    ("COORDINATOR_LOAD_IN_PROGRESS", 0),
    ("COORDINATOR_NOT_AVAILABLE", 0),
    ("NOT_COORDINATOR", 1),
    ("FENCED_MEMBER_EPOCH", 1),
):

    def _refused(exercise: Exercise, code: str = _code, skip: int = _skip) -> None:
        exercise.fault(api=HEARTBEAT, error=code, skip=skip)
        check_reads_on(exercise, member=member)

    scenario(
        f"consumer-protocol/heartbeat-{_code.lower().replace('_', '-')}",
        f"{HEARTBEAT} is answered with {_code}",
        rule="KIP-848; ConsumerHeartbeatRequestManager",
        needs=NEEDS,
        correct="Looks up the coordinator, waits, or revokes its partitions and rejoins, depending on the error.",
        loss=STOPPED,
    )(_refused)


@scenario(
    "consumer-protocol/heartbeat-unknown-member-id",
    "A member is removed from its group",
    rule="KIP-848: UNKNOWN_MEMBER_ID",
    needs=NEEDS,
    steers="members",
    correct="Revokes its partitions and rejoins, with the same member id or another one.",
    loss=STOPPED,
)
def removed(exercise: Exercise) -> None:
    """Remove it as if its session had timed out; its next heartbeat is refused."""
    exercise.write(numbered(10, "a"))
    consumer = member(exercise)
    consumer.poll_for(10)
    group = exercise.cluster.groups["g"]
    for each in exercise.group("g").members:
        group.evict(each.member_id)

    until, refused = exercise.deadline(), False
    while not refused and not exercise.past(until):
        consumer.poll(200)
        refused = any(entry.error == "UNKNOWN_MEMBER_ID" for entry in exercise.journal(consumer.name, HEARTBEAT))
    if not refused:
        raise NotExercised("no heartbeat of the member was refused")

    exercise.write(numbered(10, "b"))
    until = exercise.deadline()
    while not exercise.past(until) and not {*numbered(10, "b")} <= {*consumer.values()}:
        consumer.poll(200)
    missing = sorted({*numbered(10, "a"), *numbered(10, "b")} - {*consumer.values()})
    exercise.require(not missing, f"not read: {', '.join(missing[:5])}")


@scenario(
    "consumer-protocol/heartbeat-answer-lost",
    f"The answer to {HEARTBEAT} is lost",
    rule="KIP-848: heartbeats are idempotent",
    needs=NEEDS,
    correct="Repeats it with its current epoch.",
    loss=STOPPED,
)
def heartbeat_answer_lost(exercise: Exercise) -> None:
    """Lose the second response together with its connection."""
    exercise.fault(api=HEARTBEAT, apply_then=Disconnect("reset"), skip=1)
    check_reads_on(exercise, member=member)


@scenario(
    "consumer-protocol/join-answer-lost",
    "The response to the first heartbeat is lost",
    rule="KIP-848: member ids are the client's (KIP-1082)",
    needs=NEEDS,
    correct="Rejoins with the same member id.",
    loss="Partitions that stay with a member which does not exist.",
)
def join_answer_lost(exercise: Exercise) -> None:
    """Lose it when the member is in the group already."""
    exercise.fault(api=HEARTBEAT, apply_then=Disconnect("reset"))
    check_reads_on(exercise, member=member)


@scenario(
    "consumer-protocol/coordinator-moves",
    "The coordinator moves to another broker",
    rule="KIP-848; groups F.5",
    needs=NEEDS,
    steers="coordinators",
    correct="Looks up the coordinator and continues as a member.",
    loss=STOPPED,
)
def coordinator_moves(exercise: Exercise) -> None:
    """Move it between two reads; the member has to find the new one to stay in the group."""
    exercise.write(numbered(10, "a"))
    consumer = member(exercise)
    consumer.poll_for(10)
    at = exercise.served_by(consumer.name, HEARTBEAT)
    moved_to = at % 3 + 1
    exercise.cluster.coordinators.move(type="group", key="g", broker=moved_to)
    exercise.write(numbered(10, "b"))
    until = exercise.deadline()
    is_seen = False
    while not is_seen and not exercise.past(until):
        consumer.poll(200)
        is_seen = any(
            entry.broker == moved_to and not entry.error and entry.outcome == "answered"
            for entry in exercise.journal(consumer.name, HEARTBEAT)
        )
    exercise.require(is_seen, "no heartbeat reached the new coordinator")
    consumer.poll_for(20)
    missing = sorted({*numbered(10, "a"), *numbered(10, "b")} - set(consumer.values()))
    exercise.require(not missing, f"not read: {', '.join(missing[:5])}")


@scenario(
    "consumer-protocol/two-members",
    "Two members share three partitions",
    rule="KIP-848; groups B.4",
    needs=f"{NEEDS} assignment",
    correct="Each partition has one member, which revokes it before another one gets it.",
    loss=LOST,
)
def two_members(exercise: Exercise) -> None:
    """Compare the client's own report with the broker's."""
    check_shared(exercise, [member(exercise, "many"), member(exercise, "many")])


@scenario(
    "consumer-protocol/commit-and-resume",
    "A second member continues where the first one stopped",
    rule="KIP-848; OffsetCommit 9",
    needs=COMMITS,
    correct="Commits with its member epoch; the next member begins there.",
    loss=LOST,
)
def commit_and_resume(exercise: Exercise) -> None:
    """Commit and leave with the first member."""
    check_commit_and_resume(exercise, member=member)


@scenario(
    "consumer-protocol/commit-stale-member-epoch",
    "OffsetCommit is answered with STALE_MEMBER_EPOCH",
    rule="KIP-848: CommitRequestManager",
    needs=COMMITS,
    correct="Repeats the commit with the epoch of its next heartbeat, or reports the error.",
    loss=LOST,
)
def commit_stale_member_epoch(exercise: Exercise) -> None:
    """Return the error once."""
    exercise.write(numbered(10))
    consumer = member(exercise)
    consumer.poll_for(10)
    exercise.fault(api="OffsetCommit", error="STALE_MEMBER_EPOCH")
    error = consumer.commit()
    exercise.require_exercised()
    offsets = committed(exercise)
    exercise.require(
        error is not None or offsets == [10], f"the commit was reported as done, and the group has {offsets}"
    )


@scenario(
    "consumer-protocol/leaves-when-closed",
    "A member closes",
    rule="KIP-848: member epoch -1",
    needs=NEEDS,
    correct=f"Sends a {HEARTBEAT} with epoch -1, so that others take over immediately.",
    loss="Partitions without a reader until the session times out.",
)
def leaves_when_closed(exercise: Exercise) -> None:
    """Require that the group is empty afterwards."""
    exercise.write(["r00"])
    consumer = member(exercise)
    consumer.poll_for(1)
    exercise.require(bool(exercise.group("g").members), "the consumer is not a member of the group")
    consumer.close()
    until = time.monotonic() + 5
    while time.monotonic() < until and exercise.group("g").members:
        time.sleep(0.05)
    exercise.require(not exercise.group("g").members, "the closed consumer is still a member")
