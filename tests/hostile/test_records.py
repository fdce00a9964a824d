"""Bad input, conformance 4 B23 to B43, B48 and B49: batches that are none, or that hold what they should not."""

import gzip
from collections.abc import Callable

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch
from tests.hostile.malformed import GZIP, SNAPPY, ZSTD, carrying, gzip_zeros, snappy_lie, zstd_zeros
from tests.hostile.victims import Victim
from tests.scenarios.core.asking import created, fetch, produce, produce_request, produced, records_of
from tests.scenarios.core.batches import T0_MS, batch, with_fields, with_records

HOUR_MS = 3_600_000
SOUND = batch(b"x")
THREE = batch(b"a", b"b", b"c")
INVALID, CORRUPT, UNKNOWN = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR


def check_refused(
    victim: Victim, sent: bytes | bytearray | None, code: ErrorCode, *, acks: int = -1, version: int = 9
) -> None:
    """The partition has that code, nothing is stored, and the same connection goes on."""
    wire = victim.broker.wire()
    created(wire, "foo")
    answer = produce(wire, "foo", sent, acks=acks, version=version)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert produced(wire, "foo", SOUND) == 0


def idempotent(*, sequence: int) -> bytearray:
    """A batch of producer 1."""
    return build_batch([Record(0, T0_MS, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=sequence)


def test_B23_acks_of_five(victim: Victim) -> None:
    """acks=5 gets INVALID_REQUIRED_ACKS."""
    check_refused(victim, SOUND, ErrorCode.INVALID_REQUIRED_ACKS, acks=5)


@pytest.mark.parametrize("sent", [None, b""], ids=["null", "empty"])
def test_B24_B25_no_records(victim: Victim, sent: bytes | None) -> None:
    """Kafka never answers null records; here both are INVALID_RECORD."""
    check_refused(victim, sent, INVALID)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(with_fields(SOUND, crc=1), CORRUPT, id="B26 a CRC of something else"),
        pytest.param(with_fields(SOUND, length=-5), CORRUPT, id="B27 a negative length"),
        pytest.param(with_fields(SOUND, length=10_000_000), INVALID, id="B28 longer than what is there"),
        pytest.param(with_fields(SOUND, magic=1), INVALID, id="B29 an old magic"),
        pytest.param(with_fields(SOUND, magic=77), CORRUPT, id="B30 a magic of the future"),
        pytest.param(SOUND + SOUND, INVALID, id="B31 two batches"),
        pytest.param(with_fields(SOUND, record_count=-1), INVALID, id="B32 a negative count"),
        pytest.param(
            with_fields(SOUND, record_count=1_000_000, last_offset_delta=999_999),
            INVALID,
            id="B33 a million records in one",
        ),
        pytest.param(with_fields(SOUND, last_offset_delta=5), INVALID, id="B34 offsets that do not fit the count"),
        pytest.param(with_fields(SOUND, base_offset=42), INVALID, id="B35 an offset of its own"),
        pytest.param(with_fields(idempotent(sequence=0), attributes=0x20), INVALID, id="B36 a marker"),
        pytest.param(idempotent(sequence=-1), INVALID, id="B37 a producer without a sequence"),
        pytest.param(with_records(SOUND, b"\x80\x80\x80\x80\x08\0\0\0"), INVALID, id="B38 a record longer than all"),
        pytest.param(with_fields(SOUND, attributes=7), UNKNOWN, id="B39 codec 7"),
        pytest.param(carrying(GZIP, b"not gzip at all"), UNKNOWN, id="B40 no gzip"),
        pytest.param(carrying(GZIP, gzip.compress(bytes(1000))[:-20]), UNKNOWN, id="B40 gzip that ends early"),
        pytest.param(carrying(GZIP, b""), UNKNOWN, id="B40 no stream at all"),
    ],
)
def test_B26_to_B40_a_bad_batch(victim: Victim, sent: bytearray, code: ErrorCode) -> None:
    """Each has the code that Kafka gives it, on its partition."""
    check_refused(victim, sent, code)


