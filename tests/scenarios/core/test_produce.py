"""Appending batches: what is refused, what is rewritten, what comes back (PRD; core I.4)."""

import cramjam
import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch, read_records
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import (
    RANDOM_ID,
    batches_of,
    create,
    created,
    data_of,
    fetch,
    metadata,
    produce,
    produce_all,
    produce_request,
    produced,
    records_of,
    topic,
)
from tests.scenarios.core.batches import T0_MS, batch, crc_is_right, sized, with_fields, with_records
from tests.server import Server, until
from tests.wire import Wire

HOUR_MS = 3_600_000
THREE = batch(b"a", b"b", b"c")
TWO_HEADERS = (("first", b"1"), ("second", None))


def test_PRD_01_offsets_are_given_in_order(broker: Server) -> None:
    """The first record's offset, no append time, the log's start; the next batch goes on behind it."""
    wire = broker.wire()
    created(wire, "foo")
    answer = produce(wire, "foo", THREE)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (
        ErrorCode.NONE,
        0,
        -1,
        0,
    )
    assert produce(wire, "foo", THREE).base_offset == 3


def test_PRD_02_a_topic_may_take_the_time_of_the_append(broker: Server) -> None:
    """Returned in the response and stamped into the batch, with a matching CRC."""
    wire = broker.wire()
    created(wire, "foo", message_timestamp_type="LogAppendTime")
    now_ms = broker.freeze()
    answer = produce(wire, "foo", batch(b"x", times_ms=[0]))
    assert (answer.error_code, answer.log_append_time_ms) == (ErrorCode.NONE, now_ms)
    fetched = fetch(wire, "foo")
    (stored,) = batches_of(fetched)
    assert stored.is_log_append_time
    assert stored.max_timestamp_ms == now_ms
    assert crc_is_right(data_of(fetched), 0, stored.size)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (with_fields(THREE, crc=12345), ErrorCode.CORRUPT_MESSAGE),
        (with_fields(THREE, magic=1), ErrorCode.INVALID_RECORD),
        (THREE + THREE, ErrorCode.INVALID_RECORD),
        (with_fields(THREE, base_offset=7), ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
    ],
    ids=["CRC", "magic 1", "two batches", "base offset", "nothing"],
)
def test_PRD_03_bad_batches_are_refused(broker: Server, sent: bytes, code: ErrorCode) -> None:
    """Nothing of them is stored, and the next batch is as welcome as ever."""
    wire = broker.wire()
    created(wire, "foo")
    answer = produce(wire, "foo", sent)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert produced(wire, "foo", THREE) == 0


def test_PRD_04_a_batch_that_cannot_be_scanned_fails_the_whole_request(broker: Server) -> None:
    """A length field of 5 in one partition: CORRUPT_MESSAGE on the other one too."""
    wire = broker.wire()
    created(wire, "foo", 2)
    answers = produce_all(wire, {"foo": {0: THREE, 1: with_fields(THREE, length=5)}})
    assert {index: each.error_code for index, each in answers.items()} == {
        0: ErrorCode.CORRUPT_MESSAGE,
        1: ErrorCode.CORRUPT_MESSAGE,
    }
    assert produced(wire, "foo", THREE) == 0


@pytest.mark.parametrize(("size", "code"), [(1001, ErrorCode.MESSAGE_TOO_LARGE), (1000, ErrorCode.NONE)])
def test_PRD_05_the_topic_limits_the_size_of_a_batch(broker: Server, size: int, code: ErrorCode) -> None:
    """max.message.bytes counts the whole batch."""
    wire = broker.wire()
    created(wire, "foo", max_message_bytes="1000")
    assert produce(wire, "foo", sized(size)).error_code is code


def test_PRD_06_one_record_from_the_future_refuses_its_batch(broker: Server) -> None:
    """More than an hour ahead; the record is named, nothing is appended."""
    wire = broker.wire()
    created(wire, "foo")
    now_ms = broker.freeze()
    sent = batch(b"a", b"b", b"c", times_ms=[now_ms, now_ms + 2 * HOUR_MS, now_ms])
    answer = produce(wire, "foo", sent)
    assert answer.error_code is ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    assert produced(wire, "foo", THREE) == 0


