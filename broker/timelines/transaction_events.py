"""The events of transactional ids: how they are made, folded when they are old, and which of them explain a refusal."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from broker.coordination.reasons import Reason
from broker.coordination.transaction.epochs import NO_PRODUCER, ProducerIdAndEpoch
from broker.coordination.transaction.machine import Record
from broker.timelines.event_log import Weight
from broker.timelines.events import COORDINATOR_CODES, Refusals, RequestEvent
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionRecord, TransactionState

_S = TransactionState
_ROUND = frozenset({"begun", "partitions added", "commit decided", "abort decided", "committed", "aborted"})
"""What a producer does all the time: old events of these kinds are folded."""
_ROUNDS = "rounds"
_REFUSALS = Refusals(ErrorCode.CONCURRENT_TRANSACTIONS, *COORDINATOR_CODES)


@dataclass(slots=True)
class Event(RequestEvent):
    """One event, or many that are folded.

    ``request_producer`` is the producer that the request names; fields are empty where they do not apply. Of a folded
    event ``at_ms`` and the fields ``*_before`` are those of the first, ``until_ms`` and ``*_after`` those of the last.
    ``open_since_ms`` and ``wrote_to`` are about the transaction that was open before the event, if one was.
    """

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    producer_id: int = -1
    epoch_before: int = -1
    epoch_after: int = -1
    detail: str = ""
    request_producer: ProducerIdAndEpoch = NO_PRODUCER
    wants: str = ""
    producer_before: int = -1
    until_ms: int = -1
    entry: int | None = None
    open_since_ms: int = -1
    wrote_to: tuple[str, ...] = ()

    @property
    def before(self) -> ProducerIdAndEpoch:
        """The producer that the id belonged to before."""
        return ProducerIdAndEpoch(self.producer_before, self.epoch_before)

    @property
    def after(self) -> ProducerIdAndEpoch:
        """The producer that the id belongs to since."""
        return ProducerIdAndEpoch(self.producer_id, self.epoch_after)


class Names(NamedTuple):
    """What a request names: the transactional id, the producer, and what it asks for (``commit``, ``abort``)."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    wants: str = ""


class Asker(NamedTuple):
    """The request that an event came from, as far as it is remembered."""

    client_id: str
    connection: int
    broker: int
    api: ApiKey
    version: int
    names: Names
    entry: int = 0
    """The request's id in the journal; 0: it is in none."""


class Move(NamedTuple):
    """What moved an id. The event is made of it when it is read, for most are never read."""

    at_ms: int
    record_before: TransactionRecord | None
    record: Record
    asker: Asker | None
    reason: Reason

    @property
    def record_after(self) -> TransactionRecord | None:
        """``None`` for a tombstone."""
        return self.record if isinstance(self.record, TransactionRecord) else None

    @property
    def before(self) -> ProducerIdAndEpoch:
        """The producer that the id belonged to before."""
        return _producer(self.record_before)

    @property
    def after(self) -> ProducerIdAndEpoch:
        """The producer that the id belongs to since."""
        return _producer(self.record_after)

    def read(self) -> Event:
        """The event."""
        before, after = self.record_before, self.record_after
        event = Event(
            self.at_ms,
            self.reason.kind,
            "" if before is None else before.state.text,
            "" if after is None else after.state.text,
            self.after.producer_id,
            self.before.producer_epoch,
            self.after.producer_epoch,
            rule=self.reason.rule,
            source=self.reason.source,
            detail=_added(before, after),
            producer_before=self.before.producer_id,
            until_ms=self.at_ms,
        )
        if before is not None and before.state is _S.ONGOING:
            event.open_since_ms, event.wrote_to = before.start_ms, tuple(_names(before.partitions or frozenset()))
        return event if self.asker is None else asked_by(event, self.asker)


class Rounds:
    """Many events, folded: transactions of one id, mostly healthy ones. It grows."""

    __slots__ = ("aborts", "asker", "commits", "count", "first", "last", "others", "several")

    def __init__(self, first: "Move | Event | Rounds") -> None:
        self.first: Move | Event | Rounds = first
        self.last: Move | Event | Rounds = first
        self.commits = self.aborts = self.others = self.count = 0
        self.asker: Asker | None = None
        self.several = False
        self.add(first)

    def add(self, event: "Move | Event | Rounds") -> None:
        """One more."""
        self.last = event.last if isinstance(event, Rounds) else event
        if isinstance(event, Move):
            self.count += 1
            kind, asker = event.reason.kind, event.asker
            if kind == "committed":
                self.commits += 1
            elif kind == "aborted":
                self.aborts += 1
            elif kind not in _ROUND:
                self.others += 1
        elif isinstance(event, Rounds):
            self.count += event.count
            self.commits += event.commits
            self.aborts += event.aborts
            self.others += event.others
            self.several |= event.several
            asker = event.asker
        else:
            self.count += event.count
            self.others += event.count
            return
        if asker is not None:
            if self.asker is None:
                self.asker = asker
            elif asker is not self.asker and asker[:2] != self.asker[:2]:
                self.several = True

    def read(self) -> Event:
        """The event."""
        first, last = read(self.first), read(self.last)
        named = [_count(self.commits, "commit"), _count(self.aborts, "abort"), _count(self.others, "other event")]
        one = None if self.several else self.asker
        return Event(
            first.at_ms,
            ", ".join(filter(None, named)) or "a transaction",
            first.state_before,
            last.state_after,
            last.producer_id,
            first.epoch_before,
            last.epoch_after,
            client_id=None if one is None else one.client_id,
            connection=None if one is None else one.connection,
            detail=f"{self.count} events",
            producer_before=first.producer_before,
            until_ms=last.until_ms,
            count=self.count,
        )


