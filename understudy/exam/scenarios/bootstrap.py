"""Beginning again at bootstrap.servers (KIP-899, KIP-1102), and telemetry (KIP-714), which must not be in the way."""

import time

from understudy.exam.exercise import Exercise
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.connection import LOST, check_written
from understudy.exam.scenarios.consumers import check_read
from understudy.exam.scenarios.values import numbered
from understudy.fault_actions import Disconnect
from understudy.options import FaultOptions

DEAD = {"brokers.*.port": 1}
PRODUCERS, CONSUMERS = 8, 4
"""Each has its own luck with back-offs, which are random."""
PATIENCE = 3
"""How many times the usual wait a consumer has: it loses nothing by being late."""
SUBSCRIPTIONS = "GetTelemetrySubscriptions"
SUBSCRIBED_S = 5.0
"""Until when a library has asked for subscriptions."""


@scenario(
    "rebootstrap/producer",
    "Metadata has addresses at which there is no broker any more",
    rule="KIP-899: metadata.recovery.strategy=rebootstrap",
    needs="producer",
    level=Level.SHOULD,
    correct="Asks the addresses of bootstrap.servers again.",
    loss=LOST,
    slow=True,
)
def rebootstrap_producer(exercise: Exercise) -> None:
    """As if all brokers had been replaced; the next Metadata is right. Eight producers, one after the other.

    The Java client begins again only at a moment at which each of the three brokers is within its back-off, and looks
    only when its own back-off for Metadata is over. More than half of its producers do not get there within
    delivery.timeout.ms.
    """
    for _ in range(PRODUCERS):
        exercise.fault(api="Metadata", client_id=exercise.next_name("producer"), alter=DEAD)
        check_written(exercise)


@scenario(
    "rebootstrap/consumer",
    "A consumer's Metadata has addresses at which there is no broker any more",
    rule="KIP-899: metadata.recovery.strategy=rebootstrap",
    needs="consumer",
    level=Level.SHOULD,
    correct="Asks the addresses of bootstrap.servers again.",
    loss="A consumer that stops.",
    slow=True,
)
def rebootstrap_consumer(exercise: Exercise) -> None:
    """The next Metadata is right. Four consumers, one after the other, each with luck of its own.

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
    correct="Forgets the brokers and asks the addresses of bootstrap.servers again.",
    loss=LOST,
)
def rebootstrap_required(exercise: Exercise) -> None:
    """The code is at the top of the answer, which has the field from version 13 on."""
    exercise.fault(api="Metadata", versions=[13, 99], alter={"error_code": "REBOOTSTRAP_REQUIRED"})
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
            time.sleep(0.05)
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
        correct="Writes the records, and asks for subscriptions later or never.",
        loss="Records, because metrics could not be delivered.",
    )(_telemetry)
