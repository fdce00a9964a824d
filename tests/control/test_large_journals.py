"""What the console's pages read and send with a journal of a million requests: counted, not timed."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from broker.control import activity as activities
from broker.control import journal as searching
from broker.control.activity import STEP_MS, STEPS, Activity
from broker.control.journal import Query, find
from broker.control.request import ControlRequest
from broker.request.connection import Connection
from broker.steering.faults.rules import Faults
from broker.steering.journal import entries
from broker.steering.journal.entries import decode
from broker.steering.journal.ring import Entry, Journal, Raw
from broker.time.clock import stopwatch_ns
from broker.time.rng import Random
from control_api.journal import JournalQuery
from protocol.apis import ApiKey
from protocol.codec import encode_request, encode_response
from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

pytestmark = pytest.mark.slow  # the journal itself takes seconds

MILLION = 1_000_000
CHUNK = 1024
FAILED = 1000
"""One request in so many got OFFSET_OUT_OF_RANGE."""
SLOW = 5
"""A request that was answered long after those that came with it."""


def answered(error: ErrorCode) -> tuple[bytes, bytes]:
    """A request and its answer; two bytes of each answer are those of OFFSET_OUT_OF_RANGE: an offset of 1."""
    body = ListOffsetsRequest(-1, [ListOffsetsTopic("orders", [ListOffsetsPartition(0, timestamp=-1)])])
    request = bytes(encode_request(ApiKey.LIST_OFFSETS, 8, 1, "app", body))
    partition = ListOffsetsPartitionResponse(0, error, offset=1)
    response = ListOffsetsResponse([ListOffsetsTopicResponse("orders", [partition])])
    return request[4:], b"".join(encode_response(ApiKey.LIST_OFFSETS, 8, 1, response))


@pytest.fixture(scope="module")
def journal() -> Journal:
    """A million requests of the last seconds, by ten connections, kept as they are in a server."""
    filled = Journal(MILLION + CHUNK, 1 << 40)
    filled.notes_errors = True
    kept = {code: answered(code) for code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)}
    connections = [Connection(str(number), "PLAINTEXT", "::1", number) for number in range(10)]
    now_us = stopwatch_ns() // 1000
    numbers = [*range(1, SLOW), *range(SLOW + 1, MILLION // 2), SLOW, *range(MILLION // 2, MILLION + 1)]
    for number in numbers:
        code = ErrorCode.NONE if number % FAILED else ErrorCode.OFFSET_OUT_OF_RANGE
        frame, answer = kept[code]
        connection = connections[number % 10]
        connection.number = number % 10 + 1
        sizes = len(frame), len(answer)
        entry = (number, number, 5, 1, connection.number, frame, answer, *sizes, None, "answered", now_us)
        filled._keep(entry, connection, () if code is ErrorCode.NONE else (code,))
    filled.newest_id = MILLION
    assert (filled.entries, filled.dropped) == (MILLION, 0)
    return filled


class Source:
    """What a search asks of a cluster."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.faults = Faults(Random(1))
        self.image = type("Image", (), {"topics": {}, "topics_by_id": {}})
        self.own = None


class Looked:
    """How many entries were looked at, and how many decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        sift = Query.sift

        def sifted(query: Query, raws: Sequence[Raw]) -> list[Raw]:
            self.counts["looked"] += len(raws)
            return sift(query, raws)

        def decoded(entry: Any) -> Any:
            self.counts["decoded"] += 1
            return decode(entry)

        monkeypatch.setattr(Query, "sift", sifted)
        for module in (searching, activities, entries):
            monkeypatch.setattr(module, "decode", decoded)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The counts of one test."""
    return Looked(monkeypatch).counts


async def ids(journal: Journal, **query: Any) -> list[int]:
    """What a search finds."""
    request = ControlRequest(Source(journal), {})  # type: ignore[arg-type]  # what a search asks of it
    conditions: JournalQuery = {**query}  # type: ignore[typeddict-item]
    return [raw[0] for raw, _ in await find(request, conditions)]


async def test_the_journal_page_looks_at_what_it_shows(journal: Journal, looked: Counter[str]) -> None:
    """Of a million entries the page reads the newest 500, which it shows."""
    assert await ids(journal, limit=500) == list(range(MILLION - 499, MILLION + 1))
    assert looked["looked"] < 600


async def test_asking_again_looks_at_what_is_new(journal: Journal, looked: Counter[str]) -> None:
    """From `next` on. Before, every look went through the whole journal if the filters let little through."""
    assert journal.next_id == MILLION + 1
    assert await ids(journal, limit=500, since=journal.next_id, api="EndTxn") == []
    assert looked["looked"] <= CHUNK
    assert await ids(journal, limit=500, since=MILLION - 5000) == list(range(MILLION - 499, MILLION + 1))
    assert looked["looked"] <= 2 * CHUNK


