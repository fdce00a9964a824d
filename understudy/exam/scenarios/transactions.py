"""Transactions (KIP-98, KIP-447, KIP-588, KIP-890): all or nothing, and fenced producers are informed."""

import time

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Exercise, Producer
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import LOOK_S, MANY, OUTCOME_MS, TRANSACTION_DELIVERY_MS, next_broker, numbered

NEEDS = "producer idempotence transactions"
TORN = "A transaction that the application believes to be committed is missing, incomplete or duplicated."
AGAIN = "Repeats the request until it gets a response."


def commit_ten(producer: Producer, prefix: str = "r") -> None:
    """Commit one transaction with ten records."""
    producer.call("begin")
    producer.send(numbered(10, prefix))
    producer.flush()
    producer.call("commit")


def check_committed(exercise: Exercise) -> None:
    """Require that two transactions in a row are complete and committed despite the fault."""
    producer = exercise.transactional()
    commit_ten(producer, "a")
    until = exercise.deadline()
    while len(exercise.committed_values()) < 10 and not exercise.past(until):  # markers are written after the response
        time.sleep(LOOK_S)
    exercise.require(
        exercise.committed_values() == numbered(10, "a"),
        f"read_committed sees {len(exercise.committed_values())} of 10 records of a commit that is reported as done",
    )
    commit_ten(producer, "b")
    exercise.require_exercised()
    exercise.require_once_in_order(producer)
    values = exercise.committed_values()
    exercise.require(values == producer.values(), f"read_committed sees {len(values)} of {len(producer.sent)} records")
    exercise.require_sequences(producer)


@scenario(
    "transactions/commit", "Two transactions, no fault", rule="KIP-98", needs=NEEDS, correct="Commits them.", loss=TORN
)
def commit(exercise: Exercise) -> None:
    """Play without a fault, as the positive control."""
    check_committed(exercise)


@scenario(
    "transactions/abort",
    "A transaction is aborted, the next one committed",
    rule="KIP-98",
    needs=NEEDS,
    correct="Ends the first with EndTxn(abort) and begins another.",
    loss="Records that the application aborted are read.",
)
def abort(exercise: Exercise) -> None:
    """Write records in both."""
    producer = exercise.transactional()
    producer.call("begin")
    producer.send(numbered(5, "withdrawn"))
    producer.flush()
    producer.call("abort")
    commit_ten(producer, "kept")
    exercise.require(
        exercise.committed_values() == numbered(10, "kept"), f"read_committed sees {exercise.committed_values()}"
    )


@scenario(
    "transactions/abort-before-delivery",
    "A transaction is aborted before its records are sent",
    rule="KafkaProducer.abortTransaction: RecordAccumulator.abortUndrainedBatches",
    needs=NEEDS,
    correct="Discards the records: none of them is in the next transaction.",
    loss="Records that the application has taken back.",
)
def abort_before_delivery(exercise: Exercise) -> None:
    """Abort without a flush, and commit another transaction."""
    producer = exercise.transactional(linger_ms=500)  # so long that the abort comes before the first batch
    producer.call("begin")
    producer.send(numbered(5, "aborted"))
    producer.call("abort")
    producer.call("begin")
    producer.send(numbered(5, "committed"))
    producer.call("commit")
    values = exercise.committed_values()
    exercise.require(values == numbered(5, "committed"), f"read_committed sees {values}")


@scenario(
    "transactions/two-topics",
    "One transaction over four partitions of two topics",
    rule="KIP-98",
    needs=NEEDS,
    correct="Adds each partition before its first batch is committed.",
    loss=TORN,
)
def two_topics(exercise: Exercise) -> None:
    """Use three brokers."""
    producer = exercise.transactional()
    producer.call("begin")
    producer.send(numbered(3, "u"), topic="u")
    for partition in MANY:
        producer.send(numbered(3, f"m{partition}-"), topic="many", partition=partition)
    producer.flush()
    exercise.require(not exercise.committed_values("u"), "read_committed sees records of an open transaction")
    producer.call("commit")
    exercise.require(exercise.committed_values("u") == numbered(3, "u"), "records of the transaction are missing in u")
    for partition in MANY:
        values = exercise.committed_values("many", partition)
        exercise.require(values == numbered(3, f"m{partition}-"), f"many-{partition} has {values}")


@scenario(
    "transactions/end-answer-lost",
    "The response to EndTxn is lost",
    rule="KIP-890; conformance 2.2 T04",
    needs=NEEDS,
    correct="Repeats EndTxn with the same outcome, and adopts the epoch in the response.",
    loss=TORN,
)
def end_answer_lost(exercise: Exercise) -> None:
    """Lose the response when the transaction is committed already."""
    exercise.fault(api="EndTxn", apply_then=Disconnect())
    check_committed(exercise)