def two_records(codec: int) -> bytearray:
    """A batch that is valid but for the count in its header, which is too large by one."""
    return with_fields(batch(b"a", b"b", codec=codec), record_count=3, last_offset_delta=2)


@pytest.mark.parametrize("codec", list(Codec))
def test_B33_more_records_announced_than_there_are(victim: Victim, codec: int) -> None:
    """The loop is bound by bytes, compressed or not."""
    check_refused(victim, two_records(codec), INVALID)


@pytest.mark.parametrize(
    ("codec", "stream"),
    [
        pytest.param(GZIP, lambda: gzip_zeros(900), id="gzip of 900 MiB"),
        pytest.param(ZSTD, lambda: zstd_zeros(8192), id="zstd of 8 GiB"),
        pytest.param(SNAPPY, lambda: snappy_lie(2**32 - 1), id="snappy that announces 4 GiB"),
    ],
)
def test_B41_a_bomb(victim: Victim, codec: int, stream: Callable[[], bytes]) -> None:
    """Compressed data is never inflated beyond a limit."""
    bomb = carrying(codec, stream())
    assert len(bomb) < 1_048_588
    check_refused(victim, bomb, INVALID)


def test_B41_a_batch_of_many_millions(victim: Victim) -> None:
    """Twelve million empty records in a hundred and twenty kilobytes: looked at like those of a small batch.

    Their offset deltas are all 0, on which Kafka fails too.
    """
    smallest = bytes((12, 0, 0, 0, 1, 1, 0))
    stream = gzip.compress(smallest * 12_000_000)
    assert len(stream) < 150_000
    check_refused(victim, carrying(GZIP, stream, 12_000_000), UNKNOWN)


def test_B42_a_transactional_batch_without_a_transactional_id(victim: Victim) -> None:
    """TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the whole request."""
    sent = build_batch(
        [Record(0, T0_MS, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    check_refused(victim, sent, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def test_B43_an_error_that_has_no_answer(victim: Victim) -> None:
    """acks=0: the connection is closed, with a line that has the partition and the reason."""
    created(victim.broker.wire(), "foo")
    since = victim.broker.log_position()
    wire = victim.broker.wire()
    peer = "{}:{}".format(*wire.socket.getsockname())
    wire.send(ApiKey.PRODUCE, 9, produce_request({"foo": {0: with_fields(SOUND, crc=1)}}, acks=0), answered=False)
    wire.check_closed()
    (line,) = victim.lines_of(peer, since)
    assert (line["api"], line["version"]) == ("Produce", 9)
    assert "foo-0" in line["reason"]
    assert "CORRUPT_MESSAGE" in line["reason"]


def test_B48_records_without_keys_in_a_compacted_topic(victim: Victim) -> None:
    """Each is named, and the whole batch refused (KIP-467)."""
    wire = victim.broker.wire()
    created(wire, "cmp", cleanup_policy="compact")
    answer = produce(wire, "cmp", batch(b"1", b"2", keys=[b"k", None]))
    assert answer.error_code is INVALID
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert answer.error_message
    assert produced(wire, "cmp", SOUND) == 0


def test_B49_times_out_of_range(victim: Victim) -> None:
    """Two hours ahead of the broker's clock."""
    wire = victim.broker.wire()
    created(wire, "foo")
    answer = produce(wire, "foo", batch(b"x", times_ms=[victim.broker.now_ms() + 2 * HOUR_MS]))
    assert (answer.error_code, len(answer.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 1)


def test_B49_a_batch_that_claims_the_brokers_time(victim: Victim) -> None:
    """Refused where the topic gives the time itself; elsewhere the bit is cleared."""
    wire = victim.broker.wire()
    created(wire, "stamped", message_timestamp_type="LogAppendTime")
    created(wire, "foo")
    claims = with_fields(SOUND, attributes=0x08)
    answer = produce(wire, "stamped", claims)
    assert (answer.error_code, len(answer.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 1)
    assert produced(wire, "foo", claims) == 0
    assert [record.timestamp_ms for record in records_of(fetch(wire, "foo"))] == [T0_MS]
