"""Cases about what a request or response holds: keys, codecs, and more than one partition, batch or transaction."""

from collections.abc import Mapping

from understudy.exam.driver import CallError, NotSupported
from understudy.exam.exercise import Consumer, Exercise, Producer
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios import groups, produce, transactions
from understudy.exam.scenarios.consumers import NEEDS as CONSUMER
from understudy.exam.scenarios.consumers import SKIPPED, TRANSACTIONS, check_read
from understudy.exam.scenarios.values import COLLECT_MS, MANY, OUTCOME_MS, TRANSACTION_DELIVERY_MS, TURN_MS, numbered

LONG = " " + "a" * 500
"""The end of a value that every codec makes shorter."""
OWN_TOPIC = "made"
"""A topic that a case creates, with configs of its own."""
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
"""Configs of a topic whose first segment ends soon, and of which any share is enough to compact it."""
FAR = 8_000_000_000
"""An offset that 32 bits do not hold."""


@scenario(
    "produce/keys",
    "Records with keys",
    rule="core C.2",
    needs="producer",
    correct="Writes each record with its key.",
    loss="Consumers that find no key, and compaction that refuses the records.",
)
def keys(exercise: Exercise) -> None:
    """Write ten keys, and one record without."""
    producer = exercise.producer()
    producer.send(numbered(10), keys=numbered(10, "key"))
    producer.send(["without"])
    producer.flush()
    exercise.require_acknowledged(producer)
    keys_in_log = [None if record.key is None else record.key.decode() for record in exercise.log()]
    exercise.require(keys_in_log == [*numbered(10, "key"), None], f"the keys in the log are {keys_in_log}")


@scenario(
    "consumers/keys",
    "Records with keys are read",
    rule="core C.2",
    needs=CONSUMER,
    correct="Returns the key of each record.",
    loss="An application that cannot assign its records.",
)
def read_keys(exercise: Exercise) -> None:
    """Read ten keys."""
    rows = zip(numbered(10, "key"), numbered(10), strict=True)
    exercise.cluster.topics["t"].write(*({"key": key, "value": value, "partition": 0} for key, value in rows))
    consumer = exercise.consumer()
    consumer.assign(0)
    check_read(exercise, consumer, numbered(10))
    keys_read = [record.get("key") for record in consumer.read]
    exercise.require(keys_read == numbered(10, "key"), f"the keys that were read are {keys_read}")


@scenario(
    "produce/empty-keys",
    "Records with empty keys",
    rule="core C.2: keys are nullable",
    needs="producer",
    level=Level.SHOULD,
    correct="Writes an empty key as one, and no key as none.",
    loss="Records that compaction refuses, or that another client takes for records without a key.",
)
def empty_keys(exercise: Exercise) -> None:
    """Write a record with an empty key, and one without a key."""
    producer = exercise.producer()
    producer.send(["empty"], keys=[""])
    producer.send(["without"])
    producer.flush()
    exercise.require_acknowledged(producer)
    keys_in_log = [record.key for record in exercise.log()]
    exercise.require(keys_in_log == [b"", None], f"the keys in the log are {keys_in_log}", Level.SHOULD)


@scenario(
    "consumers/empty-keys",
    "Records with empty keys are read",
    rule="core C.2: keys are nullable",
    needs=CONSUMER,
    level=Level.SHOULD,
    correct="Returns an empty key as one, and no key as none.",
    loss="An application that takes one for the other.",
)
def read_empty_keys(exercise: Exercise) -> None:
    """Read a record with an empty key, and one without a key."""
    exercise.cluster.topics["t"].write(
        {"key": "", "value": "empty", "partition": 0}, {"value": "without", "partition": 0}
    )
    consumer = exercise.consumer()
    consumer.assign(0)
    check_read(exercise, consumer, ["empty", "without"])
    keys_read = [record.get("key") for record in consumer.read]
    exercise.require(keys_read == ["", None], f"the keys that were read are {keys_read}", Level.SHOULD)


@scenario(
    "produce/null-values",
    "Records without a value",
    rule="core C.2: values are nullable; a record without one deletes its key when the log is compacted",
    needs="producer null_values",
    correct="Writes no value as none, and an empty value as one.",
    loss="Keys that are never deleted, or are deleted although they have a value.",
)
def null_values(exercise: Exercise) -> None:
    """Write a record without a value, one with an empty value, and one with a value."""
    producer = exercise.producer()
    producer.send([None, "", "value"], keys=numbered(3))
    producer.flush()
    exercise.require_acknowledged(producer)
    values_in_log = [record.value for record in exercise.log()]
    exercise.require(values_in_log == [None, b"", b"value"], f"the values in the log are {values_in_log}")