async def test_one_request_is_found_among_those_that_were_answered_with_it(
    journal: Journal, looked: Counter[str]
) -> None:
    """By its id; one that took long lies among later ones, and is found there."""
    assert await ids(journal, id=MILLION // 4) == [MILLION // 4]
    assert looked["looked"] <= 3 * CHUNK
    assert await ids(journal, id=SLOW) == [SLOW]
    assert journal.oldest_id == 1


async def test_requests_with_an_error_are_known_without_decoding_the_others(
    journal: Journal, looked: Counter[str]
) -> None:
    """Each answer here has the two bytes of the code somewhere: a million would be decoded, which takes a minute."""
    assert await ids(journal, error="OFFSET_OUT_OF_RANGE") == list(range(FAILED, MILLION + 1, FAILED))
    assert looked["decoded"] == looked["looked"] == MILLION // FAILED
    looked.clear()
    assert await ids(journal, error="NOT_COORDINATOR") == []
    assert looked["decoded"] == looked["looked"] == 0


async def test_any_error_is_found_among_a_million(journal: Journal, looked: Counter[str]) -> None:
    """By the noted codes, and by requests without an answer; those that are answered well are not looked at."""
    assert await ids(journal, errors=True) == list(range(FAILED, MILLION + 1, FAILED))
    assert looked["looked"] == MILLION // FAILED
    newest = await ids(journal, errors=True, limit=3, since=MILLION - 10 * FAILED)
    assert newest == [MILLION - 2 * FAILED, MILLION - FAILED, MILLION]


@pytest.mark.parametrize("notes", [True, False], ids=["a cluster's", "a proxy's"])
async def test_a_request_without_an_answer_is_an_error_and_one_that_waits_is_none(notes: bool) -> None:
    """Unanswered requests count as errors and waiting ones do not, as on the first page."""
    journal = Journal(100)
    journal.notes_errors = notes
    connection = Connection("c", "PLAINTEXT", "::1", 1)
    codes = (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE, None, None)
    outcomes = ["answered", "answered", "never answered", "is being served"]
    for number, (outcome, code) in enumerate(zip(outcomes, codes, strict=True)):
        frame, answer = answered(code or ErrorCode.NONE)
        kept = None if code is None else answer
        entry = (number, number, 5, 1, 1, frame, kept, len(frame), 0, None, outcome, 0)
        journal._keep(entry, connection, () if not code else (code,))
    assert await ids(journal, errors=True) == [1, 2]
    assert await ids(journal, errors=True, outcome="never answered") == [2]
    assert await ids(journal, outcome="answered") == [0, 1]
    assert await ids(journal, errors=False) == [0, 1, 2, 3]


async def test_a_journal_without_codes_is_searched_all_the_same(looked: Counter[str]) -> None:
    """That of a proxy: by the answers themselves."""
    journal = Journal(100)
    for number, code in enumerate((ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE), start=1):
        frame, answer = answered(code)
        entry = (number, number, 5, 1, 1, frame, answer, len(frame), len(answer), None, "answered", 0)
        journal._keep(entry, Connection("c", "PLAINTEXT", "::1", 1), ())
    assert await ids(journal, error="OFFSET_OUT_OF_RANGE") == [2]
    assert looked["decoded"] == 2


async def test_a_short_name_is_looked_for_with_its_length(journal: Journal, looked: Counter[str]) -> None:
    """A topic `r`: each request has an r somewhere, and none of them is decoded for it."""
    assert await ids(journal, topic="r", since=MILLION - 100 * CHUNK) == []
    assert looked["decoded"] == 0
    assert len(await ids(journal, topic="orders", limit=10)) == 10


async def test_a_page_that_is_opened_again_counts_the_newest_few_first(
    journal: Journal, looked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was blank for seconds on a busy machine, until 5000 of the requests that had come meanwhile were counted."""
    activity, source = Activity(), Source(journal)
    begun = await activity.look(source, lambda _: None)  # type: ignore[arg-type]
    monkeypatch.setattr("broker.control.activity.stopwatch_ns", lambda: begun * STEP_MS * 1_000_000)
    activity._looked = begun  # the machine may have been busy
    await activity.look(source, lambda _: None)  # type: ignore[arg-type]
    assert looked["decoded"] == 5500
    later_ns = (begun + 3) * STEP_MS * 1_000_000
    monkeypatch.setattr("broker.control.activity.stopwatch_ns", lambda: later_ns)
    await activity.look(source, lambda _: None)  # type: ignore[arg-type]
    assert looked["decoded"] == 6000
    await activity.look(source, lambda _: None)  # type: ignore[arg-type]
    assert looked["decoded"] == 11_000


async def test_the_first_page_counts_the_newest_few_at_once(
    journal: Journal, looked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 requests, then up to 5000 at each further look, of 20,000; what is left out is counted, for two minutes."""
    activity, source = Activity(), Source(journal)
    now = await activity.look(source, lambda _: None)  # type: ignore[arg-type]  # it asks for the journal alone
    assert looked["decoded"] == 500
    assert activity.skipped(now) == MILLION - 20_000
    monkeypatch.setattr("broker.control.activity.stopwatch_ns", lambda: now * STEP_MS * 1_000_000)
    activity._looked = now  # the machine may have been busy
    for read in (5500, 10_500, 15_500, 20_000, 20_000):
        await activity.look(source, lambda _: None)  # type: ignore[arg-type]
        assert looked["decoded"] == read
    assert activity.skipped(now) == MILLION - 20_000
    assert activity.skipped(now + STEPS) == 0, "they are older than what the page is about"
    assert sum(step.requests for step in activity.steps.values()) == 20_000
    ((api, error), (latest, client_id)) = next(iter(activity.latest.items()))
    assert (api, error, latest, client_id) == ("ListOffsets", "OFFSET_OUT_OF_RANGE", MILLION, "app")


def test_rows_without_bodies_are_small(journal: Journal) -> None:
    """About 600 bytes each; those of 500 with their bodies would be half a megabyte."""
    (part, *_) = journal.parts()
    entry = Entry(*part.entries[0])
    sizes = [
        len(json.dumps(entries.as_json(entry, decode(entry), None, lambda _: None, bodies=bodies)))
        for bodies in (False, True)
    ]
    assert sizes[0] < 600
    assert sizes[1] > sizes[0] + 200
