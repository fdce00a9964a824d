"""Fetch sessions (KIP-227) of several partitions, and truncated logs (KIP-320)."""

from collections.abc import Iterator, Mapping
from typing import Any

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Consumer, Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.consumers import SKIPPED
from understudy.exam.scenarios.values import BEYOND, MANY, next_broker, numbered
from understudy.options import FaultOptions

EPOCHS, NOT_LEADER = "OffsetForLeaderEpoch", "NOT_LEADER_OR_FOLLOWER"
ALL = [f"p{partition}-{number:02}" for partition in MANY for number in range(5)]


def write_many(exercise: Exercise, prefix: str = "") -> None:
    """Write five records to each partition of `many`."""
    for partition in MANY:
        exercise.write([prefix + value for value in numbered(5, f"p{partition}-")], topic="many", partition=partition)


def check_many(exercise: Exercise, consumer: Consumer, expected: list[str]) -> None:
    """Require that the consumer has read these values, each once, and those of a partition in order."""
    consumer.poll_for(len(expected))
    consumer.poll_quietly()
    exercise.require_exercised()
    values = sorted(consumer.values())
    exercise.require(values == sorted(expected), f"read {' '.join(consumer.values()) or 'nothing'}")
    for partition in MANY:
        mine = [str(record["value"]) for record in consumer.read if record["partition"] == partition]
        exercise.require(mine == [value for value in expected if f"p{partition}-" in value], f"the order is {mine}")


@scenario(
    "sessions/one-of-three-refused",
    "One of three partitions has an error in Fetch responses",
    rule="KIP-227; FetchCollector",
    needs="consumer",
    correct="Continues reading the others, and retries this one from the same offset.",
    loss=SKIPPED,
)
def one_of_three_refused(exercise: Exercise) -> None:
    """Return NOT_LEADER_OR_FOLLOWER for the second one, twice."""
    write_many(exercise)
    exercise.fault(api="Fetch", topic="many", partition=1, error="NOT_LEADER_OR_FOLLOWER", times=2)
    consumer = exercise.consumer()
    consumer.assign_many("many", {0: 0, 1: 0, 2: 0})
    check_many(exercise, consumer, ALL)


@scenario(
    "sessions/partitions-are-added",
    "Partitions are added to a consumer's assignment",
    rule="KIP-227: incremental fetch requests",
    needs="consumer reassign",
    correct="Adds them to its fetch sessions, and keeps the positions of the others.",
    loss=SKIPPED,
)
def partitions_are_added(exercise: Exercise) -> None:
    """Assign one partition, then all three; the first one continues after what was read."""
    write_many(exercise)
    consumer = exercise.consumer()
    consumer.assign_many("many", {0: 0})
    consumer.poll_for(5)
    consumer.assign_many("many", {0: 5, 1: 0, 2: 0})
    check_many(exercise, consumer, ALL)


@scenario(
    "sessions/one-of-three-out-of-range",
    "The offset of one of three partitions does not exist",
    rule="auto.offset.reset; FetchCollector",
    needs="consumer offset_reset",
    correct="Resets the position of this partition, and of no other.",
    loss=SKIPPED,
)
def one_of_three_out_of_range(exercise: Exercise) -> None:
    """Assign an offset beyond the end to the second one; the third one begins at 3."""
    write_many(exercise)
    consumer = exercise.consumer(offset_reset="earliest")
    consumer.assign_many("many", {0: 0, 1: BEYOND, 2: 3})
    check_many(exercise, consumer, [value for value in ALL if value not in {"p2-00", "p2-01", "p2-02"}])


@scenario(
    "sessions/leader-restarts",
    "A leader restarts while three partitions are read",
    rule="KIP-227; FetchSessionHandler",
    needs="consumer",
    steers="leaders brokers",
    correct="Reconnects, starts a new session with all of its partitions, and skips nothing.",
    loss=SKIPPED,
)
def leader_restarts(exercise: Exercise) -> None:
    """Restart it: its connections and sessions are gone."""
    write_many(exercise)
    consumer = exercise.consumer()
    consumer.assign_many("many", {0: 0, 1: 0, 2: 0})
    consumer.poll_for(15)
    leader = exercise.cluster.topics["many"].partitions[1].show().leader
    exercise.cluster.brokers[leader].stop()
    exercise.cluster.brokers[leader].start()
    exercise.cluster.topics["many"].partitions[1].move_leader(leader)
    write_many(exercise, "later-")
    check_many(exercise, consumer, ALL + [f"later-{value}" for value in ALL])


