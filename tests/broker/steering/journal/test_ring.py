"""What the journal keeps, and for how long."""

from typing import Any, cast

import pytest

from broker.request.connection import Connection
from broker.request.context import Exchange
from broker.request.sasl_gate import Gate
from broker.steering.journal.kept import answer_without_records, expand, weight_of, without_records
from broker.steering.journal.ring import WHOLE_BYTES, Entry, Journal
from protocol.apis import ApiKey
from protocol.codec import decode_header, decode_request, decode_response, encode_request, encode_response
from protocol.errors import ErrorCode
from protocol.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.share_fetch import AcquiredRecords, ShareFetchableTopicResponse, ShareFetchResponse
from protocol.messages.share_fetch import PartitionData as SharePartitionData
from tests.scenarios.core.batches import batch

HEAD = 61


def frame_of(key: ApiKey, version: int, request: Any) -> bytearray:
    """As it comes in, without its size."""
    return bytearray(encode_request(key, version, 1, "c", request)[4:])


def served(number: int = 1, size: int = 0) -> Exchange:
    """A heartbeat that was answered."""
    frame = frame_of(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g" * size, 1, "m"))
    exchange = Exchange(frame, Connection("c", "PLAINTEXT", "127.0.0.1", number), 1, 1000 + number)
    exchange.parts = encode_response(ApiKey.HEARTBEAT, 4, 1, HeartbeatResponse())
    return exchange


def fill(journal: Journal, count: int, size: int = 0) -> None:
    """So many heartbeats, one after the other."""
    for number in range(count):
        each = served(number, size)
        journal.arrive(each)
        journal.finish(each)


def ids(journal: Journal) -> list[int]:
    """Of all entries, oldest first."""
    return [raw[0] for entries, *_ in journal.parts() for raw in entries]


def test_a_token_that_is_being_checked_is_not_shown() -> None:
    """As it is not once it was answered."""
    journal, each = Journal(), served()
    each.frame, each.connection.gate = bytearray(b"\0alice\0secret"), cast("Gate", object())
    journal.arrive(each)
    assert b"secret" not in bytes(Entry(*journal.parts()[-1].entries[0]).frame)


def test_the_oldest_entries_are_dropped() -> None:
    """Bounded in entries; dropped entries are counted."""
    journal = Journal(max_entries=160)
    fill(journal, 1000)
    assert journal.entries == len(ids(journal))
    assert 150 <= journal.entries <= 160
    assert ids(journal) == list(range(1001 - journal.entries, 1001))
    assert journal.dropped == 1000 - journal.entries


def test_large_entries_are_dropped_sooner() -> None:
    """Bounded in bytes too; the lower bound wins."""
    journal = Journal(max_entries=100_000, max_bytes=4_000_000)
    fill(journal, 10_000, 1500)
    assert 2_000_000 < journal.bytes <= 4_000_000
    assert journal.entries < 2500


def test_large_answers_are_dropped_sooner() -> None:
    """The bound in bytes holds though few of them fill it, and also for those that are not entered yet."""
    journal = Journal(max_bytes=4_000_000)
    frame = frame_of(ApiKey.METADATA, 9, MetadataRequest(topics=None))
    brokers = [MetadataResponseBroker(number, "h" * 1000, 9092) for number in range(200)]
    for number in range(100):
        each = Exchange(bytearray(frame), Connection("c", "PLAINTEXT", "127.0.0.1", 1), 1, number)
        each.request = MetadataRequest(topics=None)
        each.parts = encode_response(ApiKey.METADATA, 9, 1, MetadataResponse(brokers))
        journal.arrive(each)
        journal.finish(each)
        assert sum(len(settled[6]) for settled in journal._settled) < 250_000
    assert 3_500_000 < journal.bytes <= 4_000_000
    assert ids(journal) == list(range(101 - journal.entries, 101))
    assert journal.dropped == 100 - journal.entries


def test_requests_that_are_being_served_are_listed_too() -> None:
    """Last, without an answer; after that they have one."""
    journal = Journal()
    waiting = served()
    journal.arrive(waiting)
    fill(journal, 2)
    assert ids(journal) == [2, 3, 1]
    journal.finish(waiting)
    assert sorted(ids(journal)) == [1, 2, 3]


def test_a_request_from_before_a_clearing_stays_forgotten() -> None:
    """Its answer comes later, and is not listed."""
    journal = Journal()
    waiting = served()
    journal.arrive(waiting)
    journal.clear()
    journal.finish(waiting)
    assert ids(journal) == []


def test_a_request_is_listed_and_counted_as_soon_as_it_is_answered() -> None:
    """Small requests are entered many at a time, and those that are left at the first look."""
    journal = Journal()
    for number in range(1, 200):
        each = served(number)
        each.errors, each.faults = (ErrorCode.NOT_COORDINATOR,), "1"
        journal.arrive(each)
        journal.finish(each)
        assert ids(journal)[-1] == number
        assert (journal.entries, journal.counts.by_api[ApiKey.HEARTBEAT].requests) == (number, number)
        assert journal.chunks[-1].failed[ErrorCode.NOT_COORDINATOR][-1] == number
        assert journal.counts.errors[ApiKey.HEARTBEAT, ErrorCode.NOT_COORDINATOR] == number
        assert journal.counts.faulted[ApiKey.HEARTBEAT] == number


def test_requests_that_are_not_entered_yet_are_cleared_too() -> None:
    """It is as if each request had been entered by itself."""
    journal = Journal()
    fill(journal, 30)
    journal.clear()
    assert (ids(journal), journal.entries, journal.bytes) == ([], 0, 0)
    assert journal.counts.by_api[ApiKey.HEARTBEAT].requests == 30
    fill(journal, 3)
    assert ids(journal) == [31, 32, 33]


def test_a_small_answer_is_joined_once() -> None:
    """So that the connection need not do it again."""
    each = served()
    journal = Journal()
    journal.arrive(each)
    journal.finish(each)
    assert each.parts is not None
    assert len(each.parts) == 1


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_a_large_produce_request_is_kept_without_its_records(version: int) -> None:
    """It can be decoded still: the same request, with the head of each set of records, and their sizes."""
    first, second, third = (batch(b"v" * size) for size in (3000, 10, 200))
    request = ProduceRequest(
        "x",
        -1,
        1000,
        [
            TopicProduceData("t", [PartitionProduceData(0, first), PartitionProduceData(1, None)]),
            TopicProduceData("u", [PartitionProduceData(0, second), PartitionProduceData(7, third)]),
        ],
    )
    frame = frame_of(ApiKey.PRODUCE, version, request)
    kept = without_records(frame, decode_request(frame, decode_header(frame)))
    assert weight_of(kept) < 800
    whole, sizes = expand(kept, ApiKey.PRODUCE, version)
    kept_request = decode_request(whole, decode_header(whole))
    assert sizes == [len(first), len(second), len(third)]
    assert (kept_request.transactional_id, kept_request.acks, kept_request.timeout_ms) == ("x", -1, 1000)
    read = [p.records and bytes(p.records) for t in kept_request.topic_data for p in t.partition_data]
    assert read == [bytes(first[:HEAD]), None, bytes(second[:HEAD]), bytes(third[:HEAD])]
    empty, _ = expand(kept, ApiKey.PRODUCE, version, lambda _head: b"")
    assert not any(p.records for t in decode_request(empty, decode_header(empty)).topic_data for p in t.partition_data)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_large_fetch_response_is_kept_without_its_records(version: int) -> None:
    """Slices of the log are neither copied nor held."""
    log = memoryview(batch(b"v" * 4000))
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                "t",
                [
                    PartitionData(0, high_watermark=5, records=[log[:100], log[100:]]),
                    PartitionData(1, high_watermark=6, records=b""),
                    PartitionData(2, high_watermark=7, records=[log]),
                ],
            )
        ]
    )
    kept = answer_without_records(encode_response(ApiKey.FETCH, version, 9, response))
    assert weight_of(kept) < 800
    whole, sizes = expand(kept, ApiKey.FETCH, version)
    _, kept_response = decode_response(ApiKey.FETCH, version, bytes(whole[4:]))
    assert sizes == [len(log), len(log)]
    (topic,) = kept_response.responses
    assert [(p.high_watermark, bytes(p.records)) for p in topic.partitions] == [
        (5, bytes(log[:HEAD])), (6, b""), (7, bytes(log[:HEAD]))]  # fmt: skip


