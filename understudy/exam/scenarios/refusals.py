"""Error codes by API, one scenario each: what is refused for good is not reported as done, what passes is repeated.

The classes are those of the response handlers of Kafka's own clients. Most of these codes occur in a state that a
broker is rarely in; other modules bring about the states themselves.
"""

from understudy.exam import codes
from understudy.exam.driver import CallError
from understudy.exam.exercise import Exercise, Violation
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios import groups, idempotence, produce, transactions
from understudy.exam.scenarios.consumers import NEEDS as CONSUMER
from understudy.exam.scenarios.consumers import SKIPPED, read_twenty
from understudy.exam.scenarios.values import (
    BEYOND,
    DELIVERY_MS,
    MOST_ATTEMPTS,
    TRANSACTION_DELIVERY_MS,
    numbered,
)

FINAL = "Reports the error, and does not report the record as written."
STILL_REFUSED_MS = 8_000  # the delivery timeout and EXPIRY_MS, with a second to spare


def slug(code: str) -> str:
    """Return a code as a part of a scenario's id."""
    return code.lower().replace("_", "-")


# --- producers --------------------------------------------------------------------------------------------------------

for _code in ("INVALID_RECORD", "POLICY_VIOLATION", "INVALID_REQUIRED_ACKS", "TOPIC_AUTHORIZATION_FAILED",
              "CLUSTER_AUTHORIZATION_FAILED"):  # fmt: skip

    def _refused_for_good(exercise: Exercise, code: str = _code) -> None:
        producer = produce.connected(exercise, delivery_timeout_ms=DELIVERY_MS)
        exercise.fault(api="Produce", error=code, times=None)
        producer.send(["refused"])
        pending = producer.flush(STILL_REFUSED_MS)
        exercise.require_exercised()
        exercise.require(not producer.sent[-1].acknowledged, "the refused record was reported as written")
        exercise.require(not pending, "the refused record has no outcome 5 s after its delivery timeout")
        attempts = sum(entry.error == code for entry in exercise.journal(producer.name, "Produce"))
        exercise.require(attempts < MOST_ATTEMPTS, f"the record was sent {attempts} times", Level.SHOULD)

    scenario(
        f"produce/refused-{slug(_code)}",
        f"A record is refused with {_code}",
        rule="Sender.failBatch; Errors",
        needs="producer",
        correct=FINAL,
        loss="A record that is reported as written and is not.",
    )(_refused_for_good)

for _code in ("UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR", "CORRUPT_MESSAGE"):

    def _refused_twice(exercise: Exercise, code: str = _code) -> None:
        producer = idempotence.begun(exercise)
        exercise.fault(api="Produce", error=code, times=2)
        for value in numbered(10):
            producer.send([value])
        producer.flush()
        exercise.require_exercised()
        exercise.require_no_loss(producer)
        exercise.require_acknowledged(producer, Level.SHOULD)
        exercise.require_once_in_order(producer)

    scenario(
        f"idempotence/{slug(_code)}",
        f"Produce is answered with {_code} twice",
        rule="Sender.canRetry; Errors: retriable",
        needs=idempotence.NEEDS,
        correct="Repeats the same batches, in order.",
        loss=idempotence.TWICE,
    )(_refused_twice)


for _code in ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"):

    def _nothing_is_left(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="Produce", error=code, times=3)
        produce.check_delivered(exercise)

    scenario(
        f"produce/{slug(_code)}",
        f"Produce is answered with {_code} three times, and nothing is in the log",
        rule="Sender.canRetry; core D.2",
        needs="producer",
        correct="Repeats the request until delivery.timeout.ms has passed.",
        loss=produce.LOST,
    )(_nothing_is_left)


def concurrent_transactions(exercise: Exercise) -> None:
    """Refuse the first records of a transaction twice; only versions since KIP-890 get this code."""
    exercise.fault(api="Produce", error="CONCURRENT_TRANSACTIONS", times=2)
    transactions.check_committed(exercise)


