"""Events of a diagram from the timelines, and the notes on transaction markers; assigns events to requests."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from broker.control.diagram.calls import Call
from broker.control.explain.batch import Refused as ProducerRefused
from broker.control.explain.group import Refused as GroupRefused
from broker.control.explain.transaction import Refused as TransactionRefused
from broker.control.groups import is_classic
from broker.control.request import ControlRequest
from broker.coordination.reasons import STEERING
from broker.partitions.transactions.markers import MarkerNote
from broker.steering.timelines.producer_events import ACCEPTED
from protocol.deferred import dataclass

_OMITTED = frozenset({"refused", "request changed nothing"})


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a diagram. With a connection it belongs to a request; otherwise ``role`` names its lane."""

    at_ms: int
    role: str
    text: str
    connection: int | None = None
    api: str | None = None
    error: str | None = None
    reason: str = ""
    before: int | None = None
    """The journal id of the request of the same millisecond before which the event happened."""


def of_transaction(request: ControlRequest, name: str, positions: range | None = None) -> Iterator[Event]:
    """Yield the events of a transactional id's timeline, or those at these positions."""
    events = request.source.transaction_timelines.of(name).events
    for at in range(len(events)) if positions is None else positions:
        event = events[at]
        if event.error is not None:
            cause = TransactionRefused(request, name, events[:at], event).cause()
            text = "" if event.count == 1 else f"refused {event.count} times"
            yield Event(event.at_ms, "transaction", text, event.connection, event.api, event.error, cause)
            continue
        moved = _moved(event.state_before, event.state_after)
        if event.epoch_before != event.epoch_after >= 0:
            moved = f"{moved}, epoch {event.epoch_after}".removeprefix(", ")
        name_of_event = "" if event.event in _OMITTED else event.event
        by = " by the control plane" if event.rule == STEERING else ""
        text = ": ".join(filter(None, (f"{name_of_event}{by}", moved)))
        connection = event.connection if event.count == 1 else None
        yield Event(event.at_ms, "transaction", text, connection, event.api)


def of_producer(request: ControlRequest, producer_id: int) -> Iterator[Event]:
    """Yield the refusals, duplicates and losses of state in a producer id's timeline."""
    history = request.source.producer_timelines.of(producer_id)
    events = [] if history is None else history.events
    for at, event in enumerate(events):
        if event.error is not None:
            cause = ProducerRefused(request, events[:at], event).cause()
            yield Event(event.at_ms, "leader", "", event.connection, event.api, event.error, cause)
        elif event.event != ACCEPTED and event.count == 1 and event.place is not None:
            text = f"{event.event}: {event.partition}" + (f", {event.detail}" if event.detail else "")
            yield Event(event.at_ms, "leader", text, event.connection, event.api)


def counter_of(request: ControlRequest, name: str) -> str:
    """Return ``generation`` or ``group epoch``, the number that each rebalance of the group raises."""
    return "generation" if is_classic(request, name) else "group epoch"


def of_group(request: ControlRequest, name: str) -> Iterator[Event]:
    """Yield the refusals and state changes in a group's timeline."""
    counter = counter_of(request, name)
    for event in request.source.group_timelines.of(name).events:
        if event.error is not None:
            cause = GroupRefused(request, name, event).cause()
            yield Event(event.at_ms, "group", "", event.connection, event.api, event.error, cause)
            continue
        moved = _moved(event.state_before, event.state_after)
        if event.epoch_before != event.epoch_after >= 0:
            moved = f"{moved}, {counter} {event.epoch_after}".removeprefix(", ")
        if moved:
            connection = event.connection if event.count == 1 else None
            yield Event(event.at_ms, "group", f"{event.event}: {moved}", connection, event.api)


def marker_notes(request: ControlRequest, name: str) -> list[MarkerNote]:
    """Return the notes on markers of a transactional id; none behind a proxy."""
    return [] if request.source.own is None else list(request.cluster.markers.notes.of(name))


def _moved(before: str, after: str) -> str:
    if not after or before == after:
        return ""
    return f"{before} -> {after}" if before else after


def assign(calls: Sequence[Call], events: Iterable[Event]) -> list[Event]:
    """Assign events to the requests that caused them. Returns the other events."""
    places: defaultdict[tuple[int, str], list[Call]] = defaultdict(list)
    for call in calls:
        places[call.entry.connection, call.api].append(call)
    matched = []
    for event in events:
        changed = _call_of(places, event)
        matched.append((event, changed))
        if changed is None:
            continue
        if event.text and (event.at_ms, event.text) not in changed.changes:
            changed.changes.append((event.at_ms, event.text))
        changed.reason = changed.reason or event.reason
    left: list[Event] = []
    after: Event | None = None
    request = -1
    for event, changed in reversed(matched):
        if changed is not None:
            after, request = event, changed.entry.id
        else:
            follows = after is not None and after.role == event.role and after.at_ms == event.at_ms
            left.append(replace(event, before=request) if follows else event)
    left.reverse()
    # Events of requests that are not shown are omitted.
    return [event for event in left if event.connection is None and event.text]


def _call_of(places: defaultdict[tuple[int, str], list[Call]], event: Event) -> Call | None:
    if event.connection is None or event.api is None:
        return None
    here = places.get((event.connection, event.api), [])
    at = bisect_right(here, event.at_ms, key=lambda call: call.entry.at_ms)
    # Twenty back: an event is noted while its request is handled, and a connection has few that overlap.
    near = [call for call in here[max(at - 20, 0) : at] if call.ends_ms + 1 >= event.at_ms]
    fitting = [call for call in near if event.error is None or call.error == event.error]
    # Of several requests within the millisecond, the first without an event.
    fresh = [call for call in fitting if not call.reason and (event.error is not None or not call.changes)]
    return next(iter(fresh), None) or next(reversed(fitting), None)