@scenario("transactions/end-request-lost", "EndTxn is lost", rule="KIP-98", needs=NEEDS, correct=AGAIN, loss=TORN)
def end_request_lost(exercise: Exercise) -> None:
    """Lose the request before it is served."""
    exercise.fault(api="EndTxn", disconnect="reset")
    check_committed(exercise)


for _code in (
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "CONCURRENT_TRANSACTIONS",
):

    def _end_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="EndTxn", error=code)
        check_committed(exercise)

    def _init_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="InitProducerId", error=code, times=2)
        check_committed(exercise)

    _slug = _code.lower().replace("_", "-")
    scenario(
        f"transactions/end-{_slug}",
        f"EndTxn is answered with {_code}",
        rule="TransactionManager.EndTxnHandler; conformance 2.2 T03",
        needs=NEEDS,
        correct=AGAIN,
        loss=TORN,
    )(_end_refused)
    scenario(
        f"transactions/init-{_slug}",
        f"InitProducerId is answered with {_code} twice",
        rule="TransactionManager.InitProducerIdHandler; conformance 2.2 T01",
        needs=NEEDS,
        correct=AGAIN,
        loss="A producer that cannot start.",
    )(_init_refused)


@scenario(
    "transactions/produce-answer-lost",
    "The response to Produce is lost within a transaction",
    rule="KIP-98",
    needs=NEEDS,
    correct="Repeats the batch with the same sequence.",
    loss=TORN,
)
def produce_answer_lost(exercise: Exercise) -> None:
    """Lose it when the batch is in the log already."""
    exercise.fault(api="Produce", apply_then=Disconnect("reset"))
    check_committed(exercise)


@scenario(
    "transactions/coordinator-moves",
    "The coordinator moves between two transactions",
    rule="KIP-98; conformance 2.2 T03",
    needs=NEEDS,
    steers="coordinators",
    correct="Looks up the coordinator and repeats the request there.",
    loss=TORN,
)
def coordinator_moves(exercise: Exercise) -> None:
    """Move it to the next broker."""
    producer = exercise.transactional()
    commit_ten(producer, "a")
    at = exercise.served_by(producer.name, "InitProducerId")
    exercise.cluster.coordinators.move(type="transaction", key="tx", broker=next_broker(at))
    commit_ten(producer, "b")
    values = exercise.committed_values()
    exercise.require(values == producer.values(), f"read_committed sees {len(values)} of 20 records")


@scenario(
    "transactions/fenced",
    "A second producer takes over the transactional id",
    rule="KIP-98; KIP-588: PRODUCER_FENCED",
    needs=NEEDS,
    correct="The first producer fails its commit with a fatal error.",
    loss="Two instances of an application write the same data.",
)
def fenced(exercise: Exercise) -> None:
    """Start it while the first has a transaction open."""
    first = exercise.transactional()
    first.call("begin")
    first.send(numbered(5, "old"))
    first.flush()
    second = exercise.transactional()
    commit_ten(second, "new")
    error = first.refusal("commit")
    exercise.require(error is not None, "the fenced producer reports that it has committed")
    values = exercise.committed_values()
    exercise.require(values == numbered(10, "new"), f"read_committed sees {values}")
    assert error is not None
    exercise.require(error.kind == "fatal", f"the fenced producer reports no fatal error but {error}")


@scenario(
    "transactions/timed-out",
    "The coordinator aborts a transaction that took too long",
    rule="KIP-588; KIP-890",
    needs=NEEDS,
    steers="clock",
    correct="The commit fails; after an abort or in a new producer the next transaction works.",
    loss=TORN,
)
def timed_out(exercise: Exercise) -> None:
    """Advance the clock beyond transaction.timeout.ms, and the next look for those that are over (every 10 s)."""
    producer = exercise.transactional(transaction_timeout_ms=10_000)
    producer.call("begin")
    producer.send(numbered(5, "late"))
    producer.flush()
    exercise.cluster.clock.advance(seconds=30)
    error = producer.refusal("commit")
    exercise.require(error is not None, "the library reports that an aborted transaction is committed")
    exercise.require(not exercise.committed_values(), f"read_committed sees {exercise.committed_values()}")


@scenario(
    "transactions/record-refused",
    "A record of the transaction is rejected permanently",
    rule="KIP-98: abortable errors",
    needs=NEEDS,
    correct="The commit fails; the transaction is aborted, and the next one works.",
    loss=TORN,
)
def record_refused(exercise: Exercise) -> None:
    """Return MESSAGE_TOO_LARGE for one of two partitions."""
    fault = exercise.fault(api="Produce", topic="u", error="MESSAGE_TOO_LARGE", times=None)
    producer = exercise.transactional(delivery_timeout_ms=TRANSACTION_DELIVERY_MS)
    producer.call("begin")
    producer.send(numbered(5, "part"))
    producer.send(["refused"], topic="u")
    producer.flush(OUTCOME_MS)
    error = producer.refusal("commit")
    exercise.require_exercised()
    exercise.require(
        error is not None, "the library reports that a transaction without one of its records is committed"
    )
    assert error is not None
    exercise.require(not exercise.committed_values(), "read_committed sees a part of the transaction")
    if error.kind == "fatal":
        return
    producer.call("abort")
    exercise.faults.clear()
    fault.remove()
    commit_ten(producer, "next")
    values = exercise.committed_values()
    exercise.require(values == numbered(10, "next"), f"after the abort, read_committed sees {values}")


