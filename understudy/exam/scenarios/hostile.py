"""Brokers that answer what no broker should: a client neither hangs nor crashes, and loses nothing.

Whether it connects again by itself or reports the error is the library's choice; the former is what it SHOULD do.
"""

from understudy.exam.exercise import Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.connection import LOST, RECONNECT, check_written
from understudy.exam.scenarios.consumers import SKIPPED, check_read, read_twenty
from understudy.exam.scenarios.groups import STOPPED, check_reads_on
from understudy.exam.scenarios.values import numbered

PRODUCER = "producer"
ATTEMPTS, WIDE = 6, 1000
"""Producers that meet Metadata without brokers, one after the other; partitions of the topic that they ask for."""

for _slug, _title, _mask in (
    ("absurd-length", "The size of an answer is two gigabytes", 0x7F),
    ("negative-length", "The size of an answer is negative", 0x80),
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
        loss="A process without memory, or one that waits for bytes that never come.",
    )(_wrong_size)


@scenario(
    "hostile/stray-answer",
    "An answer to a request that was never sent",
    rule="NetworkClient: correlation ids",
    needs=PRODUCER,
    level=Level.SHOULD,
    correct="Does not take it for the answer to its next request.",
    loss="The outcome of a request is taken from another one.",
)
def stray_answer(exercise: Exercise) -> None:
    """A frame with another correlation id follows the answer to Produce."""
    exercise.fault(api="Produce", bytes={"extra": "0000000800000fff00000000"})
    producer = check_written(exercise)
    producer.send(numbered(5, "next"))
    producer.flush()
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer)


@scenario(
    "hostile/produce-without-partitions",
    "The answer to Produce mentions no partition",
    rule="ProduceResponse",
    needs=PRODUCER,
    level=Level.SHOULD,
    correct="Takes the records for unacknowledged: repeats the request, or reports an error.",
    loss="An application that waits for ever.",
)
def produce_without_partitions(exercise: Exercise) -> None:
    """Once."""
    exercise.fault(api="Produce", alter={"responses": []})
    check_written(exercise)


@scenario(
    "hostile/metadata-without-brokers",
    "Metadata lists no broker",
    rule="core B.3",
    needs=PRODUCER,
    steers="brokers",
    level=Level.SHOULD,
    correct="Asks again after retry.backoff.ms, at the brokers that it knows.",
    loss=LOST,
    slow=True,
)
def metadata_without_brokers(exercise: Exercise) -> None:
    """Twice, to each of six producers that have met one broker alone; the second that gives up decides.

    With several brokers it would depend on how many connections are open: a library that drops the brokers which are
    not in the answer goes on if another connection ends. librdkafka before 2.16.0 drops the broker while it reads the
    topics of the answer, and is lost if it reads for longer than the connection takes to close. It always does with
    many partitions, and with one in a third of the cases. The topic is new when the producers are connected: one that
    knew it could have written its record, on the connection that it still has, before it has read the answer.
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
        name = producer.name  # those before it may still ask for Metadata
        exercise.fault(api="Metadata", client_id=name, topic="made", alter={"brokers": []}, times=2)
        # A library that asks for all topics may know it already.
        exercise.fault(api="Produce", client_id=name, topic="made", error="NOT_LEADER_OR_FOLLOWER")
        producer.send([f"next-{name}"], topic="made")
        producer.flush()
        if not exercise.faults[0].show().hits:
            raise NotExercised("the library asked for no Metadata")
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
    correct="Takes the partition as one without a leader, and asks again.",
    loss=LOST,
)
def leader_nowhere(exercise: Exercise) -> None:
    """Twice."""
    exercise.fault(api="Metadata", topic="t", alter={"topics.*.partitions.*.leader_id": 99}, times=2)
    check_written(exercise)


@scenario(
    "hostile/coordinator-nowhere",
    "FindCoordinator names an address where there is no broker",
    rule="AbstractCoordinator: coordinatorUnknown",
    needs="consumer groups",
    correct="Looks up the coordinator again after the connection has failed.",
    loss=STOPPED,
)
def coordinator_nowhere(exercise: Exercise) -> None:
    """Port 1, once."""
    exercise.fault(api="FindCoordinator", versions=[0, 3], alter={"port": 1})
    exercise.fault(api="FindCoordinator", versions=[4, 99], alter={"coordinators.*.port": 1})
    check_reads_on(exercise, every_fault=False)


@scenario(
    "hostile/fetch-without-partitions",
    "The answer to Fetch mentions no partition",
    rule="KIP-227",
    needs="consumer",
    correct="Fetches again from the same offset.",
    loss=SKIPPED,
)
def fetch_without_partitions(exercise: Exercise) -> None:
    """Three times; within a fetch session it is what a broker without news answers."""
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
    """SNAPSHOT_NOT_FOUND: most libraries have no name for it."""
    exercise.fault(api="Produce", error="SNAPSHOT_NOT_FOUND")
    producer = exercise.producer()
    producer.send(numbered(5))
    producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)
    for each in producer.sent:
        exercise.require(each.acknowledged or each.error is not None, f"no outcome of record {each.value!r}")


@scenario(
    "hostile/unexpected-fetch-error",
    "Fetch is answered with an error that does not belong to it",
    rule="FetchCollector",
    needs="consumer",
    correct="Reports the error, or repeats the request; skips nothing.",
    loss=SKIPPED,
)
def unexpected_fetch_error(exercise: Exercise) -> None:
    """SNAPSHOT_NOT_FOUND, once. A consumer that has reported the error need not go on."""
    exercise.write(numbered(10, "a"))
    exercise.fault(api="Fetch", error="SNAPSHOT_NOT_FOUND")
    consumer = exercise.consumer()
    consumer.assign(0)
    until = exercise.deadline()
    while not exercise.past(until) and len(consumer.read) < 10 and not consumer.errors:
        consumer.poll(200)
    exercise.require_exercised()
    read = consumer.values()
    exercise.require(read == numbered(10, "a")[: len(read)], f"read {' '.join(read)}")
    exercise.require(len(read) == 10 or bool(consumer.errors), "nothing was read, and no error was reported")


@scenario(
    "hostile/slow-produce-answer",
    "The answer to Produce arrives byte by byte",
    rule="core A.1",
    needs=PRODUCER,
    correct="Waits for as many bytes as the size field announces.",
    loss=LOST,
)
def slow_produce_answer(exercise: Exercise) -> None:
    """Three bytes at a time, within the request timeout; each answer."""
    exercise.fault(api="Produce", bytes={"drip": {"size": 3, "every_ms": 5}}, times=None)
    check_written(exercise)


@scenario(
    "hostile/slow-fetch-answer",
    "The answers to Fetch arrive in pieces",
    rule="core A.1",
    needs="consumer",
    correct="Waits for as many bytes as the size field announces.",
    loss=SKIPPED,
)
def slow_fetch_answer(exercise: Exercise) -> None:
    """Thirty bytes at a time; each answer."""
    exercise.fault(api="Fetch", bytes={"drip": {"size": 30, "every_ms": 5}}, times=None)
    read_twenty(exercise)


@scenario(
    "hostile/cluster-restarts",
    "All brokers restart between two reads",
    rule="NetworkClient: reconnect.backoff.ms; KIP-227",
    needs="consumer",
    steers="brokers",
    correct="Connects again and goes on at the same offset, in another fetch session.",
    loss=SKIPPED,
)
def cluster_restarts(exercise: Exercise) -> None:
    """All connections end, and for a moment no broker listens."""
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
