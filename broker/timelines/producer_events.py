"""The events of producers: how they are folded when they are old, and which of them explain a refusal."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.timelines.event_log import Weight
from broker.timelines.events import Refusals, RequestEvent
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
    """One event, or many that are folded.

    ``epoch_before`` and ``epoch_after`` are those that the partition knows the producer by, -1 where it does not;
    ``producer_epoch`` is the request's. ``known_sequence`` is the last one that the partition had before.
    Accepted batches that follow each other are one event: it lasts from ``at_ms`` to ``until_ms``. ``merged``
    is true of an event that has become part of another one, or has been forgotten.
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
        """Such as ``orders-0``; empty where the event is about none, or about several."""
        return "" if self.place is None else f"{self.place[0]}-{self.place[1]}"


class ProducerHistory(NamedTuple):
    """What is known of a producer id: who uses it, its events, oldest first, and how many are forgotten."""

    transactional_id: str | None
    client_id: str | None
    events: list[ProducerEvent]
    forgotten: int


class Folding:
    """How events of producers are folded: by partition, as long as nothing was refused in between."""

    @staticmethod
    def weight(event: ProducerEvent) -> Weight:
        """A refusal lasts; one after which clients send the batch again lasts less."""
        return _REFUSALS.weight(event.error)

    @staticmethod
    def key(event: ProducerEvent) -> Hashable | None:
        """Accepted batches and duplicates of a partition; the same refusal again."""
        if event.error is None:
            return (event.event, event.place) if event.event in (ACCEPTED, DUPLICATE) else None
        alike = (event.event, event.error, event.rule, event.place, event.client_id, event.connection, event.fault)
        if _REFUSALS.are_retriable(event.error):
            return alike
        return (*alike, event.producer_epoch, event.first_sequence, event.last_sequence)

    @staticmethod
    def folded(older: ProducerEvent, newer: ProducerEvent) -> ProducerEvent:
        """The older one, grown. What differs between the two is left out."""
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
        """How many events it represented. It grows no more."""
        event.merged = True
        return event.count


_TEXTS = frozenset({"rule", "source", "detail"})


# --- causes ----------------------------------------------------------------------------------------------------------
# Each takes the events of one partition, newest first; the explanation of a refusal and the event log ask the same.


def mover_past(producer_epoch: int, here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """The event by which the partition came to know the producer at a later epoch."""
    return next((each for each in here if each.epoch_before <= producer_epoch < each.epoch_after), None)


def writer_of(sequence: int, here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """The accepted batches that a sequence was among."""
    return next(
        (each for each in here if each.event == ACCEPTED and each.first_sequence <= sequence <= each.last_sequence),
        None,
    )


def loss(here: Iterable[ProducerEvent]) -> ProducerEvent | None:
    """When the partition forgot the producer."""
    return next((each for each in here if each.event in (FORGOTTEN, EXPIRED)), None)


def causes_of(refused: ProducerEvent, newest_first: Iterable[ProducerEvent]) -> Iterator[ProducerEvent]:
    """The events that explain a refusal."""
    here = [each for each in newest_first if each.place == refused.place]
    found = (mover_past(refused.producer_epoch, here), writer_of(refused.known_sequence, here), loss(here))
    return (each for each in found if each is not None)
