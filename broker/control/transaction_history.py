"""The `transactions history` verb: splits the timeline of a transactional id into its transactions."""

from collections.abc import Sequence
from dataclasses import replace

from broker.control.explain.transaction import unused
from broker.control.problems import Problem, not_found, unprocessable
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.steering.timelines.transaction_events import Event
from control_api.answers.transactions import PastTransaction, TransactionHistory
from protocol.deferred import dataclass
from protocol.log_records.transaction import TransactionState

_ONGOING = TransactionState.ONGOING.text
_ENDS = {TransactionState.COMPLETE_COMMIT.text: "committed", TransactionState.COMPLETE_ABORT.text: "aborted"}


@dataclass(frozen=True, slots=True)
class Episode:
    """The events of one transaction: from the end of the previous one to its own end."""

    events: Sequence[Event]
    begins: int
    """The position of the first event in the timeline."""
    after: int
    """The journal id of the last request of the previous transaction; 0 if unknown."""
    before: int | None = None
    """The journal id of the request that began the next transaction; None if there is none yet."""

    @property
    def positions(self) -> range:
        """Return the positions of the events in the timeline."""
        return range(self.begins, self.begins + len(self.events))

    @property
    def begun(self) -> Event | None:
        """Return the event that began the transaction; None if it was dropped."""
        return next((event for event in self.events if _moves(event) and event.state_after == _ONGOING), None)

    @property
    def last_entry(self) -> int:
        """Return the journal id of the latest request; 0 if unknown."""
        return max((event.entry or 0 for event in self.events), default=0)

    @property
    def outcome(self) -> str:
        """Return ``committed`` or ``aborted``; before that, ``open`` or ``ending``."""
        last = next(event for event in reversed(self.events) if event.error is None)
        return _ENDS.get(last.state_after, "open" if last.state_after == _ONGOING else "ending")

    @property
    def is_over(self) -> bool:
        """Return whether the transaction is complete: all markers are written."""
        return self.outcome in _ENDS.values()

    def described(self) -> PastTransaction:
        """Describe the transaction for an answer."""
        first_event, moves = self.begun, [event for event in self.events if _moves(event)]
        last = moves[-1]
        # Its beginning may have been folded into earlier transactions; later events have its start time.
        opened = next((event for event in moves if event.open_since_ms >= 0), None) if first_event is None else None
        decided = next((event for event in moves if event.state_before == _ONGOING != event.state_after), None)
        added = (name for event in self.events if _adds(event) for name in event.detail.split(", ") if name)
        return PastTransaction(
            id=None if first_event is None else first_event.entry,
            began_ms=first_event.at_ms if first_event is not None else None if opened is None else opened.open_since_ms,
            ended_ms=last.until_ms if self.is_over else None,
            outcome=self.outcome,
            how="" if decided is None else decided.event,
            producer_id=last.producer_id,
            producer_epoch=last.epoch_before if first_event is None else first_event.epoch_after,
            partitions=tuple(dict.fromkeys(added))
            if first_event is not None
            else ()
            if opened is None
            else opened.wrote_to,
            refusals=sum(event.count for event in self.events if event.error is not None),
            client_id=first_event.client_id
            if first_event is not None
            else None
            if opened is None
            else opened.client_id,
            count=1,
        )


def _adds(event: Event) -> bool:
    return event.error is None and event.state_after == _ONGOING


def _moves(event: Event) -> bool:
    return event.error is None and event.state_before != event.state_after


def episodes(events: Sequence[Event]) -> list[Episode | Event]:
    """Split events into transactions; an event stays one if the timeline has folded several transactions into it."""
    parts: list[Episode | Event] = []
    here: list[Event] = []
    begins = after = 0
    for at, event in enumerate(events):
        if event.error is None and event.count > 1:
            parts.append(event)
            here, begins, after = [], at + 1, 0
            continue
        here.append(event)
        if _moves(event) and event.state_after in _ENDS:
            episode = Episode(here, begins, after)
            parts.append(episode)
            here, begins, after = [], at + 1, episode.last_entry or after
    if any(_adds(each) for each in here):
        parts.append(Episode(here, begins, after))
    nexts = [each.begun.entry if isinstance(each, Episode) and each.begun is not None else None for each in parts[1:]]
    return [
        replace(each, before=following) if isinstance(each, Episode) else each
        for each, following in zip(parts, [*nexts, None], strict=False)  # the last one has no successor
    ]


@answers("transactions history")
async def history(request: ControlRequest) -> TransactionHistory:
    """List the transactions in the timeline; none if the id has only been initialised."""
    name = request.names["transactional_id"]
    timeline = request.source.transaction_timelines.of(name)
    if not timeline.events:
        raise unused(request, name)
    listed = [part.described() if isinstance(part, Episode) else _merged(part) for part in episodes(timeline.events)]
    return {"transactional_id": name, "transactions": listed, "forgotten": timeline.forgotten}


def _merged(event: Event) -> PastTransaction:
    return PastTransaction(
        id=None,
        began_ms=event.at_ms,
        ended_ms=event.until_ms,
        outcome=event.event,
        how="",
        producer_id=event.producer_id,
        producer_epoch=event.epoch_after,
        partitions=(),
        refusals=0,
        client_id=event.client_id,
        count=event.count,
    )


def chosen(request: ControlRequest, name: str, transaction: int) -> Episode:
    """Return the transaction that the request with this journal id began. Raises Problem 404."""
    parts = [
        each for each in episodes(request.source.transaction_timelines.of(name).events) if isinstance(each, Episode)
    ]
    by_entry = {each.begun.entry: each for each in parts if each.begun is not None}
    if transaction not in by_entry:
        raise _no_such(name, transaction, [each for each in by_entry if each is not None])
    return by_entry[transaction]


def _no_such(name: str, transaction: int, entries: Sequence[int]) -> Problem:
    latest = ", ".join(map(str, entries[-5:])) or "none"  # five are enough to see a mistyped one
    return not_found(
        f"transactional id {name!r} has no transaction {transaction}, or its events were dropped; the latest: {latest}"
    )


def without_id(subject: str) -> Problem:
    """Build a 422 for a transaction chosen without a transactional id."""
    return unprocessable(f"'transaction' needs 'transactional_id', not {subject!r}", "transaction")