@scenario(
    "consumers/null-values",
    "Records without a value are read",
    rule="core C.2: values are nullable",
    needs=f"{CONSUMER} null_values",
    correct="Returns no value as none, and an empty value as one.",
    loss="An application that does not see that a key was deleted, or takes an empty value for that.",
)
def read_null_values(exercise: Exercise) -> None:
    """Read a record without a value, one with an empty value, and one with a value."""
    exercise.write([None, "", "value"])
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(3)
    values_read = [record["value"] for record in consumer.read]
    exercise.require(values_read == [None, "", "value"], f"the values that were read are {values_read}")


@scenario(
    "produce/acks-of-the-leader",
    "acks=1",
    rule="core D.2: acks",
    needs="producer",
    correct="Sends acks=1, and reports the offset that the leader returned.",
    loss="Records that are acknowledged before they are replicated, or slower than the application allows.",
)
def acks_of_the_leader(exercise: Exercise) -> None:
    """Write twenty records; the wire shows acks."""
    producer = exercise.producer(acks="1")
    producer.send(numbered(20))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)


def producer_with(exercise: Exercise, codec: str) -> Producer:
    """Return a producer that compresses.

    Raises:
        NotSupported: the library does not have the codec.
    """
    try:
        return exercise.producer(compression=codec, linger_ms=COLLECT_MS)
    except CallError as error:
        raise NotSupported(f"no producer with {codec}: {error}") from error


for _codec in ("gzip", "snappy", "lz4", "zstd"):

    def _compressed(exercise: Exercise, codec: str = _codec) -> None:
        producer = producer_with(exercise, codec)
        values = [value + LONG for value in numbered(20)]
        producer.send(values)
        producer.flush()
        exercise.require_acknowledged(producer)
        exercise.require_no_loss(producer)
        used = {batch.compression for batch in producer.batches()}
        exercise.require(used == {codec}, f"the batches are compressed by {', '.join(sorted(used))}, not by {codec}")

    scenario(
        f"produce/compressed-{_codec}",
        f"Compression by {_codec}",
        rule="core C.2: attributes",
        needs="producer compression",
        correct="Compresses its batches with the codec that the application chose.",
        loss="Five times the bytes on disk and wire.",
    )(_compressed)

    def _decompressed(exercise: Exercise, codec: str = _codec) -> None:
        producer_with(exercise, codec)
        exercise.cluster.topics.create(OWN_TOPIC, partitions=1, configs={"compression.type": codec})
        values = [value + LONG for value in numbered(20)]
        exercise.write(values[:10], topic=OWN_TOPIC)
        exercise.write(values[10:], topic=OWN_TOPIC)
        consumer = exercise.consumer()
        consumer.assign(5, topic=OWN_TOPIC)  # within the first batch of ten
        check_read(exercise, consumer, values[5:])

    scenario(
        f"consumers/compressed-{_codec}",
        f"Batches that are compressed by {_codec}",
        rule="core C.2: attributes",
        needs="producer consumer compression",
        steers="topics",
        correct="Decompresses each batch, and begins within it.",
        loss=SKIPPED,
    )(_decompressed)


@scenario(
    "produce/one-topic-of-two-refused",
    "Records of one of two topics are too large",
    rule="core D.2: errors by partition; message.max.bytes",
    needs="producer",
    steers="leaders topics",
    correct="Reports the outcome of each record by the error of its own partition.",
    loss=produce.LOST,
)
def one_topic_of_two_refused(exercise: Exercise) -> None:
    """Limit the size of records in one topic; both have the same leader, so that one request may carry both."""
    exercise.cluster.topics["u"].configure({"max.message.bytes": "1000"})  # half of a large value
    for topic in ("t", "u"):
        exercise.cluster.topics[topic].partitions[0].move_leader(1)
    producer = produce.connected(exercise, delivery_timeout_ms=TRANSACTION_DELIVERY_MS, linger_ms=COLLECT_MS)
    producer.send(["fits"], topic="u")
    producer.flush()
    for number in range(3):  # more than one: a refusal must not hide the next
        producer.send([f"small{number}"])
        producer.send([f"large{number} {'a' * 2_000}"], topic="u")
    producer.flush(OUTCOME_MS)
    for each in producer.sent:
        if each.value.startswith("large"):
            exercise.require(not each.acknowledged, "a record was reported as written which its partition refused")
    written = [each for each in producer.sent if each.topic == "t"]
    exercise.require(all(each.acknowledged for each in written), "a record failed because another topic's did",
                     Level.SHOULD)  # fmt: skip
    exercise.require_no_loss(producer)