@scenario(
    "transactions/empty",
    "Transactions without records",
    rule="KIP-98; conformance 2.2 T08",
    needs=NEEDS,
    correct="Commits and aborts them without an error, and continues.",
    loss="A producer that fails when a batch of work turns out to be empty.",
)
def empty(exercise: Exercise) -> None:
    """Commit one empty transaction, abort one, then commit one with records."""
    producer = exercise.transactional()
    for command in ("commit", "abort"):
        producer.call("begin")
        error = producer.refusal(command)
        exercise.require(error is None, f"{command} of an empty transaction fails: {error}")
    commit_ten(producer)
    exercise.require(exercise.committed_values() == numbered(10), "the transaction after the empty ones is missing")


def copy(exercise: Exercise, fault_api: str = "", *, error: str = "") -> None:
    """Read 20 records, and write each to `u` in transactions that commit the consumer's positions.

    One request of `fault_api` is refused with `error`, or else its response is lost.
    """
    exercise.write(numbered(20))
    consumer = exercise.consumer(group="copier", isolation="read_committed")
    consumer.subscribe("t")
    producer = exercise.transactional()
    copied = 0
    consumer.poll_for(1)
    if error:
        exercise.fault(api=fault_api, error=error)
    elif fault_api:
        exercise.fault(api=fault_api, apply_then=Disconnect())
    while copied < len(consumer.read):
        batch = consumer.values()[copied:]
        producer.call("begin")
        producer.send([f"copy of {value}" for value in batch], topic="u")
        producer.flush()
        producer.send_offsets(consumer)
        producer.call("commit")
        copied += len(batch)
        if copied < 20:
            consumer.poll_for(copied + 1)
    exercise.require_exercised()
    values = exercise.committed_values("u")
    exercise.require(
        values == [f"copy of {value}" for value in numbered(20)],
        f"the copy has {len(values)} of 20 records, or another order",
    )
    offsets = [entry.offset for entry in exercise.group("copier").offsets if entry.topic == "t"]
    exercise.require(offsets == [20], f"the group has committed {offsets}, not 20")


COPY = f"{NEEDS} consumer groups send_offsets"
LOST_COPY = "Input is processed twice or not at all."


@scenario(
    "transactions/exactly-once-copy",
    "Consume, process, produce; offsets in the transaction",
    rule="KIP-98; KIP-447",
    needs=COPY,
    correct="Commits offsets and records together.",
    loss=LOST_COPY,
)
def exactly_once_copy(exercise: Exercise) -> None:
    """Play without a fault."""
    copy(exercise)


@scenario(
    "transactions/offsets-only",
    "A transaction of offsets, without a record",
    rule="KIP-98; KIP-447",
    needs=COPY,
    correct="Commits the offsets.",
    loss="Offsets that are reported as committed and are not: what was read without a result is read again.",
)
def offsets_only(exercise: Exercise) -> None:
    """Copy none of five records, as a program that filters them."""
    exercise.write(numbered(5))
    consumer = exercise.consumer(group="copier", isolation="read_committed")
    consumer.subscribe("t")
    producer = exercise.transactional()
    consumer.poll_for(5)
    producer.call("begin")
    producer.send_offsets(consumer)
    producer.call("commit")
    until, offsets = exercise.deadline(), list[int]()
    while not offsets and not exercise.past(until):  # markers follow the response
        consumer.poll()
        offsets = [each.offset for each in exercise.group("copier").offsets]
    exercise.require(offsets == [5], f"the offset 5 is reported as committed, and the group has {offsets}")


@scenario(
    "transactions/copy-offsets-answer-lost",
    "The response to TxnOffsetCommit is lost",
    rule="KIP-447",
    needs=COPY,
    correct=AGAIN,
    loss=LOST_COPY,
)
def copy_offsets_answer_lost(exercise: Exercise) -> None:
    """Lose the response when the offsets are pending in the transaction already."""
    copy(exercise, "TxnOffsetCommit")


@scenario(
    "transactions/copy-end-answer-lost",
    "The response to EndTxn is lost while offsets are in the transaction",
    rule="KIP-447; KIP-890",
    needs=COPY,
    correct=AGAIN,
    loss=LOST_COPY,
)
def copy_end_answer_lost(exercise: Exercise) -> None:
    """Lose the response when the transaction is committed already."""
    copy(exercise, "EndTxn")