def test_PRD_07_a_compacted_topic_wants_keys(broker: Server) -> None:
    """Every record without one is named, and counted in the message."""
    wire = broker.wire()
    created(wire, "cmp", cleanup_policy="compact")
    answer = produce(wire, "cmp", batch(b"1", b"2", b"3", keys=[None, b"a", None]))
    assert answer.error_code is ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [0, 2]
    assert (answer.error_message or "").startswith(
        "One or more records have been rejected due to 2 record errors in total"
    )


def test_PRD_08_a_topic_may_have_its_own_codec(broker: Server) -> None:
    """A gzip batch is stored as zstd, its records as they were."""
    wire = broker.wire()
    created(wire, "foo", compression_type="zstd")
    sent = batch(b"a", b"b", codec=Codec.GZIP)
    assert produced(wire, "foo", sent) == 0
    fetched = fetch(wire, "foo")
    (stored,) = batches_of(fetched)
    assert stored.codec == Codec.ZSTD
    assert crc_is_right(data_of(fetched), 0, stored.size)
    assert records_of(fetched) == list(read_records(RecordBatch(sent)))


def raw_snappy() -> bytearray:
    """A batch whose records are one bare snappy block, as librdkafka writes it."""
    plain = batch(b"a", b"b")
    packed = bytes(cramjam.snappy.compress_raw(bytes(plain[61:])))
    return with_fields(with_records(plain, packed), attributes=Codec.SNAPPY)


@pytest.mark.parametrize(
    "sent",
    [
        raw_snappy(),
        batch(b"a", b"b", codec=Codec.SNAPPY),
        batch(b"a", b"b", codec=Codec.LZ4),
        batch(b"a", b"b", codec=Codec.ZSTD),
        batch(b"a", b"b", codec=Codec.GZIP),
    ],
    ids=["raw snappy", "snappy", "lz4", "zstd", "gzip"],
)
def test_PRD_09_a_producers_codec_is_kept(broker: Server, sent: bytearray) -> None:
    """All but base offset and leader epoch is stored byte for byte."""
    wire = broker.wire()
    created(wire, "foo")
    produced(wire, "foo", sent)
    assert produced(wire, "foo", sent) == 2
    stored = data_of(fetch(wire, "foo"))
    assert len(stored) == 2 * len(sent)
    assert [stored[at + 16 : at + len(sent)] for at in (0, len(sent))] == [bytes(sent[16:])] * 2
    assert [record.value for record in records_of(fetch(wire, "foo"))] == [b"a", b"b"] * 2


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
def test_PRD_10_zstd_is_known_from_v7_on(broker: Server, version: int, code: ErrorCode) -> None:
    """Before Produce v7 a batch compressed with zstd is refused (KIP-110)."""
    wire = broker.wire()
    created(wire, "foo")
    assert produce(wire, "foo", batch(b"a", codec=Codec.ZSTD), version=version).error_code is code


def test_PRD_11_an_unknown_codec_fails_its_partition(broker: Server) -> None:
    """UNKNOWN_SERVER_ERROR there, and there alone."""
    wire = broker.wire()
    created(wire, "foo", 2)
    answers = produce_all(wire, {"foo": {0: with_fields(THREE, attributes=5), 1: THREE}})
    assert {index: each.error_code for index, each in answers.items()} == {
        0: ErrorCode.UNKNOWN_SERVER_ERROR,
        1: ErrorCode.NONE,
    }


def test_PRD_12_more_replicas_in_sync_than_exist_are_not_required(broker: Server) -> None:
    """min.insync.replicas=2 requires no more than there are replicas."""
    wire = broker.wire()
    created(wire, "foo", min_insync_replicas="2")
    assert produce(wire, "foo", THREE, acks=-1).error_code is ErrorCode.NONE


def test_PRD_13_acks_are_all_one_or_none(broker: Server) -> None:
    """acks=2 gets INVALID_REQUIRED_ACKS."""
    wire = broker.wire()
    created(wire, "foo")
    answer = produce(wire, "foo", THREE, acks=2)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)


