"""Events of producers: how old ones are folded, and which of them explain a refusal."""

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from broker.steering.timelines.event_log import Refusals, Weight
from broker.steering.timelines.events import RequestEvent
from protocol.deferred import dataclass
from protocol.errors import ErrorCode

ACCEPTED, DUPLICATE, REFUSED, ANSWERED = "accepted", "duplicate", "refused", "answered with an error"
FORGOTTEN, EXPIRED = "forgotten", "expired"
OTHERS = "several events"
Place = tuple[str, int]
"""Topic and partition."""
_REFUSALS = Refusals(
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


@dataclass(slots=True)
class ProducerEvent(RequestEvent):
    """An event of a producer, or many folded into one.

    ``epoch_before`` and ``epoch_after`` are the producer's epoch in the partition's producer state, -1 if it has none;
    ``producer_epoch`` is the request's. ``known_sequence`` is the partition's last sequence before the event.
    Consecutive accepted batches are one event, from ``at_ms`` to ``until_ms``. ``merged`` is true once the event was
    folded into another one or dropped.
    """

    at_ms: int
    event: str
    until_ms: int
    place: Place | None = None
    producer_epoch: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    first_sequence: int = -1
    last_sequence: int = -1
    known_sequence: int = -1
    batches: int = 0
    detail: str = ""
    merged: bool = False

    @property
    def partition(self) -> str:
        """Return the partition, such as ``orders-0``; empty if the event is about none or several."""
        return "" if self.place is None else f"{self.place[0]}-{self.place[1]}"


class ProducerHistory(NamedTuple):
    """What is known of a producer id: who uses it, its events, oldest first, and the number of dropped events."""

    transactional_id: str | None
    client_id: str | None
    events: list[ProducerEvent]
    forgotten: int


class Folding:
    """Folds events of producers: those of one partition without a refusal in between."""

    @staticmethod
    def weight(event: ProducerEvent) -> Weight:
        """Return a refusal's weight; a retriable one weighs less."""
        return _REFUSALS.weight(event.error)

    @staticmethod
    def key(event: ProducerEvent) -> Hashable | None:
        """Return one key for a partition's accepted batches, one for its duplicates, and one for each refusal."""
        if event.error is None:
            return (event.event, event.place) if event.event in (ACCEPTED, DUPLICATE) else None
        alike = (event.event, event.error, event.rule, event.place, event.client_id, event.connection, event.fault)
        if _REFUSALS.are_retriable(event.error):
            return alike
        return (*alike, event.producer_epoch, event.first_sequence, event.last_sequence)

    @staticmethod
    def folded(older: ProducerEvent, newer: ProducerEvent) -> ProducerEvent:
        """Fold ``newer`` into ``older``. Fields that differ become empty."""
        newer.merged = True
        older.until_ms, older.last_sequence, older.epoch_after = newer.until_ms, newer.last_sequence, newer.epoch_after
        older.batches += newer.batches
        older.count += newer.count
        for name in ("client_id", "connection", "broker", "api", "version", "rule", "source", "detail", "fault"):
            if getattr(older, name) != getattr(newer, name):
                setattr(older, name, "" if name in _TEXTS else None)
        if older.place != newer.place:
            older.place, older.first_sequence, older.last_sequence = None, -1, -1
        if older.error != newer.error:
            older.error = None
        if older.event != newer.event:
            older.event = OTHERS
        return older

    @staticmethod
    def forgotten(event: ProducerEvent) -> int:
        """Return the number of events that a dropped event represents, and mark it as merged: it is not extended."""
        event.merged = True
        return event.count


_TEXTS = frozenset({"rule", "source", "detail"})


# --- causes ----------------------------------------------------------------------------------------------------------
# Each takes the events of one partition, newest first. The explanation of a refusal and the event log share them.


def mover_past(producer_epoch: int, here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """Find the event that raised the producer's epoch in the partition beyond ``producer_epoch``."""
    return next((each for each in here if each.epoch_before <= producer_epoch < each.epoch_after), None)


def writer_of(sequence: int, here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """Find the event of the accepted batches that include a sequence."""
    return next(
        (each for each in here if each.event == ACCEPTED and each.first_sequence <= sequence <= each.last_sequence),
        None,
    )


def loss(here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """Find the latest event that removed the producer's state from the partition."""
    return next((each for each in here if each.event in (FORGOTTEN, EXPIRED)), None)


def causes_of(refused: ProducerEvent, newest_first: Iterable[ProducerEvent]) -> Iterator[ProducerEvent]:
    """Find the events that explain a refusal."""
    here = [each for each in newest_first if each.place == refused.place]
    causes = (mover_past(refused.producer_epoch, here), writer_of(refused.known_sequence, here), loss(here))
    return (each for each in causes if each is not None)
