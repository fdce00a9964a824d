"""Events of groups: how old ones are folded, and which of them explain a refusal."""

from collections.abc import Collection, Hashable
from dataclasses import replace
from typing import NamedTuple

from broker.coordination.group.classic.states import ALL_JOINED, REBALANCE_BEGUN
from broker.coordination.group.events import DEPARTURES, OFFSETS_GONE, UNLOADED
from broker.coordination.group.modern.consumer.states import NEW_EPOCH
from broker.coordination.group.modern.share.states import REASONS, State
from broker.steering.timelines.event_log import COORDINATOR_CODES, Refusals, Weight
from broker.steering.timelines.events import RequestEvent
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode

NO_GENERATION = -1
JOIN, SYNC, LEAVE = "asked to join", "asked for its assignment", "asked to leave"
_ROUNDS = "rounds"
_DEPARTURES = frozenset(reason.kind for reason in DEPARTURES)
SENTENCES = {reason.kind: reason.sentence for reason in (*DEPARTURES, *OFFSETS_GONE, UNLOADED)}
"""Event -> what happened to the member or to the committed offset, as the end of a sentence."""
MOST_PLACES = 100
"""The maximum number of partitions that an event names: arbitrary, more would not be read."""
_REFUSALS = Refusals(ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT, *COORDINATOR_CODES)
REBALANCE, JOINED = REBALANCE_BEGUN.kind, ALL_JOINED.kind
_BEGINNINGS = frozenset({REBALANCE, NEW_EPOCH.kind, REASONS[State.STABLE].kind})


class LastSign(NamedTuple):
    """The last successful request of a member. Each heartbeat replaces it, so texts are made only when it is read.

    ``action`` is the name of the request's own event, such as ``asked to join``; ``None`` for requests without one.
    """

    at_ms: int
    action: str | None
    api: ApiKey
    version: int
    client_id: str
    connection: int = 0

    @property
    def what(self) -> str:
        """Return what the member did, such as ``asked to join`` or ``Heartbeat``."""
        return self.action or self.api.title

    @property
    def request(self) -> str:
        """Return the request as text."""
        return f"{self.api.title} v{self.version} of client `{self.client_id}`"


@dataclass(slots=True)
class GroupEvent(RequestEvent):
    """An event of a group, or many folded into one.

    ``request_generation`` and ``member_id`` are the request's. In a folded event, ``at_ms``, ``state_before`` and
    ``epoch_before`` come from the first, ``until_ms``, ``state_after`` and ``epoch_after`` from the last;
    ``rebalances`` counts the folded events that began a rebalance. ``causes`` belong to a refusal. ``detail`` is what a
    change has besides its reason; ``places`` are the partitions of committed offsets that changed, with their offsets
    before, or those that a response refused.
    """

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    epoch_before: int = NO_GENERATION
    epoch_after: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None
    request_generation: int = NO_GENERATION
    until_ms: int = -1
    rebalances: int = 0
    causes: "Causes | None" = None
    detail: str = ""
    places: tuple[tuple[str, int, int], ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions of ``places``, such as ``t-0``."""
        return tuple(f"{topic}-{index}" for topic, index, _ in self.places)


class Causes(NamedTuple):
    """The events that explain a refusal, as far as they are still in the log.

    ``complete`` is false if events of the group had been folded or dropped: an event that is missing here may have
    happened.
    """

    last_sign: LastSign | None
    joined: GroupEvent | None
    """The completed join that began the current generation."""
    begun: GroupEvent | None
    """The beginning of the latest rebalance."""
    beginner: GroupEvent | None
    """The last join or leave request before the rebalance."""
    departed: GroupEvent | None
    """The event by which the member was removed, or its coordinator lost it."""
    complete: bool

    def events(self) -> tuple[GroupEvent, ...]:
        """Return the causes that are events in the log."""
        return tuple(each for each in (self.joined, self.begun, self.beginner, self.departed) if each is not None)


class GroupHistory(NamedTuple):
    """The events of a group, oldest first, and the number of dropped events (-1 if unknown)."""

    events: list[GroupEvent]
    forgotten: int


NO_HISTORY = GroupHistory([], 0)


def is_retriable(event: GroupEvent) -> bool:
    """Return whether the event is a retriable refusal: a rebalance, or a coordinator that moves."""
    return _REFUSALS.are_retriable(event.error)


class Folding:
    """Folds events of groups: rebalances without a refusal in between become one event."""

    @staticmethod
    def weight(event: GroupEvent) -> Weight:
        """Return a refusal's weight; a retriable one, as in every rebalance, weighs less."""
        return _REFUSALS.weight(event.error)

    @staticmethod
    def key(event: GroupEvent) -> Hashable | None:
        """Return one key for all requests and rebalances, and one for each refusal and its repetitions."""
        if event.error is None:
            return _ROUNDS
        alike = (event.error, event.rule, event.api, event.client_id, event.connection, event.member_id, event.fault)
        return alike if is_retriable(event) else (*alike, event.request_generation)

    @staticmethod
    def folded(older: GroupEvent, newer: GroupEvent) -> GroupEvent:
        """Fold equal refusals into one with a count, and other events into a count of rebalances without a request."""
        count = older.count + newer.count
        if older.error is not None and Folding.key(older) == Folding.key(newer):
            return replace(newer, at_ms=older.at_ms, count=count)
        rebalances = _rebalances(older) + _rebalances(newer)
        return GroupEvent(
            older.at_ms,
            f"{rebalances} rebalance{'' if rebalances == 1 else 's'}" if rebalances else "requests of members",
            older.state_before,
            newer.state_after,
            older.epoch_before,
            newer.epoch_after,
            until_ms=newer.until_ms,
            count=count,
            rebalances=rebalances,
        )

    @staticmethod
    def forgotten(event: GroupEvent) -> int:
        """Return the number of events that a dropped event represents."""
        return event.count


def _rebalances(event: GroupEvent) -> int:
    return event.rebalances or int(event.event in _BEGINNINGS)


def causes_of(
    newest_first: Collection[GroupEvent], last_sign: LastSign | None, departed: GroupEvent | None, *, forgotten: bool
) -> Causes:
    """Find the events that explain a refusal, besides the member's last request and the event that removed it."""
    healthy = [event for event in newest_first if event.error is None]
    at = next((at for at, event in enumerate(healthy) if event.event == REBALANCE), None)
    earlier = [] if at is None else healthy[at + 1 :]
    return Causes(
        last_sign,
        next((event for event in healthy if event.event == JOINED), None),
        None if at is None else healthy[at],
        next((event for event in earlier if event.event in (JOIN, LEAVE)), None),
        departed,
        not forgotten and all(event.count == 1 for event in healthy),
    )


def is_departure(event: GroupEvent) -> bool:
    """Return whether a member is gone by this event."""
    return event.event in _DEPARTURES


def is_unloading(event: GroupEvent) -> bool:
    """Return whether the coordinator of the group was unloaded during a rebalance."""
    return event.event == UNLOADED.kind
