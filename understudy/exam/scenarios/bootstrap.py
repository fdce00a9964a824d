"""Rebootstrapping from bootstrap.servers (KIP-899, KIP-1102), and telemetry (KIP-714), which must not interfere."""

import time

from control_api.fault_actions import Disconnect
from understudy.exam.exercise import Exercise
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.connection import LOST, check_written
from understudy.exam.scenarios.consumers import check_read
from understudy.exam.scenarios.values import LOOK_S, numbered, since
from understudy.options import FaultOptions

DEAD = {"brokers.*.port": 1}
PRODUCERS, CONSUMERS = 8, 4
"""Several clients, because their random back-offs lead to different results."""
PATIENCE = 3
"""Multiple of the usual wait for a consumer, which loses nothing by being late: ours."""
SUBSCRIPTIONS = "GetTelemetrySubscriptions"
SUBSCRIBED_S = 5.0
"""Time within which a library has requested its subscriptions: ours; it asks when it has connected (KIP-714)."""


@scenario(
    "rebootstrap/producer",
    "Metadata has addresses that no longer belong to brokers",
    rule="KIP-899: metadata.recovery.strategy=rebootstrap",
    needs="producer",
    level=Level.SHOULD,
    correct="Asks the addresses of bootstrap.servers again.",
    loss=LOST,
    slow=True,
)
def rebootstrap_producer(exercise: Exercise) -> None:
    """Simulate that all brokers were replaced; the next Metadata is right. Eight producers, one after the other.

    The Java client rebootstraps only when each of the three brokers is within its back-off, and checks only when its
    own back-off for Metadata is over. More than half of its producers do not manage that within delivery.timeout.ms.
    """
    for _ in range(PRODUCERS):
        exercise.fault(api="Metadata", client_id=exercise.next_name("producer"), alter=DEAD)
        check_written(exercise)


@scenario(
    "rebootstrap/consumer",
    "A consumer's Metadata has addresses that no longer belong to brokers",
    rule="KIP-899: metadata.recovery.strategy=rebootstrap",
    needs="consumer",
    level=Level.SHOULD,
    correct="Asks the addresses of bootstrap.servers again.",
    loss="A consumer that stops.",
    slow=True,
)
def rebootstrap_consumer(exercise: Exercise) -> None:
    """Simulate it for four consumers, one after the other, with independent back-offs; the next Metadata is right.

    Each has 45 s: the Java client may need 12 of them (`rebootstrap_producer`).
    """
    exercise.write(numbered(10))
    for _ in range(CONSUMERS):
        exercise.fault(api="Metadata", client_id=exercise.next_name("consumer"), alter=DEAD)
        consumer = exercise.consumer()
        consumer.assign(0)
        check_read(exercise, consumer, numbered(10), times=PATIENCE)


@scenario(
    "rebootstrap/required",
    "Metadata is answered with REBOOTSTRAP_REQUIRED",
    rule="KIP-1102",
    needs="producer",
    level=Level.SHOULD,
    correct="Discards the brokers and connects to the addresses of bootstrap.servers again.",
    loss=LOST,
)
def rebootstrap_required(exercise: Exercise) -> None:
    """Return the error code at the top level of the response, which has the field since version 13."""
    exercise.fault(api="Metadata", versions=since(13), alter={"error_code": "REBOOTSTRAP_REQUIRED"})
    check_written(exercise)


_FAULTS: tuple[tuple[str, str, FaultOptions], ...] = (
    ("refused", "refused", {"api": SUBSCRIPTIONS, "error": "INVALID_REQUEST"}),
    ("unanswered", "not answered", {"api": SUBSCRIPTIONS, "drop": True}),
    ("answer-lost", "served, and its answer lost", {"api": SUBSCRIPTIONS, "apply_then": Disconnect("reset")}),
)
for _slug, _title, _fault in _FAULTS:

    def _telemetry(exercise: Exercise, fault: FaultOptions = _fault) -> None:
        exercise.fault(**fault)
        producer = exercise.producer()
        producer.send(numbered(5))
        producer.flush()
        until = time.monotonic() + SUBSCRIBED_S
        while not exercise.met() and not exercise.past(until):
            time.sleep(LOOK_S)
        producer.send(numbered(5, "later"))
        producer.flush()
        exercise.require_exercised()
        exercise.require_no_loss(producer)
        exercise.require_acknowledged(producer)

    scenario(
        f"telemetry/{_slug}",
        f"{SUBSCRIPTIONS} is {_title}",
        rule="KIP-714: telemetry must not affect the client's work",
        needs="producer",
        correct="Writes the records, and requests subscriptions later or never.",
        loss="Records, because metrics could not be delivered.",
    )(_telemetry)
