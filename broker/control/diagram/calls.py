"""Finds the requests of a diagram, decodes them, and describes them as text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from typing import Any

from broker.control.groups import is_classic
from broker.control.journal import Pausing, Place, Query, Sifting, search, topic_names
from broker.control.request import ControlRequest
from broker.request.connection import Connection
from broker.steering.journal.entries import Decoded, TopicName, decode, title
from broker.steering.journal.mentioned import answered, few, names, place, requested
from broker.steering.journal.ring import Entry, Raw
from broker.time.clock import Slices
from control_api.diagrams import DiagramQuery
from control_api.journal import JournalQuery
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.paths import errors
from protocol.records.batch import RecordBatch, begins_with_batch

POLLS = frozenset(
    {
        "ApiVersions", "Metadata", "Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
        "StreamsGroupHeartbeat", "ShareFetch", "ListOffsets", "GetTelemetrySubscriptions", "PushTelemetry",
    }
)  # fmt: skip
"""APIs that clients call all the time; successful calls are omitted, unless the query has ``polls``."""
_HEARTBEATS = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"})
_SEARCHED = 10
"""The number of requests that are read for each one shown.

Most requests of a consumer are polls, which are left out.
Ours, with fewer a quiet consumer would have no diagram.
"""
_FRAME, _ANSWER = 5, 6  # where a raw entry has them (`steering/journal/ring.py`)
_MOST_PLACES = 3  # partitions named in a label; the others are counted; ours, they fit on a line
Producer = tuple[int, int]
"""Producer id and epoch."""


@dataclass(slots=True)
class Written:
    """The batch that a Produce request sent to one partition; ``offset`` is -1 if it was not written."""

    place: str
    sequences: tuple[int, int]
    offset: int = -1
    records: int = 0


@dataclass(slots=True)
class Call:
    """A request with its response. ``changes`` (time and text) and ``reason`` come from the timelines."""

    entry: Entry
    connection: Connection | None
    known: Decoded
    api: str
    asks: str
    result: str
    error: str | None
    producers: tuple[Producer, ...] = ()
    written: tuple[Written, ...] = ()
    changes: list[tuple[int, str]] = field(default_factory=list)
    reason: str = ""
    count: int = 1

    @property
    def client_id(self) -> str:
        """Return the client id; empty if the request has none."""
        return (self.known.header.client_id or "") if self.known.header else ""

    @property
    def version(self) -> int:
        """Return the version of the API; -1 if the request is unreadable."""
        return -1 if self.known.header is None else self.known.header.api_version

    @property
    def ends_ms(self) -> float:
        """Return the time of the response, or of giving up; infinity for a request that is being served."""
        return float("inf") if self.entry.duration_us < 0 else self.entry.at_ms + self.entry.duration_us / 1000


class _OfProducer:
    """Search for a producer id: requests with its batches, requests that name it, and its InitProducerId response."""

    def __init__(self, producer_id: int, since: int) -> None:
        self._id, self._since = producer_id, since
        self._bytes = producer_id.to_bytes(8, "big")  # an int64, as on the wire

    def sift(self, raws: Sequence[Raw]) -> list[Raw]:
        """Return the entries that contain the bytes of the id."""
        return [raw for raw in raws if raw[1] >= self._since and (self._in(raw[_FRAME]) or self._in(raw[_ANSWER]))]

    def _in(self, kept: Any) -> bool:
        pieces = kept if type(kept) is tuple else (kept,)
        return any(isinstance(piece, bytes | bytearray) and self._bytes in piece for piece in pieces)

    def settles(self, raw: Raw) -> bool:
        """Decode an entry, and return whether the producer id is in one of its fields."""
        return any(producer[0] == self._id for producer in producers_of(decode(Entry(*raw))))


class _Until:
    """Limits another search to entries up to a time and a journal id."""

    def __init__(self, inner: Sifting, until_ms: int | None, last: int | None) -> None:
        self._inner, self._until_ms, self._last = inner, until_ms, last

    def sift(self, raws: Sequence[Raw]) -> list[Raw]:
        """Return the entries that may match and are not later."""
        return self._inner.sift(
            [
                raw
                for raw in raws
                if (self._until_ms is None or raw[1] <= self._until_ms) and (self._last is None or raw[0] <= self._last)
            ]
        )

    def settles(self, raw: Raw) -> bool:
        """Return the other search's decision."""
        return self._inner.settles(raw)


