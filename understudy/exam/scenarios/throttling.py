"""Throttling (KIP-219): a throttled client sends nothing on that connection, and no request has failed."""

from understudy.exam.exercise import Exercise, NotExercised
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios.connection import check_written
from understudy.exam.scenarios.consumers import read_twenty
from understudy.exam.scenarios.values import numbered

THROTTLE_MS = 1_500  # below the request timeout of 2 s, and far above a response's time
QUIET_MS = 1_200
"""Part of the throttle time before which the next request is too early; the rest allows for clocks and networks."""
WAITS = "Sends nothing on this connection until throttle_time_ms has passed."
LOSS = "A quota that has no effect, until the broker stops reading the connection."


def check_quiet(exercise: Exercise, client: str, api: str, *, under_way: int = 0) -> None:
    """Require no request of the API on the connection for the throttle time after the first throttled response.

    `under_way`: the journal id of the last request that may have been sent before the response arrived.
    """
    entries = exercise.journal(client, api)
    first = next((entry for entry in entries if entry.fault), None)
    if first is None or first.duration_ms is None:
        raise NotExercised(f"{api} was not throttled")
    newest_id = max(first.id, under_way)
    later = [entry for entry in entries if entry.id > newest_id and entry.connection == first.connection]
    for entry in later:
        after_ms = (entry.ts_us - first.ts_us) / 1000 - first.duration_ms
        text = f"{api} was sent {after_ms:.0f} ms after an answer that asked to wait {THROTTLE_MS} ms"
        exercise.require(after_ms >= QUIET_MS, text, Level.SHOULD)


@scenario(
    "throttling/producer-waits",
    "Produce is answered with a throttle time",
    rule="KIP-219",
    needs="producer",
    level=Level.SHOULD,
    correct=WAITS,
    loss=LOSS,
)
def producer_waits(exercise: Exercise) -> None:
    """Throttle by 1.5 s, with more records ready to be sent.

    More of the first records may be in flight when the response arrives. It has arrived once all are acknowledged.
    """
    exercise.fault(api="Produce", alter={"throttle_time_ms": THROTTLE_MS})
    producer = exercise.producer()
    producer.send(numbered(5, "a"))
    producer.flush()
    under_way = max((entry.id for entry in exercise.journal(producer.name, "Produce")), default=0)
    producer.send(numbered(5, "b"))
    producer.flush()
    exercise.require_exercised()
    exercise.require_acknowledged(producer)
    exercise.require_no_loss(producer)
    check_quiet(exercise, producer.name, "Produce", under_way=under_way)


@scenario(
    "throttling/consumer-waits",
    "Fetch is answered with a throttle time",
    rule="KIP-219",
    needs="consumer",
    level=Level.SHOULD,
    correct=WAITS,
    loss=LOSS,
)
def consumer_waits(exercise: Exercise) -> None:
    """Throttle by 1.5 s, while there is more to read."""
    exercise.fault(api="Fetch", alter={"throttle_time_ms": THROTTLE_MS})
    read_twenty(exercise)
    check_quiet(exercise, "exam-consumer-1", "Fetch")


@scenario(
    "throttling/no-error",
    "Each response to Produce has a throttle time",
    rule="KIP-219",
    needs="producer",
    correct="Treats the response as a success: the records are written.",
    loss="Records that are written again, or reported as lost.",
)
def no_error(exercise: Exercise) -> None:
    """Throttle by 100 ms each. Nothing is written twice, although the producer is not idempotent."""
    exercise.fault(api="Produce", alter={"throttle_time_ms": 100}, times=None)
    exercise.require_once_in_order(check_written(exercise))