scenario(
    "transactions/produce-concurrent-transactions",
    "Produce is answered with CONCURRENT_TRANSACTIONS twice",
    rule="KIP-890; TransactionManager: the last transaction is still ending",
    needs=transactions.NEEDS,
    correct="Repeats the same batch.",
    loss=transactions.TORN,
)(concurrent_transactions)


def check_refused_in_transaction(exercise: Exercise, code: str) -> None:
    """Refuse the records of one of two partitions for as long as the transaction lasts: it cannot be committed."""
    exercise.fault(api="Produce", topic="u", error=code, times=None)
    try:
        producer = exercise.transactional(delivery_timeout_ms=TRANSACTION_DELIVERY_MS)
        producer.call("begin")
        producer.send(numbered(5, "part"))
        producer.send(["refused"], topic="u")
        producer.flush(STILL_REFUSED_MS)
        producer.call("commit")
    except CallError:
        exercise.require_exercised()
        exercise.require(not exercise.committed_values(), "read_committed sees a part of the transaction")
        return
    exercise.require_exercised()
    raise Violation("the library reports that a transaction without one of its records is committed")


for _code in ("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE",
              "TRANSACTION_ABORTABLE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_PRODUCER_ID"):  # fmt: skip

    def _record_refused(exercise: Exercise, code: str = _code) -> None:
        check_refused_in_transaction(exercise, code)

    scenario(
        f"transactions/record-{slug(_code)}",
        f"A record of the transaction is refused with {codes.described('Produce', _code)}",
        rule="TransactionManager.handleFailedBatch; KIP-588; KIP-890",
        needs=transactions.NEEDS,
        correct="The commit fails, and nothing of the transaction is visible.",
        loss=transactions.TORN,
    )(_record_refused)

# --- transactions -----------------------------------------------------------------------------------------------------

for _code in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE",
              "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR"):  # fmt: skip

    def _end_refused(exercise: Exercise, code: str = _code) -> None:
        producer = exercise.transactional()
        producer.call("begin")
        producer.send(numbered(5))
        producer.flush()
        exercise.fault(api="EndTxn", request={"committed": True}, error=code, times=None)
        error = producer.refusal("commit")
        exercise.require_exercised()
        exercise.require(error is not None, "a commit is reported as done which the coordinator refused")
        exercise.require(not exercise.committed_values(), "read_committed sees records of a transaction that is open")

    scenario(
        f"transactions/end-refused-{slug(_code)}",
        f"EndTxn is refused with {codes.described('EndTxn', _code)}, and the transaction stays open",
        rule="TransactionManager.EndTxnHandler",
        needs=transactions.NEEDS,
        correct="Reports that the commit failed.",
        loss=transactions.TORN,
    )(_end_refused)

for _code in ("PRODUCER_FENCED", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
              "INVALID_TRANSACTION_TIMEOUT"):  # fmt: skip

    def _init_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="InitProducerId", error=code, times=None)
        try:
            producer = exercise.transactional()
            transactions.commit_ten(producer)
        except CallError:
            exercise.require_exercised()
            exercise.require(not exercise.log_values(), "records were written without a producer id")
            return
        exercise.require_exercised()
        raise Violation("the library reports a transaction as committed whose producer has no producer id")

    scenario(
        f"transactions/init-refused-{slug(_code)}",
        f"InitProducerId is refused with {codes.described('InitProducerId', _code)}",
        rule="TransactionManager.InitProducerIdHandler",
        needs=transactions.NEEDS,
        correct="Reports the error, and writes nothing.",
        loss=transactions.TORN,
    )(_init_refused)


def check_offsets_refused(exercise: Exercise, code: str) -> None:
    """Refuse the offsets of the transaction: either they are in it, or the application learns that they are not."""
    exercise.write(numbered(5))
    consumer = exercise.consumer(group="copier")
    consumer.subscribe("t")
    consumer.poll_for(5)
    producer = exercise.transactional()
    exercise.fault(api="TxnOffsetCommit", error=code, times=None)
    try:
        producer.call("begin")
        producer.send(numbered(5, "copy"), topic="u")
        producer.flush()
        producer.send_offsets(consumer)
        producer.call("commit")
    except CallError:
        exercise.require_exercised()
        exercise.require(not exercise.committed_values("u"), "read_committed sees records without their offsets")
        return
    exercise.require_exercised()
    raise Violation("a transaction is reported as committed whose offsets were refused")