async def find(request: ControlRequest, query: DiagramQuery, ids: tuple[int, int | None] | None = None) -> list[Call]:
    """Find the requests of a diagram, oldest first; more than it shows, since equal ones become one step.

    ``ids``: the first and last journal id that may be in it; None for no last one.
    """
    limit, name_of, slices = query["limit"], topic_names(request), Slices()
    has_generations = cache(partial(is_classic, request))
    calls: list[Call] = []
    for raw, connections in await _entries(request, query, _SEARCHED * limit, ids):
        await slices.pause()
        entry = Entry(*raw)
        if ids is not None and entry.id < ids[0]:
            continue
        call = read(entry, connections.get(entry.connection), name_of, has_generations, query.get("group", ""))
        odd = call.error is not None or entry.fault is not None or entry.outcome != "answered"
        if odd or (not query["errors"] and (query["polls"] or call.api not in POLLS or _moves(call))):
            calls.append(call)
    return calls


def _moves(call: Call) -> bool:
    """Return whether a heartbeat joins or leaves the group, or gives its member another epoch."""
    before = getattr(call.known.request, "member_epoch", None)
    if type(before) is not int or call.api not in _HEARTBEATS:
        return False
    return before <= 0 or before != getattr(call.known.response, "member_epoch", before)


async def _entries(
    request: ControlRequest, query: DiagramQuery, limit: int, ids: tuple[int, int | None] | None
) -> Iterator[Place]:
    slices: Pausing = Slices()
    sifting: Sifting
    if "producer_id" in query:
        sifting = _OfProducer(query["producer_id"], query["since"])
    else:
        conditions: JournalQuery = {"since": query["since"]}
        for name in ("transactional_id", "group", "connection"):
            if name in query:
                conditions[name] = query[name]
        sifting = Query(request, conditions)
    if query["until"] is not None or ids is not None:
        sifting = _Until(sifting, query["until"], None if ids is None else ids[1])
    return await search(request.source.journal, sifting, limit, slices)


def read(
    entry: Entry,
    connection: Connection | None,
    name_of: TopicName,
    has_generations: Callable[[str], bool],
    group: str,
) -> Call:
    """Describe a journal entry as text, without the name of the diagram's own group (``own``).

    ``has_generations`` returns whether the members of a group have generations instead of epochs.
    """
    decoded = decode(entry)
    error = next(errors(decoded.response), None)
    written = tuple(_written(decoded, name_of))
    done = "ok" if entry.outcome == "answered" else entry.outcome
    result = done if error is None else error.name
    asked_for = [_asks(decoded.request, has_generations)]
    if written:
        asked_for.append(
            few([f"{append.place} {_span('sequence', *append.sequences)}".strip() for append in written], _MOST_PLACES)
        )
    else:
        named = [name for name in names(requested(decoded), name_of) if not name.startswith("transactional id")]
        asked_for.append(few([name for name in named if name != f"group {group}"]))
    gains = _gains(decoded) if error is None else _refused_at(decoded, error, name_of)
    return Call(
        entry,
        connection,
        decoded,
        "unreadable request" if decoded.header is None else title(decoded.header.api_key),
        ", ".join(filter(None, asked_for)),
        f"{result}: {gains}" if gains else result,
        None if result.startswith("ok") else error.name if error is not None else entry.outcome,
        producers_of(decoded),
        written,
    )


def _refused_at(decoded: Decoded, error: ErrorCode, name_of: TopicName) -> str:
    """Name the partitions with the error, if the response has several items."""
    places = list(answered(decoded))
    return (
        few([place(item, name_of) for item in places if item.error is error], _MOST_PLACES) if len(places) > 1 else ""
    )


# --- producers and what they wrote -----------------------------------------------------------------------------------


