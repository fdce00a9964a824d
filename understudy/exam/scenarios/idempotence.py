"""Idempotent producers (KIP-98, KIP-360): each record once, in order, despite lost responses and retries."""

from typing import Any

from control_api.fault_actions import Disconnect, Error
from understudy.client.steering import Fault
from understudy.exam.driver import CallError
from understudy.exam.exercise import REQUEST_TIMEOUT_MS, Exercise, NotExercised, Producer, Violation
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import MANY, OUTCOME_MS, SHORT, next_broker, numbered

NEEDS = "producer idempotence"
TWICE = "Records are written twice, out of order or not at all, although the producer is idempotent."
SAME = "Repeats the same batch with the same sequence; the broker detects the duplicate."


def begun(exercise: Exercise, **options: Any) -> Producer:
    """Return a producer that has written a record.

    A broker without state of a producer accepts any first sequence (ProducerAppendInfo). So only with a first batch in
    the log are the batches after a refused one refused too, like all batches on a broker that is not the leader.
    """
    producer = exercise.producer(idempotent=True, **options)
    producer.send(["first"])
    producer.flush()
    return producer


def check_exactly_once(
    exercise: Exercise, count: int = 20, *, one_by_one: bool = True, producer: Producer | None = None
) -> None:
    """Require that all records are acknowledged and in the log once, in order, with valid sequences on the wire.

    A library that immediately reports that it cannot create the producer has lost nothing.
    """
    try:
        producer = producer or exercise.producer(idempotent=True)
    except CallError as error:
        raise Violation(f"the library reports an error: {error}", Level.SHOULD) from error
    for value in numbered(count) if one_by_one else ():
        producer.send([value])
    if not one_by_one:
        producer.send(numbered(count))
    producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)
    exercise.require_once_in_order(producer)
    exercise.require_sequences(producer)
    exercise.require_log_sequences()


