"""Share groups (KIP-932): each record is acknowledged, and redelivered unless it was accepted or rejected."""

from collections.abc import Sequence
from typing import Any, Final

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import Play, scenario
from understudy.exam.scenarios.values import MANY, PROBE_MS, next_broker, numbered
from understudy.exam.share_consumer import ShareConsumer, share_consumer

NEEDS = "share_groups"
COUNT: Final = 5  # few enough to be acknowledged one by one
LOCK_S: Final = 31
"""One second longer than share.record.lock.duration.ms."""
AGAIN = "Repeats the request if the error is retriable, looks up the leader or coordinator, and rejoins if necessary."
STOPS = "A member that stops reading."
TWICE = "Work that is done twice, or never."
REPORTS = "Reports that the acknowledgement failed, or repeats it."


def member(exercise: Exercise) -> ShareConsumer:
    """Return a member that reads topic t, in a group that has its start offset.

    By default a share group starts at the end of the log: records are written until one of them arrives.
    """
    consumer = share_consumer(exercise)
    consumer.subscribe("t")
    until = exercise.deadline()
    written = 0
    while not consumer.read and not exercise.past(until):
        written += 1
        exercise.write([f"probe{written}"])
        consumer.poll(PROBE_MS)
    exercise.require(bool(consumer.read), f"the member has read none of {written} records")
    while True:
        consumer.acknowledge("accept", consumer.read)
        exercise.require(consumer.commit() is None, "records cannot be accepted")
        if consumer.values()[-1] == f"probe{written}":
            break
        consumer.read.clear()
        consumer.poll(PROBE_MS)
        exercise.require(bool(consumer.read) and not exercise.past(until), "the member stopped reading")
    consumer.read.clear()
    return consumer


def written(exercise: Exercise, consumer: ShareConsumer, part: str = "r") -> Sequence[Any]:
    """Return records that the member has read, and not acknowledged yet."""
    exercise.write(numbered(COUNT, part))
    consumer.poll_for(COUNT)
    values = consumer.values()
    exercise.require(values == numbered(COUNT, part), f"read {values}, not {numbered(COUNT, part)}")
    return list(consumer.read)


def successor(exercise: Exercise, former: ShareConsumer) -> ShareConsumer:
    """Return another member, after the former one has left; besides a marker it only gets redelivered records."""
    former.close()
    consumer = share_consumer(exercise)
    consumer.subscribe("t")
    exercise.write(["marker"])
    until = exercise.deadline()
    while "marker" not in consumer.values() and not exercise.past(until):
        before = len(consumer.read)
        consumer.poll(PROBE_MS)
        if consumer.read[before:]:
            consumer.acknowledge("accept", consumer.read[before:])
            consumer.commit()
    exercise.require("marker" in consumer.values(), "the next member reads nothing")
    return consumer


def require_again(exercise: Exercise, consumer: ShareConsumer, expected: Sequence[str]) -> None:
    """Require that exactly these records are redelivered."""
    values = sorted(set(consumer.values()) - {"marker"})
    exercise.require(values == sorted(expected), f"the next member read {values}, not {sorted(expected)}")


# --- acknowledgements ------------------------------------------------------------------------------------------------