def producers_of(decoded: Decoded) -> tuple[Producer, ...]:
    """Return the producer ids and epochs in a request and its response, without those that are -1."""
    producers = []
    transactions = getattr(decoded.request, "transactions", None) or ()
    for message in (decoded.request, *transactions, decoded.response):
        producer = (getattr(message, "producer_id", -1), getattr(message, "producer_epoch", -1))
        if type(producer[0]) is int and producer[0] >= 0:
            producers.append(producer)
    producers += [
        (batch.producer_id, batch.producer_epoch) for _, _, batch in _batches(decoded) if batch.producer_id >= 0
    ]
    return tuple(dict.fromkeys(producers))


def _batches(decoded: Decoded) -> Iterator[tuple[Any, Any, RecordBatch]]:
    """Yield the first batch of each partition of a Produce request."""
    if decoded.header is None or decoded.header.api_key != ApiKey.PRODUCE or decoded.request is None:
        return
    for topic in decoded.request.topic_data:
        for data in topic.partition_data:
            if data.records and begins_with_batch(bytes(data.records)):
                yield topic, data, RecordBatch(bytes(data.records))


def _written(decoded: Decoded, name_of: TopicName) -> Iterator[Written]:
    offsets: dict[tuple[Any, Any, int], int] = {}
    if decoded.response is not None and decoded.header is not None and decoded.header.api_key == ApiKey.PRODUCE:
        for topic in decoded.response.responses:
            for part in topic.partition_responses:
                offsets[topic.name, topic.topic_id, part.index] = part.base_offset
    items = {(each.topic, each.partition): each for each in requested(decoded)}
    for topic, data, batch in _batches(decoded):
        item = items.get((topic.name or topic.topic_id, data.index))
        named = f"{topic.name}-{data.index}" if item is None else place(item, name_of)
        sequences = (batch.base_sequence, batch.last_sequence) if batch.producer_id >= 0 else (-1, -1)
        offset = offsets.get((topic.name, topic.topic_id, data.index), -1)
        yield Written(named, sequences, offset, batch.record_count)


# --- text ------------------------------------------------------------------------------------------------------------


def _span(what: str, first: int, last: int) -> str:
    if first < 0:
        return ""
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"


def _asks(request: Any, has_generations: Callable[[str], bool]) -> str:
    """Describe a request besides the names in it, such as ``commit, epoch 3``."""
    parts = []
    group = getattr(request, "group_id", None)
    # Offset commits have one field for the generation or the member epoch, depending on the group's protocol.
    generation = "generation" if not isinstance(group, str) or has_generations(group) else "member epoch"
    if hasattr(request, "committed"):
        parts.append("commit" if request.committed else "abort")
    for name, noun, none in (
        ("producer_epoch", "epoch", -1), ("generation_id", generation, -1), ("member_epoch", "member epoch", None),
        ("generation_id_or_member_epoch", generation, -1),
    ):  # fmt: skip
        value = getattr(request, name, none)
        if type(value) is int and value != none:
            parts.append(f"{noun} {value}")
    return ", ".join(parts)


def _gains(decoded: Decoded) -> str:
    """Describe a response without an error, such as ``producer 4000, epoch 0``."""
    response, parts = decoded.response, []
    if type(getattr(response, "producer_id", None)) is int and response.producer_id >= 0:  # type: ignore[union-attr]
        parts.append(f"producer {response.producer_id}, epoch {response.producer_epoch}")  # type: ignore[union-attr]
    for name, noun in (("generation_id", "generation"), ("member_epoch", "member epoch")):
        value = getattr(response, name, None)
        if type(value) is int and value >= 0:
            parts.append(f"{noun} {value}")
    nodes = {coordinator.node_id for coordinator in _coordinators(response)}
    parts += [f"broker {node}" for node in sorted(nodes)]
    return ", ".join(parts)


def _coordinators(response: Any) -> Iterable[Any]:
    """Return the coordinators in a FindCoordinator response of any version."""
    coordinators = getattr(response, "coordinators", None)
    if coordinators:
        return tuple(coordinators)
    return (response,) if type(getattr(response, "node_id", None)) is int and hasattr(response, "port") else ()