def test_PRD_14_internal_topics_are_written_by_the_admin_client_only(broker_with: BrokerWith) -> None:
    """INVALID_TOPIC_EXCEPTION for any other client id."""
    broker = broker_with(settings={"offsets.topic.replication.factor": 1})
    wire = broker.wire(client_id="x")
    request = FindCoordinatorRequest(coordinator_keys=["g"])

    def coordinated() -> bool:
        return not wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].error_code

    assert until(coordinated, "the coordinator")
    assert produce(wire, "__consumer_offsets", THREE).error_code is ErrorCode.INVALID_TOPIC_EXCEPTION
    admin = broker.wire(client_id="__admin_client")
    assert produce(admin, "__consumer_offsets", THREE).error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    "sent",
    [
        with_fields(THREE, last_offset_delta=5),
        with_fields(THREE, attributes=0x20),
        with_fields(THREE, record_count=0),
    ],
    ids=["last offset delta", "control bit", "no records"],
)
def test_PRD_15_counts_must_agree_and_markers_are_the_brokers(broker: Server, sent: bytearray) -> None:
    """A batch whose counts disagree, or a control batch from a client, is refused with INVALID_RECORD."""
    wire = broker.wire()
    created(wire, "foo")
    assert produce(wire, "foo", sent).error_code is ErrorCode.INVALID_RECORD


def test_PRD_16_the_error_of_an_unknown_topic_depends_on_the_version(broker: Server) -> None:
    """By id from v13 on, by name before."""
    wire = broker.wire()
    assert produce(wire, RANDOM_ID, THREE, version=13).error_code is ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(wire, "nope", THREE, version=12).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_PRD_17_a_follower_returns_the_leader(broker_with: BrokerWith) -> None:
    """NOT_LEADER_OR_FOLLOWER with the leader, its epoch and its address (KIP-951)."""
    broker = broker_with(brokers=2)
    (result,) = create(broker.wire(1), topic("foo", -1, -1, assignments={0: [1, 2]}))
    assert result.error_code is ErrorCode.NONE
    follower = broker.wire(2)
    response = follower.call(ApiKey.PRODUCE, 10, produce_request({"foo": {0: THREE}}))
    ((answer,),) = [each.partition_responses for each in response.responses]
    assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)
    assert [f"{each.node_id}@{each.host}:{each.port}" for each in response.node_endpoints] == [
        f"1@{broker.addresses[0]}"
    ]


def test_PRD_18_a_failed_partition_does_not_delay_the_others(broker: Server) -> None:
    """acks=-1: the good partition is answered at once, though the clock is frozen."""
    wire = broker.wire()
    created(wire, "foo", 2)
    broker.freeze()
    answers = produce_all(wire, {"foo": {0: THREE, 1: with_fields(THREE, crc=1)}}, acks=-1, timeout_ms=60_000)
    assert {index: each.error_code for index, each in answers.items()} == {
        0: ErrorCode.NONE,
        1: ErrorCode.CORRUPT_MESSAGE,
    }


def test_PRD_19_a_record_comes_back_as_it_was(broker: Server) -> None:
    """Two headers, a null value, an empty key."""
    wire = broker.wire()
    created(wire, "foo")
    sent = Record(0, T0_MS, b"", None, TWO_HEADERS)
    produced(wire, "foo", build_batch([sent]))
    assert records_of(fetch(wire, "foo")) == [sent]


def test_PRD_20_offset_deltas_of_a_plain_batch_are_stored_as_sent(broker: Server) -> None:
    """0, 2, 1: not validated (a quirk of Kafka's)."""
    wire: Wire = broker.wire()
    created(wire, "foo")
    sent = build_batch([Record(at, T0_MS, b"k", b"v") for at in (0, 2, 1)], base_offset=0, last_offset=2)
    assert produced(wire, "foo", sent) == 0
    assert [record.offset for record in records_of(fetch(wire, "foo"))] == [0, 2, 1]
    assert metadata(wire, "foo")[0].error_code is ErrorCode.NONE
