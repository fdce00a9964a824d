"""A line of the journal's files: complete, readable by itself, and without secrets."""

import json
import re
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

from broker.request.connection import Connection
from broker.request.context import Exchange
from broker.steering.journal.entries import as_json, decode
from broker.steering.journal.lines import About, Handed, Peer, line
from broker.steering.journal.ring import Entry, Journal, Raw
from protocol.apis import ApiKey
from protocol.codec import encode_request, encode_response
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, FetchTopic, PartitionData
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.records.batch import HEADER
from protocol.types import uuid_text
from tests.scenarios.core.batches import batch

TOPIC_ID = UUID(int=77)
ABOUT = About("R", "C", 5_000_000_000, {uuid_text(TOPIC_ID): "orders"})
PEER = Peer("INSIDE", "::1", 40_000, "User:ada", "walker", "1.2")


class Recorded:
    """A recorder that keeps what it gets."""

    def __init__(self) -> None:
        self.entries: list[Raw] = []

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """Keep it."""
        assert exchange.id == entry[0]
        self.entries.append(entry)

    async def rotate(self) -> str | None:
        """Nothing to finish."""
        return None


def entry_of(key: ApiKey, version: int, request: Any, response: Any, *, recorded: bool = True, fault: str = "") -> Raw:
    """The request as the journal hands it to its recorder, or as it keeps it where it has none."""
    journal, recorder = Journal(), Recorded()
    journal.recorder = recorder if recorded else None
    served = Exchange(
        bytearray(encode_request(key, version, 9, "app", request)[4:]),
        Connection("c", "INSIDE", "::1", 40_000),
        2,
        1000,
    )
    served.connection.number = 3
    served.faults = fault or None
    served.parts = encode_response(key, version, 9, response)
    journal.arrive(served)
    journal.finish(served)
    ((kept,),) = [entries for entries, *_ in journal.parts() if entries]
    return recorder.entries[0] if recorded else kept


def parsed(entry: Raw, lost: int = 0) -> dict[str, Any]:
    """Its line, read again."""
    encoded = line(Handed(entry, 1_234_567, PEER, 4), ABOUT, lost)
    assert encoded.endswith(b"\n")
    assert encoded.count(b"\n") == 1
    document: dict[str, Any] = json.loads(encoded)
    return document


def end_txn(**more: Any) -> dict[str, Any]:
    """The line of a commit that was refused."""
    refused = EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
    return parsed(entry_of(ApiKey.END_TXN, 3, EndTxnRequest("x", 7, 1, committed=True), refused, fault="2,5"), **more)


def test_a_line_has_everything_of_a_request() -> None:
    """Client, broker, request, time, and the response."""
    answer = end_txn(lost=12)
    duration_us = answer.pop("duration_us")
    assert duration_us >= 0
    assert answer == {
        "v": 1,
        "run": "R",
        "era": 4,
        "id": 1,
        "lost": 12,
        "cluster_id": "C",
        "ts_us": 5_001_234,
        "at_ms": 1000,
        "broker": 2,
        "listener": "INSIDE",
        "connection": 3,
        "client": "::1:40000",
        "principal": "User:ada",
        "client_id": "app",
        "software": "walker",
        "software_version": "1.2",
        "api_key": 26,
        "api": "EndTxn",
        "version": 3,
        "correlation_id": 9,
        "outcome": "answered",
        "error_codes": [90],
        "error": "PRODUCER_FENCED",
        "faults": ["2", "5"],
        "request_bytes": 4 + 28,
        "response_bytes": 4 + 12,
        "request": {"transactional_id": "x", "producer_id": 7, "producer_epoch": 1, "committed": True},
        "response": {
            "throttle_time_ms": 0, "error_code": "PRODUCER_FENCED", "producer_id": -1, "producer_epoch": -1,
        },
    }  # fmt: skip
    assert next(iter(answer)) == "v"


def test_the_page_describes_every_field() -> None:
    """The page's table has the fields of a line, all of them and no other, in their order."""
    page = Path(__file__).resolve().parents[4] / "docs" / "debugging.md"
    table = page.read_text(encoding="utf-8").partition("### A line")[2].partition("Bodies have")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(end_txn())


def test_each_error_code_is_listed_once_in_the_order_of_the_answer() -> None:
    """Error codes are listed once each in the response's order, the first one by its name."""
    topics = [
        MetadataResponseTopic(code, name="t")
        for code in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]
    response = MetadataResponse(topics=[*topics, topics[0]])
    answer = parsed(entry_of(ApiKey.METADATA, 12, MetadataRequest(None), response))
    assert (answer["error_codes"], answer["error"]) == ([5, 3], "LEADER_NOT_AVAILABLE")


