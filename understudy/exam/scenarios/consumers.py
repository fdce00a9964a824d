"""Consumers with assigned partitions: each record once, in order, and only committed ones."""

import time

from control_api.fault_actions import Disconnect, Error
from understudy.exam.exercise import Consumer, Exercise
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import BEYOND, COLLECT_MS, PROBE_MS, next_broker, numbered

NEEDS = "consumer"
OWN_TOPIC = "made"
SKIPPED = "Records are skipped or read twice."
AGAIN = "Repeats the request from the same offset."


def check_read(exercise: Exercise, consumer: Consumer, expected: list[str], *, times: int = 1) -> None:
    """Require that the consumer has read these values, and no others within `times` times the usual wait."""
    until = exercise.deadline(times)
    while len(consumer.read) < len(expected) and time.monotonic() < until:
        consumer.poll()
        if consumer.values() != expected[: len(consumer.read)]:
            break
    consumer.poll_quietly()
    exercise.require_exercised()
    exercise.require(
        consumer.values() == expected, f"read {' '.join(consumer.values()) or 'nothing'}, not {' '.join(expected)}"
    )


def read_twenty(exercise: Exercise) -> None:
    """Write ten records before the fault and ten after it, and require that all are read once."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    exercise.write(numbered(10, "b"))
    check_read(exercise, consumer, numbered(10, "a") + numbered(10, "b"))


@scenario(
    "consumers/plain",
    "Twenty records, no fault",
    rule="core E.1",
    needs=NEEDS,
    correct="Reads each once, in order.",
    loss=SKIPPED,
)
def plain(exercise: Exercise) -> None:
    """Play without a fault, as the positive control."""
    read_twenty(exercise)


@scenario(
    "consumers/from-the-middle",
    "Assigned at an offset",
    rule="core E.1",
    needs=NEEDS,
    correct="Begins there.",
    loss=SKIPPED,
)
def from_the_middle(exercise: Exercise) -> None:
    """Start at offset 7 of 20."""
    exercise.write(numbered(20))
    consumer = exercise.consumer()
    consumer.assign(7)
    check_read(exercise, consumer, numbered(20)[7:])


@scenario(
    "consumers/within-a-batch",
    "Assigned at an offset in the middle of a batch",
    rule="core E.1",
    needs="consumer producer",
    correct="Discards the records of the batch before the offset.",
    loss=SKIPPED,
)
def within_a_batch(exercise: Exercise) -> None:
    """Start there, although the broker returns whole batches."""
    producer = exercise.producer(linger_ms=COLLECT_MS)
    producer.send(numbered(10))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)
    consumer = exercise.consumer()
    consumer.assign(7)
    check_read(exercise, consumer, exercise.log_values()[7:])


@scenario(
    "consumers/seek-back",
    "A seek to an earlier offset",
    rule="KafkaConsumer.seek",
    needs="consumer seek",
    correct="Reads again from there.",
    loss=SKIPPED,
)
def seek_back(exercise: Exercise) -> None:
    """Seek back; records that were fetched before the seek must be discarded."""
    exercise.write(numbered(10))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    consumer.seek(4)
    check_read(exercise, consumer, numbered(10) + numbered(10)[4:])


for _code in (
    "NOT_LEADER_OR_FOLLOWER",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "KAFKA_STORAGE_ERROR",
):

    def _refused(exercise: Exercise, code: str = _code) -> None:
        exercise.fault(api="Fetch", topic="t", partition=0, error=code)
        read_twenty(exercise)

    _slug = _code.lower().replace("_", "-")
    scenario(
        f"consumers/{_slug}",
        f"Fetch is answered with {_code}",
        rule="FetchCollector; core E.1",
        needs=NEEDS,
        correct="Refreshes its metadata and repeats the request from the same offset.",
        loss=SKIPPED,
    )(_refused)


@scenario(
    "consumers/answer-lost",
    "The response to Fetch is lost with its connection",
    rule="core E.1",
    needs=NEEDS,
    correct=AGAIN,
    loss=SKIPPED,
)
def answer_lost(exercise: Exercise) -> None:
    """Lose a response with records."""
    exercise.fault(api="Fetch", apply_then=Disconnect("reset"), skip=1)
    read_twenty(exercise)


@scenario(
    "consumers/answer-cut",
    "The response to Fetch is cut off",
    rule="core A.1",
    needs=NEEDS,
    correct=AGAIN,
    loss=SKIPPED,
)
def answer_cut(exercise: Exercise) -> None:
    """Cut it after 60 bytes: about where the records begin."""
    exercise.fault(api="Fetch", bytes={"truncate": 60})
    read_twenty(exercise)


@scenario(
    "consumers/silent-broker",
    "Fetch is not answered",
    rule="NetworkClient: request.timeout.ms",
    needs=NEEDS,
    correct="Closes the connection after request.timeout.ms and repeats the request.",
    loss="A consumer that waits forever.",
)
def silent_broker(exercise: Exercise) -> None:
    """Leave one request without a response."""
    exercise.fault(api="Fetch", drop=True)
    read_twenty(exercise)


for _session_code in ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"):

    def _session_lost(exercise: Exercise, code: str = _session_code) -> None:
        exercise.fault(api="Fetch", error=code, skip=1)
        read_twenty(exercise)

    _slug = _session_code.lower().replace("_", "-")
    scenario(
        f"consumers/{_slug}",
        f"Fetch is answered with {_session_code}",
        rule="KIP-227",
        needs=NEEDS,
        correct="Starts a new fetch session with all partitions.",
        loss=SKIPPED,
    )(_session_lost)


@scenario(
    "consumers/leader-moves",
    "The leader moves while records are read",
    rule="core E.1",
    needs=NEEDS,
    steers="leaders brokers",
    correct="Continues at the new leader from the same offset.",
    loss=SKIPPED,
)
def leader_moves(exercise: Exercise) -> None:
    """Move the leader to the next broker, and stop the former leader."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    partition = exercise.cluster.topics["t"].partitions[0]
    former = partition.show().leader
    partition.move_leader(next_broker(former))
    exercise.cluster.brokers[former].stop()
    exercise.write(numbered(10, "b"))
    check_read(exercise, consumer, numbered(10, "a") + numbered(10, "b"))


