"""Orders the steps of a diagram: requests, their effects in the broker, responses, and events without a request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.control.diagram.calls import Call
from broker.control.diagram.events import Event
from broker.control.diagram.lanes import Key, Lanes, role_of
from broker.control.fault_text import does
from broker.control.request import ControlRequest
from broker.partitions.transactions.markers import MarkerNote
from control_api.answers.diagrams import Step, StepKind
from control_api.spelling import plain
from protocol.deferred import dataclass

_MOST_IN_TURN = 20
"""The maximum number of steps back in which an equal offset commit is searched for folding.

Arbitrary, more than clients that commit in turn.
"""
_GAP_MS = 5000
"""The shortest pause that is drawn as a gap: arbitrary, longer than usual poll and heartbeat intervals."""
_MOST_APPENDS = 3  # drawn of one request; the others are counted in one line; ours, more lines hide the requests
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


class _Order(NamedTuple):
    """The sort key of a step: milliseconds, then journal id, then request before effects before response."""

    at_ms: float
    entry: int
    rank: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """A step whose lanes do not have positions yet."""

    order: _Order
    kind: StepKind
    source: Key
    target: Key
    text: str
    count: int = 1
    error: str | None = None
    reason: str = ""
    fault: str | None = None
    entry: int | None = None


def folded(calls: Sequence[Call]) -> list[Call]:
    """Fold equal consecutive requests that changed nothing into one with a count.

    Equal offset commits are folded too if only commits of other members are between them: members commit in turn.
    """
    kept: list[Call] = []
    for call in calls:
        equal = None if call.changes else _equal(kept, call)
        if equal is None:
            kept.append(call)
        else:
            equal.count += 1
            equal.result = call.result
    return kept


def _equal(kept: Sequence[Call], call: Call) -> Call | None:
    for before in reversed(kept[-_MOST_IN_TURN:]):
        if before.changes:
            return None
        if _alike(before, call):
            return before
        if not (_is_commit(before) and _is_commit(call)):
            return None
    return None


def _is_commit(call: Call) -> bool:
    return call.api == "OffsetCommit" and call.error is None and call.entry.fault is None


def _alike(one: Call, other: Call) -> bool:
    first, second = one.entry, other.entry
    same = (first.connection, first.broker, first.fault) == (second.connection, second.broker, second.fault)
    if not same or (one.api, one.version, one.error) != (other.api, other.version, other.error):
        return False
    # Produce requests differ in their sequences, so each gets a line.
    return one.asks == other.asks and not one.written and second.duration_us >= 0


def build(
    request: ControlRequest, calls: Sequence[Call], events: Iterable[Event], notes: Iterable[MarkerNote], lanes: Lanes
) -> tuple[Step, ...]:
    """Build all steps, earliest first."""
    drafts = [each for call in calls for each in _of_call(request, call, calls, lanes)]
    alone = list(events)
    anchors = {event.at_ms: event.before for event in reversed(alone)}
    drafts += [_of_event(event, lanes) for event in alone]
    drafts += [each for note in notes for each in _of_note(note, anchors.get(note.at_ms), lanes)]
    drafts.sort(key=lambda draft: draft.order)
    positions = lanes.positions()
    steps: list[Step] = []
    for draft in drafts:
        at_ms = int(draft.order.at_ms)
        if steps and at_ms - steps[-1].at_ms >= _GAP_MS:
            later = f"{_duration(at_ms - steps[-1].at_ms)} later"
            pause = _Draft(draft.order, "gap", draft.source, draft.source, later)
            steps.append(_step(pause, at_ms, positions))
        steps.append(_step(draft, at_ms, positions))
    return tuple(steps)


def _step(draft: _Draft, at_ms: int, positions: Mapping[Key, int]) -> Step:
    return Step(
        kind=draft.kind,
        at_ms=at_ms,
        source=positions[draft.source],
        target=positions[draft.target],
        text=plain(draft.text),
        count=draft.count,
        error=draft.error,
        reason=plain(draft.reason),
        fault=draft.fault,
        entry=draft.entry,
    )


# --- a request -------------------------------------------------------------------------------------------------------


def _of_call(request: ControlRequest, call: Call, calls: Sequence[Call], lanes: Lanes) -> Iterator[_Draft]:
    entry = call.entry
    client, broker = lanes.client(call), lanes.broker(role_of(call.api), entry.broker)

    # Ranks: the request (0), its fault (1), what it changes (3), what it appends (4), its response (5).
    def order(rank: int) -> _Order:
        return _Order(entry.at_ms, entry.id, rank)

    text = f"{call.api} v{call.version}" + (f" {call.asks}" if call.asks else "")
    yield _Draft(order(0), "request", client, broker, text, call.count, entry=entry.id)
    if entry.fault is not None:
        yield _Draft(order(1), "fault", broker, broker, _fault(request, entry.fault), fault=entry.fault)
    for at_ms, change in call.changes:
        yield _Draft(_Order(max(at_ms, entry.at_ms), entry.id, 3), "state", broker, broker, change)
    written = [append for append in call.written if append.offset >= 0]
    for append in written[:_MOST_APPENDS]:
        last = append.offset + max(append.records, 1) - 1
        offsets = f"offset {append.offset}" if last == append.offset else f"offsets {append.offset} to {last}"
        yield _Draft(order(4), "append", broker, lanes.log(append.place), offsets)
    if len(written) > _MOST_APPENDS:
        more = f"{len(written) - _MOST_APPENDS} more partitions"
        yield _Draft(order(4), "append", broker, lanes.log(written[_MOST_APPENDS].place), more)
    if entry.duration_us < 0:
        return  # still being served: no response yet
    quick = entry.duration_us < 1000
    ends_ms = max([entry.at_ms if quick else _end(call, calls), *(at_ms for at_ms, _ in call.changes)])
    answer = _Order(ends_ms, entry.id, 5)
    yield _Draft(
        answer, "answer", broker, client, call.result, call.count, call.error, call.reason, entry.fault, entry.id
    )


def _end(call: Call, calls: Sequence[Call]) -> float:
    """Return the time of the response, no later than the client's next request on this connection.

    Durations are real time, but times are the cluster's, so they disagree if the clock is advanced or frozen.
    """
    entry = call.entry
    later = (
        each.entry.at_ms for each in calls if each.entry.id > entry.id and each.entry.connection == entry.connection
    )
    return max(float(entry.at_ms), min(call.ends_ms, min(later, default=call.ends_ms)))


def _fault(request: ControlRequest, ids: str) -> str:
    faults = request.source.faults.faults
    return "; ".join(
        f"fault {fault_id}: {does(faults[fault_id].description['do'])}"
        if fault_id in faults
        else f"fault {fault_id}, removed since"
        for fault_id in ids.split(",")
    )


# --- events without a request ----------------------------------------------------------------------------------------

_LAST = 1 << 62
"""The journal id that sorts after all requests of the same millisecond."""


def _of_event(event: Event, lanes: Lanes) -> _Draft:
    lane = lanes.broker(event.role)
    order = _Order(event.at_ms, _LAST if event.before is None else event.before, 2)
    return _Draft(order, "state", lane, lane, event.text)


def _of_note(note: MarkerNote, before: int | None, lanes: Lanes) -> Iterator[_Draft]:
    """Draw a marker or hold. ``before``: the request of the same millisecond before which the transaction ended."""
    coordinator = lanes.broker("transaction")
    order = _Order(note.at_ms, _LAST if before is None else before, 1)
    marker = f"{'COMMIT' if note.committed else 'ABORT'} marker, epoch {note.producer_epoch}"
    if note.place is None:
        text = f"held at {note.detail} until released" if note.what == "held" else "released"
        yield _Draft(order, "hold", coordinator, coordinator, text)
        return
    place = f"{note.place[0]}-{note.place[1]}"
    if note.what == "left out":
        why = "left out, since the partition has no leader (KAFKA-20734)"
        yield _Draft(order, "marker", coordinator, coordinator, f"{marker}, {place}", error=why)
        return
    leader = lanes.broker("leader", note.leader)
    error = None if note.what == "written" else "not written"
    yield _Draft(order, "marker", coordinator, leader, f"{marker}, {place}", error=error)
    if note.what == "written":
        yield _Draft(
            order, "append", leader, lanes.log(place), f"{marker.split(maxsplit=1)[0]} at offset {note.offset}"
        )


def _duration(ms: int) -> str:
    """Format a duration by its two largest units: 1 h 3 min."""
    parts = []
    for size, unit in _UNITS:
        if ms >= size:
            parts.append(f"{ms // size} {unit}")
            ms %= size
    return " ".join(parts[:2])
