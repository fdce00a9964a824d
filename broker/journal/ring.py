"""The journal: every request and its answer, as bytes, in a ring that is bounded in entries and in bytes.

Messages are kept as they came and went, which costs next to nothing while requests are served and gives the garbage
collector nothing to walk over; readers of the journal decode them (``broker.journal.entries``). Records are not
kept where they are large: of each set the size and the first batch's header.
"""

import asyncio
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from broker.api import Answer, Disconnect, FrameHandler, NeverAnswer
from broker.clock import stopwatch_ns
from broker.context import Connection, Exchange
from broker.journal.kept import Kept, answer_without_records, weight_of, without_records
from broker.journal.redaction import APIS, is_readable, redacted_answer, redacted_request
from broker.settings import BrokerSettings
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

WHOLE_BYTES = 2048
"""A message up to this size is kept whole, its records too."""
ANSWERED, BEING_SERVED = "answered", "is being served"
"""Outcomes of a request; all others are reasons why it got no answer."""
ENTRY_BYTES = 300
"""Bytes of an entry beside its messages."""

LATENCY_BOUNDS_NS = tuple(
    round(seconds * 1e9)
    for seconds in (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
)
"""Upper bounds of the histograms of latencies."""
MOST_TOPIC_NAMES = 10_000
"""Names of topics that are kept by id. Those of topics that exist are found in the metadata as well."""


class Entry(NamedTuple):
    """One request. ``at_ms`` is the cluster's time of its arrival; ``duration_us`` the machine's, -1 while it lasts.

    ``answer`` is ``None`` where none was sent; ``outcome`` has the reason, ``fault`` the ids of the faults that it met.
    ``began_us`` is its arrival by the machine's stopwatch.
    """

    id: int
    at_ms: int
    duration_us: int
    broker: int
    connection: int
    frame: Kept
    answer: Kept | None
    frame_bytes: int
    answer_bytes: int
    fault: str | None
    outcome: str
    began_us: int = 0


Raw = tuple[Any, ...]
"""An entry's fields. A plain tuple of plain values is one that the garbage collector forgets about."""


class Chunk:
    """A part of the ring; once it is full its entries are a tuple of tuples, and the garbage collector's no more."""

    __slots__ = ("bytes", "connections", "entries", "failed", "ids", "last_at_ms", "unanswered")

    def __init__(self) -> None:
        self.entries: list[Raw] | tuple[Raw, ...] = []
        self.connections: dict[int, Connection] = {}
        self.bytes = 0
        self.failed: dict[ErrorCode, list[int]] = {}
        """Code -> the ids of the entries with it in their answers."""
        self.unanswered: list[int] = []
        """The ids of the entries that got no answer."""
        self.ids: tuple[int, int] | None = None
        """The lowest and the highest id, once it is full: a search skips what cannot be in it."""
        self.last_at_ms = -1
        """The latest arrival, once it is full."""

    def close(self) -> None:
        """It is full."""
        self.entries = tuple(self.entries)
        numbers = [entry[0] for entry in self.entries]
        self.ids = min(numbers), max(numbers)
        self.last_at_ms = max(entry[1] for entry in self.entries)


class Part(NamedTuple):
    """Some of the entries as they were at one time, in the order in which they were answered, and their chunk."""

    entries: Sequence[Raw]
    connections: dict[int, Connection]
    chunk: Chunk | None
    """``None``: these are being served."""


class Recorder(Protocol):
    """Writes the journal to files (``--journal DIR``), independent of the one in memory."""

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """A request is settled. Must not wait."""
        ...

    async def rotate(self) -> str | None:
        """Finish what was written so far; its name. Raises ConnectionError if the writer is gone."""
        ...


class Tracer(Protocol):
    """Makes a span of each request (``--otlp-endpoint URL``)."""

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """A request is settled. Must not wait."""
        ...


class Journal:
    """The requests of a cluster, in the order in which they were answered."""

    def __init__(self, max_entries: int = 100_000, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._chunk_size = max(1, min(1024, max_entries // 16))
        self._ids, self._connections = count(1), count(1)
        self.under_way: dict[int, Exchange] = {}
        self.chunks: deque[Chunk] = deque((Chunk(),))
        self.entries = self.bytes = self.dropped = 0
        self.era = 0
        """Count of the cluster's resets and restores: offsets and epochs of two eras have nothing in common."""
        self.recorder: Recorder | None = None
        self.tracer: Tracer | None = None
        self.newest_id = 0
        self.notes_errors = False
        """Whether exchanges come with the codes of their answers; those of a proxy do not."""
        self.by_api: dict[int, list[int]] = {}
        """API key (they are below 256) -> requests, nanoseconds, bytes in, bytes out, since the server started."""
        self.errors: Counter[tuple[int, ErrorCode]] = Counter()
        """API key and code -> answers with it, since the server started; a code counts once per answer."""
        self.latencies: dict[int, list[int]] = {}
        """API key -> how many requests took at most each of `LATENCY_BOUNDS_NS`, and longer than the last."""
        self.faulted: Counter[int] = Counter()
        """API key -> requests that met a fault, since the server started."""
        self.topic_names: dict[UUID, str] = {}
        """Names by id, those of deleted topics included: requests may have an id alone (KIP-516)."""

    def add_topic(self, topic_id: UUID, name: str) -> None:
        """Remember the name of a topic; the oldest names go where there are too many."""
        self.topic_names[topic_id] = name
        if len(self.topic_names) > MOST_TOPIC_NAMES:
            del self.topic_names[next(iter(self.topic_names))]

    async def record(self, exchange: Exchange, handle: FrameHandler) -> Answer:
        """Frame stage, outermost: what came, what went out, and why nothing did."""
        connection = exchange.connection
        if not connection.number:
            connection.number = next(self._connections)
            connection.era, connection.first_at_ms = self.era, exchange.at_ms
        self.arrive(exchange)
        try:
            return await handle(exchange)
        except Disconnect as disconnect:
            exchange.outcome = f"closed: {disconnect.reason}"
            raise
        except NeverAnswer:
            exchange.outcome = "never answered"
            raise
        except asyncio.CancelledError:  # the tasks of connections are cancelled when their broker stops or is killed
            exchange.outcome = "closed: the broker stopped"
            raise
        except BaseException:
            exchange.outcome = "failed"
            raise
        finally:
            self.finish(exchange)

    def arrive(self, exchange: Exchange) -> None:
        """A request begins to be served."""
        exchange.id = self.newest_id = next(self._ids)
        exchange.era = self.era
        self.under_way[exchange.id] = exchange

    def finish(self, exchange: Exchange) -> None:
        """Note that a request was answered, or will not be. A small answer is joined here, not when it is sent."""
        recorder, tracer = self.recorder, self.tracer
        known = self.under_way.pop(exchange.id, None) is not None
        if not known and recorder is None and tracer is None:
            return  # the journal was cleared meanwhile
        took_ns = stopwatch_ns() - exchange.began_ns
        frame, connection, parts = exchange.frame, exchange.connection, exchange.parts
        size = len(frame)
        secret = size > 1 and not frame[0] and frame[1] in APIS
        kept: Kept
        if secret or (exchange.request is None and connection.gate is not None):
            kept = redacted_request(frame) if secret or is_readable(frame) else b""  # b"": perhaps a misplaced token
        else:
            kept = frame if size <= WHOLE_BYTES else without_records(frame, exchange.request)
        answer: Kept | None = None
        answer_bytes = 0
        if parts is not None:
            answer_bytes = int.from_bytes(parts[0][:4]) + 4
            if answer_bytes > WHOLE_BYTES and frame[1] == ApiKey.FETCH:
                answer = answer_without_records(parts, every=recorder is not None)
            else:
                whole = b"".join(parts)
                parts[:] = (whole,)
                answer = redacted_answer(frame, whole) if secret else whole
        entry = (exchange.id, exchange.at_ms, took_ns // 1000, exchange.broker, connection.number, kept, answer,
                 size, answer_bytes, exchange.faults, exchange.outcome, exchange.began_ns // 1000)  # fmt: skip
        if recorder is not None:
            recorder.record(entry, exchange)
        if tracer is not None:
            tracer.record(entry, exchange)
        if not known:
            return
        self._keep(entry, connection, exchange.errors)
        if size > 1:
            counts = self.by_api.get(frame[1])
            if counts is None:
                counts = self.by_api[frame[1]] = [0, 0, 0, 0]
            counts[0] += 1
            counts[1] += took_ns
            counts[2] += size + 4
            counts[3] += answer_bytes
            self._count(frame[1], took_ns, exchange)

    def _count(self, key: int, took_ns: int, exchange: Exchange) -> None:
        """For the metrics."""
        latencies = self.latencies.get(key)
        if latencies is None:
            latencies = self.latencies[key] = [0] * (len(LATENCY_BOUNDS_NS) + 1)
        latencies[bisect_left(LATENCY_BOUNDS_NS, took_ns)] += 1
        if exchange.errors:
            self.errors.update((key, code) for code in set(exchange.errors))
        if exchange.faults is not None:
            self.faulted[key] += 1

    def _keep(self, entry: Raw, connection: Connection, errors: Sequence[ErrorCode]) -> None:
        kept, answer = entry[5], entry[6]
        weight = ENTRY_BYTES + (weight_of(kept) if type(kept) is tuple else len(kept))
        if answer is not None:
            weight += weight_of(answer) if type(answer) is tuple else len(answer)
        chunk = self.chunks[-1]
        entries = chunk.entries
        entries.append(entry)  # type: ignore[union-attr]  # the last one is a list
        chunk.connections[connection.number] = connection
        chunk.bytes += weight
        self.bytes += weight
        self.entries += 1
        if errors:
            for code in set(errors):
                chunk.failed.setdefault(code, []).append(entry[0])
        if entry[10] != ANSWERED:
            chunk.unanswered.append(entry[0])
        if len(entries) >= self._chunk_size:
            chunk.close()
            self.chunks.append(Chunk())
        while (self.bytes > self._max_bytes or self.entries > self._max_entries) and len(self.chunks) > 1:
            oldest = self.chunks.popleft()
            self.entries -= len(oldest.entries)
            self.bytes -= oldest.bytes
            self.dropped += len(oldest.entries)

    def clear(self) -> None:
        """Forget everything, requests that are being served included."""
        self.under_way.clear()
        self.chunks = deque((Chunk(),))
        self.entries = self.bytes = self.dropped = 0

    def connection(self, number: int) -> Connection | None:
        """The connection of that number, if a request of it is still here."""
        return next((each.connections[number] for each in reversed(self.chunks) if number in each.connections), None)

    @property
    def oldest_id(self) -> int:
        """The lowest id that is kept or is being served; above all ids if there is none."""
        numbers = [chunk.ids[0] for chunk in self.chunks if chunk.ids is not None]
        numbers += [entry[0] for entry in self.chunks[-1].entries]
        return min((*numbers, *self.under_way), default=self.newest_id + 1)

    @property
    def next_id(self) -> int:
        """Requests with lower ids are settled: what was looked at once need not be looked at again."""
        return min(self.under_way, default=self.newest_id + 1)

    def parts(self) -> list[Part]:
        """A copy of the entries, oldest first, then those of requests that are being served."""
        found = [Part(tuple(chunk.entries), chunk.connections, chunk) for chunk in self.chunks]
        waiting = list(self.under_way.values())
        connections = {each.connection.number: each.connection for each in waiting}
        return [*found, Part(tuple(map(_pending, waiting)), connections, None)]


class NoJournal(Journal):
    """Remembers nothing, and writes nothing down: ``understudy.journal.max.entries=0``."""

    def arrive(self, exchange: Exchange) -> None:
        """Keep nothing: the journal is off."""

    def finish(self, exchange: Exchange) -> None:
        """Keep nothing: the journal is off."""


def journal_of(settings: Mapping[str, str], *, observed: bool = False, notes_errors: bool = False) -> Journal:
    """The journal that the settings of the command line ask for; ``observed``: there will be a recorder or a tracer."""
    made = BrokerSettings(1, settings)
    entries, bytes_ = made.int("understudy.journal.max.entries"), made.long("understudy.journal.max.bytes")
    journal = Journal(entries, bytes_) if entries or observed else NoJournal()
    journal.notes_errors = notes_errors
    return journal


def _pending(exchange: Exchange) -> Raw:
    frame: Kept = (
        redacted_request(exchange.frame) if exchange.frame[1:2] and exchange.frame[1] in APIS else exchange.frame
    )
    frame = frame if len(frame) <= WHOLE_BYTES else bytes(frame[:WHOLE_BYTES])
    return (exchange.id, exchange.at_ms, -1, exchange.broker, exchange.connection.number, frame, None,
            len(exchange.frame), 0, exchange.faults, BEING_SERVED, exchange.began_ns // 1000)  # fmt: skip