@scenario(
    "consumers/interleaved-aborted",
    "Two producers whose transactions overlap, one of them is aborted",
    rule="KIP-98: aborted transactions by producer id and first offset",
    needs=TRANSACTIONS,
    correct="Discards the records of each aborted transaction up to its own marker.",
    loss="Aborted records are read, or committed ones are not.",
)
def interleaved_aborted(exercise: Exercise) -> None:
    """Let each marker lie between records of the other producer, and abort the second transaction too."""
    first, second = exercise.transactional("tx-1"), exercise.transactional("tx-2")

    def write(producer: Producer, prefix: str) -> None:
        for value in numbered(3, prefix):
            producer.send([value])
            producer.flush()  # each in a batch of its own: a transaction begins with the first of several

    for each in (first, second):
        each.call("begin")
    write(first, "lost-a")
    write(second, "kept-b")
    write(first, "lost-c")
    first.call("abort")
    write(second, "kept-d")
    first.call("begin")
    write(first, "lost-e")
    second.call("commit")
    second.call("begin")
    write(second, "lost-f")
    first.call("abort")
    write(second, "lost-g")
    first.call("begin")
    write(first, "kept-h")
    second.call("abort")
    first.call("commit")
    consumer = exercise.consumer(isolation="read_committed")
    consumer.assign(0)
    check_read(exercise, consumer, [*numbered(3, "kept-b"), *numbered(3, "kept-d"), *numbered(3, "kept-h")])


@scenario(
    "consumers/aborted-in-another-order",
    "Of two transactions that are aborted, the first one to begin is the last one to end",
    rule="KIP-98: aborted transactions, which a response lists in the order in which they ended",
    needs=TRANSACTIONS,
    correct="Discards the records of both from the first offset of each.",
    loss="Aborted records are read.",
)
def aborted_in_another_order(exercise: Exercise) -> None:
    """Let the second one begin and end within the first one."""
    first, second = exercise.transactional("tx-1"), exercise.transactional("tx-2")
    for producer, prefix in ((first, "lost-a"), (second, "lost-b")):
        producer.call("begin")
        producer.send(numbered(3, prefix))
        producer.flush()
    second.call("abort")
    first.call("abort")
    second.call("begin")
    second.send(numbered(3, "kept"))
    second.flush()
    second.call("commit")
    consumer = exercise.consumer(isolation="read_committed")
    consumer.assign(0)
    check_read(exercise, consumer, numbered(3, "kept"))


@scenario(
    "consumers/compacted",
    "A log with gaps, within batches and between them",
    rule="core F.6: compaction keeps offsets",
    needs=CONSUMER,
    steers="topics clock",
    correct="Takes the offset of each record from its batch, and goes on after the last offset of the batch.",
    loss="Wrong offsets are committed, and records are read twice or skipped.",
)
def compacted(exercise: Exercise) -> None:
    """Overwrite most keys of the first batches, and compact."""
    exercise.cluster.topics.create(OWN_TOPIC, partitions=1, configs=COMPACTED)
    topic = exercise.cluster.topics[OWN_TOPIC]
    for part in range(6):  # six batches of ten, in which ever fewer keys are the last ones
        rows = ({"key": f"key{number % (part + 2)}", "value": f"{part}-{number} {'a' * 150}"} for number in range(10))
        topic.write(*({**row, "partition": 0} for row in rows))
    check_compacted(exercise, 6 * 10)


@scenario(
    "consumers/compacted-tail",
    "A response ends with a batch whose last record was compacted away",
    rule="core F.6: a batch keeps its last offset",
    needs=CONSUMER,
    steers="topics clock",
    correct="Goes on after the last offset of the batch.",
    loss="A consumer that fetches the same batch for ever.",
)
def compacted_tail(exercise: Exercise) -> None:
    """Overwrite the second record of a batch, after which no other one fits into a response."""
    exercise.cluster.topics.create(OWN_TOPIC, partitions=1, configs=COMPACTED)
    topic = exercise.cluster.topics[OWN_TOPIC]
    large = "a" * 600_000
    topic.write(
        {"key": "first", "value": f"first {large}", "partition": 0}, {"key": "second", "value": "", "partition": 0}
    )
    topic.write({"key": "second", "value": f"second {large}", "partition": 0})
    check_compacted(exercise, 3)


