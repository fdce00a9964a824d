"""Groups of the consumer protocol (KIP-848): heartbeats assign partitions, and commits carry the member epoch."""

import time

from control_api.fault_actions import Disconnect
from understudy.exam.driver import CallError, LibraryError
from understudy.exam.exercise import Consumer, Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.groups import (
    LOST,
    STOPPED,
    check_commit_and_resume,
    check_reads_on,
    check_shared,
    committed,
)
from understudy.exam.scenarios.values import LOOK_S, SOON_S, next_broker, numbered

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
        consumer.poll()
        refused = any(entry.error == "UNKNOWN_MEMBER_ID" for entry in exercise.journal(consumer.name, HEARTBEAT))
    if not refused:
        raise NotExercised("no heartbeat of the member was refused")

    exercise.write(numbered(10, "b"))
    until = exercise.deadline()
    while not exercise.past(until) and not {*numbered(10, "b")} <= {*consumer.values()}:
        consumer.poll()
    exercise.require_read(consumer, numbered(10, "a") + numbered(10, "b"))


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
    moved_to = next_broker(at)
    exercise.cluster.coordinators.move(type="group", key="g", broker=moved_to)
    exercise.write(numbered(10, "b"))
    until = exercise.deadline()
    is_seen = False
    while not is_seen and not exercise.past(until):
        consumer.poll()
        is_seen = any(
            entry.broker == moved_to and not entry.error and entry.outcome == "answered"
            for entry in exercise.journal(consumer.name, HEARTBEAT)
        )
    exercise.require(is_seen, "no heartbeat reached the new coordinator")
    consumer.poll_for(20)
    exercise.require_read(consumer, numbered(10, "a") + numbered(10, "b"))


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


def check_reports(exercise: Exercise, consumer: Consumer) -> list[LibraryError]:
    """Return the errors that a member reports which cannot join; it reads nothing."""
    try:
        consumer.subscribe("t")
        until = exercise.deadline()
        while not exercise.past(until) and not consumer.errors and not consumer.read:
            consumer.poll()
    except CallError as error:
        return [error.error]
    exercise.require(not consumer.read, f"read {consumer.values()} without being a member")
    return consumer.errors


@scenario(
    "consumer-protocol/refused",
    f"Each {HEARTBEAT} is answered with GROUP_AUTHORIZATION_FAILED",
    rule="AbstractHeartbeatRequestManager.onErrorResponse: GroupAuthorizationException",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Reports the error to the application, and reads nothing.",
    loss="A consumer that seems to have nothing to read.",
    slow=True,
)
def refused(exercise: Exercise) -> None:
    """Refuse it for good."""
    exercise.write(numbered(5))
    exercise.fault(api=HEARTBEAT, error="GROUP_AUTHORIZATION_FAILED", times=None)
    consumer = exercise.consumer(group="g", protocol="consumer")
    errors = check_reports(exercise, consumer)
    exercise.require_exercised()
    exercise.require(bool(errors), "GROUP_AUTHORIZATION_FAILED was never reported", Level.SHOULD)


@scenario(
    "consumer-protocol/unreleased-instance-id",
    "Two clients have the same instance id",
    rule="KIP-848: UNRELEASED_INSTANCE_ID",
    needs=f"{NEEDS} static_members",
    correct="The second one reports a fatal error, and the first one stays a member.",
    loss=LOST,
    slow=True,
)
def unreleased_instance_id(exercise: Exercise) -> None:
    """Let the second one come while the first one is there."""
    exercise.write(numbered(5))
    first = exercise.consumer(group="g", protocol="consumer", instance_id="one")
    first.subscribe("t")
    first.poll_for(5)
    second = exercise.consumer(group="g", protocol="consumer", instance_id="one")
    errors = check_reports(exercise, second)
    codes = {entry.error for entry in exercise.journal(second.name, HEARTBEAT)}
    exercise.require_situation("UNRELEASED_INSTANCE_ID" in codes, f"the second client got {codes}")
    exercise.require(bool(errors), "UNRELEASED_INSTANCE_ID was never reported", Level.SHOULD)
    first.read.clear()
    exercise.write(numbered(5, "b"))
    first.poll_for(5)
    exercise.require(first.values() == numbered(5, "b"), f"the first one read {first.values()}")


@scenario(
    "consumer-protocol/offsetfetch-stale-member-epoch",
    "OffsetFetch is answered with STALE_MEMBER_EPOCH",
    rule="KIP-848: CommitRequestManager.OffsetFetchRequestState",
    needs=COMMITS,
    correct="Repeats the request with the epoch of its next heartbeat, and begins at the committed offset.",
    loss="Records that are read again, or a consumer that stops.",
)
def offsetfetch_stale_member_epoch(exercise: Exercise) -> None:
    """Return the error once to the successor of a member that has committed."""
    exercise.write(numbered(10, "a"))
    first = member(exercise)
    first.poll_for(10)
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    first.close()
    exercise.fault(api="OffsetFetch", error="STALE_MEMBER_EPOCH")
    exercise.write(numbered(10, "b"))
    second = member(exercise)
    second.poll_for(10)
    second.poll_quietly()
    exercise.require_exercised()
    met = [each for each in exercise.journal(second.name, "OffsetFetch") if each.fault]
    carried = any(group.get("member_id") for each in met for group in each.request.get("groups", ()))
    exercise.require_situation(carried, "the library asks without its member id, and gets no such error of a broker")
    exercise.require(second.values() == numbered(10, "b"), f"the second member read {second.values()}")
    text = f"the application was bothered with what passes: {second.errors[:1]}"
    exercise.require(not second.errors, text, Level.SHOULD)


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
    until = time.monotonic() + SOON_S
    while time.monotonic() < until and exercise.group("g").members:
        time.sleep(LOOK_S)
    exercise.require(not exercise.group("g").members, "the closed consumer is still a member")
