"""What a leader refuses: core D.2 V1 to V10, V15."""

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec, compress
from protocol.records.records import Record, build_batch, build_marker, frame_batch, record_bytes
from storage.append_info import AppendOrigin
from storage.log.config import LogConfig
from tests.storage.validating import CODECS, COMPRESSING, NOW, append, records, refusal, stamped


@pytest.mark.parametrize(
    "batch",
    [
        build_batch(records(), base_offset=0, last_offset=-1),
        build_batch(records(), base_offset=0, last_offset=-6),
        build_batch(records(), base_offset=0, last_offset=5),
        build_batch([], base_offset=0, last_offset=-1),
        stamped(build_batch(records()), 57, 0, 4),
        stamped(build_batch(records()), 57, -3, 4),
        build_batch(records(1), control=True),
        build_batch(records(), producer_id=5, producer_epoch=0, base_sequence=-1),
        build_batch([record._replace(offset=record.offset + 7) for record in records()]),
    ],
    ids=["V5", "V5 negative", "V7", "V5 empty", "V6", "V6 negative", "V8", "V9", "V1"],
)
def test_header_rules_refuse_with_invalid_record(batch: bytearray) -> None:
    """Batch-level: no message, no record errors, but the log's start.

    See core D.2 V1, V5 to V9, PRD-15; transactions SEQ-08, SHAPE-01.
    """
    error = refusal(batch)
    assert (error.code, error.message, error.record_errors) == (ErrorCode.INVALID_RECORD, None, ())
    assert error.reports_log_start
    assert error.reason


def test_a_coordinator_may_do_what_a_client_may_not() -> None:
    """Markers are control batches without a sequence; offsets are assigned, and those of the batch ignored."""
    marker = build_marker(9, 3, True, 1, NOW, base_offset=55)
    stored = append(marker, LogConfig(compression_type="zstd"), origin=AppendOrigin.COORDINATOR)
    assert (stored.base_offset, stored.partition_leader_epoch, stored.codec, stored.size) == (100, 7, 0, 78)
    assert stored.crc_ok()
    assert refusal(marker).code == ErrorCode.INVALID_RECORD


def test_a_batch_is_as_large_as_the_topic_allows() -> None:
    """max.message.bytes counts the whole batch (core D.2 V2, PRD-05)."""
    batch = build_batch(records())
    assert append(bytes(batch), LogConfig(max_message_bytes=len(batch))).size == len(batch)
    error = refusal(batch, LogConfig(max_message_bytes=len(batch) - 1))
    assert (error.code, error.message, error.reports_log_start) == (ErrorCode.MESSAGE_TOO_LARGE, None, False)


def test_a_wrong_checksum_is_corrupt() -> None:
    """So is a batch that is not all there (core D.2 V3, PRD-03; transactions SHAPE-01)."""
    batch = build_batch(records())
    batch[-1] ^= 1
    error = refusal(batch)
    assert (error.code, error.message, error.reports_log_start) == (ErrorCode.CORRUPT_MESSAGE, None, False)
    assert refusal(build_batch(records())[:-1]).code == ErrorCode.CORRUPT_MESSAGE
    assert refusal(batch, origin=AppendOrigin.REPLICATION).code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_must_fit_into_a_segment() -> None:
    """RECORD_LIST_TOO_LARGE (core D.2 V15)."""
    batch = build_batch(records())
    assert append(bytes(batch), LogConfig(segment_bytes=len(batch))).size == len(batch)
    error = refusal(batch, LogConfig(segment_bytes=len(batch) - 1))
    assert (error.code, error.message, error.reports_log_start) == (ErrorCode.RECORD_LIST_TOO_LARGE, None, False)


def test_the_first_rule_that_fails_decides() -> None:
    """Of several broken rules the first in the order of core D.2 gives the error."""
    batch = build_batch(records(), base_offset=0, last_offset=5)
    batch[-1] ^= 1
    assert refusal(batch).code == ErrorCode.CORRUPT_MESSAGE
    assert refusal(batch, LogConfig(max_message_bytes=10)).code == ErrorCode.MESSAGE_TOO_LARGE
    batch[7] = 1
    assert refusal(batch, LogConfig(max_message_bytes=10)).code == ErrorCode.INVALID_RECORD


