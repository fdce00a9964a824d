"""Producers without idempotence: no acknowledged record may be missing."""

import time
from typing import Any

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Exercise, NotExercised, Producer
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import (
    COLLECT_MS,
    DELIVERY_MS,
    FENCED_S,
    MANY,
    OUTCOME_MS,
    SHORT,
    next_broker,
    numbered,
)

LOST = "Records that the library reported as written."
RETRY = "Repeats the request until delivery.timeout.ms has passed."
MINUTE_MS = 60_000


def check_delivered(exercise: Exercise, count: int = 10, level: Level = Level.MUST) -> Producer:
    """Require that each record is acknowledged and in the log."""
    producer = exercise.producer()
    producer.send(numbered(count))
    producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer, level)
    return producer


def connected(exercise: Exercise, **options: Any) -> Producer:
    """Return a producer that has written a record: a short delivery timeout could end before it is connected."""
    producer = exercise.producer(**options)
    until = exercise.deadline()
    while not (producer.sent and producer.sent[-1].acknowledged):
        if exercise.past(until):
            raise NotExercised("the library has not written a record")
        producer.send([f"first{len(producer.sent)}"])
        producer.flush()
    return producer


@scenario(
    "produce/plain", "Thirty records, no fault", rule="core D.2", needs="producer", correct="Writes them.", loss=LOST
)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control of all others; there is no reason to write a record twice."""
    exercise.require_once_in_order(check_delivered(exercise, 30))


@scenario(
    "produce/three-partitions",
    "Records for three partitions",
    rule="core D.2",
    needs="producer",
    correct="Sends each record to the partition that the application chose.",
    loss="The order of records with the same key.",
)
def three_partitions(exercise: Exercise) -> None:
    """Use three leaders on three brokers."""
    producer = exercise.producer()
    for partition in MANY:
        producer.send(numbered(5, f"p{partition}-"), topic="many", partition=partition)
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)
    for partition in MANY:
        exercise.require_once_in_order(producer, "many", partition)


@scenario(
    "produce/timestamps",
    "Records without a timestamp of their own",
    rule="KIP-32: message.timestamp.type=CreateTime",
    needs="producer",
    correct="Gives each record the time at which it was sent, in milliseconds since 1970.",
    loss="Records that retention by time deletes at once or never, and that no look-up by time finds.",
)
def timestamps(exercise: Exercise) -> None:
    """Compare those in the log with the time of sending; a minute is allowed, as the clocks may differ."""
    producer = exercise.producer()
    earliest = time.time() * 1000 - MINUTE_MS
    producer.send(numbered(5))
    producer.flush()
    latest = time.time() * 1000 + MINUTE_MS
    exercise.require_acknowledged(producer)
    wrong = [record.timestamp_ms for record in exercise.log() if not earliest < record.timestamp_ms < latest]
    exercise.require(
        not wrong, f"timestamps of records that were sent between {earliest:.0f} and {latest:.0f}: {wrong}"
    )


@scenario(
    "produce/one-partition-of-three-refused",
    "NOT_LEADER_OR_FOLLOWER for one of three partitions of a broker",
    rule="Sender.handleProduceResponse: errors by partition",
    needs="producer",
    steers="leaders",
    correct="Repeats the batch that was refused, and no other.",
    loss="Records are written twice, although no response was lost.",
)
def one_partition_of_three_refused(exercise: Exercise) -> None:
    """Let one broker lead all three, so that one request may carry them; requests do not expire on a busy machine."""
    partitions = exercise.cluster.topics["many"].partitions
    for partition in MANY:
        partitions[partition].move_leader(1)
    producer = connected(exercise, linger_ms=COLLECT_MS, request_timeout_ms=10_000)
    for number in range(3):  # before, with and after the fault
        if number == 1:
            exercise.fault(api="Produce", topic="many", partition=1, error="NOT_LEADER_OR_FOLLOWER")
        for partition in MANY:
            producer.send([f"p{partition}-{number}"], topic="many", partition=partition)
        producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer)
    for partition in MANY:
        exercise.require_once_in_order(producer, "many", partition)


@scenario(
    "produce/not-leader", "NOT_LEADER_OR_FOLLOWER once", rule="core D.2", needs="producer", correct=RETRY, loss=LOST
)
def not_leader(exercise: Exercise) -> None:
    """Return the error, though the leader has not changed."""
    exercise.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    check_delivered(exercise)


@scenario(
    "produce/leader-moves",
    "The leader moves between two batches",
    rule="Sender; Metadata",
    needs="producer",
    steers="leaders",
    correct="Looks up the new leader, or takes it from the response (KIP-951), and repeats the request there.",
    loss=LOST,
)
def leader_moves(exercise: Exercise) -> None:
    """Move it to the next broker."""
    producer = exercise.producer()
    producer.send(numbered(5, "a"))
    producer.flush()
    partition = exercise.cluster.topics["t"].partitions[0]
    partition.move_leader(next_broker(partition.show().leader))
    producer.send(numbered(5, "b"))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)


@scenario(
    "produce/request-lost",
    "The connection ends before the request is served",
    rule="Sender",
    needs="producer",
    correct=RETRY,
    loss=LOST,
)
def request_lost(exercise: Exercise) -> None:
    """End the connection with a TCP reset."""
    exercise.fault(api="Produce", disconnect="reset")
    check_delivered(exercise)


@scenario(
    "produce/answer-lost",
    "The request is served, the response is lost",
    rule="Sender",
    needs="producer",
    correct=RETRY,
    loss=LOST,
)
def answer_lost(exercise: Exercise) -> None:
    """Lose it: records may be written twice, but never lost."""
    exercise.fault(api="Produce", apply_then=Disconnect())
    check_delivered(exercise)


@scenario(
    "produce/silent-broker",
    "The broker does not answer",
    rule="NetworkClient: request.timeout.ms",
    needs="producer",
    correct="Closes the connection after request.timeout.ms and repeats the request.",
    loss=LOST,
)
def silent_broker(exercise: Exercise) -> None:
    """Drop one request. A library whose records expire with the request reports that: the application is informed."""
    exercise.fault(api="Produce", drop=True)
    check_delivered(exercise, level=Level.SHOULD)


@scenario(
    "produce/not-enough-replicas",
    "NOT_ENOUGH_REPLICAS three times",
    rule="core D.2",
    needs="producer",
    correct=RETRY,
    loss=LOST,
)
def not_enough_replicas(exercise: Exercise) -> None:
    """Return it a few times, then accept the request."""
    exercise.fault(api="Produce", error="NOT_ENOUGH_REPLICAS", times=3)
    check_delivered(exercise)


@scenario("produce/answer-cut", "The response is cut off", rule="core A.1", needs="producer", correct=RETRY, loss=LOST)
def answer_cut(exercise: Exercise) -> None:
    """Cut it after 15 bytes: behind the correlation id, before the first error code."""
    exercise.fault(api="Produce", bytes={"truncate": 15})
    check_delivered(exercise)


@scenario(
    "produce/message-too-large",
    "A record is rejected permanently",
    rule="core D.2; MESSAGE_TOO_LARGE",
    needs="producer",
    correct="Reports the error, does not retry the record forever, and continues with the next one.",
    loss="A record that is reported as written and is not.",
)
def message_too_large(exercise: Exercise) -> None:
    """Send a single record, so that there is no smaller batch to retry with."""
    producer = connected(exercise, delivery_timeout_ms=DELIVERY_MS)
    fault = exercise.fault(api="Produce", error="MESSAGE_TOO_LARGE", times=None)
    producer.send(["large"])
    pending = producer.flush(OUTCOME_MS)
    exercise.require_exercised()
    exercise.require(not producer.sent[-1].acknowledged, "the refused record was reported as written")
    exercise.require(not pending, "the refused record has no outcome 5 s after its delivery timeout")
    exercise.faults.clear()
    fault.remove()
    producer.send(["small"])
    producer.flush()
    exercise.require(producer.sent[-1].acknowledged, f"the next record was not written: {producer.sent[-1].error}")
    exercise.require("small" in exercise.log_values(), "the next record was acknowledged and is not in the log")


@scenario(
    "produce/expired-records-are-not-sent",
    "A record has expired, and the cluster is healthy again",
    rule="KIP-91: Sender.failExpiredBatches",
    needs="producer",
    level=Level.SHOULD,
    correct="Sends a record no more that it has reported as expired.",
    loss="Records out of order, or twice, where the application has sent them again.",
    slow=True,
)
def expired_records_are_not_sent(exercise: Exercise) -> None:
    """Refuse it until it is reported, then accept everything."""
    producer = connected(exercise, **SHORT)
    fault = exercise.fault(api="Produce", error="NOT_ENOUGH_REPLICAS", times=None)
    producer.send(["expired"])
    producer.flush(OUTCOME_MS)
    exercise.require_exercised()
    exercise.require(producer.sent[-1].error is not None, "the refused record has no outcome after 8 s")
    exercise.faults.clear()
    fault.remove()
    producer.send(["later"])
    producer.flush()
    exercise.require(producer.sent[-1].acknowledged, f"the next record was not written: {producer.sent[-1].error}")
    exercise.require("expired" not in exercise.log_values(), "the record was written after it was reported as failed")


@scenario(
    "produce/delivery-timeout",
    "No Produce is ever answered",
    rule="KIP-91: delivery.timeout.ms",
    needs="producer",
    correct="Reports a timeout for the record when delivery.timeout.ms has passed.",
    loss="An application that waits forever, or believes that the record is written.",
    slow=True,
)
def delivery_timeout(exercise: Exercise) -> None:
    """Require the report within 3 s, and 5 s of grace."""
    producer = connected(exercise, **SHORT)
    exercise.fault(api="Produce", drop=True, times=None)
    producer.send(["r00"])
    pending = producer.flush(OUTCOME_MS)
    exercise.require_exercised()
    exercise.require(not producer.sent[-1].acknowledged, "a record that no broker answered for was reported as written")
    exercise.require(not pending, "no outcome 5 s after delivery.timeout.ms", Level.SHOULD)


@scenario(
    "produce/unknown-server-error",
    "UNKNOWN_SERVER_ERROR, and nothing was written",
    rule="Errors: not retriable",
    needs="producer",
    correct="Reports the error, or repeats the request.",
    loss=LOST,
)
def unknown_server_error(exercise: Exercise) -> None:
    """Require that what is reported as written is written."""
    exercise.fault(api="Produce", error="UNKNOWN_SERVER_ERROR")
    producer = exercise.producer()
    producer.send(numbered(3))
    producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)


@scenario(
    "produce/leader-killed",
    "The leader dies, another replica takes over",
    rule="Sender; core F",
    needs="producer",
    steers="brokers clock",
    correct="Refreshes metadata until it finds the new leader or delivery.timeout.ms has passed.",
    loss=LOST,
)
def leader_killed(exercise: Exercise) -> None:
    """Kill it: with acks=all, no acknowledged record may be missing afterwards."""
    producer = exercise.producer()
    producer.send(numbered(5, "a"))
    producer.flush()
    leader = exercise.cluster.topics["t"].partitions[0].show().leader
    exercise.cluster.brokers[leader].kill()
    exercise.cluster.clock.advance(seconds=FENCED_S)
    producer.send(numbered(5, "b"))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)


@scenario(
    "produce/metadata-after-leader-error",
    "The client looks up the leader before it repeats the request",
    rule="Sender: requestUpdate; KIP-951",
    needs="producer",
    level=Level.SHOULD,
    correct="Sends Metadata between the refused Produce and its repetition.",
    loss="Time: a client that does not look it up keeps sending to the former leader.",
)
def metadata_after_leader_error(exercise: Exercise) -> None:
    """Refuse Produce without a hint of the new leader."""
    exercise.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    producer = exercise.producer()
    producer.send(["r00"])
    producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    apis = [entry.api for entry in exercise.journal(producer.name)]
    exercise.require(apis.count("Produce") > 1, "Produce was refused, and not repeated")
    first = apis.index("Produce")
    again = apis.index("Produce", first + 1)
    exercise.require("Metadata" in apis[first:again], "Produce was repeated without a Metadata request in between")
