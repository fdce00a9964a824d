"""Counts of the latest requests by API, client and topic, computed from the journal when the console polls.

Serving requests costs nothing more. Each poll counts a bounded number of requests, newest first, and leaves the others
to the next polls. If too many have arrived since the last poll, the oldest are skipped, and their number is reported.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import field

from broker.control.watched import Watched
from broker.request.connection import Connection
from broker.steering.journal.entries import TopicName, decode, title
from broker.steering.journal.mentioned import place, requested
from broker.steering.journal.ring import ANSWERED, Chunk, Entry, Journal, Raw
from broker.time.clock import Slices, stopwatch_ns
from protocol.deferred import dataclass
from protocol.paths import errors

STEP_MS, STEPS = 2000, 60
"""The length of a step of the window, and the number of steps: two minutes, in steps as wide as can be seen."""
_MOST_READ, _MOST_READ_FIRST = 5000, 500
"""The maximum number of requests that one poll decodes, and that the first poll does.

Arbitrary, and few at first, so that the page appears soon.
"""
_SOON = 2
"""The number of steps without a poll after which the next one counts as a page's first."""
_MOST_LEFT = 20_000
"""The maximum number of requests left to later polls: two minutes without an open page, at 160 requests a second."""
_CONNECTION = 4  # where a raw entry has its connection (`steering/journal/ring.py`)
_MOST_ERRORS = 500
"""The newest errors that the console keeps: more than a page shows, and a bound while a program retries for hours."""
Series = list[int]
Seen = tuple[Raw, Connection | None]


@dataclass(slots=True)
class Step:
    """The counts of the requests of one step."""

    number: int
    first_entry: int
    requests: int = 0
    errors: int = 0
    apis: Counter[tuple[str, bool]] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    connections: Counter[tuple[int, bool]] = field(default_factory=Counter)
    codes: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """API, error, and whether that is an error code; if not, it is the reason why there was no response."""


@dataclass(slots=True)
class Known:
    """What the counted requests show about a connection."""

    connection: Connection | None
    client_id: str = ""
    apis: set[tuple[str, int]] = field(default_factory=set)
    last_step: int = 0


def _step() -> int:
    return stopwatch_ns() // 1_000_000 // STEP_MS