@scenario(
    "idempotence/plain",
    "Twenty records, no fault",
    rule="KIP-98",
    needs=NEEDS,
    correct="Numbers each batch.",
    loss=TWICE,
)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control of this area."""
    check_exactly_once(exercise)
    exercise.require(bool(exercise.journal(api="Produce")), "no Produce request")


@scenario(
    "idempotence/answer-lost",
    "The first response is lost with its connection",
    rule="KIP-98; conformance 2.1 P01",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def answer_lost(exercise: Exercise) -> None:
    """Lose the response when the batch is in the log already."""
    exercise.fault(api="Produce", apply_then=Disconnect())
    check_exactly_once(exercise)


@scenario(
    "idempotence/later-answer-lost",
    "The response to a later batch is lost",
    rule="KIP-98; conformance 2.1 P01",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def later_answer_lost(exercise: Exercise) -> None:
    """Lose the response after some earlier batches were acknowledged."""
    exercise.fault(api="Produce", apply_then=Disconnect("reset"), skip=1)
    producer = exercise.producer(idempotent=True)
    for part in "abc":
        producer.send(numbered(5, part))
        producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    exercise.require_once_in_order(producer)
    exercise.require_sequences(producer)
    exercise.require_log_sequences()


@scenario(
    "idempotence/request-lost",
    "The first request is lost with its connection",
    rule="KIP-98; conformance 2.1 P02",
    needs=NEEDS,
    correct="Sends the lowest unacknowledged sequence first, then the others in order.",
    loss=TWICE,
)
def request_lost(exercise: Exercise) -> None:
    """Lose the request: nothing of it is in the log."""
    exercise.fault(api="Produce", disconnect="reset")
    check_exactly_once(exercise)


@scenario(
    "idempotence/three-answers-lost",
    "Three responses in a row are lost",
    rule="KIP-98",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def three_answers_lost(exercise: Exercise) -> None:
    """Lose each on another connection."""
    exercise.fault(api="Produce", apply_then=Disconnect(), times=3)
    check_exactly_once(exercise)


@scenario(
    "idempotence/answer-too-late",
    "The response arrives after the request timeout",
    rule="KIP-98; conformance 2.1 P20",
    needs=NEEDS,
    correct="Repeats the batch on another connection and ignores the late response.",
    loss=TWICE,
)
def answer_too_late(exercise: Exercise) -> None:
    """Never send it on the first connection."""
    exercise.fault(api="Produce", apply_then={"drop": True})
    check_exactly_once(exercise)


@scenario(
    "idempotence/late-answer",
    "The response arrives half a second after the request timeout, and others follow",
    rule="KIP-98; NetworkClient: a connection on which a request timed out is closed",
    needs=NEEDS,
    correct="Repeats the batch on another connection: the late response is that of no other request.",
    loss="Records that are reported with the outcome of others.",
)
def late_answer(exercise: Exercise) -> None:
    """Delay it on its connection, behind which the next responses would come; their offsets differ."""
    exercise.fault(api="Produce", delay_ms=REQUEST_TIMEOUT_MS + 500, where="after")
    check_exactly_once(exercise)


def check_after_expiry(exercise: Exercise, fault: Fault, producer: Producer) -> None:
    """Let a record expire, end the fault, and require that the next record is written as a new one."""
    producer.send(["expired"])
    producer.flush(OUTCOME_MS)
    exercise.require_exercised()
    if producer.sent[-1].error is None:
        raise NotExercised("the record did not expire")
    exercise.faults.clear()
    fault.remove()
    producer.send(["later"])
    producer.flush()
    exercise.require_no_loss(producer)
    error = producer.sent[-1].error
    exercise.require(error is None, f"the next record was not written: {error}", Level.SHOULD)


@scenario(
    "idempotence/expired-and-written",
    "A record expires whose response never came, and the next one follows",
    rule="KIP-91; KIP-360: the epoch is raised where the state of a sequence is not known",
    needs=NEEDS,
    correct="Does not give its sequence to another record: the broker would take that for a duplicate.",
    loss="A record that is reported as written, and is not in the log.",
    slow=True,
)
def expired_and_written(exercise: Exercise) -> None:
    """Write the record, and answer nothing until it has expired."""
    producer = begun(exercise, **SHORT)
    check_after_expiry(exercise, exercise.fault(api="Produce", apply_then={"drop": True}, times=None), producer)


@scenario(
    "idempotence/expired-and-not-written",
    "A record expires which no broker has got, and the next one follows",
    rule="KIP-91; KIP-360: the epoch is raised where the state of a sequence is not known",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Goes on with a new epoch or producer id: the broker waits for the sequence of the expired record.",
    loss="Each further record is refused with OUT_OF_ORDER_SEQUENCE_NUMBER.",
    slow=True,
)
def expired_and_not_written(exercise: Exercise) -> None:
    """Drop each request until the record has expired."""
    producer = begun(exercise, **SHORT)
    check_after_expiry(exercise, exercise.fault(api="Produce", drop=True, times=None), producer)


@scenario(
    "idempotence/not-leader",
    "NOT_LEADER_OR_FOLLOWER for one batch of several in flight",
    rule="KIP-98; conformance 2.1 P07",
    needs=NEEDS,
    correct="Repeats all refused batches in the order of their sequences, with the same boundaries.",
    loss=TWICE,
)
def not_leader(exercise: Exercise) -> None:
    """Refuse it: the later batches in flight, if any, get OUT_OF_ORDER_SEQUENCE_NUMBER."""
    producer = begun(exercise)
    exercise.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    check_exactly_once(exercise, producer=producer)


@scenario(
    "idempotence/not-enough-replicas-after-append",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND: written, not acknowledged",
    rule="conformance 2.1 P08",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def after_append(exercise: Exercise) -> None:
    """Return the error when the batch is in the log already."""
    exercise.fault(api="Produce", apply_then=Error("NOT_ENOUGH_REPLICAS_AFTER_APPEND"))
    check_exactly_once(exercise)


@scenario(
    "idempotence/request-timed-out",
    "REQUEST_TIMED_OUT after the append",
    rule="conformance 2.1 P19",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def request_timed_out(exercise: Exercise) -> None:
    """Return it, as if the replicas took too long."""
    exercise.fault(api="Produce", apply_then=Error("REQUEST_TIMED_OUT"))
    check_exactly_once(exercise)


@scenario(
    "idempotence/not-enough-replicas",
    "NOT_ENOUGH_REPLICAS three times",
    rule="conformance 2.1 P17",
    needs=NEEDS,
    correct=SAME,
    loss=TWICE,
)
def not_enough_replicas(exercise: Exercise) -> None:
    """Return it: nothing of the batch is in the log."""
    producer = begun(exercise)
    exercise.fault(api="Produce", error="NOT_ENOUGH_REPLICAS", times=3)
    check_exactly_once(exercise, producer=producer)


@scenario(
    "idempotence/coordinator-loads",
    "InitProducerId is answered with COORDINATOR_LOAD_IN_PROGRESS",
    rule="KIP-98; transactions C.1",
    needs=NEEDS,
    correct="Repeats the request after retry.backoff.ms.",
    loss="Records that the application handed over.",
)
def coordinator_loads(exercise: Exercise) -> None:
    """Return it twice."""
    exercise.fault(api="InitProducerId", error="COORDINATOR_LOAD_IN_PROGRESS", times=2)
    check_exactly_once(exercise, 5)


@scenario(
    "idempotence/init-lost",
    "The response to InitProducerId is lost",
    rule="KIP-98",
    needs=NEEDS,
    correct="Repeats the request; another producer id is fine.",
    loss="Records that the application handed over.",
)
def init_lost(exercise: Exercise) -> None:
    """Lose it together with its connection."""
    exercise.fault(api="InitProducerId", apply_then=Disconnect("reset"))
    check_exactly_once(exercise, 5)


@scenario(
    "idempotence/leader-moves",
    "The leader moves between batches",
    rule="KIP-98",
    needs=NEEDS,
    steers="leaders",
    correct="Continues the sequence at the new leader.",
    loss=TWICE,
)
def leader_moves(exercise: Exercise) -> None:
    """Move it three times."""
    producer = exercise.producer(idempotent=True)
    partition = exercise.cluster.topics["t"].partitions[0]
    for part in "abc":
        producer.send(numbered(5, part))
        producer.flush()
        partition.move_leader(next_broker(partition.show().leader))
    producer.send(numbered(5, "d"))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_once_in_order(producer)
    exercise.require_sequences(producer)
    exercise.require_log_sequences()


@scenario(
    "idempotence/duplicate-sequence",
    "DUPLICATE_SEQUENCE_NUMBER for a batch that is in the log",
    rule="conformance 2.1 P09",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Reports the records as written: they are in the log.",
    loss="The application sends the records again, and they are in the log twice.",
)
def duplicate_sequence(exercise: Exercise) -> None:
    """Respond like a broker that remembers the batch but not its offset."""
    exercise.fault(api="Produce", apply_then=Error("DUPLICATE_SEQUENCE_NUMBER"))
    producer = exercise.producer(idempotent=True)
    producer.send(["r00"])
    producer.flush()
    exercise.require_exercised()
    exercise.require(
        producer.sent[0].error is None, f"the record is in the log, and the library reports {producer.sent[0].error}"
    )
    exercise.require_once_in_order(producer)


@scenario(
    "idempotence/unknown-producer-id",
    "UNKNOWN_PRODUCER_ID for a producer that has written before",
    rule="KIP-360; conformance 2.1 P11",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Gets a new epoch or producer id, starts with sequence 0, and writes the record.",
    loss="A producer that can no longer write, or writes twice.",
)
def unknown_producer_id(exercise: Exercise) -> None:
    """Respond like a broker that has lost the producer's state."""
    producer = exercise.producer(idempotent=True)
    producer.send(numbered(3, "a"))
    producer.flush()
    exercise.fault(api="Produce", error="UNKNOWN_PRODUCER_ID")
    producer.send(numbered(3, "b"))
    producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    exercise.require_once_in_order(producer)
    exercise.require_sequences(producer)
    exercise.require_log_sequences()


@scenario(
    "idempotence/unknown-producer-id-of-one-partition",
    "UNKNOWN_PRODUCER_ID for one of three partitions",
    rule="KIP-360; TransactionManager.bumpIdempotentProducerEpoch: KAFKA-12152",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Starts with sequence 0 in each partition once it uses the new epoch or producer id there.",
    loss="A producer that can no longer write to the other partitions.",
)
def unknown_producer_id_of_one_partition(exercise: Exercise) -> None:
    """Write to each partition before, at and after the error."""
    producer = exercise.producer(idempotent=True)
    for name in ("a", "b", "c"):
        if name == "b":
            exercise.fault(api="Produce", topic="many", partition=1, error="UNKNOWN_PRODUCER_ID")
        for partition in MANY:
            producer.send(numbered(3, f"{name}{partition}-"), topic="many", partition=partition)
        producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    for partition in MANY:
        exercise.require_once_in_order(producer, "many", partition)
        exercise.require_log_sequences("many", partition)
    exercise.require_sequences(producer)
