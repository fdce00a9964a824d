"""The bounded event log of a timeline: the events of many transactional ids, producers or groups.

The latest events of an id are kept one by one. When the log is full, older ones are treated by their kind:

* Refusals are kept unchanged, and so are the events that caused them.
* Routine events (a commit, a rebalance, a batch that is accepted) are folded: one event represents many and counts
  them.
* Events that still do not fit are dropped. The log counts them, so that answers can report the gap.

Limits are numbers of events, per id and over all ids. `docs/debugging.md` documents them.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Hashable, Iterator
from enum import IntEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from protocol.errors import ErrorCode

K = TypeVar("K", bound=Hashable)
E = TypeVar("E")

COORDINATOR_CODES: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""The errors of a broker that is not the coordinator, or not yet."""
UNKNOWN_COUNT: Final = -1
"""The count of dropped events for an id whose count the log has dropped too."""


class Limits(NamedTuple):
    """The maximum numbers of events.

    ``recent`` events are kept one by one; ``kept`` are older refusals, their causes, and folded events. ``ids`` bounds
    the ids of which only the count of dropped events is kept. One busy id leaves space for fifty others: ours, more
    than a test makes.
    """

    recent_of_one: int = 200
    recent: int = 10_000
    kept_of_one: int = 200
    kept: int = 10_000
    ids: int = 10_000


LIMITS: Final = Limits()


class Weight(IntEnum):
    """The priority of an event when the log is full."""

    ROUTINE = 0
    """It may be folded with others."""
    RETRIABLE = 1
    """A refusal after which clients retry: only the latest of its kind matters."""
    LASTING = 2
    """Another refusal, or the cause of a refusal."""


class Refusals:
    """The retriable errors of a timeline, after which clients send the request again."""

    def __init__(self, *retriable: ErrorCode) -> None:
        self._retriable = frozenset(code.name for code in retriable)

    def are_retriable(self, error: str | None) -> bool:
        """Return whether the error of that name is retriable; ``False`` for ``None``."""
        return error in self._retriable

    def weight(self, error: str | None) -> Weight:
        """Return the weight of an event with that error."""
        if error is None:
            return Weight.ROUTINE
        return Weight.RETRIABLE if error in self._retriable else Weight.LASTING


class Folding(Protocol[E]):
    """How a log weighs and folds its events."""

    def weight(self, event: E) -> Weight:
        """Return the priority of an event."""
        ...

    def key(self, event: E) -> Hashable | None:
        """Return the key by which older events are folded into one; ``None`` if the event is not folded by a key."""
        ...

    def folded(self, older: E, newer: E) -> E:
        """Fold two events into one. Either may represent many already; ``older`` may be modified."""
        ...

    def forgotten(self, event: E) -> int:
        """Return the number of events that a dropped event represents; it must not be extended any more."""
        ...


class _History(Generic[E]):
    """The events of one id. ``growing``: key -> index in ``kept`` of the event into which others are folded."""

    __slots__ = ("causes", "forgotten", "growing", "kept", "recent")

    def __init__(self, forgotten: int) -> None:
        self.recent: deque[E] = deque()
        self.kept: list[E] = []
        self.growing: dict[Hashable, int] = {}
        self.causes: set[int] = set()  # by identity; the events themselves are in `recent` or `kept`
        self.forgotten = forgotten