class Activity:
    """The request counts of one cluster."""

    def __init__(self) -> None:
        self._begin(None)

    def _begin(self, ring: object | None) -> None:
        self.steps: dict[int, Step] = {}
        self.connections: dict[int, Known] = {}
        self.latest: dict[tuple[str, str], tuple[int, str]] = {}
        """(API, error) -> journal id and client id of the latest request with it."""
        self._skipped: dict[int, int] = {}
        """Step -> number of requests that began in it, or before it, and were not counted."""
        self._ring = ring
        self._chunk: Chunk | None = None
        self._position = 0
        self._looked = -_SOON - 1
        self._left: list[Seen] = []
        """The requests that earlier polls have left to later ones, in order."""

    async def look(self, source: Watched, name_of: TopicName) -> int:
        """Count new requests. Returns the number of the current step.

        The first poll after a pause reads only the newest requests, since a page is waiting for it; later polls
        continue with the older ones.
        """
        journal, slices = source.journal, Slices()
        if self._ring is not journal.chunks:  # the journal was cleared, or this is the first poll
            self._begin(journal.chunks)
        now = _step()
        is_first = now - self._looked > _SOON
        fresh, total = self._fresh(journal)
        self._skip(total - len(fresh), fresh)
        most = _MOST_READ_FIRST if is_first else _MOST_READ
        waiting = [*self._left, *fresh]
        begin = max(len(waiting) - most, 0)
        dropped = max(begin - _MOST_LEFT, 0)
        self._skip(dropped, waiting[dropped:])
        self._left = waiting[dropped:begin]
        for raw, connection in waiting[begin:]:
            await slices.pause()
            entry = Entry(*raw)
            number = entry.began_us // 1000 // STEP_MS
            if number > now - STEPS:
                self._count(entry, connection, number, name_of)
        self._forget(now)
        self._looked = _step()  # on a busy machine it takes seconds
        return now

    def _fresh(self, journal: Journal) -> tuple[list[Seen], int]:
        """Return the newest requests since the last poll, in order, and the number of all requests since then."""
        entries: list[Seen] = []
        total = 0
        for chunk in reversed(journal.chunks):
            begin = self._position if chunk is self._chunk else 0
            total += len(chunk.entries) - begin
            if len(entries) < _MOST_LEFT:
                newest = chunk.entries[max(begin, len(chunk.entries) - _MOST_LEFT + len(entries)) :]
                entries += [(raw, chunk.connections.get(raw[_CONNECTION])) for raw in reversed(newest)]
            if chunk is self._chunk:
                break
        self._chunk, self._position = journal.chunks[-1], len(journal.chunks[-1].entries)
        return entries[::-1], total

    def _skip(self, count: int, after: Sequence[Seen]) -> None:
        if count and after:
            number = Entry(*after[0][0]).began_us // 1000 // STEP_MS
            self._skipped[number] = self._skipped.get(number, 0) + count

    def skipped(self, now: int) -> int:
        """Return the number of requests in the window, or shortly before it, that were not counted."""
        return sum(count for number, count in self._skipped.items() if number > now - STEPS)

    def _count(self, entry: Entry, connection: Connection | None, number: int, name_of: TopicName) -> None:
        decoded = decode(entry)
        api = "unreadable" if decoded.header is None else title(decoded.header.api_key)
        failures = [(code.name, True) for code in set(errors(decoded.response))]
        if entry.outcome != ANSWERED:
            failures.append((entry.outcome, False))
        step = self.steps.setdefault(number, Step(number, entry.id))
        step.first_entry = min(step.first_entry, entry.id)
        step.requests += 1
        step.apis[api, bool(failures)] += 1
        step.connections[entry.connection, bool(failures)] += 1
        client_id = (decoded.header.client_id or "") if decoded.header is not None else ""
        step.errors += bool(failures)
        for error, is_code in failures:
            step.codes[api, error, is_code] += 1
            self.latest[api, error] = max(self.latest.get((api, error), (-1, "")), (entry.id, client_id))
        topics = {place(item._replace(partition=None), name_of) for item in requested(decoded)}
        step.topics.update(topics - {""})
        about = self.connections.setdefault(entry.connection, Known(connection))
        about.client_id = client_id or about.client_id
        about.last_step = max(number, about.last_step)
        if decoded.header is not None:
            about.apis.add((api, decoded.header.api_version))

    def _forget(self, now: int) -> None:
        for number in [each for each in self.steps if each <= now - STEPS]:
            del self.steps[number]
        self._skipped = {number: count for number, count in self._skipped.items() if number > now - STEPS}
        old = [number for number, each in self.connections.items() if each.last_step <= now - STEPS]
        for number in old:
            connection = self.connections[number].connection
            if connection is None or connection.lost:
                del self.connections[number]
        while len(self.latest) > _MOST_ERRORS:
            del self.latest[next(iter(self.latest))]

    # --- reading -----------------------------------------------------------------------------------------------------

    def series(self, now: int) -> tuple[Series, Series]:
        """Return the numbers of requests and of errors in each step."""
        steps = [self.steps.get(number) for number in range(now - STEPS + 1, now + 1)]
        return [0 if s is None else s.requests for s in steps], [0 if s is None else s.errors for s in steps]

    def by(self, kind: str, now: int) -> dict[object, tuple[Series, int]]:
        """Return name -> requests in each step, and errors. ``kind``: apis, topics or connections."""
        totals: defaultdict[object, list[int]] = defaultdict(lambda: [0] * STEPS)
        errors: Counter[object] = Counter()
        for number, step in self.steps.items():
            at = number - (now - STEPS + 1)
            counts: Counter[object] = getattr(step, kind)
            for key, count in counts.items() if 0 <= at < STEPS else ():
                name, failed = key if isinstance(key, tuple) else (key, False)
                totals[name][at] += count
                errors[name] += count * failed
        return {name: (series, errors[name]) for name, series in totals.items()}

    def first_entry(self, now: int) -> int | None:
        """Return the lowest journal id of the counted requests."""
        return min((step.first_entry for step in self.steps.values() if step.number > now - STEPS), default=None)

    def codes(self) -> Counter[tuple[str, str, bool]]:
        """Return (API, error, whether that is an error code) -> count."""
        return sum((step.codes for step in self.steps.values()), Counter())