def framed(payload: bytes, count: int, codec: int, *, compressed: bool = False) -> bytearray:
    """A batch around any records part."""
    batch = frame_batch(
        b"", count, base_offset=0, last_offset_delta=count - 1, base_timestamp_ms=NOW, max_timestamp_ms=NOW
    )
    batch[61:] = payload if compressed else compress(codec, payload)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    return stamped(batch, 21, codec, 2)


GOOD = bytes(record_bytes(RecordBatch(build_batch(records()))))


@pytest.mark.parametrize("topic", ["producer", "uncompressed", "gzip"])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (GOOD, 2),
        (GOOD, 4),
        (GOOD + b"\0", 3),
        (GOOD[:-2], 3),
        (b"", 1),
        (b"\x12\0\0\0\2k\2v\1\0", 1),
        (b"\x16\0\0\0\2k\2v\2\1\2x", 1),
        (b"\x14\0\0\0\2k\2v\0ab", 1),
    ],
    ids=["fewer", "more", "bytes left", "cut", "none", "negative headers", "header key null", "bytes in record"],
)
def test_records_that_cannot_be_walked_are_invalid(payload: bytes, count: int, codec: int, topic: str) -> None:
    """In every codec, kept or changed; without record errors (core D.2 V10)."""
    error = refusal(framed(payload, count, codec), LogConfig(compression_type=topic))
    assert (error.code, error.message, error.record_errors) == (ErrorCode.INVALID_RECORD, None, ())


@pytest.mark.parametrize("codec", COMPRESSING)
def test_unreadable_compressed_data_is_unexpected(codec: Codec) -> None:
    """Garbage and a premature end: -1, no message (core D.2 V10)."""
    whole = bytes(compress(codec, GOOD * 20))
    for payload in (b"\xfe" * 40, whole[: len(whole) // 2]):
        error = refusal(framed(payload, 3, codec, compressed=True))
        assert (error.code, error.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


@pytest.mark.parametrize(
    ("codec", "code"),
    [
        (Codec.GZIP, ErrorCode.UNKNOWN_SERVER_ERROR),
        (Codec.SNAPPY, ErrorCode.UNKNOWN_SERVER_ERROR),
        (Codec.LZ4, ErrorCode.UNKNOWN_SERVER_ERROR),
        (Codec.ZSTD, ErrorCode.INVALID_RECORD),
    ],
)
def test_an_empty_stream_is_refused(codec: Codec, code: ErrorCode) -> None:
    """Zstd alone takes it for no records (as Kafka 4.3.1 does)."""
    assert refusal(framed(b"", 3, codec, compressed=True)).code == code


def test_record_attributes_mean_nothing() -> None:
    """They are stored as sent (core D.2.5)."""
    batch = framed(b"\x10\x7f\0\0\2k\2v\0", 1, 0)
    assert bytes(append(batch).records_view) == b"\x10\x7f\0\0\2k\2v\0"


def test_a_bomb_is_invalid() -> None:
    """What would decompress beyond the limit is refused before it does (conformance 4 B41)."""
    batch = build_batch([Record(0, NOW, None, bytes(3 << 20))], codec=Codec.ZSTD)
    assert len(batch) < 10_000
    assert refusal(batch).code == ErrorCode.INVALID_RECORD
    assert append(bytes(batch), limit=4 << 20).record_count == 1


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("topic", ["producer", "lz4"])
def test_a_compressed_record_has_a_limit_to_the_byte(codec: Codec, topic: str) -> None:
    """Of 1000 bytes: as Kafka 4.4.0 with all codecs, values of 993 and 994; a record that comes plain has none."""
    config = LogConfig(compression_type=topic, max_decompressed_message_bytes=1000)

    def with_value(size: int, sent: Codec = codec) -> bytearray:
        return bytearray(build_batch([Record(0, NOW, None, b"x" * size)], codec=sent))

    assert append(with_value(993), config).record_count == 1
    assert refusal(with_value(994), config).code is ErrorCode.INVALID_RECORD
    assert append(with_value(2000, Codec.NONE), config).record_count == 1