@pytest.mark.parametrize("acquired", [1, 100])
def test_a_large_share_fetch_response_is_kept_without_its_records(acquired: int) -> None:
    """As that of a Fetch is; what was acquired of them is there."""
    log = memoryview(batch(b"v" * 4000))
    ranges = [AcquiredRecords(number, number, 1) for number in range(acquired)]
    partitions = [SharePartitionData(0, records=[log[:100], log[100:]], acquired_records=ranges)]
    partitions.append(SharePartitionData(1, records=b""))
    each = served()
    each.frame = bytearray(b"\0\x4e\0\2" + bytes(each.frame[4:]))
    each.request = HeartbeatRequest("g", 1, "m")
    response = ShareFetchResponse(responses=[ShareFetchableTopicResponse(None, partitions)])
    each.parts = encode_response(ApiKey.SHARE_FETCH, 2, 9, response)
    journal = Journal()
    journal.arrive(each)
    journal.finish(each)
    ((raw, *_),) = [entries for entries, *_ in journal.parts() if entries]
    assert weight_of(raw[6]) < 500 + 20 * acquired
    whole, sizes = expand(raw[6], ApiKey.SHARE_FETCH, 2)
    _, kept_response = decode_response(ApiKey.SHARE_FETCH, 2, bytes(whole[4:]))
    assert sizes == [len(log)]
    first, second = kept_response.responses[0].partitions
    assert (bytes(first.records), bytes(second.records)) == (bytes(log[:HEAD]), b"")
    assert [one.last_offset for one in first.acquired_records] == list(range(acquired))