class EventLog(Generic[K, E]):
    """A bounded log of the events of all ids of one kind."""

    def __init__(self, folding: Folding[E], limits: Limits = LIMITS) -> None:
        self._folding, self._limits = folding, limits
        # Ordered by their latest event, oldest first. An id is idle when it has no recent events left.
        self._active: OrderedDict[K, _History[E]] = OrderedDict()
        self._idle: OrderedDict[K, _History[E]] = OrderedDict()
        self._recent = self._kept = 0
        self._gone: OrderedDict[K, int] = OrderedDict()
        self._overflowed = False
        # Ids with a refusal in the log, those with the latest refusal last.
        self._refused: OrderedDict[K, None] = OrderedDict()

    # --- reading -----------------------------------------------------------------------------------------------------

    def of(self, key: K) -> list[E]:
        """Return the events of an id, oldest first."""
        history = self._history(key)
        return [] if history is None else [*history.kept, *history.recent]

    def newest_first(self, key: K) -> Iterator[E]:
        """Iterate over the events of an id, newest first."""
        history = self._history(key)
        if history is not None:
            yield from reversed(history.recent)
            yield from reversed(history.kept)

    def forgotten(self, key: K) -> int:
        """Return how many events of an id were dropped, folded ones not included; -1 if that is not known."""
        history = self._history(key)
        if history is not None:
            return history.forgotten
        return self._gone.get(key, UNKNOWN_COUNT if self._overflowed else 0)

    def ids(self) -> list[K]:
        """Return all ids with events in the log, those with the latest events last."""
        return [*self._idle, *self._active]

    def refused(self) -> list[K]:
        """Return the ids that were refused, those with the latest refusals last."""
        return list(self._refused)

    def __contains__(self, key: K) -> bool:
        return self._history(key) is not None

    def __len__(self) -> int:
        """Return the number of events in the log, of all ids."""
        return self._recent + self._kept

    def _history(self, key: K) -> _History[E] | None:
        return self._active.get(key) or self._idle.get(key)

    # --- noting ------------------------------------------------------------------------------------------------------

    def note(self, key: K, event: E, causes: Collection[E] = ()) -> None:
        """Append an event of an id. ``causes`` are earlier events of the id that caused it."""
        history = self._active.get(key)
        if history is None:
            history = self._activated(key)
        else:
            self._active.move_to_end(key)
        if causes:
            history.causes.update(map(id, causes))
        history.recent.append(event)
        if self._folding.weight(event) is not Weight.ROUTINE:
            self._refused[key] = None
            self._refused.move_to_end(key)
        if len(history.recent) > self._limits.recent_of_one:
            self._keep(history, history.recent.popleft())
            self._evict()
        else:
            self._recent += 1
            if self._recent > self._limits.recent:
                self._evict()

    def clear(self) -> None:
        """Remove all events and all counts of dropped events."""
        for each in (self._active, self._idle, self._gone, self._refused):
            each.clear()
        self._recent = self._kept = 0
        self._overflowed = False

    def _activated(self, key: K) -> _History[E]:
        history = self._idle.pop(key, None)
        if history is None:
            history = _History(self._gone.pop(key, UNKNOWN_COUNT if self._overflowed else 0))
        self._active[key] = history
        return history

    # --- evicting ----------------------------------------------------------------------------------------------------

    def _keep(self, history: _History[E], event: E) -> None:
        """Move an event from ``recent`` to ``kept``, folded if possible."""
        folding, kept = self._folding, history.kept
        key = None if id(event) in history.causes else folding.key(event)
        if key is not None:
            at = history.growing.get(key)
            if at is not None:
                kept[at] = folding.folded(kept[at], event)
                return
        if key is None or folding.weight(event) is not Weight.ROUTINE:
            history.growing.clear()  # events after it are not folded with events before it
        elif kept and folding.weight(kept[-1]) is not Weight.ROUTINE:
            history.growing.clear()  # nor are two refusals folded if other events are between them
        if key is not None:
            history.growing[key] = len(kept)
        kept.append(event)
        self._kept += 1
        if len(kept) > self._limits.kept_of_one:
            self._condense(history)

    def _evict(self) -> None:
        """Fold, then drop, the events of the ids that have had no event for the longest time."""
        while self._recent > self._limits.recent:
            key, history = self._active.popitem(last=False)
            self._idle[key] = history
            self._recent -= len(history.recent)
            while history.recent:
                self._keep(history, history.recent.popleft())
        while self._kept > self._limits.kept:
            key, history = (self._idle or self._active).popitem(last=False)
            self._kept -= len(history.kept)
            self._recent -= len(history.recent)
            self._refused.pop(key, None)
            self._remember_gone(key, history)

    def _remember_gone(self, key: K, history: _History[E]) -> None:
        events = [*history.kept, *history.recent]
        self._gone[key] = _sum(history.forgotten, sum(map(self._folding.forgotten, events)))
        if len(self._gone) > self._limits.ids:
            self._gone.popitem(last=False)
            self._overflowed = True

    def _condense(self, history: _History[E]) -> None:
        """Fold an id's older events where possible, then drop those with the lowest weight."""
        folding = self._folding
        latest = {folding.key(event): at for at, event in enumerate(history.kept)}
        condensed: list[E] = []
        weights: list[Weight] = []
        for at, event in enumerate(history.kept):
            weight = self._weight(history, event)
            if weight is Weight.RETRIABLE and latest[folding.key(event)] != at:
                weight = Weight.ROUTINE
            if weight is Weight.ROUTINE and weights and weights[-1] is Weight.ROUTINE:
                condensed[-1] = folding.folded(condensed[-1], event)
            else:
                condensed.append(event)
                weights.append(weight)
        # Go below the limit, so that the next event does not condense the history again.
        surplus = len(condensed) - self._limits.kept_of_one * 3 // 4
        least = sorted(range(len(condensed)), key=lambda at: (weights[at], at))[: max(surplus, 0)]
        for at in least:
            history.forgotten = _sum(history.forgotten, folding.forgotten(condensed[at]))
            history.causes.discard(id(condensed[at]))
        dropped = set(least)
        self._kept -= len(history.kept)
        history.kept = [event for at, event in enumerate(condensed) if at not in dropped]
        self._kept += len(history.kept)
        history.growing.clear()

    def _weight(self, history: _History[E], event: E) -> Weight:
        return Weight.LASTING if id(event) in history.causes else self._folding.weight(event)


def _sum(forgotten: int, more: int) -> int:
    return UNKNOWN_COUNT if forgotten == UNKNOWN_COUNT else forgotten + more
