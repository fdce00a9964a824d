"""What a leader rewrites in a batch: core D.3, D.2 V14."""

import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch, read_records
from storage.append_errors import RecordsRejectedError, RequestRejectedError
from storage.append_info import AppendOrigin
from storage.log.config import LogConfig
from storage.log.validation import check_partition_records
from tests.storage.validating import CODECS, HOUR, NOW, append, records, refusal, stamped

TOPIC_CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


APPENDED = LogConfig(message_timestamp_type="LogAppendTime")


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_is_kept_is_stamped_in_place(codec: Codec) -> None:
    """Offset and epoch change, all other bytes stay, in the buffer that came (core PRD-01, PRD-09)."""
    batch = build_batch(records(), codec=codec)
    sent = bytes(batch)
    stored = append(memoryview(batch))
    assert (stored.base_offset, stored.last_offset, stored.partition_leader_epoch) == (100, 102, 7)
    assert stored.view == batch
    assert batch[16:] == sent[16:]
    assert batch[8:12] == sent[8:12]
    assert list(read_records(stored)) == [record._replace(offset=record.offset + 100) for record in records()]


def test_a_read_only_batch_is_copied() -> None:
    """A batch in read-only memory is copied, because it cannot be stamped."""
    sent = bytes(build_batch(records()))
    stored = append(sent)
    assert stored.base_offset == 100
    assert sent[:8] == bytes(8)


@pytest.mark.parametrize("claimed_ms", [0, NOW + 9 * HOUR, -1])
def test_the_maximum_timestamp_is_recomputed(claimed_ms: int) -> None:
    """The header's own value does not count (core D.3)."""
    stored = append(build_batch(records(), max_timestamp_ms=claimed_ms))
    assert (stored.max_timestamp_ms, stored.base_timestamp_ms) == (NOW + 2, NOW)
    assert stored.crc_ok()


def test_log_append_time_is_the_brokers() -> None:
    """Bit 3 and the maximum are set, the base timestamp stays (core PRD-02)."""
    batch = build_batch(records(time_ms=0))
    stored = append(batch, APPENDED)
    assert stored.is_log_append_time
    assert (stored.max_timestamp_ms, stored.base_timestamp_ms) == (NOW, 0)
    assert stored.crc_ok()
    assert {record.timestamp_ms for record in read_records(stored)} == {NOW}


def test_offset_deltas_of_uncompressed_batches_are_not_looked_at() -> None:
    """Offset deltas of uncompressed batches are stored as sent (core PRD-20)."""
    sent = [Record(offset, NOW, None, b"v") for offset in (0, 2, 1)]
    stored = append(build_batch(sent, last_offset=2))
    assert [record.offset for record in read_records(stored)] == [100, 102, 101]


def test_offset_deltas_of_compressed_batches_must_count() -> None:
    """In a kept batch they are an unexpected error; another codec renumbers them (core D.2.4)."""
    batch = build_batch([Record(offset, NOW, b"%d" % offset, b"v") for offset in (0, 2, 1)], last_offset=2, codec=1)
    error = refusal(bytes(batch))
    assert (error.code, error.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    stored = append(batch, LogConfig(compression_type="uncompressed"))
    assert [(record.offset, record.key) for record in read_records(stored)] == [(100, b"0"), (101, b"2"), (102, b"1")]


@pytest.mark.parametrize("topic", TOPIC_CODECS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_topics_codec_is_stored(codec: Codec, topic: str) -> None:
    """Same records, same producer, valid checksum (core PRD-08)."""
    batch = build_batch(records(50), codec=codec, producer_id=9, producer_epoch=2, base_sequence=4, transactional=True)
    sent = bytes(batch)
    stored = append(batch, LogConfig(compression_type=topic))
    assert stored.codec == TOPIC_CODECS[topic]
    assert stored.crc_ok()
    assert list(read_records(stored)) == [record._replace(offset=record.offset + 100) for record in records(50)]
    assert (stored.producer_id, stored.producer_epoch, stored.base_sequence) == (9, 2, 4)
    assert (stored.is_transactional, stored.last_offset_delta, stored.record_count) == (True, 49, 50)
    assert (stored.base_timestamp_ms, stored.max_timestamp_ms) == (NOW, NOW + 49)
    if stored.codec == codec:
        assert stored.view[61:] == sent[61:]


def test_a_rebuilt_batch_starts_at_its_first_records_time() -> None:
    """The base moves, the records keep their times (core D.3)."""
    batch = build_batch(records(), base_timestamp_ms=NOW - 5000)
    stored = append(batch, LogConfig(compression_type="gzip"))
    assert (stored.base_timestamp_ms, stored.max_timestamp_ms) == (NOW, NOW + 2)
    assert [record.timestamp_ms for record in read_records(stored)] == [NOW, NOW + 1, NOW + 2]


def test_a_rebuilt_batch_with_log_append_time_has_one_time() -> None:
    """The sender's common time becomes the records' own (core D.3)."""
    batch = build_batch(records(), log_append_time=True, max_timestamp_ms=NOW + 9)
    stored = append(batch, LogConfig(compression_type="lz4"))
    assert (stored.is_log_append_time, stored.base_timestamp_ms, stored.max_timestamp_ms) == (False, NOW + 9, NOW + 9)
    assert [record.timestamp_ms for record in read_records(stored)] == [NOW + 9] * 3
    stored = append(build_batch(records()), LogConfig(compression_type="lz4", message_timestamp_type="LogAppendTime"))
    assert (stored.is_log_append_time, stored.max_timestamp_ms) == (True, NOW)


def test_a_rebuilt_batch_may_become_too_large() -> None:
    """Measured again after recompression (core D.2 V14)."""
    batch = build_batch([Record(0, NOW, None, bytes(2000))], codec=Codec.GZIP)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    error = refusal(batch, config)
    assert (error.code, error.reports_log_start) == (ErrorCode.MESSAGE_TOO_LARGE, False)


def test_a_rebuilt_batch_has_no_negative_times() -> None:
    """The rebuilding fails; what is kept may have them (as Kafka 4.3.1 does)."""
    batch = build_batch([Record(0, -5, b"k", b"v")])
    assert append(bytes(batch)).max_timestamp_ms == -1
    assert refusal(batch, LogConfig(compression_type="gzip")).code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_unknown_attribute_bits_are_stored_as_sent() -> None:
    """The bit of the delete horizon is too (core D.2.5)."""
    batch = stamped(build_batch(records()), 21, 0x7F40, 2)
    assert append(batch).attributes == 0x7F40


def test_a_replicated_batch_stays_as_it_is() -> None:
    """Followers append what the leader has."""
    batch = build_batch([record._replace(offset=record.offset + 55) for record in records()], partition_leader_epoch=2)
    sent = bytes(batch)
    stored = append(batch, LogConfig(compression_type="zstd", max_message_bytes=1), origin=AppendOrigin.REPLICATION)
    assert stored.view == sent
    assert (stored.base_offset, stored.partition_leader_epoch) == (55, 2)


def test_every_flipped_bit_is_found() -> None:
    """Nothing but the declared errors, and only offset and epoch are not protected."""
    sent = build_batch(records(), codec=Codec.SNAPPY, producer_id=1, producer_epoch=0, base_sequence=0)
    for position in range(len(sent)):
        for bit in range(8):
            damaged = bytearray(sent)
            damaged[position] ^= 1 << bit
            if position in range(12, 17):
                continue
            try:
                checked = check_partition_records(damaged)
            except (RecordsRejectedError, RequestRejectedError):
                continue
            refusal(checked.view.tobytes())
