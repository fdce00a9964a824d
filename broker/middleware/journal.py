"""The journal: every request and its answer, as bytes, in a ring that is bounded in entries and in bytes.

Messages are kept as they came and went, which costs next to nothing while requests are served and gives the garbage
collector nothing to walk over; whoever reads the journal decodes them (``broker.control.entries``). Records are not
kept where they are large: of each set the size and the first batch's header.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

from broker.clock import stopwatch_ns
from broker.context import Connection
from broker.settings import BrokerSettings
from protocol.apis import ApiKey
from protocol.codec import is_flexible
from protocol.compiled import Parts, uvarint
from protocol.records.batch import BATCH_HEADER_SIZE, MAGIC_V2

WHOLE_BYTES = 2048
"""A message up to this size is kept whole, its records too."""
ENTRY_BYTES = 300
"""What an entry takes beside its messages."""
ANSWERED = "answered"
FAULT_NOTE = "fault"
"""Under this name a request's notes carry the ids of the faults that it met, joined by commas."""

_MOST_HEADS = 4096
_SHORTEST_RECORDS = 512
"""What else a fetch response is made of comes in smaller parts."""

Kept = bytes | bytearray | tuple[Any, ...]
"""A whole message; or pieces of it, with size and head of a set of records between each two (see :func:`expand`).

The head is the first batch's header, or those of all batches, one after the other.
"""


class Entry(NamedTuple):
    """One request. ``at_ms`` is the cluster's time of its arrival; ``duration_us`` the machine's, -1 while it lasts.

    ``answer`` is ``None`` where none was sent, and ``outcome`` says why; ``fault`` has the ids of the faults it met.
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


class Served:
    """A request that is being served, and what becomes of it."""

    __slots__ = (
        *("at_ms", "began_ns", "broker", "connection", "era", "frame"),
        *("id", "notes", "outcome", "parts", "request"),
    )

    def __init__(self, frame: bytearray, connection: Connection, broker: int, at_ms: int) -> None:
        self.frame, self.connection, self.broker, self.at_ms = frame, connection, broker, at_ms
        self.began_ns = stopwatch_ns()
        self.outcome = ANSWERED
        self.request: Any = None
        self.notes: dict[str, Any] | None = None
        self.parts: Parts | None = None
        self.id = self.era = 0

    @property
    def fault(self) -> str | None:
        """The ids of the faults that it met."""
        return self.notes.get(FAULT_NOTE) if self.notes else None


Raw = tuple[Any, ...]
"""An entry's fields. A plain tuple of plain values is one that the garbage collector forgets about."""


class Chunk:
    """A part of the ring; once it is full its entries are a tuple of tuples, and the garbage collector's no more."""

    __slots__ = ("bytes", "connections", "entries")

    def __init__(self) -> None:
        self.entries: list[Raw] | tuple[Raw, ...] = []
        self.connections: dict[int, Connection] = {}
        self.bytes = 0


class Recorder(Protocol):
    """Writes the journal down, whatever becomes of the one in memory (``--journal DIR``)."""

    def record(self, entry: Raw, served: Served) -> None:
        """A request is settled. Must not wait."""
        ...

    async def rotate(self) -> str | None:
        """Finish what was written so far; its name. Raises ConnectionError where nobody writes any more."""
        ...


