"""Brokers that send what no broker should: a client must not hang, crash or lose anything.

A client SHOULD reconnect by itself; reporting the error is allowed.
"""

from understudy.exam.exercise import Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.connection import LOST, RECONNECT, check_written
from understudy.exam.scenarios.consumers import SKIPPED, check_read, read_twenty
from understudy.exam.scenarios.groups import STOPPED, check_reads_on
from understudy.exam.scenarios.values import numbered, since

PRODUCER = "producer"
ATTEMPTS, WIDE = 6, 1_000
"""Producers that get Metadata without brokers, one after the other; partitions of their topic.

Ours: with so many partitions a client parses for longer than its connection takes to close, and six show a rare result.
"""

for _slug, _title, _mask in (
    ("absurd-length", "The size of a response is two gigabytes", 0x7F),  # all bits of its first byte but the sign
    ("negative-length", "The size of a response is negative", 0x80),  # the sign
):

    def _wrong_size(exercise: Exercise, mask: int = _mask) -> None:
        exercise.fault(api="Produce", bytes={"corrupt": [0, mask]})
        check_written(exercise, Level.SHOULD)

    scenario(
        f"hostile/{_slug}",
        _title,
        rule="core A.1; NetworkReceive: size",
        needs=PRODUCER,
        level=Level.SHOULD,
        correct=RECONNECT,
        loss="A process out of memory, or one that waits for bytes that never arrive.",
    )(_wrong_size)


@scenario(
    "hostile/stray-answer",
    "A response to a request that was never sent",
    rule="NetworkClient: correlation ids",
    needs=PRODUCER,
    level=Level.SHOULD,
    correct="Does not take it for the response to its next request.",
    loss="The outcome of a request is taken from another request.",
)
def stray_answer(exercise: Exercise) -> None:
    """Send a frame with another correlation id after the response to Produce."""
    exercise.fault(api="Produce", bytes={"extra": "0000000800000fff00000000"})
    producer = check_written(exercise)
    producer.send(numbered(5, "next"))
    producer.flush()
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer)


@scenario(
    "hostile/produce-without-partitions",
    "The response to Produce has no partition",
    rule="ProduceResponse",
    needs=PRODUCER,
    level=Level.SHOULD,
    correct="Treats the records as unacknowledged: repeats the request, or reports an error.",
    loss="An application that waits forever.",
)
def produce_without_partitions(exercise: Exercise) -> None:
    """Return it once."""
    exercise.fault(api="Produce", alter={"responses": []})
    check_written(exercise)


@scenario(
    "hostile/metadata-without-brokers",
    "Metadata lists no broker",
    rule="core B.3",
    needs=PRODUCER,
    steers="brokers",
    level=Level.SHOULD,
    correct="Repeats the request after retry.backoff.ms, to the brokers that it knows.",
    loss=LOST,
    slow=True,
)
def metadata_without_brokers(exercise: Exercise) -> None:
    """Return it twice, to each of six producers that know only one broker; the second one that fails decides.

    With several brokers the result would depend on how many connections are open: a library that drops the brokers
    which are not in the response continues if another connection ends. librdkafka before 2.16.0 drops the broker while
    it parses the topics of the response, and fails if parsing takes longer than closing the connection. It always does
    with many partitions, and with one in a third of the cases. The topic is new when the producers are connected: one
    that knew it might have written its record, on the connection that it still has, before it has parsed the response.
    """
    for broker in (2, 3):
        exercise.cluster.brokers[broker].stop()
    producers = [exercise.producer() for _ in range(ATTEMPTS)]
    for each in producers:
        each.send([f"first-{each.name}"], topic="u")
        each.flush()
    exercise.cluster.topics.create("made", partitions=WIDE, replication_factor=1)
    given_up = 0
    for producer in producers:
        name = producer.name  # earlier producers may still send Metadata
        exercise.fault(api="Metadata", client_id=name, topic="made", alter={"brokers": []}, times=2)
        # A library that requests all topics may know it already.
        exercise.fault(api="Produce", client_id=name, topic="made", error="NOT_LEADER_OR_FOLLOWER")
        producer.send([f"next-{name}"], topic="made")
        producer.flush()
        if not exercise.faults[0].show().hits:
            raise NotExercised("the library sent no Metadata")
        exercise.require_no_loss(producer)
        given_up += not all(outcome.acknowledged for outcome in producer.sent)
        if given_up > 1:
            exercise.require_acknowledged(producer)


@scenario(
    "hostile/leader-nowhere",
    "Metadata names a leader that is not among the brokers",
    rule="core B.3; Cluster.leaderFor",
    needs=PRODUCER,
    level=Level.SHOULD,
    correct="Treats the partition as leaderless, and refreshes its metadata again.",
    loss=LOST,
)
def leader_nowhere(exercise: Exercise) -> None:
    """Return 99, the id of no broker, twice."""
    exercise.fault(api="Metadata", topic="t", alter={"topics.*.partitions.*.leader_id": 99}, times=2)
    check_written(exercise)


