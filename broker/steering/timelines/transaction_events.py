"""Events of transactional ids: how they are made, how old ones are folded, and which of them explain a refusal."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from broker.coordination.reasons import Reason
from broker.coordination.transaction.machine import Record
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from broker.steering.timelines.event_log import COORDINATOR_CODES, Refusals, Weight
from broker.steering.timelines.events import RequestEvent
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionRecord, TransactionState

_S = TransactionState
_ROUND = frozenset({"begun", "partitions added", "commit decided", "abort decided", "committed", "aborted"})
"""The routine of a transactional producer: old events of these kinds are folded."""
_ROUNDS = "rounds"
_REFUSALS = Refusals(ErrorCode.CONCURRENT_TRANSACTIONS, *COORDINATOR_CODES)


@dataclass(slots=True)
class Event(RequestEvent):
    """An event of a transactional id, or many folded into one.

    ``request_producer`` is the producer id and epoch in the request; fields that do not apply are empty. In a folded
    event, ``at_ms`` and ``*_before`` come from the first event, ``until_ms`` and ``*_after`` from the last.
    ``open_since_ms`` and ``wrote_to`` are about the transaction that was open before the event, if there was one.
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
        """Return the producer id and epoch of the transactional id before the event."""
        return ProducerIdAndEpoch(self.producer_before, self.epoch_before)

    @property
    def after(self) -> ProducerIdAndEpoch:
        """Return the producer id and epoch of the transactional id after the event."""
        return ProducerIdAndEpoch(self.producer_id, self.epoch_after)


class Names(NamedTuple):
    """What a request names: the transactional id, the producer, and for EndTxn ``commit`` or ``abort``."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    wants: str = ""


class Asker(NamedTuple):
    """The request that caused an event, as far as it is kept."""

    client_id: str
    connection: int
    broker: int
    api: ApiKey
    version: int
    names: Names
    entry: int = 0
    """The id of the request's journal entry; 0 if it has none."""


class Move(NamedTuple):
    """A record of the coordinator, with its cause. It becomes an event only when read; most never are."""

    at_ms: int
    record_before: TransactionRecord | None
    record: Record
    asker: Asker | None
    reason: Reason

    @property
    def record_after(self) -> TransactionRecord | None:
        """Return the new record; ``None`` for a tombstone."""
        return self.record if isinstance(self.record, TransactionRecord) else None

    @property
    def before(self) -> ProducerIdAndEpoch:
        """Return the producer id and epoch of the transactional id before the record."""
        return _producer(self.record_before)

    @property
    def after(self) -> ProducerIdAndEpoch:
        """Return the producer id and epoch of the transactional id after the record."""
        return _producer(self.record_after)

    def read(self) -> Event:
        """Build the event."""
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
    """Many events of one transactional id folded into one, mostly complete transactions. More can be added."""

    __slots__ = ("aborts", "asker", "commits", "count", "first", "last", "others", "several")

    def __init__(self, first: "Move | Event | Rounds") -> None:
        self.first: Move | Event | Rounds = first
        self.last: Move | Event | Rounds = first
        self.commits = self.aborts = self.others = self.count = 0
        self.asker: Asker | None = None
        self.several = False
        self.add(first)

    def add(self, event: "Move | Event | Rounds") -> None:
        """Fold one more event into this one."""
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
        """Build the event."""
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
    """Folds events of transactional ids."""

    @staticmethod
    def weight(event: Entry) -> Weight:
        """Return a refusal's weight; a retriable one weighs less."""
        return _REFUSALS.weight(event.error if isinstance(event, Event) else None)

    @staticmethod
    def key(event: Entry) -> Hashable | None:
        """Return one key for all routine events, one for each refusal and its repetitions; ``None`` for other moves."""
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
        """Fold equal refusals into one with a count, and all other events into ``Rounds``."""
        if isinstance(older, Event) and isinstance(newer, Event):
            key = Folding.key(older)
            if key != _ROUNDS and key == Folding.key(newer):
                return replace(newer, at_ms=older.at_ms, count=older.count + newer.count)
        rounds = older if isinstance(older, Rounds) else Rounds(older)
        rounds.add(newer)
        return rounds

    @staticmethod
    def forgotten(event: Entry) -> int:
        """Return the number of events that a dropped event represents."""
        return 1 if isinstance(event, Move) else event.count


class History(NamedTuple):
    """The events of a transactional id, oldest first, and the number of dropped events (-1 if unknown)."""

    events: list[Event]
    forgotten: int


def mover_past(producer: ProducerIdAndEpoch, newest_first: Sequence[Event]) -> Event | None:
    """Find the event that fenced a producer: the latest that left exactly its epoch, else the first beyond it."""
    exact = next((e for e in newest_first if e.before == producer and e.after != producer), None)
    if exact is not None:
        return exact
    beyond = (e for e in reversed(newest_first) if e.producer_id == producer.producer_id)
    return next((e for e in beyond if e.epoch_after > producer.producer_epoch), None)


def causes_of(refused: Event, newest_first: Iterator[Entry]) -> Iterator[Entry]:
    """Find the events that explain a refusal: the latest move, the latest prepared state, the move that fenced it."""
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
    """Return the event of an entry of the log."""
    return entry if isinstance(entry, Event) else entry.read()


def is_refusal(entry: Entry) -> bool:
    """Return whether the entry is a refusal."""
    return isinstance(entry, Event) and entry.error is not None


def _producer(record: TransactionRecord | None) -> ProducerIdAndEpoch:
    return NO_PRODUCER if record is None else ProducerIdAndEpoch(record.producer_id, record.producer_epoch)


def _count(number: int, what: str) -> str:
    return "" if not number else f"{number} {what}" + ("" if number == 1 else "s")


def asked_by(event: Event, asker: Asker) -> Event:
    """Return the event with the fields of the request that caused it."""
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