def test_headers_that_are_kept_have_their_weight() -> None:
    """With files, those of all batches are kept: of many small batches they are most of the answer."""
    log = memoryview(batch(b"v"))
    data = PartitionData(0, high_watermark=5, records=[log] * 1000)
    response = FetchResponse(responses=[FetchableTopicResponse("t", [data])])
    kept = answer_without_records(encode_response(ApiKey.FETCH, 12, 9, response), every=True)
    assert weight_of(kept) > 1000 * HEAD


@pytest.mark.parametrize("aborted", [0, 100])
def test_the_records_of_one_partition_are_found_at_once(aborted: int) -> None:
    """The result is that of a look at each part, also with many parts before and after them."""
    log = memoryview(batch(b"v" * 4000))
    data = PartitionData(0, high_watermark=5, records=[log[:100], log[100:]])
    data.aborted_transactions = [AbortedTransaction(number, number) for number in range(aborted)]
    empty = PartitionData(1, high_watermark=6, records=[log[:0]])
    response = FetchResponse(responses=[FetchableTopicResponse("t", [data]), FetchableTopicResponse("u", [empty])])
    parts = encode_response(ApiKey.FETCH, 12, 9, response)
    kept = answer_without_records(parts)
    assert kept == answer_without_records(parts, every=True)
    assert (len(kept), kept[1], kept[2]) == (4, len(log), bytes(log[:HEAD]))


def test_small_messages_are_kept_whole() -> None:
    """The ring keeps the frame of a small message itself, not a copy."""
    each = served()
    assert len(each.frame) < WHOLE_BYTES
    journal = Journal()
    journal.arrive(each)
    journal.finish(each)
    ((raw, *_),) = [entries for entries, *_ in journal.parts() if entries]
    assert raw[5] is each.frame
