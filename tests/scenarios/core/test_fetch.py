"""Reading batches: which bytes, how many, and when (FET; core I.5)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.scenarios.core.asking import (
    RANDOM_ID,
    batches_of,
    created,
    data_of,
    fetch,
    fetch_all,
    fetch_request,
    interest,
    metadata,
    produced,
    records_deleted,
)
from tests.scenarios.core.batches import batch, sized
from tests.server import Server
from tests.wire import Wire

FIVE = batch(b"a", b"b", b"c", b"d", b"e")
LARGE = 10_240


def with_ten_records(broker: Server) -> Wire:
    """A topic ``foo`` with the batches 0-4 and 5-9."""
    wire = broker.wire()
    created(wire, "foo")
    assert [produced(wire, "foo", FIVE) for _ in range(2)] == [0, 5]
    return wire


def test_FET_10_batches_come_whole(broker: Server) -> None:
    """An offset inside a batch gets the batch that holds it."""
    answer = fetch(with_ten_records(broker), "foo", 7)
    assert [each.base_offset for each in batches_of(answer)] == [5]
    assert len(data_of(answer)) == len(FIVE)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (10, 10, 0)


def test_FET_11_the_first_batch_is_returned_even_if_it_exceeds_the_limits(broker: Server) -> None:
    """MaxBytes 1 and PartitionMaxBytes 1 (KIP-74)."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", sized(LARGE))
    produced(wire, "foo", sized(LARGE))
    assert len(data_of(fetch(wire, "foo", max_bytes=1, max_wait_ms=0))) == LARGE
    request = fetch_request({"foo": [interest(max_bytes=1)]}, max_bytes=1)
    ((answer,),) = [each.partitions for each in wire.call(ApiKey.FETCH, 12, request).responses]
    assert len(data_of(answer)) == LARGE


def test_FET_12_only_one_partition_may_exceed_the_limits(broker: Server) -> None:
    """The second one's batch does not fit into a kilobyte, and no part of it comes."""
    wire = broker.wire()
    created(wire, "foo", 2)
    for index in (0, 1):
        produced(wire, "foo", sized(LARGE), partition=index)
    response = fetch_all(wire, {"foo": [interest(index, max_bytes=1024) for index in (0, 1)]})
    ((first, second),) = [each.partitions for each in response.responses]
    assert (len(data_of(first)), len(data_of(second))) == (LARGE, 0)
    assert second.high_watermark == 1


def test_FET_13_at_the_end_there_is_nothing_yet(broker: Server) -> None:
    """Offset 10 of a log that ends there: empty, after the wait."""
    wire = with_ten_records(broker)
    broker.freeze()
    wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest(offset=10)]}, max_wait_ms=300))
    metadata(broker.wire())
    assert not wire.has_answer()
    broker.advance(300)
    ((answer,),) = [each.partitions for each in wire.answer().responses]
    assert (answer.error_code, data_of(answer), answer.high_watermark) == (ErrorCode.NONE, b"", 10)


@pytest.mark.parametrize("offset", [11, 3])
def test_FET_13_outside_the_log_there_is_nothing_ever(broker: Server, offset: int) -> None:
    """Beyond the end or before the start: refused at once, without offsets."""
    wire = with_ten_records(broker)
    assert records_deleted(wire, "foo", 4).low_watermark == 4
    broker.freeze()
    answer = fetch(wire, "foo", offset, max_wait_ms=60_000)
    assert answer.error_code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)
    assert answer.aborted_transactions is None


def test_FET_14_new_data_ends_the_wait(broker: Server) -> None:
    """The answer does not wait for five seconds of a frozen clock."""
    wire, producer = broker.wire(), broker.wire()
    created(producer, "foo")
    broker.freeze()
    wire.send(ApiKey.FETCH, 12, fetch_request({"foo": [interest()]}, max_wait_ms=5000))
    metadata(producer)
    assert not wire.has_answer()
    produced(producer, "foo", FIVE)
    ((answer,),) = [each.partitions for each in wire.answer().responses]
    assert data_of(answer)


