"""Verbs of the journal: search, capture for Wireshark, rotation, clearing."""

import heapq
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from starlette.responses import Response, StreamingResponse

from broker.control import pcap
from broker.control.names import api_key, error_code
from broker.control.near_misses import NearMisses
from broker.control.problems import conflict
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.request.connection import Connection
from broker.steering.journal.entries import TopicName, as_json, decode
from broker.steering.journal.mentioned import columns
from broker.steering.journal.ring import ANSWERED, BEING_SERVED, Chunk, Entry, Journal, Part, Raw
from broker.time.clock import Slices
from control_api.encoding import all_exact
from control_api.journal import JournalFile, JournalListing, JournalQuery
from control_api.verb import Removed
from protocol.codec import first_error
from protocol.items import Selection, mentions, request_level, response_level
from protocol.paths import errors
from protocol.types import uuid_from_text
from protocol.uvarint import uvarint

_A_TIME_FROM = 10**11
"""Values of ``since`` from here on are times (1973 in milliseconds), smaller ones are journal ids."""
_GLANCES, _GLANCED_BYTES = 64, 1024 * 1024
"""The number of entries, or bytes, examined between two pauses; decoding pauses after each entry.

Ours, microseconds of work, beside which asking the clock costs little.
"""
_MOST_IDS = 16
"""The maximum number of ids of a topic in a search: each reset creates another id.

Arbitrary, as older ones are rarely searched.
"""
_RUN = 1000
"""The number of matching entries that are sorted between two pauses: arbitrary, so that clients do not wait long."""
Look = Callable[[Raw], bool]
Place = tuple[Raw, dict[int, Connection]]
_ID, _AT_MS, _BROKER, _CONNECTION, _FRAME, _ANSWER, _FRAME_BYTES, _ANSWER_BYTES, _FAULT = 0, 1, 3, 4, 5, 6, 7, 8, 9
_OUTCOME = 10  # the places of a raw entry (`steering/journal/ring.py`)


class Pausing(Protocol):
    """Yields to the event loop from time to time (``clock.Slices``)."""

    async def pause(self) -> None:
        """Yield to the event loop if the time slice is over."""
        ...


class Sifting(Protocol):
    """A search condition (:class:`Query`)."""

    def sift(self, raws: Sequence[Raw]) -> list[Raw]:
        """Return the entries that may match, without decoding them."""
        ...

    def settles(self, raw: Raw) -> bool:
        """Decode an entry, and return whether it matches."""
        ...