def check_compacted(exercise: Exercise, count: int) -> None:
    """Compact a log of so many records, and require that what is left is read, with its offsets."""
    topic = exercise.cluster.topics[OWN_TOPIC]
    exercise.cluster.clock.advance(seconds=5)  # past segment.ms
    topic.write({"key": "last", "value": "last", "partition": 0})  # begins a segment: the active one is not compacted
    exercise.cluster.compaction.run()
    log = exercise.log(OWN_TOPIC)
    exercise.require_situation(len(log) <= count, "the log was not compacted")
    consumer = exercise.consumer()
    consumer.assign(0, topic=OWN_TOPIC)
    check_read(exercise, consumer, exercise.log_values(OWN_TOPIC))
    offsets = [record["offset"] for record in consumer.read]
    exercise.require(offsets == [record.offset for record in log], f"the offsets that were reported are {offsets}")


@scenario(
    "consumers/incomplete-batches",
    "More batches than a response can hold: the last one is cut off",
    rule="KIP-74: max.partition.fetch.bytes; core D.3",
    needs=CONSUMER,
    correct="Fetches the batch that was cut off again.",
    loss=SKIPPED,
)
def incomplete_batches(exercise: Exercise) -> None:
    """Write 4 MB in batches of a third of a megabyte, of which a response holds a few and a part of the next."""
    values = [f"{value} {'a' * 333_000}" for value in numbered(12)]
    for value in values:
        exercise.write([value])
    consumer = exercise.consumer()
    consumer.assign(0)
    check_read(exercise, consumer, values)


@scenario(
    "groups/offsets-beyond-31-bits",
    "Offsets of eight billion",
    rule="core C.2: offsets are INT64",
    needs=f"producer {groups.COMMITS}",
    steers="topics",
    correct="Writes, reads, commits and resumes at them.",
    loss=groups.LOST,
)
def offsets_beyond_31_bits(exercise: Exercise) -> None:
    """Let the log begin there."""
    exercise.cluster.topics["t"].partitions[0].start_at(FAR)
    producer = exercise.producer()
    producer.send(numbered(10, "a"))
    producer.flush()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)
    first = groups.member(exercise)
    first.poll_for(10)
    offsets = [record["offset"] for record in first.read]
    exercise.require(offsets == list(range(FAR, FAR + 10)), f"the offsets that were read are {offsets}")
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    exercise.require(groups.committed(exercise) == [FAR + 10], f"committed {groups.committed(exercise)}")
    first.close()
    exercise.write(numbered(10, "b"))
    second = groups.member(exercise)
    second.poll_for(10)
    second.poll_quietly()
    exercise.require(second.values() == numbered(10, "b"), f"the second member read {second.values()}")


@scenario(
    "consumers/damaged-batch-is-not-skipped",
    "A byte of a batch is wrong, once, and another batch follows",
    rule="check.crcs; RecordBatch.ensureValid",
    needs=CONSUMER,
    correct="Fetches the batch again, or reports the error.",
    loss="Records that are silently skipped.",
)
def damaged_batch_is_not_skipped(exercise: Exercise) -> None:
    """Damage it in transit, once; the next batch is written afterwards."""
    first, second = "a" * 50, "b" * 50  # so long that the damaged byte is one of the first
    exercise.write([first])
    exercise.fault(api="Fetch", bytes={"corrupt": [-12, 255]})  # -12: behind the value is a count of headers, and tags
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_quietly()
    exercise.write([second])
    until = exercise.deadline()
    while not exercise.past(until) and not consumer.errors and second not in consumer.values():
        consumer.poll()
    exercise.require_exercised()
    offsets = {record["offset"] for record in consumer.read}
    exercise.require(bool(offsets) or bool(consumer.errors), "nothing was read, and no error was reported")
    exercise.require(0 in offsets or 1 not in offsets or bool(consumer.errors), "the damaged batch was skipped")


def three_partitions_read(exercise: Exercise, **options: str) -> Consumer:
    """Return a member that has read two records from each of three partitions."""
    for partition in MANY:
        exercise.write(numbered(2, f"p{partition}-"), topic="many", partition=partition)
    consumer = exercise.consumer(group="g", **options)
    consumer.subscribe("many")
    consumer.poll_for(6)
    exercise.require(len(consumer.read) == 6, f"read {consumer.values()}")
    return consumer


@scenario(
    "groups/commit-one-partition-refused",
    "OffsetCommit fails for one of three partitions",
    rule="ConsumerCoordinator.OffsetCommitResponseHandler: errors by partition",
    needs=groups.COMMITS,
    correct="Reports that the commit failed.",
    loss=groups.LOST,
)
def commit_one_partition_refused(exercise: Exercise) -> None:
    """Return TOPIC_AUTHORIZATION_FAILED for the second partition of the response."""
    consumer = three_partitions_read(exercise)
    path = {"topics.0.partitions.1.error_code": "TOPIC_AUTHORIZATION_FAILED"}
    exercise.fault(api="OffsetCommit", alter=path, times=None)
    error = consumer.commit()
    exercise.require_exercised()
    exercise.require(error is not None, "a commit is reported as done which was refused for one partition")