@scenario(
    "hostile/coordinator-nowhere",
    "FindCoordinator returns an address without a broker",
    rule="AbstractCoordinator: coordinatorUnknown",
    needs="consumer groups",
    correct="Looks up the coordinator again after the connection has failed.",
    loss=STOPPED,
)
def coordinator_nowhere(exercise: Exercise) -> None:
    """Return port 1, once."""
    # One key until version 3, then many (KIP-699).
    exercise.fault(api="FindCoordinator", versions=[0, 3], alter={"port": 1})
    exercise.fault(api="FindCoordinator", versions=since(4), alter={"coordinators.*.port": 1})
    check_reads_on(exercise, every_fault=False)


@scenario(
    "hostile/fetch-without-partitions",
    "The response to Fetch has no partition",
    rule="KIP-227",
    needs="consumer",
    correct="Fetches again from the same offset.",
    loss=SKIPPED,
)
def fetch_without_partitions(exercise: Exercise) -> None:
    """Return it three times; in a fetch session it is a valid response without news."""
    exercise.fault(api="Fetch", alter={"responses": []}, times=3, skip=1)
    read_twenty(exercise)


@scenario(
    "hostile/unexpected-produce-error",
    "Produce is answered with an error that does not belong to it",
    rule="Errors: not retriable",
    needs=PRODUCER,
    correct="Reports the error, or repeats the request.",
    loss="Records that the library reported as written.",
)
def unexpected_produce_error(exercise: Exercise) -> None:
    """Return SNAPSHOT_NOT_FOUND: most libraries have no name for it."""
    exercise.fault(api="Produce", error="SNAPSHOT_NOT_FOUND")
    producer = exercise.producer()
    producer.send(numbered(5))
    producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)
    for outcome in producer.sent:
        exercise.require(outcome.acknowledged or outcome.error is not None, f"no outcome of record {outcome.value!r}")


@scenario(
    "hostile/unexpected-fetch-error",
    "Fetch is answered with an error that does not belong to it",
    rule="FetchCollector",
    needs="consumer",
    correct="Reports the error, or repeats the request; skips nothing.",
    loss=SKIPPED,
)
def unexpected_fetch_error(exercise: Exercise) -> None:
    """Return SNAPSHOT_NOT_FOUND, once. A consumer that has reported the error need not continue."""
    exercise.write(numbered(10, "a"))
    exercise.fault(api="Fetch", topic="t", partition=0, error="SNAPSHOT_NOT_FOUND")
    consumer = exercise.consumer()
    consumer.assign(0)
    until = exercise.deadline()
    while not exercise.past(until) and len(consumer.read) < 10 and not consumer.errors:
        consumer.poll()
    exercise.require_exercised()
    read = consumer.values()
    exercise.require(read == numbered(10, "a")[: len(read)], f"read {' '.join(read)}")
    exercise.require(len(read) == 10 or bool(consumer.errors), "nothing was read, and no error was reported")


@scenario(
    "hostile/slow-produce-answer",
    "The response to Produce arrives in small pieces",
    rule="core A.1",
    needs=PRODUCER,
    correct="Waits for as many bytes as the size field announces.",
    loss=LOST,
)
def slow_produce_answer(exercise: Exercise) -> None:
    """Send each response three bytes at a time: less than a field, and all within the request timeout."""
    exercise.fault(api="Produce", bytes={"drip": {"size": 3, "every_ms": 5}}, times=None)
    check_written(exercise)


@scenario(
    "hostile/slow-fetch-answer",
    "The responses to Fetch arrive in small pieces",
    rule="core A.1",
    needs="consumer",
    correct="Waits for as many bytes as the size field announces.",
    loss=SKIPPED,
)
def slow_fetch_answer(exercise: Exercise) -> None:
    """Send each response thirty bytes at a time: half of a batch's header."""
    exercise.fault(api="Fetch", bytes={"drip": {"size": 30, "every_ms": 5}}, times=None)
    read_twenty(exercise)


@scenario(
    "hostile/cluster-restarts",
    "All brokers restart between two reads",
    rule="NetworkClient: reconnect.backoff.ms; KIP-227",
    needs="consumer",
    steers="brokers",
    correct="Reconnects and continues at the same offset, in a new fetch session.",
    loss=SKIPPED,
)
def cluster_restarts(exercise: Exercise) -> None:
    """Restart them: all connections end, and for a moment no broker listens."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    for number in (1, 2, 3):
        exercise.cluster.brokers[number].stop()
    for number in (1, 2, 3):
        exercise.cluster.brokers[number].start()
    exercise.write(numbered(10, "b"))
    check_read(exercise, consumer, numbered(10, "a") + numbered(10, "b"))