def fetched(*sets: Any, recorded: bool = True) -> list[dict[str, Any]]:
    """How the records of an answer are shown, partition by partition."""
    partitions = [PartitionData(index, records=records) for index, records in enumerate(sets)]
    response = FetchResponse(responses=[FetchableTopicResponse("", partitions, TOPIC_ID)])
    request = FetchRequest(-1, 0, 1, 1 << 20, 0, [FetchTopic("", [], TOPIC_ID)])
    entry = entry_of(ApiKey.FETCH, 13, request, response, recorded=recorded)
    answer = parsed(entry)
    assert answer["request"]["topics"][0]["topic"] == answer["response"]["responses"][0]["topic"] == "orders"
    return [each["records"] for each in answer["response"]["responses"][0]["partitions"]]


def stamped(first: int, count: int = 1, *, value: bytes = b"v", producer_id: int = -1) -> bytes:
    """A batch at an offset; its checksum is as it comes."""
    data = bytearray(batch(*[value] * count))
    struct.pack_into(">q", data, 0, first)
    struct.pack_into(">q", data, 43, producer_id)
    return bytes(data)


def test_every_batch_of_an_answer_is_shown_wherever_it_lies() -> None:
    """Whole or cut out, in slices that end anywhere; of a batch that is cut at the end nothing."""
    batches = [stamped(0, 3), stamped(3, 1, value=b"w" * 3000, producer_id=44), stamped(10, 2)]
    joined = memoryview(b"".join(batches))
    cuts = [0, 50, len(batches[0]) + 5, len(joined) - len(batches[2]) + 30, len(joined)]
    slices = [joined[begin:end] for begin, end in pairwise(cuts)]
    torn = memoryview(batches[0] + batches[1][:2000])
    sliced, whole, cut = fetched(slices, [joined], [torn])
    assert sliced == whole
    assert (whole["count"], whole["base_offset"], whole["last_offset"], whole["batch_count"]) == (6, 0, 11, 3)
    assert [(b["base_offset"], b["last_offset"], b["count"], b["producer_id"]) for b in whole["batches"]] == [
        (0, 2, 3, -1), (3, 3, 1, 44), (10, 11, 2, -1)]  # fmt: skip
    assert [each["size_bytes"] for each in whole["batches"]] == list(map(len, batches))
    assert (cut["size_bytes"], cut["count"], cut["last_offset"], cut["batch_count"]) == (len(torn), 3, 2, 1)
    ((small),) = fetched([memoryview(batches[0])])
    assert small["batches"] == whole["batches"][:1]
    assert fetched(b"") == [{"size_bytes": 0, "count": 0}]


def test_very_many_batches_are_shown_in_part() -> None:
    """A thousand of them are named; up to 4096 are counted; beyond, the sum is not known."""
    some, many = fetched(*([memoryview(b"".join(map(stamped, range(count))))] for count in (1500, 5000)))
    assert (len(some["batches"]), some["batch_count"], some["count"], some["last_offset"]) == (1000, 1500, 1500, 1499)
    assert (len(many["batches"]), many["batch_count"], many["count"], many["last_offset"]) == (1000, None, None, None)


def test_without_files_the_journal_keeps_the_first_batch_only() -> None:
    """Looking at all of them costs time, and is done for files only."""
    (records,) = fetched([memoryview(stamped(0, 3) + stamped(3, 1, value=b"w" * 3000))], recorded=False)
    assert (records["base_offset"], records["count"], records["last_offset"]) == (0, None, None)


def test_records_in_an_older_format_are_shown_by_their_size() -> None:
    """Records of an older format, whose headers have too little, are shown by their size."""
    old = bytearray(HEADER.size * 60)
    old[8:12] = (100).to_bytes(4, "big")
    old[16] = 1
    assert fetched([memoryview(old)]) == [{"size_bytes": len(old), "count": None}]


def test_what_authenticates_is_not_written() -> None:
    """Neither in a line nor over HTTP: only its size is."""
    secret = b"\0ada\0lovelace"
    entry = entry_of(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(secret), SaslAuthenticateResponse())
    assert b"lovelace" not in line(Handed(entry, 0, PEER, 0), ABOUT, 0)
    assert parsed(entry)["request"] == {"auth_bytes": {"size_bytes": len(secret)}}
    shown = as_json(Entry(*entry), decode(Entry(*entry)), None, lambda _: None)
    assert shown["request"] == {"auth_bytes": {"size_bytes": len(secret)}}
