"""Which single records a leader refuses: core D.2 V11 to V13."""

import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch
from storage.log.config import LogConfig
from tests.storage.validating import CODECS, HOUR, NOW, append, records, refusal, stamped

COMPACTED = LogConfig(cleanup_policy=("compact",))
NO_KEY = "Compacted topic cannot accept message without key in topic partition orders-3"


@pytest.mark.parametrize("codec", CODECS)
def test_compacted_topics_want_keys(codec: Codec) -> None:
    """Every record without one is named, three in the message (core D.2 V11, PRD-07; transactions SHAPE-02)."""
    keys = [None, b"a", None, b"", None, None]
    batch = build_batch([Record(index, NOW, key, b"v") for index, key in enumerate(keys)], codec=codec)
    assert append(bytes(batch)).record_count == 6
    error = refusal(batch, COMPACTED)
    assert error.code == ErrorCode.INVALID_RECORD
    assert list(error.record_errors) == [(index, NO_KEY) for index in (0, 2, 4, 5)]
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{NO_KEY}')" for index in (0, 2, 4))
    assert error.message == (
        "One or more records have been rejected due to 4 record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    assert error.reports_log_start


@pytest.mark.parametrize("codec", CODECS)
def test_timestamps_have_bounds(codec: Codec) -> None:
    """One record of three is two hours ahead (core D.2 V12, PRD-06)."""
    sent = records()
    sent[1] = sent[1]._replace(timestamp_ms=NOW + 2 * HOUR)
    error = refusal(build_batch(sent, codec=codec))
    assert (error.code, error.reports_log_start) == (ErrorCode.INVALID_TIMESTAMP, True)
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    lower = NOW - (2**63 - 1)
    assert list(error.record_errors) == [
        (
            1,
            (
                f"Timestamp {NOW + 2 * HOUR} of message with offset 1 is out of range. "
                f"The timestamp should be within [{lower}, {NOW + HOUR}]"
            ),
        )
    ]


def test_the_bounds_themselves_are_allowed() -> None:
    """Exactly before.max.ms and after.max.ms away (core D.2 V12)."""
    config = LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)
    for time_ms in (NOW - 1000, NOW + 2000, -1):
        append(build_batch([Record(0, time_ms, b"k", b"v")]), config)
    for time_ms in (NOW - 1001, NOW + 2001, 0, -2):
        assert refusal(build_batch([Record(0, time_ms, b"k", b"v")]), config).code == ErrorCode.INVALID_TIMESTAMP


def test_a_missing_key_hides_a_bad_timestamp() -> None:
    """A record without its key is not asked for its time; one bad time decides the code (core D.2 V11, V12, D.2.1)."""
    sent = [Record(0, NOW + 9 * HOUR, None, b"v"), Record(1, NOW, None, b"v"), Record(2, NOW, b"k", b"v")]
    error = refusal(build_batch(sent), COMPACTED)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_RECORD, [0, 1])
    sent[2] = Record(2, NOW + 9 * HOUR, b"k", b"v")
    error = refusal(build_batch(sent), COMPACTED)
    assert (error.code, [index for index, _ in error.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [0, 1, 2])


def test_only_records_that_fail_are_named() -> None:
    """A base timestamp out of range that no record has is no error."""
    batch = build_batch(records(), base_timestamp_ms=NOW + 9 * HOUR)
    assert append(batch).max_timestamp_ms == NOW + 2


APPENDED = LogConfig(message_timestamp_type="LogAppendTime")


@pytest.mark.parametrize(("codec", "kind", "value"), [(0, "DefaultRecord", 0), (1, "PartialDefaultRecord", -1)])
def test_producers_do_not_set_log_append_time(codec: int, kind: str, value: int) -> None:
    """On a LogAppendTime topic, and where there is no time (core D.2 V13)."""
    sent = [Record(0, NOW, b"k", None)]
    message = (
        f"Invalid timestamp type in message {kind}(offset=0, timestamp={{}}, key=1 bytes, value={value} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )
    error = refusal(build_batch(sent, log_append_time=True, codec=codec), APPENDED)
    assert (error.code, list(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, [(0, message.format(NOW))])
    error = refusal(build_batch(sent, log_append_time=True, max_timestamp_ms=-1, codec=codec))
    assert (error.code, list(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, [(0, message.format(-1))])


def test_log_append_time_on_a_create_time_topic_is_cleared() -> None:
    """The batch's maximum is the time of every record, and stays the maximum (core D.3)."""
    stored = append(build_batch(records(), log_append_time=True, max_timestamp_ms=NOW + 50))
    assert not stored.is_log_append_time
    assert stored.max_timestamp_ms == NOW + 50
    assert stored.crc_ok()
    error = refusal(build_batch(records(), log_append_time=True, max_timestamp_ms=NOW + 2 * HOUR))
    assert [index for index, _ in error.record_errors] == [0, 1, 2]


@pytest.mark.parametrize("delta", [2**62, -(2**63), 2**63 - 1])
def test_times_beyond_every_calendar_are_out_of_range(delta: int) -> None:
    """Sums beyond an int64 do not wrap into the range, nor break anything."""
    batch = build_batch([Record(0, delta, b"k", b"v")], base_timestamp_ms=0)
    batch = stamped(batch, 27, 2**62 if delta > 0 else -(2**62), 8)
    assert refusal(batch, LogConfig(message_timestamp_after_max_ms=2**63 - 1)).code == ErrorCode.INVALID_TIMESTAMP