def test_FET_14_as_much_as_was_asked_for_ends_the_wait(broker: Server) -> None:
    """One batch is too little for MinBytes, two are enough."""
    wire, producer = broker.wire(), broker.wire()
    created(producer, "foo")
    broker.freeze()
    request = fetch_request({"foo": [interest()]}, max_wait_ms=5000, min_bytes=len(FIVE) + 1)
    wire.send(ApiKey.FETCH, 12, request)
    produced(producer, "foo", FIVE)
    assert not wire.has_answer()
    produced(producer, "foo", FIVE)
    ((answer,),) = [each.partitions for each in wire.answer().responses]
    assert len(data_of(answer)) == 2 * len(FIVE)


def test_FET_15_a_fetch_of_zero_bytes_does_not_wait(broker: Server) -> None:
    """MinBytes 0 is answered at once, though the clock is frozen."""
    wire = broker.wire()
    created(wire, "foo")
    broker.freeze()
    assert data_of(fetch(wire, "foo", min_bytes=0, max_wait_ms=60_000)) == b""


def test_records_that_are_deleted_do_not_end_a_wait(broker: Server) -> None:
    """Nor does the log start offset, which passes the fetch offset; the refusal comes when the wait is over."""
    wire, admin = with_ten_records(broker), broker.wire()
    broker.freeze()
    request = fetch_request({"foo": [interest(offset=5)]}, max_wait_ms=2000, min_bytes=1 << 20)
    wire.send(ApiKey.FETCH, 12, request)
    assert records_deleted(admin, "foo", 8).low_watermark == 8
    assert not wire.has_answer()
    broker.advance(2000)
    ((answer,),) = [each.partitions for each in wire.answer().responses]
    assert answer.error_code is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("version", [12, 13])
def test_a_fetch_that_waits_on_a_topic_learns_that_it_was_deleted(broker: Server, version: int) -> None:
    """At once, by UNKNOWN_TOPIC_OR_PARTITION (ReplicaManager.getPartitionOrError; core E.2)."""
    wire, admin = broker.wire(), broker.wire()
    topic_id = created(admin, "foo")
    broker.freeze()
    request = fetch_request({topic_id if version == 13 else "foo": [interest()]}, max_wait_ms=5000)
    wire.send(ApiKey.FETCH, version, request)
    assert not wire.has_answer()
    admin.call(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState("foo")], timeout_ms=5000))
    ((answer,),) = [each.partitions for each in wire.answer().responses]
    assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("step", "code"), [(-1, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)]
)
def test_FET_16_another_leader_epoch_is_fenced(broker: Server, step: int, code: ErrorCode) -> None:
    """An older and a newer leader epoch are refused, the right one is served."""
    wire = with_ten_records(broker)
    broker.control("POST", "/v1/brokers/1/stop")
    broker.control("POST", "/v1/brokers/1/start")
    wire = broker.wire()
    (topic,) = metadata(wire, "foo")
    assert fetch(wire, "foo", epoch=topic.partitions[0].leader_epoch + step).error_code is code


def test_FET_17_an_unknown_id_concerns_its_own_topic(broker: Server) -> None:
    """UNKNOWN_TOPIC_ID there, records from the other one."""
    wire = broker.wire()
    topic_id = created(wire, "foo")
    produced(wire, "foo", FIVE)
    response = fetch_all(wire, {RANDOM_ID: [interest()], topic_id: [interest()]}, version=13)
    reported = {each.topic_id: each.partitions[0] for each in response.responses}
    assert reported[RANDOM_ID].error_code is ErrorCode.UNKNOWN_TOPIC_ID
    assert (reported[topic_id].error_code, len(data_of(reported[topic_id]))) == (ErrorCode.NONE, len(FIVE))


@pytest.mark.parametrize("version", [12, 13])
def test_FET_18_there_are_two_levels_of_isolation(broker: Server, version: int) -> None:
    """Level 5 is UNKNOWN_SERVER_ERROR at the top; before v13 on each partition too (core E.5.10)."""
    wire = broker.wire()
    topic_id = created(wire, "foo")
    who = topic_id if version == 13 else "foo"
    response = fetch_all(wire, {who: [interest()]}, version=version, isolation_level=5)
    assert response.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    codes = [part.error_code for each in response.responses for part in each.partitions]
    assert codes == ([] if version == 13 else [ErrorCode.UNKNOWN_SERVER_ERROR])