class Query:
    """Search conditions, joined by AND: those on raw bytes are checked first, then those that need decoding."""

    def __init__(self, request: ControlRequest, query: JournalQuery) -> None:
        """Raises Problem 422 for names that do not exist."""
        topic = query.get("topic")
        self._topic_ids = [] if topic is None else _ids_of(request, topic)
        self._wanted = Selection(topic, None, query.get("group"), query.get("transactional_id"))
        self._by_id = [replace(self._wanted, topic_id=topic_id) for topic_id in self._topic_ids] or [self._wanted]
        self._notes_errors = request.source.journal.notes_errors
        self._error = error_code(query["error"], "error") if "error" in query else None
        self._any_error = query.get("errors", False)
        self._glances = [*self._at_the_entry(query), *self._at_the_bytes(query)]
        self._id, self._since = query.get("id"), query.get("since", 0)

    def select(self, part: Part) -> Sequence[Raw]:
        """Return the entries of a part to examine; none if its bounds exclude a match."""
        chunk = part.chunk
        if chunk is None:
            return part.entries
        if chunk.ids is not None:
            first, last = chunk.ids
            if self._id is not None and not first <= self._id <= last:
                return ()
            if self._since > (chunk.last_at_ms if self._since >= _A_TIME_FROM else last):
                return ()
        failed = self._failed(chunk)
        if failed is None:
            return part.entries
        return [raw for raw in part.entries if raw[_ID] in failed] if failed else ()

    def _failed(self, chunk: Chunk) -> frozenset[int] | None:
        """Return the ids of entries with the wanted error; None if any entry may match, or errors were not recorded."""
        if not self._notes_errors:
            return None
        if self._error is not None:
            return frozenset(chunk.failed.get(self._error, ()))
        if self._any_error:
            return frozenset(chunk.unanswered).union(*chunk.failed.values())
        return None

    @staticmethod
    def _at_the_entry(query: JournalQuery) -> Iterator[Look]:
        if (number := query.get("id")) is not None:
            yield lambda raw: raw[_ID] == number
        if since := query.get("since", 0):
            at = _AT_MS if since >= _A_TIME_FROM else _ID
            yield lambda raw: raw[at] >= since
        if (connection := query.get("connection")) is not None:
            yield lambda raw: raw[_CONNECTION] == connection
        if (broker := query.get("broker")) is not None:
            yield lambda raw: raw[_BROKER] == broker
        if (outcome := query.get("outcome")) is not None:
            yield lambda raw: raw[_OUTCOME] == outcome or raw[_OUTCOME].startswith(f"{outcome}:")
        if query.get("errors", False):
            yield lambda raw: raw[_OUTCOME] != BEING_SERVED
        if (fault := query.get("fault")) is not None:
            yield lambda raw: fault in (raw[_FAULT] or "").split(",")

    def _at_the_bytes(self, query: JournalQuery) -> Iterator[Look]:
        if "api" in query:
            key = api_key(query["api"], "api").to_bytes(2, "big")
            yield lambda raw: _front(raw)[:2] == key
        if "client_id" in query:
            client = query["client_id"].encode()
            begin = len(client).to_bytes(2, "big") + client
            # The client id follows api key, version and correlation id.
            yield lambda raw: _front(raw)[8 : 8 + len(begin)] == begin
        if (error := self._error) is not None:
            code = error.to_bytes(2, "big", signed=True)
            yield lambda raw: _holds(raw[_ANSWER], code)
        for name in (self._wanted.group, self._wanted.transactional_id):
            if name is not None:
                yield _mentioning(written(name))
        if self._wanted.topic is not None:
            yield _mentioning((*written(self._wanted.topic), *(topic_id.bytes for topic_id in self._topic_ids)))

    def sift(self, raws: Sequence[Raw]) -> list[Raw]:
        """Return the entries that may match, without decoding them."""
        for look in self._glances:
            raws = [raw for raw in raws if look(raw)]
        return list(raws)

    def settles(self, raw: Raw) -> bool:
        """Decode an entry if necessary, and return whether it matches."""
        if self._error is None and not self._any_error and not self._wanted.kinds:
            return True
        decoded = decode(Entry(*raw))
        if self._error is not None and self._error not in errors(decoded.response):
            return False
        if self._any_error and raw[_OUTCOME] == ANSWERED and first_error(decoded.response) is None:
            return False
        if not self._wanted.kinds:
            return True
        return decoded.header is not None and any(
            message is not None and any(mentions(level(decoded.header.api_key), message, each) for each in self._by_id)
            for level, message in ((request_level, decoded.request), (response_level, decoded.response))
        )


def _ids_of(request: ControlRequest, topic: str) -> list[UUID]:
    """Return the current and recent ids of a topic: requests may have the id alone, even a deleted one (KIP-516)."""
    topic_image = request.source.image.topics.get(topic)
    ids = [topic_id for topic_id, name in request.source.journal.topic_names.items() if name == topic][-_MOST_IDS:]
    return ids if topic_image is None or topic_image.id in ids else [*ids, topic_image.id]


def _front(raw: Raw) -> bytes | bytearray:
    frame = raw[_FRAME]
    front: bytes | bytearray = frame[0] if type(frame) is tuple else frame
    return front


def written(name: str) -> tuple[bytes, ...]:
    """Return a name as encoded in messages: after a two-byte length, or after its length plus one as a varint.

    The name alone would match by accident: most requests contain a ``t``, and all of those would have to be decoded.
    """
    text = name.encode()
    return len(text).to_bytes(2, "big") + text, uvarint(len(text) + 1) + text


def _mentioning(needles: tuple[bytes, ...]) -> Look:
    return lambda raw: any(_holds(raw[at], part) for at in (_FRAME, _ANSWER) for part in needles)


def _holds(kept: Any, part: bytes) -> bool:
    if type(kept) is tuple:
        return any(part in piece for piece in kept[::3])  # the pieces around record sets (`journal/kept.py`)
    return kept is not None and part in kept


async def find(request: ControlRequest, query: JournalQuery) -> Iterator[Place]:
    """Find the entries of a query, oldest first."""
    wanted = Query(request, query)
    # Without a limit: more than any journal has.
    return await search(request.source.journal, wanted, query.get("limit", 1 << 62), Slices(), wanted.select)


def whole(part: Part) -> Sequence[Raw]:
    """Return all entries of a part."""
    return part.entries


