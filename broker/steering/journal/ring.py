"""The journal: every request and its response, as bytes, in a ring that is bounded in entries and in bytes.

Messages are kept as raw bytes, which costs next to nothing while requests are served and gives the garbage collector
nothing to traverse; readers of the journal decode them (``broker.steering.journal.entries``). Of large record sets only
the size and the first batch header are kept.

Small requests are added and counted in groups of 64, and before each read: in a loop this takes a third of the time
that it takes between two requests.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, cast
from uuid import UUID

from broker.request.answers import Answer, Disconnect, NeverAnswer
from broker.request.api import FrameHandler
from broker.request.connection import Connection
from broker.request.context import Exchange
from broker.settings import BrokerSettings
from broker.steering.journal.counts import Counts
from broker.steering.journal.kept import WITH_RECORDS, Kept, answer_without_records, weight_of, without_records
from broker.steering.journal.redaction import APIS, is_readable, redacted_answer, redacted_request
from broker.time.clock import stopwatch_ns
from protocol.errors import ErrorCode

WHOLE_BYTES: Final = 2048
"""Messages up to this size are kept whole, with their records: arbitrary, most requests of tests are smaller."""
ANSWERED, BEING_SERVED = "answered", "is being served"
"""Outcomes of a request; any other outcome is the reason why it got no response."""
ENTRY_BYTES: Final = 300
"""Bytes that an entry takes beside its messages: an estimate, of a tuple of twelve and its numbers."""

_CHUNKS, _CHUNK_ENTRIES = 16, 1024
"""The least number of chunks of a full journal, whose oldest is dropped as a whole, and the most entries of one.

Ours: what is dropped at once is a small part of the journal, and takes no noticeable time.
"""
_AT_ONCE: Final = 64
"""The number of small requests that are added together: arbitrary, so that the bounds are checked seldom."""
MOST_TOPIC_NAMES: Final = 10_000
"""The maximum number of topic names kept by id. Those of existing topics are in the metadata too.

Ours, as each test may create topics of its own.
"""


class Entry(NamedTuple):
    """A request. ``at_ms`` is its arrival on the cluster's clock, ``duration_us`` real time, -1 while it is served.

    ``answer`` is ``None`` if no response was sent; ``outcome`` has the reason, ``fault`` the ids of the faults that
    applied. ``began_us`` is its arrival by the machine's monotonic clock.
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
"""The fields of an ``Entry``, by index. The garbage collector stops tracking a plain tuple of plain values."""


class Chunk:
    """A part of the ring. Once full, its entries are a tuple of tuples, which the garbage collector does not track."""

    __slots__ = ("bytes", "connections", "entries", "failed", "ids", "last_at_ms", "unanswered")

    def __init__(self) -> None:
        self.entries: list[Raw] | tuple[Raw, ...] = []
        self.connections: dict[int, Connection] = {}
        self.bytes = 0
        self.failed: dict[ErrorCode, list[int]] = {}
        """Error code -> ids of the entries with it in their responses."""
        self.unanswered: list[int] = []
        """The ids of the entries without a response."""
        self.ids: tuple[int, int] | None = None
        """The lowest and highest id, once full: a search skips chunks by them."""
        self.last_at_ms = -1
        """The latest arrival, once full, on the cluster's clock."""

    def close(self) -> None:
        """Freeze the chunk: it is full."""
        self.entries = tuple(self.entries)
        numbers = [entry[0] for entry in self.entries]
        self.ids = min(numbers), max(numbers)
        self.last_at_ms = max(entry[1] for entry in self.entries)


class Part(NamedTuple):
    """A snapshot of some entries, in the order in which the requests finished, and their chunk."""

    entries: Sequence[Raw]
    connections: dict[int, Connection]
    chunk: Chunk | None
    """``None`` for requests that are being served."""


class Recorder(Protocol):
    """Writes requests to the journal's files (``--journal DIR``), independently of the ring."""

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """Record a finished request. Must not block."""
        ...

    async def rotate(self) -> str | None:
        """Finish the current file; return its name. Raises ConnectionError if the writer is gone."""
        ...


