"""Groups of the classic protocol: one member per partition, nothing skipped, commits fenced."""

import time
from collections.abc import Callable, Sequence

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Consumer, Exercise
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import BRIEF_MS, LOOK_S, MANY, SOON_S, TURN_MS, next_broker, numbered, since

NEEDS = "consumer groups"
COMMITS = f"{NEEDS} commit_offsets"
STOPPED = "A consumer that stops reading."
LOST = "Records that are skipped by the next member, or read by two at once."
JOIN_AGAIN = "Rejoins, and continues at the committed offset."


def member(exercise: Exercise, *topics: str) -> Consumer:
    """Return a subscribed consumer in the group `g`."""
    consumer = exercise.consumer(group="g")
    consumer.subscribe(*topics)
    return consumer


def check_reads_on(
    exercise: Exercise, *, member: Callable[[Exercise], Consumer] = member, every_fault: bool = True
) -> None:
    """Write ten records, let the fault occur, write ten more: all are read.

    After a rebalance duplicates are allowed.
    """
    exercise.write(numbered(10, "a"))
    consumer = member(exercise)
    consumer.poll_for(10)
    until = exercise.deadline()
    while not exercise.past(until) and not exercise.met(every_fault=every_fault):
        consumer.poll()
    exercise.write(numbered(10, "b"))
    wanted = {*numbered(10, "a"), *numbered(10, "b")}
    until = exercise.deadline()
    while time.monotonic() < until and not wanted <= set(consumer.values()):
        consumer.poll()
    exercise.require_exercised(every_fault=every_fault)
    exercise.require_read(consumer, wanted)


def committed(exercise: Exercise, topic: str = "t") -> list[int]:
    """Return the group's committed offset."""
    return [int(commit.offset) for commit in exercise.group("g").offsets if commit.topic == topic]


