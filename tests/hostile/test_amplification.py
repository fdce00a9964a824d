"""Requests that are small or sound, and would have an enormous answer or take for ever."""

from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.fetch import FetchPartition
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.victims import Victim, count
from tests.scenarios.core.asking import answers, created, fetch_all, fetch_request, interest, metadata
from tests.wire import Wire, framed, header

PATIENCE_S = 50
MANY = 100_000


@pytest.fixture
def wire(victim: Victim) -> Wire:
    """A connection with patience: the machine may be busy with other things."""
    return victim.broker.wire(patience_s=PATIENCE_S)


def test_a_brokers_settings_a_hundred_thousand_times(wire: Wire) -> None:
    """Thirty-five million entries: INVALID_REQUEST, once it is too much."""
    resources = [DescribeConfigsResource(4, "1", None)] * MANY
    request = DescribeConfigsRequest(resources, include_synonyms=True, include_documentation=True)
    response = wire.call(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert {each.error_code for each in response.results} == {ErrorCode.INVALID_REQUEST}


def test_a_group_a_hundred_thousand_times(wire: Wire) -> None:
    """Answered as often as asked, as Kafka does."""
    assert len(wire.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(["g"] * MANY)).groups) == MANY


def test_a_hundred_thousand_partitions_that_are_not_there(wire: Wire) -> None:
    """A request for 100,000 partitions that do not exist gets a result for each."""
    created(wire, "foo")
    response = fetch_all(wire, {"foo": [interest(index) for index in range(1, MANY)]})
    assert len(answers(response)) == MANY - 1


def test_sessions_do_not_remember_without_end(victim: Victim, wire: Wire) -> None:
    """Each of seven full fetches asks for a session with twenty thousand partitions; the later ones get none.

    A first one, without a session, fills the journal and the allocator of a process that has served nothing before.
    """
    created(wire, "foo")
    topics: dict[str | UUID, list[FetchPartition]] = {"foo": [interest(index) for index in range(20_000)]}
    assert fetch_all(wire, topics, session=(0, -1)).session_id == 0
    victim.resident_bytes_before = victim.broker.resident_bytes()
    granted = [fetch_all(wire, topics, session=(0, 0)).session_id for _ in range(7)]
    assert granted[0] > 0
    assert granted[-1] == 0


def test_a_hundred_thousand_partitions_without_records(wire: Wire) -> None:
    """INVALID_RECORD or not there, each of them."""
    created(wire, "foo")
    data = [PartitionProduceData(index, None) for index in range(MANY)]
    response = wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, 1, 1000, [TopicProduceData("foo", data)]))
    codes = [each.error_code for each in response.responses[0].partition_responses]
    assert (len(codes), codes[0]) == (MANY, ErrorCode.INVALID_RECORD)
    assert set(codes[1:]) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_frame_full_of_the_smallest_elements(victim: Victim) -> None:
    """Twenty megabytes of names of one letter: closed, before seven million objects are made."""
    names = 7_000_000
    body = count(names) + b"\0\1a" * names
    victim.check_request_refused(ApiKey.METADATA, 1, body, "more than 1000000 elements")


def test_a_frame_full_of_tags(victim: Victim) -> None:
    """Four megabytes of empty tagged fields."""
    tags = b"\x81\x89\x7a" + b"\x09\0" * 2_000_001
    victim.check_refused(framed(header(ApiKey.METADATA, 9, tags=tags)), "2000001 tags", api="Metadata", version=9)


def test_many_small_requests_at_once_delay_no_other_client(victim: Victim) -> None:
    """Twenty thousand requests in one go: another client is answered among the first of them."""
    many = victim.broker.wire(patience_s=PATIENCE_S)
    request = encode_request(ApiKey.API_VERSIONS, 0, 1, "x", MetadataRequest())
    bystander = victim.broker.wire(patience_s=PATIENCE_S)
    many.send_bytes(request * 20_000)
    assert metadata(bystander) == ()
    answered = 0
    while many.has_answer():
        many.receive_frame()
        answered += 1
    assert answered < 20_000


def test_a_fetch_that_would_wait_for_weeks_ends_with_its_connection(victim: Victim) -> None:
    """Forty of them, each on a connection of its own that is closed at once, leave nothing behind."""
    setup = victim.broker.wire()
    created(setup, "foo")
    for _ in range(40):
        with victim.broker.wire() as wire:
            wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest()]}, max_wait_ms=2**31 - 1))
    assert metadata(setup, "foo")[0].error_code is ErrorCode.NONE


def test_negative_sizes_are_none(victim: Victim) -> None:
    """Negative waits and byte limits count as none: the fetch is answered at once."""
    wire = victim.broker.wire()
    created(wire, "foo")
    request = fetch_request({"foo": [interest()]}, max_wait_ms=-1, min_bytes=-5, max_bytes=-7)
    assert wire.call(ApiKey.FETCH, 12, request).error_code is ErrorCode.NONE