class Journal:
    """The requests of a cluster, in the order in which they were answered."""

    def __init__(self, max_entries: int = 100_000, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._chunk_size = max(1, min(1024, max_entries // 16))
        self._ids, self._connections = count(1), count(1)
        self.under_way: dict[int, Served] = {}
        self.chunks: deque[Chunk] = deque((Chunk(),))
        self.entries = self.bytes = self.dropped = 0
        self.era = 0
        """How often the cluster was reset or restored: offsets and epochs of two eras have nothing in common."""
        self.recorder: Recorder | None = None
        self.by_api: dict[int, list[int]] = {}
        """API key (they are below 256) -> requests, nanoseconds, bytes in, bytes out, since the server started."""

    def new_connection(self) -> int:
        """A number for a connection that sends its first request."""
        return next(self._connections)

    def arrive(self, served: Served) -> None:
        """A request begins to be served."""
        served.id, served.era = next(self._ids), self.era
        self.under_way[served.id] = served

    def settle(self, served: Served) -> None:
        """It has been answered, or will not be. A small answer is joined here instead of when it is sent."""
        recorder = self.recorder
        known = self.under_way.pop(served.id, None) is not None
        if not known and recorder is None:
            return  # the journal was cleared meanwhile
        took_ns = stopwatch_ns() - served.began_ns
        frame, connection, parts = served.frame, served.connection, served.parts
        size = len(frame)
        kept: Kept = frame if size <= WHOLE_BYTES else without_records(frame, served.request)
        answer: Kept | None = None
        answer_bytes = 0
        if parts is not None:
            answer_bytes = int.from_bytes(parts[0][:4]) + 4
            if answer_bytes > WHOLE_BYTES and frame[1] == ApiKey.FETCH:
                answer = answer_without_records(parts, every=recorder is not None)
            else:
                answer = b"".join(parts)
                parts[:] = (answer,)
        entry = (served.id, served.at_ms, took_ns // 1000, served.broker, connection.number, kept, answer,
                 size, answer_bytes, served.fault, served.outcome)  # fmt: skip
        if recorder is not None:
            recorder.record(entry, served)
        if not known:
            return
        self._keep(entry, connection)
        if size > 1:
            counts = self.by_api.get(frame[1])
            if counts is None:
                counts = self.by_api[frame[1]] = [0, 0, 0, 0]
            counts[0] += 1
            counts[1] += took_ns
            counts[2] += size + 4
            counts[3] += answer_bytes

    def _keep(self, entry: Raw, connection: Connection) -> None:
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
        if len(entries) >= self._chunk_size:
            chunk.entries = tuple(entries)
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

    def snapshot(self) -> list[tuple[Sequence[Raw], dict[int, Connection]]]:
        """What there is now, oldest first, then what is being served: it stays as it is while the journal goes on."""
        found: list[tuple[Sequence[Raw], dict[int, Connection]]] = [
            (chunk.entries if isinstance(chunk.entries, tuple) else tuple(chunk.entries), chunk.connections)
            for chunk in self.chunks
        ]
        waiting = list(self.under_way.values())
        found.append((tuple(map(_pending, waiting)), {each.connection.number: each.connection for each in waiting}))
        return found


class NoJournal(Journal):
    """Remembers nothing, and writes nothing down: ``understudy.journal.max.entries=0``."""

    def arrive(self, served: Served) -> None:
        """Nobody will ask."""

    def settle(self, served: Served) -> None:
        """Nobody will ask."""


def journal_of(settings: Mapping[str, str], *, written_down: bool = False) -> Journal:
    """The journal that the settings of the command line ask for; ``written_down``: there will be a recorder."""
    made = BrokerSettings(1, settings)
    entries, bytes_ = made.int("understudy.journal.max.entries"), made.long("understudy.journal.max.bytes")
    return Journal(entries, bytes_) if entries or written_down else NoJournal()


def _pending(served: Served) -> Raw:
    frame: Kept = served.frame if len(served.frame) <= WHOLE_BYTES else bytes(served.frame[:WHOLE_BYTES])
    return (served.id, served.at_ms, -1, served.broker, served.connection.number, frame, None,
            len(served.frame), 0, served.fault, "is being served")  # fmt: skip


# --- what is kept ----------------------------------------------------------------------------------------------------


def weight_of(kept: Kept) -> int:
    """The memory that it takes, about."""
    return sum(map(len, kept[::3])) + len(kept) * 40 if isinstance(kept, tuple) else len(kept)


def without_records(frame: bytearray, request: Any) -> Kept:
    """A request's frame; where it carries records, the pieces between them. Others are kept as they are."""
    if not (len(frame) > 4 and frame[0] == 0 and frame[1] == ApiKey.PRODUCE and request is not None):
        return frame
    flexible = is_flexible(ApiKey.PRODUCE, frame[2] << 8 | frame[3])
    pieces: list[Any] = []
    at = 0
    for topic in request.topic_data:
        for partition in topic.partition_data:
            if not partition.records:
                continue
            size, head = len(partition.records), bytes(partition.records[:BATCH_HEADER_SIZE])
            begin = frame.find(head, at)  # the records are slices of the frame, in its order
            prefix = len(uvarint(size + 1)) if flexible else 4
            pieces += (bytes(frame[at : begin - prefix]), size, head)
            at = begin + size
    return (*pieces, bytes(frame[at:]))


def answer_without_records(parts: Parts, *, every: bool = False) -> Kept:
    """A fetch response as it is written; slices of the log are left out with the size that stands before them.

    Of these, the first batch's header is kept, or, with ``every``, those of all batches.
    """
    pieces: list[Any] = []
    plain: list[bytes] = []
    slices: list[Any] = []

    def leave_out() -> None:
        head = heads(slices) if every else bytes(slices[0][:BATCH_HEADER_SIZE])
        pieces.extend((b"".join(plain[:-1]), sum(map(len, slices)), head))
        plain.clear()
        slices.clear()

    for part in parts:
        if type(part) is bytes and len(part) < _SHORTEST_RECORDS:
            if slices:
                leave_out()
            plain.append(part)
        elif len(part):
            slices.append(part)
    if slices:
        leave_out()
    return (*pieces, b"".join(plain))


def heads(slices: Sequence[Any]) -> bytes:
    """The headers of all batches in a set of records that lies in slices; of very many, the first 4096.

    Of a set in an older format, of which headers tell nothing, the first 61 bytes.
    """
    found: list[bytes] = []
    skip = 0
    for data in slices:
        size, at = len(data), skip
        while at + BATCH_HEADER_SIZE <= size and len(found) < _MOST_HEADS:
            head = bytes(data[at : at + BATCH_HEADER_SIZE])
            at += max(int.from_bytes(head[8:12]) + 12, BATCH_HEADER_SIZE)
            found.append(head)
            if head[16] < MAGIC_V2:
                return found[0]
        if at < size and len(found) < _MOST_HEADS and len(slices) > 1:
            return heads([b"".join(slices)])  # a header lies on both sides of a cut
        skip = at - size
    return b"".join(found) or bytes(slices[0][:BATCH_HEADER_SIZE])


def expand(
    kept: Kept, key: int, version: int, left: Callable[[bytes], bytes] = bytes
) -> tuple[bytes | bytearray, list[int] | None]:
    """A message that can be decoded, and the sizes that its sets of records have had; ``None``: it is whole.

    In the place of the records stands what ``left`` makes of the headers that were kept; by default these themselves.
    """
    if not isinstance(kept, tuple):
        return kept, None
    flexible = is_flexible(key, version)
    out = bytearray()
    sizes = []
    for piece, size, head in _triples(kept):
        out += piece
        if size is not None:
            stands = left(head)
            out += uvarint(len(stands) + 1) if flexible else len(stands).to_bytes(4, "big")
            out += stands
            sizes.append(size)
    return out, sizes


def _triples(kept: tuple[Any, ...]) -> Iterator[tuple[bytes, int | None, bytes]]:
    for at in range(0, len(kept) - 1, 3):
        yield kept[at], kept[at + 1], kept[at + 2]
    yield kept[-1], None, b""