@scenario("share/plain", "A member reads five records", rule="KIP-932", needs=NEEDS, correct="Reads them.", loss=STOPS)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control of the others."""
    written(exercise, member(exercise))


def register_outcome(kind: str, title: str, again: bool) -> Play:
    """Register a scenario in which each record gets the same type of acknowledgement."""

    @scenario(
        f"share/{kind}",
        title,
        rule="KIP-932: acknowledge types",
        needs=NEEDS,
        correct="Sends this type for each of the records.",
        loss=TWICE,
    )
    def play(exercise: Exercise) -> None:
        """Check the type by what the next member gets."""
        consumer = member(exercise)
        consumer.acknowledge(kind, written(exercise, consumer))
        error = consumer.commit()
        exercise.require(error is None, f"the library reports {error}")
        require_again(exercise, successor(exercise, consumer), numbered(COUNT) if again else [])

    return play


register_outcome("accept", "Records are accepted", again=False)
register_outcome("release", "Records are released", again=True)
register_outcome("reject", "Records are rejected", again=False)


@scenario(
    "share/release-one-of-five",
    "One of five records is released, the others are accepted",
    rule="KIP-932: AcquiredRecords",
    needs=NEEDS,
    correct="Returns the one that it has acquired, and not the others of its batch.",
    loss=TWICE,
)
def release_one_of_five(exercise: Exercise) -> None:
    """Release the third one: the broker sends the whole batch again, and which of its records are acquired."""
    consumer = member(exercise)
    records = written(exercise, consumer)
    consumer.acknowledge("release", records[2:3])
    consumer.acknowledge("accept", [*records[:2], *records[3:]])
    error = consumer.commit()
    exercise.require(error is None, f"the library reports {error}")
    require_again(exercise, successor(exercise, consumer), [records[2]["value"]])


@scenario(
    "share/closed-without-acknowledgement",
    "A member is closed with records that were not acknowledged",
    rule="KIP-932: ShareConsumeRequestManager releases what was acquired",
    needs=NEEDS,
    correct="Does not accept them: another member gets them.",
    loss="Records that were never processed.",
)
def closed_without_acknowledgement(exercise: Exercise) -> None:
    """Read five, and close."""
    consumer = member(exercise)
    written(exercise, consumer)
    require_again(exercise, successor(exercise, consumer), numbered(COUNT))


def register_refused(name: str, title: str, **fault: Any) -> Play:
    """Register a scenario in which the acknowledgement first fails."""

    @scenario(
        f"share/acknowledge-{name}",
        title,
        rule="KIP-932; ShareConsumeRequestManager",
        needs=NEEDS,
        correct=REPORTS,
        loss=TWICE,
    )
    def play(exercise: Exercise) -> None:
        """Require that a reported success is true."""
        consumer = member(exercise)
        records = written(exercise, consumer)
        exercise.fault(api="ShareAcknowledge", **fault)
        consumer.acknowledge("accept", records)
        error = consumer.commit()
        exercise.require_exercised()
        redelivered = set(successor(exercise, consumer).values()) & set(numbered(COUNT))
        exercise.require(error is not None or not redelivered, "records were reported as accepted, and delivered again")

    return play


register_refused("request-lost", "The connection ends before ShareAcknowledge is served", disconnect="reset")
register_refused(
    "not-leader", "ShareAcknowledge is answered with NOT_LEADER_OR_FOLLOWER", error="NOT_LEADER_OR_FOLLOWER"
)
register_refused(
    "session-not-found",
    "ShareAcknowledge is answered with SHARE_SESSION_NOT_FOUND",
    error="SHARE_SESSION_NOT_FOUND",
)
register_refused(
    "invalid-record-state", "ShareAcknowledge is answered with INVALID_RECORD_STATE", error="INVALID_RECORD_STATE"
)


@scenario(
    "share/lock-expires",
    "The acquisition lock of five records expires",
    rule="KIP-932: share.record.lock.duration.ms; INVALID_RECORD_STATE",
    needs=NEEDS,
    steers="clock",
    correct="Reports that the records were not accepted: they may be another member's.",
    loss=TWICE,
)
def lock_expires(exercise: Exercise) -> None:
    """Advance the cluster's clock by half a minute before they are accepted."""
    consumer = member(exercise)
    records = written(exercise, consumer)
    exercise.cluster.clock.advance(seconds=LOCK_S)
    consumer.acknowledge("accept", records)
    error = consumer.commit()
    refused = any("INVALID_RECORD_STATE" in str(entry.response) for entry in exercise.journal(consumer.name))
    if not refused:
        raise NotExercised("no acknowledgement came too late")
    exercise.require(error is not None, "records were reported as accepted, which the broker refused")


# --- fetching and membership -----------------------------------------------------------------------------------------