@scenario(
    "groups/plain",
    "One member reads a topic",
    rule="groups A.4",
    needs=NEEDS,
    correct="Joins, syncs, fetches.",
    loss=STOPPED,
)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control."""
    check_reads_on(exercise)


for _api, _codes in {
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID"),
    "SyncGroup": ("REBALANCE_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "Heartbeat": ("REBALANCE_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"),
    "OffsetFetch": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
}.items():
    for _code in _codes:

        def _refused(exercise: Exercise, api: str = _api, code: str = _code) -> None:
            exercise.fault(api=api, error=code)
            check_reads_on(exercise)

        _slug = f"{_api}-{_code}".lower().replace("_", "-")
        scenario(
            f"groups/{_slug}",
            f"{_api} is answered with {_code}",
            rule="ConsumerCoordinator; groups A",
            needs=NEEDS,
            correct="Looks up the coordinator, waits or rejoins, depending on the error.",
            loss=STOPPED,
            slow=_slug == "offsetfetch-not-coordinator",
        )(_refused)


@scenario(
    "groups/offsetfetch-unstable-offset-commit",
    "OffsetFetch is answered with UNSTABLE_OFFSET_COMMIT",
    rule="KIP-447: RequireStable",
    needs=NEEDS,
    correct="Repeats the request until the transaction with the pending offset has ended.",
    loss="Records are read again whose offsets are about to be committed.",
)
def unstable_offsets(exercise: Exercise) -> None:
    """Return the error for each partition, not for the group; only requests with require_stable get it."""
    path = {"groups.*.topics.*.partitions.*.error_code": "UNSTABLE_OFFSET_COMMIT"}
    exercise.fault(api="OffsetFetch", versions=since(7), alter=path)
    check_reads_on(exercise)


for _api in ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "FindCoordinator"):

    def _lost(exercise: Exercise, api: str = _api) -> None:
        exercise.fault(api=api, apply_then=Disconnect("reset"))
        check_reads_on(exercise)

    scenario(
        f"groups/{_api.lower()}-answer-lost",
        f"The answer to {_api} is lost with its connection",
        rule="AbstractCoordinator",
        needs=NEEDS,
        correct="Reconnects and repeats what is needed.",
        loss=STOPPED,
    )(_lost)


@scenario(
    "groups/commit-and-resume",
    "A second member continues where the first one stopped",
    rule="groups B.1",
    needs=COMMITS,
    correct="Commits the position after the last record that was read; the next member starts there.",
    loss=LOST,
)
def commit_and_resume(exercise: Exercise) -> None:
    """Read ten records, commit, and read ten more."""
    check_commit_and_resume(exercise)


def check_commit_and_resume(exercise: Exercise, *, member: Callable[[Exercise], Consumer] = member) -> None:
    """Read and commit ten records with a member that leaves; require that the next one reads ten others."""
    exercise.write(numbered(10, "a"))
    first = member(exercise)
    first.poll_for(10)
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    exercise.require(committed(exercise) == [10], f"committed {committed(exercise)}, not 10")
    first.close()
    exercise.write(numbered(10, "b"))
    second = member(exercise)
    second.poll_for(10)
    second.poll_quietly()
    exercise.require(second.values() == numbered(10, "b"), f"the second member read {second.values()}")


for _commit_code in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REQUEST_TIMED_OUT"):

    def _commit_refused(exercise: Exercise, code: str = _commit_code) -> None:
        exercise.write(numbered(10))
        consumer = member(exercise)
        consumer.poll_for(10)
        exercise.fault(api="OffsetCommit", error=code)
        error = consumer.commit()
        exercise.require_exercised()
        offsets = committed(exercise)
        exercise.require(
            error is not None or offsets == [10], f"the commit was reported as done, and the group has {offsets}"
        )

    _slug = _commit_code.lower().replace("_", "-")
    scenario(
        f"groups/commit-{_slug}",
        f"OffsetCommit is answered with {_commit_code}",
        rule="OffsetCommitResponseHandler; groups B.1",
        needs=COMMITS,
        correct="Repeats the commit, or reports the error.",
        loss=LOST,
    )(_commit_refused)


@scenario(
    "groups/commit-answer-lost",
    "The response to OffsetCommit is lost",
    rule="groups B.1",
    needs=COMMITS,
    correct="Repeats the commit, or reports the error.",
    loss=LOST,
)
def commit_answer_lost(exercise: Exercise) -> None:
    """Commit the offset, but lose the response."""
    exercise.write(numbered(10))
    consumer = member(exercise)
    consumer.poll_for(10)
    exercise.fault(api="OffsetCommit", apply_then=Disconnect())
    consumer.commit()
    exercise.require_exercised()
    exercise.require(committed(exercise) == [10], f"the group has {committed(exercise)}")


@scenario(
    "groups/evicted-member-commits",
    "A member that was removed commits",
    rule="groups B.1 OC3; UNKNOWN_MEMBER_ID",
    needs=COMMITS,
    correct="Reports that the commit failed; the partitions may belong to another member.",
    loss=LOST,
    slow=True,
)
def evicted_member_commits(exercise: Exercise) -> None:
    """Refuse each of its commits."""
    exercise.write(numbered(10))
    consumer = member(exercise)
    consumer.poll_for(10)
    exercise.fault(api="OffsetCommit", error="UNKNOWN_MEMBER_ID", times=None)
    error = consumer.commit()
    exercise.require_exercised()
    exercise.require(error is not None, "the library reports that offsets are committed which the broker refused")


@scenario(
    "groups/two-members",
    "Two members share three partitions",
    rule="groups A.7",
    needs=f"{NEEDS} assignment",
    correct="Each partition has one member.",
    loss=LOST,
)
def two_members(exercise: Exercise) -> None:
    """Require that each record is read by one of them."""
    first, second = members = member(exercise, "many"), member(exercise, "many")
    check_shared(exercise, members)
    for partition in MANY:
        exercise.write(numbered(5, f"p{partition}-"), topic="many", partition=partition)
    until = exercise.deadline()
    while time.monotonic() < until and len(first.read) + len(second.read) < 15:
        first.poll(TURN_MS)
        second.poll(TURN_MS)
    read = sorted(first.values() + second.values())
    exercise.require(read == sorted(f"p{p}-{n:02}" for p in MANY for n in range(5)), f"together they read {read}")


def check_shared(exercise: Exercise, members: Sequence[Consumer]) -> None:
    """Require that two members have each of three partitions once, by their own report."""
    until = exercise.deadline()
    shares: list[set[int]] = []
    while not exercise.past(until):
        for each in members:
            each.poll(TURN_MS)
        shares = [each.partitions() for each in members]
        if all(shares) and shares[0] | shares[1] == {0, 1, 2} and not shares[0] & shares[1]:
            break
    exercise.require(all(shares) and shares[0] | shares[1] == {0, 1, 2}, f"the members have {shares}")
    exercise.require(not shares[0] & shares[1], f"both have {shares[0] & shares[1]}")


@scenario(
    "groups/subscription-grows",
    "A member subscribes to another topic, and rejoins during several polls",
    rule="groups A.5; AbstractCoordinator.rejoinNeededOrPending",
    needs=f"{NEEDS} resubscribe",
    correct="Rejoins with both topics, and gets its partitions although the responses arrive between polls.",
    loss=STOPPED,
)
def subscription_grows(exercise: Exercise) -> None:
    """Delay the response to SyncGroup for longer than a poll."""
    exercise.write(numbered(5, "t"))
    exercise.write(numbered(5, "u"), topic="u")
    consumer = member(exercise, "t")
    consumer.poll_for(5)
    exercise.fault(api="SyncGroup", delay_ms=500, where="after")
    consumer.subscribe("t", "u")
    wanted = {*numbered(5, "t"), *numbered(5, "u")}
    until = exercise.deadline()
    while not exercise.past(until) and not wanted <= set(consumer.values()):
        consumer.poll(BRIEF_MS)
    exercise.require_read(consumer, wanted)
    exercise.require_exercised()


@scenario(
    "groups/coordinator-moves",
    "The coordinator moves to another broker",
    rule="groups F.5",
    needs=NEEDS,
    steers="coordinators",
    correct="Looks up the coordinator and continues as a member.",
    loss=STOPPED,
)
def coordinator_moves(exercise: Exercise) -> None:
    """Move it between two reads."""
    exercise.write(numbered(10, "a"))
    consumer = member(exercise)
    consumer.poll_for(10)
    at = exercise.served_by(consumer.name, "JoinGroup")
    exercise.cluster.coordinators.move(type="group", key="g", broker=next_broker(at))
    exercise.write(numbered(10, "b"))
    consumer.poll_for(20)
    exercise.require_read(consumer, numbered(10, "a") + numbered(10, "b"))
    check_heartbeats(exercise, consumer, "Heartbeat", next_broker(at))


def check_heartbeats(exercise: Exercise, consumer: Consumer, api: str, broker: int) -> None:
    """Require that the broker, which is the coordinator now, accepts heartbeats of the member."""
    until = exercise.deadline()
    while not exercise.past(until):
        if any(entry.broker == broker and not entry.error for entry in exercise.journal(consumer.name, api)):
            return
        consumer.poll()
    exercise.require(False, f"the new coordinator got no {api}: the member will be removed")


@scenario(
    "groups/heartbeats",
    "A member with an interval of 0.3 s between heartbeats",
    rule="heartbeat.interval.ms; groups A.6",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Sends one at least every second.",
    loss="A member that is removed, or that learns of a rebalance when it is too late.",
)
def heartbeats(exercise: Exercise) -> None:
    """Count those of three seconds, without a fault."""
    exercise.write(["r00"])
    consumer = member(exercise)
    consumer.poll_for(1)
    before = len(exercise.journal(consumer.name, "Heartbeat"))
    consumer.poll_quietly(times=15)
    count = len(exercise.journal(consumer.name, "Heartbeat")) - before
    # A third of those that are due, one every 300 ms: a busy machine delays some.
    exercise.require(count >= 3, f"{count} heartbeats in three seconds")


@scenario(
    "groups/partitions-return",
    "A second member reads on in its partitions and leaves, and they return to the first one",
    rule="ConsumerCoordinator.onJoinComplete: positions are the committed offsets",
    needs=f"{COMMITS} assignment",
    correct="Reads on at the committed offsets, not at its former positions.",
    loss="Records that another member has read are read again.",
)
def partitions_return(exercise: Exercise) -> None:
    """Let the second member commit what it has read."""
    for partition in MANY:
        exercise.write(numbered(3, f"p{partition}-"), topic="many", partition=partition)
    first = member(exercise, "many")
    first.poll_for(9)
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    second = member(exercise, "many")
    check_shared(exercise, (first, second))
    share = second.partitions()
    for partition in share:
        exercise.write(numbered(3, f"p{partition}-later"), topic="many", partition=partition)
    second.poll_for(3 * len(share))
    error = second.commit()
    exercise.require_situation(error is None and second.partitions() == share, "the group was rebalanced again")
    second.close()
    for partition in share:
        exercise.write([f"p{partition}-last"], topic="many", partition=partition)
    before = len(first.read)
    first.poll_for(before + len(share))
    first.poll_quietly()
    read = sorted(first.values()[before:])
    exercise.require(read == sorted(f"p{each}-last" for each in share), f"the first member then read {read}")


@scenario(
    "groups/leaves-when-closed",
    "A member closes",
    rule="KafkaConsumer.close; groups A.9",
    needs=NEEDS,
    correct="Sends LeaveGroup, so that others take over immediately.",
    loss="Partitions without a reader until the session times out.",
)
def leaves_when_closed(exercise: Exercise) -> None:
    """Require that the group is empty afterwards."""
    exercise.write(["r00"])
    consumer = member(exercise)
    consumer.poll_for(1)
    consumer.close()
    until = time.monotonic() + SOON_S
    while time.monotonic() < until and exercise.group("g").members:
        time.sleep(LOOK_S)
    exercise.require(not exercise.group("g").members, "the closed consumer is still a member")