@scenario(
    "consumers/out-of-range-earliest",
    "The offset does not exist; offset reset is earliest",
    rule="auto.offset.reset",
    needs="consumer offset_reset",
    correct="Looks up the first offset with ListOffsets and continues there.",
    loss="A consumer that stops.",
)
def out_of_range_earliest(exercise: Exercise) -> None:
    """Assign an offset beyond the end."""
    exercise.write(numbered(5))
    consumer = exercise.consumer(offset_reset="earliest")
    consumer.assign(BEYOND)
    check_read(exercise, consumer, numbered(5))


def check_latest(exercise: Exercise, consumer: Consumer) -> None:
    """Write records until one is read; require that none of before is read, and none is skipped afterwards."""
    until, count = exercise.deadline(), 0
    while not consumer.read and not exercise.past(until):
        consumer.poll(PROBE_MS)
        exercise.write([f"new{count:02}"])
        count += 1
    consumer.poll_quietly()
    old = [value for value in consumer.values() if value.startswith("old")]
    exercise.require(bool(consumer.read), f"none of {count} records was read")
    exercise.require(not old, f"read {' '.join(old)}, which were written before")
    wanted = [f"new{number:02}" for number in range(count)]
    last = wanted[-len(consumer.read) :]
    exercise.require(consumer.values() == last, f"read {' '.join(consumer.values())}, not {' '.join(last)}")