class Tracer(Protocol):
    """Makes an OpenTelemetry span of each request (``--otlp-endpoint URL``)."""

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """Record a finished request. Must not block."""
        ...


class Journal:
    """The requests of a cluster, in the order in which they finished."""

    def __init__(self, max_entries: int = 100_000, max_bytes: int = 64 * 1024 * 1024) -> None:
        """The defaults are those of `understudy.journal.max.entries` and `max.bytes`."""
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._chunk_size = max(1, min(_CHUNK_ENTRIES, max_entries // _CHUNKS))
        self._chunk_bytes = max_bytes // _CHUNKS  # the newest chunk is never dropped
        self._heavy_bytes = self._chunk_bytes // _AT_ONCE
        self._at_once = min(_AT_ONCE, self._chunk_size)
        self._ids, self._connections = count(1), count(1)
        self.under_way: dict[int, Exchange] = {}
        self._settled: list[tuple[Any, ...]] = []
        """Small requests that :meth:`_settle` has not added yet."""
        self._chunks: deque[Chunk] = deque((Chunk(),))
        self._entries = self._bytes = self._dropped = 0
        self._counts = Counts()
        self.era = 0
        """The number of resets and restores of the cluster: offsets and epochs are comparable within one era only."""
        self.recorder: Recorder | None = None
        self.tracer: Tracer | None = None
        self.newest_id = 0
        self.notes_errors = False
        """Whether exchanges have the error codes of their responses; those of a proxy do not."""
        self.topic_names: dict[UUID, str] = {}
        """Topic id -> name, deleted topics included: requests may have only the id (KIP-516)."""

    def add_topic(self, topic_id: UUID, name: str) -> None:
        """Keep the name of a topic; beyond 10,000 names, drop the oldest."""
        self.topic_names[topic_id] = name
        if len(self.topic_names) > MOST_TOPIC_NAMES:
            del self.topic_names[next(iter(self.topic_names))]

    async def record(self, exchange: Exchange, handle: FrameHandler) -> Answer:
        """Frame stage, outermost: record the request with its response, or the reason why it got none."""
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
        """Give a request its id, and list it as being served."""
        exchange.id = self.newest_id = next(self._ids)
        exchange.era = self.era
        self.under_way[exchange.id] = exchange

    def finish(self, exchange: Exchange) -> None:
        """Record a finished request. A small response is joined here, once, and not when it is sent."""
        known = self.under_way.pop(exchange.id, None) is not None
        if not known and self.recorder is None and self.tracer is None:
            return  # the journal was cleared meanwhile
        took_ns = stopwatch_ns() - exchange.began_ns
        frame, parts = exchange.frame, exchange.parts
        observed = self.recorder is not None or self.tracer is not None
        if observed or not 1 < len(frame) <= WHOLE_BYTES or exchange.request is None or frame[1] in APIS:
            self._finish_other(exchange, took_ns, known=known)
            return
        answer: Kept | None = None
        answer_bytes = 0
        if parts is not None:
            answer_bytes = int.from_bytes(parts[0][:4]) + 4  # with the size field
            if answer_bytes > WHOLE_BYTES and frame[1] in WITH_RECORDS:
                answer = answer_without_records(parts)
            else:
                answer = b"".join(parts)
                parts[:] = (answer,)
        settled = self._settled
        settled.append((exchange.id, exchange.at_ms, took_ns, exchange.broker, exchange.connection, frame, answer,
                        answer_bytes, exchange.faults, exchange.outcome, exchange.began_ns,
                        exchange.errors))  # fmt: skip
        heavy = self._heavy_bytes
        if len(settled) >= self._at_once or (answer_bytes > heavy and weight_of(answer or b"") > heavy):
            self._settle()

    def _settle(self) -> None:
        """Add and count the small requests that have finished since the last call."""
        if not self._settled:
            return
        settled, self._settled = self._settled, []
        chunk, count = self._chunks[-1], self._counts.add
        entries, connections, weight = cast("list[Raw]", chunk.entries), chunk.connections, 0
        for (
            number, at_ms, took_ns, broker, connection, frame, answer, answer_bytes, faults, outcome, began_ns, errors,
        ) in settled:  # fmt: skip
            size = len(frame)
            entries.append((number, at_ms, took_ns // 1000, broker, connection.number, frame, answer, size,
                            answer_bytes, faults, outcome, began_ns // 1000))  # fmt: skip
            connections[connection.number] = connection
            weight += size + (weight_of(answer) if type(answer) is tuple else answer_bytes)
            count(frame[1], took_ns, size, answer_bytes)
            if errors or faults is not None:
                for code in set(errors):
                    chunk.failed.setdefault(code, []).append(number)
                self._counts.add_outcome(frame[1], errors, faults)
            if outcome != ANSWERED:
                chunk.unanswered.append(number)
        self._added(len(settled), weight + len(settled) * ENTRY_BYTES)

    def _finish_other(self, exchange: Exchange, took_ns: int, *, known: bool) -> None:
        """Add a request that is large or may have secrets, or that goes to files or traces too."""
        self._settle()
        frame, connection, parts = exchange.frame, exchange.connection, exchange.parts
        size = len(frame)
        secret = _is_secret(frame)
        kept: Kept
        if _is_open(exchange):
            kept = frame if size <= WHOLE_BYTES else without_records(frame, exchange.request)
        else:
            kept = _without_secrets(frame)
        answer: Kept | None = None
        answer_bytes = 0
        if parts is not None:
            answer_bytes = int.from_bytes(parts[0][:4]) + 4  # with the size field
            if answer_bytes > WHOLE_BYTES and frame[1] in WITH_RECORDS:
                answer = answer_without_records(parts, every=self.recorder is not None)
            else:
                whole = b"".join(parts)
                parts[:] = (whole,)
                answer = redacted_answer(frame, whole) if secret else whole
        entry = (exchange.id, exchange.at_ms, took_ns // 1000, exchange.broker, connection.number, kept, answer,
                 size, answer_bytes, exchange.faults, exchange.outcome, exchange.began_ns // 1000)  # fmt: skip
        if self.recorder is not None:
            self.recorder.record(entry, exchange)
        if self.tracer is not None:
            self.tracer.record(entry, exchange)
        if not known:
            return
        self._keep(entry, connection, exchange.errors)
        if size > 1:
            self._counts.add(frame[1], took_ns, size, answer_bytes)
            self._counts.add_outcome(frame[1], exchange.errors, exchange.faults)

    def _keep(self, entry: Raw, connection: Connection, errors: Sequence[ErrorCode]) -> None:
        kept, answer = entry[5], entry[6]  # frame and answer of Entry
        chunk = self._chunks[-1]
        chunk.entries.append(entry)  # type: ignore[union-attr]  # the last one is a list
        chunk.connections[connection.number] = connection
        for code in set(errors):
            chunk.failed.setdefault(code, []).append(entry[0])
        if entry[10] != ANSWERED:  # its outcome
            chunk.unanswered.append(entry[0])
        self._added(1, ENTRY_BYTES + weight_of(kept) + (0 if answer is None else weight_of(answer)))

    def _added(self, count: int, weight: int) -> None:
        """Account for entries added to the last chunk, and drop the oldest chunks beyond the bounds."""
        chunk = self._chunks[-1]
        chunk.bytes += weight
        self._bytes += weight
        self._entries += count
        if len(chunk.entries) >= self._chunk_size or chunk.bytes >= self._chunk_bytes:
            chunk.close()
            self._chunks.append(Chunk())
        while (self._bytes > self._max_bytes or self._entries > self._max_entries) and len(self._chunks) > 1:
            oldest = self._chunks.popleft()
            self._entries -= len(oldest.entries)
            self._bytes -= oldest.bytes
            self._dropped += len(oldest.entries)

    def clear(self) -> None:
        """Remove all entries, and forget requests that are being served."""
        self._settle()
        self.under_way.clear()
        self._chunks = deque((Chunk(),))
        self._entries = self._bytes = self._dropped = 0

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def chunks(self) -> deque[Chunk]:
        """Return the chunks, oldest first; another object after :meth:`clear`."""
        self._settle()
        return self._chunks

    @property
    def entries(self) -> int:
        """Return the number of entries."""
        self._settle()
        return self._entries

    @property
    def bytes(self) -> int:
        """Estimate the memory that the entries take, in bytes."""
        self._settle()
        return self._bytes

    @property
    def dropped(self) -> int:
        """Return the number of entries that were dropped because of the bounds."""
        self._settle()
        return self._dropped

    @property
    def counts(self) -> Counts:
        """Return the counters for the metrics; :meth:`clear` does not reset them."""
        self._settle()
        return self._counts

    def connection(self, number: int) -> Connection | None:
        """Return the connection with this number, if a request of it is still in the journal."""
        return next((each.connections[number] for each in reversed(self.chunks) if number in each.connections), None)

    @property
    def oldest_id(self) -> int:
        """Return the lowest id that is kept or being served; one above the newest id if there is none."""
        numbers = [chunk.ids[0] for chunk in self.chunks if chunk.ids is not None]
        numbers += [entry[0] for entry in self.chunks[-1].entries]
        return min((*numbers, *self.under_way), default=self.newest_id + 1)

    @property
    def next_id(self) -> int:
        """Return the id below which all requests have finished, so that a reader can continue there."""
        return min(self.under_way, default=self.newest_id + 1)

    def parts(self) -> list[Part]:
        """Return a copy of the entries, oldest first, then those of requests that are being served."""
        settled = [Part(tuple(chunk.entries), chunk.connections, chunk) for chunk in self.chunks]
        waiting = list(self.under_way.values())
        connections = {each.connection.number: each.connection for each in waiting}
        return [*settled, Part(tuple(map(_pending, waiting)), connections, None)]


class NoJournal(Journal):
    """A journal that records nothing: ``understudy.journal.max.entries=0``."""

    def arrive(self, exchange: Exchange) -> None:
        """Keep nothing: the journal is off."""

    def finish(self, exchange: Exchange) -> None:
        """Keep nothing: the journal is off."""


def journal_of(settings: Mapping[str, str], *, observed: bool = False, notes_errors: bool = False) -> Journal:
    """Make the journal for the settings of the command line. ``observed``: it will have a recorder or a tracer."""
    typed = BrokerSettings(1, settings)
    entries, bytes_ = typed.int("understudy.journal.max.entries"), typed.long("understudy.journal.max.bytes")
    journal = Journal(entries, bytes_) if entries or observed else NoJournal()
    journal.notes_errors = notes_errors
    return journal


def _is_secret(frame: bytearray) -> bool:
    return len(frame) > 1 and not frame[0] and frame[1] in APIS


def _is_open(exchange: Exchange) -> bool:
    """Return whether a request cannot hold secrets: with authentication, an unreadable frame may be a token."""
    readable = exchange.request is not None or exchange.connection.gate is None
    return readable and not _is_secret(exchange.frame)


def _without_secrets(frame: bytearray) -> bytes | bytearray:
    return redacted_request(frame) if _is_secret(frame) or is_readable(frame) else b""  # b"": perhaps a token


def _pending(exchange: Exchange) -> Raw:
    frame: Kept = exchange.frame if _is_open(exchange) else _without_secrets(exchange.frame)
    frame = frame if len(frame) <= WHOLE_BYTES else bytes(frame[:WHOLE_BYTES])
    return (exchange.id, exchange.at_ms, -1, exchange.broker, exchange.connection.number, frame, None,
            len(exchange.frame), 0, exchange.faults, BEING_SERVED, exchange.began_ns // 1000)  # fmt: skip