for _code in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "GROUP_AUTHORIZATION_FAILED",
              "TRANSACTION_ABORTABLE", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"):  # fmt: skip

    def _offsets_refused(exercise: Exercise, code: str = _code) -> None:
        check_offsets_refused(exercise, code)

    scenario(
        f"transactions/offsets-{slug(_code)}",
        f"TxnOffsetCommit is refused with {codes.described('TxnOffsetCommit', _code)}",
        rule="TransactionManager.TxnOffsetCommitHandler; KIP-447",
        needs=transactions.COPY,
        correct="Reports the error: the transaction can only be aborted.",
        loss=transactions.LOST_COPY,
    )(_offsets_refused)

for _code in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
              "UNKNOWN_TOPIC_OR_PARTITION"):  # fmt: skip

    def _offsets_delayed(exercise: Exercise, code: str = _code) -> None:
        try:
            transactions.copy(exercise, "TxnOffsetCommit", error=code)
        except CallError as error:
            raise Violation(f"the library gave up: {error}", Level.SHOULD) from error

    scenario(
        f"transactions/offsets-{slug(_code)}",
        f"TxnOffsetCommit is answered with {codes.described('TxnOffsetCommit', _code)} once",
        rule="TransactionManager.TxnOffsetCommitHandler",
        needs=transactions.COPY,
        correct="Looks up the group's coordinator and repeats the request.",
        loss=transactions.LOST_COPY,
    )(_offsets_delayed)

# --- groups -----------------------------------------------------------------------------------------------------------

for _code in ("ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID", "OFFSET_METADATA_TOO_LARGE",
              "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE"):  # fmt: skip

    def _commit_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.write(numbered(10))
        consumer = groups.member(exercise)
        consumer.poll_for(10)
        exercise.fault(api="OffsetCommit", error=code, times=None)
        error = consumer.commit()
        exercise.require_exercised()
        exercise.require(error is not None, "the library reports that offsets are committed which the broker refused")

    scenario(
        f"groups/commit-refused-{slug(_code)}",
        f"Each OffsetCommit is answered with {_code}",
        rule="ConsumerCoordinator.OffsetCommitResponseHandler; groups B.1",
        needs=groups.COMMITS,
        correct="Reports that the commit failed.",
        loss=groups.LOST,
        slow=True,
    )(_commit_refused)


def check_reports(exercise: Exercise, api: str, code: str, **options: str) -> None:
    """Refuse a request for good: the application learns of it. `options` are the consumer's."""
    exercise.write(numbered(5))
    exercise.fault(api=api, error=code, times=None)
    consumer = exercise.consumer(group="g", **options)
    try:
        consumer.subscribe("t")
        until = exercise.deadline()
        while not exercise.past(until) and not consumer.errors and not consumer.read:
            consumer.poll()
    except CallError:
        return
    exercise.require_exercised()
    exercise.require(not consumer.read, "records were read although the group cannot be joined")
    exercise.require(bool(consumer.errors), f"{code} was never reported", Level.SHOULD)


for _api, _code in (
    ("FindCoordinator", "GROUP_AUTHORIZATION_FAILED"),
    ("JoinGroup", "GROUP_AUTHORIZATION_FAILED"),
    ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    ("SyncGroup", "GROUP_AUTHORIZATION_FAILED"),
    ("OffsetFetch", "GROUP_AUTHORIZATION_FAILED"),
    ("JoinGroup", "FENCED_INSTANCE_ID"),
    ("SyncGroup", "FENCED_INSTANCE_ID"),
):

    def _never_joins(exercise: Exercise, api: str = _api, code: str = _code) -> None:
        options = {"instance_id": "one"} if code == "FENCED_INSTANCE_ID" else {}
        check_reports(exercise, api, code, **options)

    scenario(
        f"groups/refused-{_api.lower()}-{slug(_code)}",
        f"{_api} is always answered with {_code}",
        rule="AbstractCoordinator; Errors: not retriable",
        needs=f"{groups.NEEDS} static_members" if _code == "FENCED_INSTANCE_ID" else groups.NEEDS,
        level=Level.SHOULD,
        correct="Reports the error to the application, and reads nothing.",
        loss="A consumer that seems to have nothing to read.",
        slow=True,
    )(_never_joins)