@scenario(
    "consumers/out-of-range-latest",
    "The offset does not exist; offset reset is latest",
    rule="auto.offset.reset",
    needs="consumer offset_reset",
    correct="Looks up the end with ListOffsets and continues there.",
    loss="Old records are processed again.",
)
def out_of_range_latest(exercise: Exercise) -> None:
    """Assign an offset beyond the end."""
    exercise.write(numbered(10, "old"))
    consumer = exercise.consumer(offset_reset="latest")
    consumer.assign(BEYOND)
    check_latest(exercise, consumer)


@scenario(
    "consumers/after-deletion-latest",
    "The records before the offset were deleted; offset reset is latest",
    rule="auto.offset.reset; DeleteRecords",
    needs="consumer offset_reset",
    steers="topics",
    correct="Looks up the end with ListOffsets and continues there.",
    loss="Old records are processed again.",
)
def after_deletion_latest(exercise: Exercise) -> None:
    """Let the log begin at offset 4."""
    exercise.cluster.topics["t"].partitions[0].start_at(4)
    exercise.write(numbered(10, "old"))
    consumer = exercise.consumer(offset_reset="latest")
    consumer.assign(0)
    check_latest(exercise, consumer)


@scenario(
    "consumers/out-of-range-none",
    "The offset does not exist; offset reset is none",
    rule="auto.offset.reset",
    needs="consumer offset_reset",
    correct="Reports an error and reads nothing.",
    loss="Records are silently skipped or read twice.",
)
def out_of_range_none(exercise: Exercise) -> None:
    """Assign an offset beyond the end."""
    exercise.write(numbered(5))
    check_no_reset(exercise, BEYOND)


@scenario(
    "consumers/after-deletion-none",
    "The records before the offset were deleted; offset reset is none",
    rule="auto.offset.reset; DeleteRecords",
    needs="consumer offset_reset",
    steers="topics",
    correct="Reports an error and reads nothing.",
    loss="That records are gone which were not read stays unnoticed.",
)
def after_deletion_none(exercise: Exercise) -> None:
    """Let the log begin at offset 4."""
    exercise.cluster.topics["t"].partitions[0].start_at(4)
    exercise.write(numbered(10))
    check_no_reset(exercise, 0)


def check_no_reset(exercise: Exercise, offset: int) -> None:
    """Require that a consumer which is assigned at an offset that does not exist reports that, and reads nothing."""
    consumer = exercise.consumer(offset_reset="none")
    consumer.assign(offset)
    for _ in range(25):  # five seconds
        consumer.poll()
        if consumer.errors or consumer.read:
            break
    exercise.require(not consumer.read, f"read {consumer.values()} without an offset to begin at")
    exercise.require(bool(consumer.errors), "no error was reported")


@scenario(
    "consumers/topic-created-again",
    "The topic is deleted, and created again under the same name",
    rule="KIP-516: a topic has another id than an earlier one of its name",
    needs="consumer offset_reset",
    steers="topics",
    level=Level.SHOULD,
    correct="Asks for its metadata again, and reads records of the new topic, or reports the error.",
    loss="A consumer that reads nothing until it is restarted.",
)
def topic_created_again(exercise: Exercise) -> None:
    """Write to the new topic until a record is read: the consumer's position may be beyond its first ones."""
    exercise.cluster.topics.create(OWN_TOPIC, partitions=1)
    exercise.write(numbered(5), topic=OWN_TOPIC)
    consumer = exercise.consumer(offset_reset="earliest")
    consumer.assign(0, topic=OWN_TOPIC)
    consumer.poll_for(5)
    exercise.require(consumer.values() == numbered(5), f"read {consumer.values()}")
    exercise.cluster.topics[OWN_TOPIC].delete()
    exercise.cluster.topics.create(OWN_TOPIC, partitions=1)
    until = exercise.deadline()
    while "again" not in consumer.values() and not consumer.errors and not exercise.past(until):
        exercise.write(["again"], topic=OWN_TOPIC)
        consumer.poll(PROBE_MS)
    seen = "again" in consumer.values() or bool(consumer.errors)
    exercise.require(seen, "nothing of the new topic was read, and no error was reported", Level.SHOULD)