@scenario(
    "groups/offsets-of-three-partitions",
    "Three partitions with different committed offsets",
    rule="groups B.2",
    needs=groups.COMMITS,
    correct="Continues each partition at its own offset.",
    loss=groups.LOST,
)
def offsets_of_three_partitions(exercise: Exercise) -> None:
    """Write one, two and three records, and four to another topic; the next member reads only what comes later."""
    for partition in MANY:
        exercise.write(numbered(partition + 1, f"p{partition}-"), topic="many", partition=partition)
    exercise.write(numbered(4))
    first = groups.member(exercise, "many", "t")
    first.poll_for(10)
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    check_offsets(exercise, "g", {"many-0": 1, "many-1": 2, "many-2": 3, "t-0": 4})
    first.close()
    for partition in MANY:
        exercise.write([f"next{partition}"], topic="many", partition=partition)
    exercise.write(["next3"])
    second = groups.member(exercise, "many", "t")
    second.poll_for(4)
    second.poll_quietly()
    later_values = [f"next{number}" for number in range(4)]
    exercise.require(sorted(second.values()) == later_values, f"the next member read {second.values()}")


def check_offsets(exercise: Exercise, group: str, expected: Mapping[str, int]) -> None:
    """Require the committed offsets of a group; ``expected``: "topic-partition" -> offset."""
    offsets = {f"{each.topic}-{each.partition}": each.offset for each in exercise.group(group).offsets}
    exercise.require(offsets == expected, f"committed {offsets}, not {expected}")


@scenario(
    "transactions/copy-of-three-partitions",
    "Offsets of three partitions in one transaction",
    rule="KIP-98; KIP-447",
    needs=transactions.COPY,
    correct="Commits the offset of each partition with the transaction.",
    loss=transactions.LOST_COPY,
)
def copy_of_three_partitions(exercise: Exercise) -> None:
    """Write one, two and three records, and copy all of them."""
    for partition in MANY:
        exercise.write(numbered(partition + 1, f"p{partition}-"), topic="many", partition=partition)
    consumer = exercise.consumer(group="copier", isolation="read_committed")
    consumer.subscribe("many")
    producer = exercise.transactional()
    consumer.poll_for(6)
    producer.call("begin")
    producer.send(consumer.values(), topic="u")
    producer.flush()
    producer.send_offsets(consumer)
    producer.call("commit")
    until = exercise.deadline()
    while len(exercise.group("copier").offsets) < 3 and not exercise.past(until):  # markers follow the response
        consumer.poll(TURN_MS)
    check_offsets(exercise, "copier", {"many-0": 1, "many-1": 2, "many-2": 3})


@scenario(
    "consumers/after-deletion",
    "The records before the offset were deleted; offset reset is earliest",
    rule="auto.offset.reset; DeleteRecords",
    needs="consumer offset_reset",
    steers="topics",
    correct="Looks up the first offset that is left, and continues there.",
    loss=SKIPPED,
)
def after_deletion(exercise: Exercise) -> None:
    """Let the log begin at offset 4."""
    exercise.cluster.topics["t"].partitions[0].start_at(4)
    exercise.write(numbered(10))
    consumer = exercise.consumer(offset_reset="earliest")
    consumer.assign(0)
    check_read(exercise, consumer, numbered(10))


@scenario(
    "transactions/offsets-one-partition-refused",
    "TxnOffsetCommit fails for one of three partitions",
    rule="TransactionManager.TxnOffsetCommitHandler: errors by partition",
    needs=transactions.COPY,
    correct="Reports the error: the transaction can only be aborted.",
    loss=transactions.LOST_COPY,
)
def offsets_one_partition_refused(exercise: Exercise) -> None:
    """Return GROUP_AUTHORIZATION_FAILED for the second partition of the response."""
    consumer = three_partitions_read(exercise, isolation="read_committed")
    producer = exercise.transactional()
    path = {"topics.0.partitions.1.error_code": "GROUP_AUTHORIZATION_FAILED"}
    exercise.fault(api="TxnOffsetCommit", alter=path, times=None)
    producer.call("begin")
    producer.send(["copy"], topic="u")
    producer.flush()
    try:
        producer.send_offsets(consumer)
        producer.call("commit")
    except CallError:
        exercise.require_exercised()
        return
    exercise.require_exercised()
    exercise.require(False, "a transaction is reported as committed of whose offsets one was refused")