Entry = Move | Event | Rounds


class Folding:
    """How events of transactional ids are folded."""

    @staticmethod
    def weight(event: Entry) -> Weight:
        """A refusal lasts; one after which clients ask again lasts less."""
        return _REFUSALS.weight(event.error if isinstance(event, Event) else None)

    @staticmethod
    def key(event: Entry) -> Hashable | None:
        """Rounds; the same refusal again."""
        if isinstance(event, Move):
            return _ROUNDS if event.reason.kind in _ROUND else None
        if isinstance(event, Rounds) or event.error is None:
            return _ROUNDS
        return (
            event.error,
            event.rule,
            event.api,
            event.client_id,
            event.connection,
            event.request_producer,
            event.fault,
        )

    @staticmethod
    def folded(older: Entry, newer: Entry) -> Entry:
        """Equal refusals are one that counts; everything else becomes rounds."""
        if isinstance(older, Event) and isinstance(newer, Event):
            key = Folding.key(older)
            if key != _ROUNDS and key == Folding.key(newer):
                return replace(newer, at_ms=older.at_ms, count=older.count + newer.count)
        rounds = older if isinstance(older, Rounds) else Rounds(older)
        rounds.add(newer)
        return rounds

    @staticmethod
    def forgotten(event: Entry) -> int:
        """How many events it represented."""
        return 1 if isinstance(event, Move) else event.count


class History(NamedTuple):
    """The events of an id, oldest first, and how many are forgotten (-1: it is not known)."""

    events: list[Event]
    forgotten: int


def mover_past(producer: ProducerIdAndEpoch, newest_first: Sequence[Event]) -> Event | None:
    """The event that fenced a producer: the latest that left exactly its epoch, else the first with a later one."""
    exact = next((e for e in newest_first if e.before == producer and e.after != producer), None)
    if exact is not None:
        return exact
    beyond = (e for e in reversed(newest_first) if e.producer_id == producer.producer_id)
    return next((e for e in beyond if e.epoch_after > producer.producer_epoch), None)


def causes_of(refused: Event, newest_first: Iterator[Entry]) -> Iterator[Entry]:
    """The events that explain a refusal: the latest move, the latest decision, the move that fenced the producer."""
    moved = decided = mover = False
    for event in newest_first:
        if not isinstance(event, Move):
            continue
        if not moved:
            moved = True
            yield event
        if not decided and event.record_after is not None and event.record_after.state in _DECIDED:
            decided = True
            yield event
        if not mover and event.before == refused.request_producer != event.after:
            mover = True
            yield event
        if decided and mover:
            return


_DECIDED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})


def read(entry: Entry) -> Event:
    """The event that an entry of the log describes."""
    return entry if isinstance(entry, Event) else entry.read()


def is_refusal(entry: Entry) -> bool:
    """Whether something was refused."""
    return isinstance(entry, Event) and entry.error is not None


def _producer(record: TransactionRecord | None) -> ProducerIdAndEpoch:
    return NO_PRODUCER if record is None else ProducerIdAndEpoch(record.producer_id, record.producer_epoch)


def _count(number: int, what: str) -> str:
    return "" if not number else f"{number} {what}" + ("" if number == 1 else "s")


def asked_by(event: Event, asker: Asker) -> Event:
    """The event, with the request that it came from."""
    return replace(
        event,
        client_id=asker.client_id,
        connection=asker.connection,
        broker=asker.broker,
        api=asker.api.title,
        version=asker.version,
        request_producer=asker.names.producer,
        wants=asker.names.wants,
        entry=asker.entry or None,
    )


def _added(before: TransactionRecord | None, after: TransactionRecord | None) -> str:
    if after is None or after.state is not _S.ONGOING:
        return ""
    known = before.partitions or frozenset() if before is not None and before.state is _S.ONGOING else frozenset()
    return ", ".join(_names((after.partitions or frozenset()) - known))


def _names(partitions: frozenset[tuple[str, int]]) -> list[str]:
    return [f"{topic}-{index}" for topic, index in sorted(partitions)]