async def search(
    journal: Journal,
    query: Sifting,
    limit: int,
    slices: Pausing,
    select: Callable[[Part], Sequence[Raw]] = whole,
) -> Iterator[Place]:
    """Find the newest matching entries, and iterate over them by id. Searches in slices: there may be a million.

    Sorting is spread over the iteration: the iterator merges sorted runs.
    """
    runs: list[list[Place]] = [[]]
    matches = 0
    for part in reversed(journal.parts()):
        if matches >= limit:
            break  # do not examine older parts: a thousand of them would be one long slice
        await slices.pause()
        for window in windows(select(part)):
            if matches >= limit:
                break
            await slices.pause()
            for raw in query.sift(window):
                await slices.pause()
                if matches < limit and query.settles(raw):
                    runs[-1].append((raw, part.connections))
                    matches += 1
            if len(runs[-1]) >= _RUN:
                runs.append([])
    for run in runs:
        run.sort(key=_id_of)
        await slices.pause()
    return heapq.merge(*runs, key=_id_of)


def windows(entries: Sequence[Raw]) -> Iterator[list[Raw]]:
    """Split entries into windows that are examined between two pauses, newest first."""
    window: list[Raw] = []
    size = 0
    for raw in reversed(entries):
        window.append(raw)
        size += raw[_FRAME_BYTES] + raw[_ANSWER_BYTES]
        if len(window) >= _GLANCES or size >= _GLANCED_BYTES:
            yield window
            window, size = [], 0
    if window:
        yield window


def _id_of(place: Place) -> int:
    number: int = place[0][_ID]
    return number


@answers("journal list")
async def read(request: ControlRequest, query: JournalListing) -> Response:
    """List requests with their responses, oldest first, including those being served."""
    journal = request.source.journal
    following = journal.next_id  # taken before the search, which does not include requests that finish meanwhile
    places = await find(request, query)
    name_of = topic_names(request)
    near = NearMisses(request.source, name_of)
    tail = (
        f'], "kept": {journal.entries}, "dropped": {journal.dropped}, '
        f'"oldest": {journal.oldest_id}, "next": {following}}}'
    )
    bodies = query["bodies"]

    def line(place: Place) -> bytes:
        raw, connections = place
        entry = Entry(*raw)
        decoded = decode(entry)
        shown = as_json(entry, decoded, connections.get(raw[_CONNECTION]), name_of, bodies=bodies)
        hints = near.of(entry, decoded, shown["listener"])
        return json.dumps(all_exact({**shown, **columns(decoded, name_of), "hints": hints})).encode()

    return StreamingResponse(
        _joined(b'{"entries": [', b",\n", tail.encode(), places, line), media_type="application/json"
    )


def topic_names(request: ControlRequest) -> TopicName:
    """Return a function from topic id to name, which knows deleted topics too."""
    topics, earlier = request.source.image.topics_by_id, request.source.journal.topic_names

    @cache
    def name_of(text: str) -> str | None:
        topic_id = uuid_from_text(text) if text else None
        if topic_id is None:
            return None
        return topics[topic_id].name if topic_id in topics else earlier.get(topic_id)

    return name_of


@answers("journal clear")
async def clear(request: ControlRequest) -> Removed:
    """Remove all requests from the journal."""
    gone = request.source.journal.entries
    request.source.journal.clear()
    return {"removed": gone}


@answers("journal rotate")
async def rotate(request: ControlRequest) -> JournalFile:
    """Finish the journal's current file: all requests so far are then in files that no longer change."""
    recorder = request.source.journal.recorder
    if recorder is None:
        raise conflict("the journal is not written to files; start the server with --journal DIR")
    try:
        return {"file": await recorder.rotate()}
    except ConnectionError as error:
        raise conflict(f"{error}; see the server's log for the reason") from error


@answers("journal pcap")
async def capture(request: ControlRequest, query: JournalQuery) -> Response:
    """Return the matching requests as a packet capture for Wireshark: brokers on port 9092, large records omitted."""
    places, writer = await find(request, query), pcap.Capture()

    def packets(place: Place) -> bytes:
        raw, connections = place
        return writer.packets(Entry(*raw), connections.get(raw[_CONNECTION]))

    return StreamingResponse(_joined(pcap.HEADER, b"", b"", places, packets), media_type="application/vnd.tcpdump.pcap")


async def _joined(
    head: bytes, between: bytes, tail: bytes, places: Iterable[Place], show: Callable[[Place], bytes]
) -> AsyncIterator[bytes]:
    slices, out = Slices(), bytearray(head)
    for at, place in enumerate(places):
        out += (between if at else b"") + show(place)
        if len(out) > 64 * 1024:  # a piece of the HTTP response
            yield bytes(out)
            out.clear()
        await slices.pause()
    yield bytes(out) + tail