def register_reading(name: str, title: str, level: Level = Level.MUST, **fault: Any) -> Play:
    """Register a scenario in which a member continues reading after a fault."""

    @scenario(f"share/{name}", title, rule="KIP-932", needs=NEEDS, level=level, correct=AGAIN, loss=STOPS)
    def play(exercise: Exercise) -> None:
        """Cause the fault after the member has read."""
        consumer = member(exercise)
        exercise.fault(**fault)
        until = exercise.deadline()
        while not exercise.met() and not exercise.past(until):
            consumer.poll()
        exercise.require_exercised()
        exercise.write(numbered(COUNT))
        consumer.accept(COUNT)
        values = sorted(set(consumer.values()))
        exercise.require(values == numbered(COUNT), f"read {values}, not {numbered(COUNT)}")
        text = "the application was bothered with what passes"
        exercise.require(not consumer.errors, f"{text}: {consumer.errors[:1]}", Level.SHOULD)

    return play


for _code in ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"):
    register_reading(
        f"fetch-{_code.lower().replace('_', '-')}",
        f"ShareFetch is answered with {_code}",
        api="ShareFetch",
        alter={"error_code": _code, "responses": []},
    )
register_reading("fetch-answer-lost", "The response to ShareFetch is lost", api="ShareFetch", apply_then=Disconnect())
register_reading(
    "fetch-unknown-topic-or-partition",
    "ShareFetch is answered with UNKNOWN_TOPIC_OR_PARTITION",
    api="ShareFetch",
    error="UNKNOWN_TOPIC_OR_PARTITION",
)
for _code in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "UNKNOWN_MEMBER_ID",
              "FENCED_MEMBER_EPOCH"):  # fmt: skip
    register_reading(
        f"heartbeat-{_code.lower().replace('_', '-')}",
        f"ShareGroupHeartbeat is answered with {_code}",
        api="ShareGroupHeartbeat",
        error=_code,
    )


@scenario(
    "share/three-partitions",
    "A member reads three partitions",
    rule="KIP-932: TopicPartitions",
    needs=NEEDS,
    correct="Reads each of them.",
    loss=STOPS,
)
def three_partitions(exercise: Exercise) -> None:
    """Write to each until the member has read from each: the group begins at the end of the logs."""
    consumer = share_consumer(exercise)
    consumer.subscribe("many")
    until = exercise.deadline()
    while len(partitions := {each["partition"] for each in consumer.read}) < 3 and not exercise.past(until):
        for partition in MANY:
            exercise.write([f"p{partition}"], topic="many", partition=partition)
        before = len(consumer.read)
        consumer.poll(PROBE_MS)
        consumer.acknowledge("accept", consumer.read[before:])
        exercise.require(consumer.commit() is None, "records cannot be accepted")
    exercise.require(len(partitions) == 3, f"read from partitions {sorted(partitions)} of three")


@scenario(
    "share/leader-moves",
    "The leader moves between two reads",
    rule="KIP-932",
    needs=NEEDS,
    steers="leaders",
    correct=AGAIN,
    loss=STOPS,
)
def leader_moves(exercise: Exercise) -> None:
    """Move it to the next broker; records acquired from the former leader may be redelivered."""
    consumer = member(exercise)
    at = exercise.served_by(consumer.name, "ShareFetch")
    exercise.cluster.topics["t"].partitions[0].move_leader(next_broker(at))
    exercise.write(numbered(COUNT))
    consumer.accept(COUNT)
    values = sorted(set(consumer.values()))
    exercise.require(values == numbered(COUNT), f"read {values}, not {numbered(COUNT)}")


@scenario(
    "share/leaves-when-closed",
    "A member is closed",
    rule="KIP-932: member epoch -1",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Sends ShareGroupHeartbeat with member epoch -1.",
    loss="Records that stay acquired until a session or a lock ends.",
)
def leaves_when_closed(exercise: Exercise) -> None:
    """Require the heartbeat."""
    consumer = member(exercise)
    consumer.close()
    epochs = [entry.request["member_epoch"] for entry in exercise.journal(consumer.name, "ShareGroupHeartbeat")]
    exercise.require(-1 in epochs, "no heartbeat with member epoch -1")
