"""Connections: version negotiation, bootstrap, metadata, and brokers that send invalid responses.

Reconnecting is what a library SHOULD do: one that reports the lost connection has left it to the application.
"""

from typing import Any

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Exercise, NotExercised, Producer
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.values import FENCED_S, numbered

LOST = "Records that the application handed over, because the client never gets connected."
RECONNECT = "Closes the connection, connects again after a back-off, and repeats the request."


def check_written(exercise: Exercise, level: Level = Level.MUST, **options: Any) -> Producer:
    """Require that five records are written although the connection failed before; options as in `producer`."""
    producer = exercise.producer(**options)
    producer.send(numbered(5))
    producer.flush()
    exercise.require_exercised()
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer, level)
    return producer


@scenario(
    "connection/unsupported-api-versions",
    "ApiVersions is answered with UNSUPPORTED_VERSION",
    rule="KIP-511; core A.5",
    needs="producer",
    steers="versions",
    correct="Repeats ApiVersions in a version that the broker supports, or with version 0, and continues.",
    loss=LOST,
    slow=True,
)
def unsupported_api_versions(exercise: Exercise) -> None:
    """Simulate a broker that is older than the client; the response has the format of version 0.

    Clients that only use version 0 do not trigger this fault.
    """
    exercise.cluster.versions.set(ApiVersions=(0, 0))
    producer = exercise.producer()
    producer.send(numbered(5))
    producer.flush()
    if not any(entry.version > 0 for entry in exercise.journal(api="ApiVersions")):
        raise NotExercised("the client asks with version 0 only")
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer)


@scenario(
    "connection/first-connection-closed",
    "The broker closes the first connection",
    rule="NetworkClient: reconnect.backoff.ms",
    needs="producer",
    level=Level.SHOULD,
    correct=RECONNECT,
    loss=LOST,
)
def first_connection_closed(exercise: Exercise) -> None:
    """Close it at the first request."""
    exercise.fault(disconnect="close")
    check_written(exercise)


@scenario(
    "connection/first-connection-reset",
    "The broker resets the first connections",
    rule="NetworkClient: reconnect.backoff.ms",
    needs="producer",
    level=Level.SHOULD,
    correct=RECONNECT,
    loss=LOST,
)
def first_connection_reset(exercise: Exercise) -> None:
    """Reset three connections, one per bootstrap server: a library may report the failure and not retry."""
    exercise.fault(disconnect="reset", times=3)
    check_written(exercise)


@scenario(
    "connection/topic-not-known-yet",
    "Metadata is answered with UNKNOWN_TOPIC_OR_PARTITION twice",
    rule="KafkaProducer.waitOnMetadata; core B.1",
    needs="producer",
    level=Level.SHOULD,
    correct="Asks again: a topic that was just created is not known to each broker.",
    loss=LOST,
)
def topic_not_known_yet(exercise: Exercise) -> None:
    """Deny the topic to its first two requests."""
    exercise.fault(api="Metadata", topic="t", error="UNKNOWN_TOPIC_OR_PARTITION", times=2)
    check_written(exercise)


@scenario(
    "connection/metadata-unanswered",
    "The response to Metadata is lost",
    rule="NetworkClient: request.timeout.ms",
    needs="producer",
    level=Level.SHOULD,
    correct="Repeats the request on another connection or to another broker, after request.timeout.ms at the latest.",
    loss=LOST,
)
def metadata_unanswered(exercise: Exercise) -> None:
    """Leave the connection open and silent."""
    exercise.fault(api="Metadata", drop=True)
    check_written(exercise)


@scenario(
    "connection/metadata-in-pieces",
    "The response to Metadata arrives in small pieces",
    rule="core A.1",
    needs="producer",
    correct="Waits for as many bytes as the size field announces.",
    loss=LOST,
)
def metadata_in_pieces(exercise: Exercise) -> None:
    """Send each response seven bytes at a time: each piece ends within a field of four or eight."""
    exercise.fault(api="Metadata", bytes={"drip": {"size": 7, "every_ms": 5}}, times=None)
    check_written(exercise)


@scenario(
    "connection/metadata-cut",
    "The connection closes in the middle of a response",
    rule="core A.1",
    needs="producer",
    level=Level.SHOULD,
    correct=RECONNECT,
    loss=LOST,
)
def metadata_cut(exercise: Exercise) -> None:
    """Cut Metadata after ten bytes: behind size and correlation id, within the first field."""
    exercise.fault(api="Metadata", bytes={"truncate": 10})
    check_written(exercise)


@scenario(
    "connection/leader-not-available",
    "Metadata lists a topic without a leader",
    rule="core B.3; Metadata LEADER_NOT_AVAILABLE",
    needs="producer",
    level=Level.SHOULD,
    correct="Asks for Metadata again after retry.backoff.ms until there is a leader.",
    loss=LOST,
)
def leader_not_available(exercise: Exercise) -> None:
    """Return it twice, as while a topic is being created."""
    path = {"topics.*.error_code": "LEADER_NOT_AVAILABLE", "topics.*.partitions": []}
    exercise.fault(api="Metadata", topic="t", alter=path, times=2)
    check_written(exercise)


@scenario(
    "connection/wrong-correlation-id",
    "A response has another request's correlation id",
    rule="NetworkClient: correlation ids",
    needs="producer",
    correct="Does not accept the response: closes the connection and repeats the request.",
    loss="The outcome of an unanswered request is taken from another request.",
)
def wrong_correlation_id(exercise: Exercise) -> None:
    """Change it for Produce: a client that accepts it reports a success that it cannot know. A time-out is allowed."""
    never = 2**31 - 7  # ours: a client counts from 0
    exercise.fault(api="Produce", bytes={"correlation_id": never})
    producer = exercise.producer(delivery_timeout_ms=exercise.timeout_ms // 2)
    producer.send(numbered(5))
    producer.flush()
    exercise.require_exercised()
    repeated = len(exercise.journal(producer.name, "Produce")) > 1
    believed = not repeated and all(outcome.acknowledged for outcome in producer.sent)
    exercise.require(not believed, "the response with another correlation id was taken for the response to Produce")
    exercise.require_no_loss(producer)
    exercise.require_acknowledged(producer, Level.SHOULD)


@scenario(
    "connection/broker-unreachable",
    "One of three brokers refuses connections",
    rule="ClusterConnectionStates; bootstrap.servers",
    needs="producer",
    steers="leaders brokers clock",
    correct="Uses the other brokers for Metadata, and the leader of each partition for the rest.",
    loss=LOST,
)
def broker_unreachable(exercise: Exercise) -> None:
    """Stop the first broker of bootstrap.servers, which leads none of the partitions in use."""
    exercise.cluster.topics["t"].partitions[0].move_leader(2)
    exercise.cluster.brokers[1].kill()
    exercise.cluster.clock.advance(seconds=FENCED_S)
    check_written(exercise)


@scenario(
    "connection/answer-lost-with-connection",
    "A connection ends between request and response",
    rule="NetworkClient: disconnects",
    needs="producer",
    level=Level.SHOULD,
    correct="Repeats Metadata on another connection.",
    loss=LOST,
)
def answer_lost_with_connection(exercise: Exercise) -> None:
    """Serve Metadata, but never send the response."""
    exercise.fault(api="Metadata", apply_then=Disconnect("reset"))
    check_written(exercise)