for _api, _code in (
    ("JoinGroup", "COORDINATOR_NOT_AVAILABLE"),
    ("JoinGroup", "REBALANCE_IN_PROGRESS"),
    ("SyncGroup", "COORDINATOR_NOT_AVAILABLE"),
    ("Heartbeat", "COORDINATOR_NOT_AVAILABLE"),
):

    def _joins_later(exercise: Exercise, api: str = _api, code: str = _code) -> None:
        exercise.fault(api=api, error=code)
        groups.check_reads_on(exercise)

    scenario(
        f"groups/{_api.lower()}-{slug(_code)}",
        f"{_api} is answered with {_code}",
        rule="AbstractCoordinator; groups A",
        needs=groups.NEEDS,
        correct="Looks up the coordinator, or rejoins, and reads on.",
        loss=groups.STOPPED,
    )(_joins_later)

# --- consumers --------------------------------------------------------------------------------------------------------

for _code in ("UNKNOWN_TOPIC_OR_PARTITION", "REPLICA_NOT_AVAILABLE"):

    def _fetch_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="Fetch", topic="t", partition=0, error=code)
        read_twenty(exercise)

    scenario(
        f"consumers/{slug(_code)}",
        f"Fetch is answered with {_code}",
        rule="FetchCollector; core E.1",
        needs=CONSUMER,
        correct="Refreshes its metadata and repeats the request from the same offset.",
        loss=SKIPPED,
    )(_fetch_refused)


for _code in ("TOPIC_AUTHORIZATION_FAILED", "CORRUPT_MESSAGE"):

    def _fetch_refused_for_good(exercise: Exercise, code: str = _code) -> None:
        exercise.write(numbered(10))
        exercise.fault(api="Fetch", topic="t", partition=0, error=code, times=None)
        consumer = exercise.consumer()
        consumer.assign(0)
        until = exercise.deadline()
        while not exercise.past(until) and not consumer.errors:
            consumer.poll()
        exercise.require_exercised()
        exercise.require(not consumer.read, f"read {consumer.values()}, which the broker did not send")
        exercise.require(bool(consumer.errors), f"{code} was never reported", Level.SHOULD)

    scenario(
        f"consumers/{slug(_code)}",
        f"Each Fetch is answered with {_code}",
        rule="FetchCollector.handleInitializeErrors: TopicAuthorizationException, KafkaException",
        needs=CONSUMER,
        level=Level.SHOULD,
        correct="Reports the error to the application.",
        loss="A consumer that seems to have nothing to read.",
        slow=_code == "CORRUPT_MESSAGE",
    )(_fetch_refused_for_good)

for _code in ("OFFSET_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "LEADER_NOT_AVAILABLE"):

    def _list_offsets_refused(exercise: Exercise, code: str = _code) -> None:
        exercise.write(numbered(5))
        exercise.fault(api="ListOffsets", error=code, times=2)
        consumer = exercise.consumer(offset_reset="earliest")
        consumer.assign(BEYOND)
        until = exercise.deadline()
        while set(consumer.values()) != set(numbered(5)) and not exercise.past(until):
            consumer.poll()
        exercise.require_exercised()
        first = list(dict.fromkeys(consumer.values()))
        exercise.require(first == numbered(5), f"read {' '.join(first) or 'nothing'}, not {' '.join(numbered(5))}")

    scenario(
        f"consumers/list-offsets-{slug(_code)}",
        f"ListOffsets is answered with {codes.described('ListOffsets', _code)} twice",
        rule="OffsetFetcherUtils",
        needs="consumer offset_reset",
        correct="Repeats the request until the leader knows the offset.",
        loss="A consumer that begins at another offset, or stops.",
    )(_list_offsets_refused)
