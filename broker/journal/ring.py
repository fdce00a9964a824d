"""The journal: every request and its answer, as bytes, in a ring that is bounded in entries and in bytes.

Messages are kept as they came and went, which costs next to nothing while requests are served and gives the garbage
collector nothing to walk over; readers of the journal decode them (``broker.journal.entries``). Records are not
kept where they are large: of each set the size and the first batch's header.

Small requests are entered and counted many at a time, and before each look: code that has just run takes a third of
the time that it takes between two requests.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from broker.answers import Answer, Disconnect, NeverAnswer
from broker.api import FrameHandler
from broker.clock import stopwatch_ns
from broker.connection import Connection
from broker.context import Exchange
from broker.journal.counts import Counts
from broker.journal.kept import WITH_RECORDS, Kept, answer_without_records, weight_of, without_records
from broker.journal.redaction import APIS, is_readable, redacted_answer, redacted_request
from broker.settings import BrokerSettings
from protocol.errors import ErrorCode

WHOLE_BYTES = 2048
"""A message up to this size is kept whole, its records too."""
ANSWERED, BEING_SERVED = "answered", "is being served"
"""Outcomes of a request; all others are reasons why it got no answer."""
ENTRY_BYTES = 300
"""Bytes of an entry beside its messages."""

_AT_ONCE = 64
"""So many small requests are entered together."""
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
        self._chunk_bytes = max_bytes // 16  # the newest chunk is never dropped
        self._heavy_bytes = self._chunk_bytes // _AT_ONCE
        self._at_once = min(_AT_ONCE, self._chunk_size)
        self._ids, self._connections = count(1), count(1)
        self.under_way: dict[int, Exchange] = {}
        self._settled: list[tuple[Any, ...]] = []
        """Small requests that are not entered yet: what :meth:`_settle` takes."""
        self._chunks: deque[Chunk] = deque((Chunk(),))
        self._entries = self._bytes = self._dropped = 0
        self._counts = Counts()
        self.era = 0
        """Count of the cluster's resets and restores: offsets and epochs of two eras have nothing in common."""
        self.recorder: Recorder | None = None
        self.tracer: Tracer | None = None
        self.newest_id = 0
        self.notes_errors = False
        """Whether exchanges come with the codes of their answers; those of a proxy do not."""
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
            answer_bytes = int.from_bytes(parts[0][:4]) + 4
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
        """Enter and count the small requests that are not entered yet."""
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
                self._counts.note(frame[1], errors, faults)
            if outcome != ANSWERED:
                chunk.unanswered.append(number)
        self._added(len(settled), weight + len(settled) * ENTRY_BYTES)

    def _finish_other(self, exchange: Exchange, took_ns: int, *, known: bool) -> None:
        """Enter a request that is large or has secrets, or that is written to files too."""
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
            answer_bytes = int.from_bytes(parts[0][:4]) + 4
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
            self._counts.note(frame[1], exchange.errors, exchange.faults)

    def _keep(self, entry: Raw, connection: Connection, errors: Sequence[ErrorCode]) -> None:
        kept, answer = entry[5], entry[6]
        chunk = self._chunks[-1]
        chunk.entries.append(entry)  # type: ignore[union-attr]  # the last one is a list
        chunk.connections[connection.number] = connection
        for code in set(errors):
            chunk.failed.setdefault(code, []).append(entry[0])
        if entry[10] != ANSWERED:
            chunk.unanswered.append(entry[0])
        self._added(1, ENTRY_BYTES + weight_of(kept) + (0 if answer is None else weight_of(answer)))

    def _added(self, count: int, weight: int) -> None:
        """So many entries were added to the last chunk; the oldest chunks go where the bounds are passed."""
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
        """Forget everything, requests that are being served included."""
        self._settle()
        self.under_way.clear()
        self._chunks = deque((Chunk(),))
        self._entries = self._bytes = self._dropped = 0

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def chunks(self) -> deque[Chunk]:
        """The entries, oldest first; another object after :meth:`clear`."""
        self._settle()
        return self._chunks

    @property
    def entries(self) -> int:
        """How many there are."""
        self._settle()
        return self._entries

    @property
    def bytes(self) -> int:
        """The memory that they take, about."""
        self._settle()
        return self._bytes

    @property
    def dropped(self) -> int:
        """How many the bounds have removed."""
        self._settle()
        return self._dropped

    @property
    def counts(self) -> Counts:
        """Counts for the metrics; a cleared journal goes on counting."""
        self._settle()
        return self._counts

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


def _is_secret(frame: bytearray) -> bool:
    return len(frame) > 1 and not frame[0] and frame[1] in APIS


def _is_open(exchange: Exchange) -> bool:
    """Whether no secret can be in a request: what cannot be read may be a token, where clients authenticate."""
    readable = exchange.request is not None or exchange.connection.gate is None
    return readable and not _is_secret(exchange.frame)


def _without_secrets(frame: bytearray) -> bytes | bytearray:
    return redacted_request(frame) if _is_secret(frame) or is_readable(frame) else b""  # b"": perhaps a token


def _pending(exchange: Exchange) -> Raw:
    frame: Kept = exchange.frame if _is_open(exchange) else _without_secrets(exchange.frame)
    frame = frame if len(frame) <= WHOLE_BYTES else bytes(frame[:WHOLE_BYTES])
    return (exchange.id, exchange.at_ms, -1, exchange.broker, exchange.connection.number, frame, None,
            len(exchange.frame), 0, exchange.faults, BEING_SERVED, exchange.began_ns // 1000)  # fmt: skip