def moved(exercise: Exercise, **options: str) -> Consumer:
    """Return a consumer that has read ten records of a leader epoch that has ended."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer(**options)
    consumer.assign(0)
    consumer.poll_for(10)
    partition = exercise.cluster.topics["t"].partitions[0]
    former = partition.show().leader
    partition.move_leader(next_broker(former))
    exercise.cluster.brokers[former].stop()
    return consumer


def require_asked(exercise: Exercise, consumer: Consumer) -> None:
    """Raise NotExercised unless the consumer has sent OffsetForLeaderEpoch."""
    if not exercise.journal(consumer.name, EPOCHS):
        raise NotExercised(f"the library sends no {EPOCHS}")


_FAULTS: tuple[tuple[str, str, FaultOptions], ...] = (
    ("epoch-answer-lost", f"The answer to {EPOCHS} is lost", {"api": EPOCHS, "apply_then": Disconnect("reset")}),
    ("epoch-not-leader", f"{EPOCHS} is answered with {NOT_LEADER}", {"api": EPOCHS, "error": NOT_LEADER}),
    ("epoch-fenced", f"{EPOCHS} is answered with FENCED_LEADER_EPOCH", {"api": EPOCHS, "error": "FENCED_LEADER_EPOCH"}),
    (
        "epoch-unknown",
        f"{EPOCHS} is answered with UNKNOWN_LEADER_EPOCH",
        {"api": EPOCHS, "error": "UNKNOWN_LEADER_EPOCH"},
    ),
)
for _slug, _title, _fault in _FAULTS:

    def _validated(exercise: Exercise, fault: FaultOptions = _fault) -> None:
        exercise.fault(**fault)
        consumer = moved(exercise)
        exercise.write(numbered(10, "b"))
        consumer.poll_for(20)
        consumer.poll_quietly()
        require_asked(exercise, consumer)
        exercise.require_exercised()
        expected = numbered(10, "a") + numbered(10, "b")
        exercise.require(consumer.values() == expected, f"read {' '.join(consumer.values())}")

    scenario(
        f"truncation/{_slug}",
        _title,
        rule="KIP-320: OffsetsForLeaderEpochClient",
        needs="consumer",
        steers="leaders brokers",
        correct="Repeats the request, and continues at its position once it is validated.",
        loss=SKIPPED,
    )(_validated)


@scenario(
    "truncation/epoch-undefined",
    "The new leader does not know the epoch of the position",
    rule="KIP-320: UNDEFINED_EPOCH_OFFSET",
    needs="consumer offset_reset",
    steers="leaders brokers",
    correct="Resets its position, or continues at it; -1 is no offset.",
    loss=SKIPPED,
)
def epoch_undefined(exercise: Exercise) -> None:
    """Return -1 for the epoch and its end, once."""
    undefined = {"topics.*.partitions.*.end_offset": -1, "topics.*.partitions.*.leader_epoch": -1}
    exercise.fault(api=EPOCHS, alter=undefined)
    consumer = moved(exercise)
    exercise.write(numbered(5, "b"))
    until = exercise.deadline()
    while not exercise.past(until) and not {*numbered(5, "b")} <= {*consumer.values()}:
        consumer.poll()
    require_asked(exercise, consumer)
    exercise.require_exercised()
    exercise.require({*numbered(5, "b")} <= {*consumer.values()}, f"read {consumer.values()[10:]} afterwards")
    rows = [(entry.id, row) for entry in exercise.journal(consumer.name, "Fetch") for row in fetched(entry.request)]
    wrong = [f"request {number}" for number, row in rows if row["fetch_offset"] < 0]
    exercise.require(not wrong, f"{', '.join(wrong[:3])}: Fetch from a negative offset")


def fetched(request: Any) -> Iterator[Mapping[str, Any]]:
    """Return the partitions of a Fetch request."""
    for topic in request["topics"]:
        yield from topic["partitions"]


@scenario(
    "truncation/without-reset",
    "The log was truncated below the position; offset reset is none",
    rule="KIP-320: LogTruncationException",
    needs="consumer offset_reset",
    steers="leaders brokers",
    level=Level.SHOULD,
    correct="Reports that the log was truncated, and at which offset.",
    loss="Records that another leader has written at offsets that were already read.",
)
def truncated_without_reset(exercise: Exercise) -> None:
    """End the new leader's log of the old epoch at 5."""
    exercise.fault(api=EPOCHS, alter={"topics.*.partitions.*.end_offset": 5}, times=None)
    consumer = moved(exercise, offset_reset="none")
    exercise.write(numbered(5, "b"))
    until, has_asked = exercise.deadline(), False
    while not exercise.past(until) and not (has_asked and consumer.errors) and len(consumer.read) == 10:
        if not has_asked:
            consumer.errors.clear()  # except on connections to the stopped broker
        consumer.poll()
        has_asked = bool(exercise.journal(consumer.name, EPOCHS))
    require_asked(exercise, consumer)
    exercise.require(bool(consumer.errors), f"no error; read {' '.join(consumer.values()[10:]) or 'nothing more'}")


@scenario(
    "truncation/with-reset",
    "The log was truncated below the position; offset reset is earliest",
    rule="KIP-320: maybeCompleteValidation",
    needs="consumer offset_reset",
    steers="leaders brokers",
    level=Level.SHOULD,
    correct="Goes back to where the logs diverge, or to the earliest offset.",
    loss="Records that another leader has written at offsets that were already read.",
)
def truncated_with_reset(exercise: Exercise) -> None:
    """End the new leader's log of the old epoch at 5, which it reports once."""
    exercise.fault(api=EPOCHS, alter={"topics.*.partitions.*.end_offset": 5})
    consumer = moved(exercise)
    exercise.write(numbered(5, "b"))
    consumer.poll_for(15 + 5)
    require_asked(exercise, consumer)
    again = [record["offset"] for record in consumer.read[10:] if record["offset"] < 10]
    exercise.require({5, 6, 7, 8, 9} <= {*again}, f"behind offset 9 it read {consumer.values()[10:]}")