@scenario(
    "consumers/list-offsets-refused",
    "ListOffsets is answered with NOT_LEADER_OR_FOLLOWER",
    rule="OffsetFetcher",
    needs="consumer offset_reset",
    correct="Refreshes its metadata and repeats the request.",
    loss="A consumer that stops, or begins at another offset.",
)
def list_offsets_refused(exercise: Exercise) -> None:
    """Return the error while an offset is reset. Requires the right position, not that nothing is read again.

    KafkaJS has a fetcher per broker, and each looks up the offset. If one of them gets an error, KafkaJS rejoins the
    group, and what another fetcher has read meanwhile may be read again: that depends on which was first.
    """
    exercise.write(numbered(5))
    exercise.fault(api="ListOffsets", apply_then=Error("NOT_LEADER_OR_FOLLOWER"))
    consumer = exercise.consumer(offset_reset="earliest")
    consumer.assign(BEYOND)
    until = exercise.deadline()
    while set(consumer.values()) != set(numbered(5)) and not exercise.past(until):
        consumer.poll()
    consumer.poll_quietly()
    exercise.require_exercised()
    first = list(dict.fromkeys(consumer.values()))
    exercise.require(first == numbered(5), f"read {' '.join(first) or 'nothing'}, not {' '.join(numbered(5))}")


@scenario(
    "consumers/damaged-batch",
    "A byte of a batch is wrong",
    rule="check.crcs; RecordBatch.ensureValid",
    needs=NEEDS,
    level=Level.SHOULD,
    correct="Detects it by the checksum, and delivers nothing of the batch.",
    loss="A value is delivered that was never written.",
)
def damaged_batch(exercise: Exercise) -> None:
    """Flip a byte of the last value in transit."""
    exercise.write(["a" * 50])  # so long that the damaged byte is one of them
    exercise.fault(api="Fetch", bytes={"corrupt": [-12, 255]})  # -12: behind the value is a count of headers, and tags
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_quietly(times=10)  # two seconds
    exercise.require_exercised()
    wrong = [value for value in consumer.values() if value != "a" * 50]
    exercise.require(not wrong, f"a value was delivered that is not in the log: {wrong[:1]}")


TRANSACTIONS = "producer idempotence transactions consumer read_committed"


@scenario(
    "consumers/aborted-records",
    "Aborted records between committed ones",
    rule="KIP-98; isolation.level",
    needs=TRANSACTIONS,
    correct="Delivers only the committed ones.",
    loss="Aborted records are read.",
)
def aborted_records(exercise: Exercise) -> None:
    """Write three transactions, the second one aborted."""
    producer = exercise.transactional()
    for prefix, command in (("a", "commit"), ("b", "abort"), ("c", "commit")):
        producer.call("begin")
        producer.send(numbered(5, prefix))
        producer.flush()
        producer.call(command)
    consumer = exercise.consumer(isolation="read_committed")
    consumer.assign(0)
    check_read(exercise, consumer, numbered(5, "a") + numbered(5, "c"))


@scenario(
    "consumers/open-transaction",
    "An open transaction before committed records",
    rule="KIP-98; last stable offset",
    needs=TRANSACTIONS,
    correct="Waits at the last stable offset until the transaction ends.",
    loss="Records are read whose transaction may be aborted.",
)
def open_transaction(exercise: Exercise) -> None:
    """Leave it open, then commit it."""
    producer = exercise.transactional()
    producer.call("begin")
    producer.send(numbered(5, "open"))
    producer.flush()
    exercise.write(numbered(5, "behind"))
    consumer = exercise.consumer(isolation="read_committed")
    consumer.assign(0)
    consumer.poll_quietly(5)  # for a second: longer than a fetch waits
    exercise.require(not consumer.read, f"read before the transaction had ended: {consumer.values()}")
    producer.call("commit")
    check_read(exercise, consumer, numbered(5, "open") + numbered(5, "behind"))
