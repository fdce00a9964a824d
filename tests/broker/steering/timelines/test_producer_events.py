"""How events of producers are folded, and that none is lost on the way."""

from broker.steering.timelines.event_log import EventLog, Limits
from broker.steering.timelines.producer_events import (
    ACCEPTED,
    DUPLICATE,
    OTHERS,
    REFUSED,
    Folding,
    ProducerEvent,
    causes_of,
)

LIMITS = Limits(recent_of_one=2, kept_of_one=6)


def accepted(at: int, *, partition: int = 0, epoch: int = 0, client_id: str = "app") -> ProducerEvent:
    """One batch with the sequence ``at``."""
    event = ProducerEvent(at, ACCEPTED, at, ("t", partition), epoch, epoch, epoch, at, at, batches=1)
    event.client_id, event.connection = client_id, 1
    return event


def refused(at: int, **fields: object) -> ProducerEvent:
    """A batch that is not taken."""
    event = ProducerEvent(at, REFUSED, at, ("t", 0), 0, 0, 0, at, at, known_sequence=at - 2, batches=1)
    event.error = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    for name, value in fields.items():
        setattr(event, name, value)
    return event


def log_of(*events: ProducerEvent) -> EventLog[int, ProducerEvent]:
    """A log of the producer 1."""
    log: EventLog[int, ProducerEvent] = EventLog(Folding(), LIMITS)
    for event in events:
        causes = list(causes_of(event, log.newest_first(1))) if event.error is not None else []
        log.note(1, event, causes)
    return log


def test_accepted_batches_are_folded_by_partition() -> None:
    """With the first and the last time and sequence, and how many batches they were."""
    log = log_of(*(accepted(at, partition=at % 2) for at in range(10)))
    even, odd, *_ = log.of(1)
    assert (even.partition, even.at_ms, even.until_ms, even.batches, even.count) == ("t-0", 0, 6, 4, 4)
    assert (even.first_sequence, even.last_sequence, even.client_id) == (0, 6, "app")
    assert (odd.partition, odd.batches) == ("t-1", 4)
    assert sum(event.count for event in log.of(1)) == 10


def test_what_differs_is_left_out() -> None:
    """Of two clients neither is named; the epochs are the first and the last."""
    log = log_of(accepted(0), accepted(1, epoch=3, client_id="other"), accepted(2), accepted(3))
    folded = log.of(1)[0]
    assert (folded.client_id, folded.connection, folded.epoch_before, folded.epoch_after) == (None, 1, 0, 3)


def test_an_event_that_was_folded_away_grows_no_more() -> None:
    """The next batch begins another one, which can be seen."""
    first, second = accepted(0), accepted(1)
    log_of(first, second, accepted(2), accepted(3))
    assert (first.merged, second.merged) == (False, True)


def test_an_event_that_was_forgotten_grows_no_more() -> None:
    """With its whole producer, or alone: batches that were noted in it would be seen nowhere."""
    log: EventLog[int, ProducerEvent] = EventLog(Folding(), Limits(recent=2, kept=2))
    events = [accepted(at) for at in range(6)]
    for producer_id, event in enumerate(events):
        log.note(producer_id, event)
    assert [event.merged for event in events] == [producer_id not in log for producer_id in range(6)]
    assert events[0].merged
    alone = accepted(0, partition=1)
    log_of(alone, *(refused(at) for at in range(1, 20)))
    assert alone.merged


def test_what_a_refusal_is_explained_by_is_not_folded() -> None:
    """The batch that has the sequence that the partition knew."""
    written = accepted(5)
    log = log_of(accepted(3), accepted(4), written, refused(7), *(accepted(at) for at in range(8, 30)))
    assert written in log.of(1)
    assert written.count == 1
    (refusal,) = [event for event in log.of(1) if event.error]
    assert list(causes_of(refusal, [written])) == [written]


def test_too_many_refusals_leave_a_count() -> None:
    """Events of several kinds become one that names none of them."""
    rounds = [
        (accepted(at), refused(at + 1, error="NOT_ENOUGH_REPLICAS"), ProducerEvent(at, DUPLICATE, at, ("t", 1)))
        for at in range(0, 90, 3)
    ]
    log = log_of(*(event for each in rounds for event in each))
    events = log.of(1)
    assert sum(event.count for event in events) + log.forgotten(1) == 90
    assert any(event.event == OTHERS and event.error is None for event in events)
    assert any(event.error == "NOT_ENOUGH_REPLICAS" for event in events)
