"""Rules for the records in a batch: which ones are bad, and which batch is rewritten with the topic's codec, and how.

Usually the walk over a batch proves already that no record can fail; only otherwise is each record checked
(core D.2 V11 to V13, D.2.4, D.3). Batches that are in memory as a whole (`validation`) and those that are read in
portions (`large_batches`) obey the same rules. Kafka: LogValidator, MemoryRecordsBuilder.
"""

from typing import Final

from protocol.errors import ErrorCode
from protocol.records.batch import (
    CODEC_MASK,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Buffer,
    RecordBatch,
    Span,
    Walked,
    wrap_int64,
)
from protocol.records.compression import Codec
from protocol.records.records import frame_batch, rebase_records, spans
from storage.append_errors import RecordsRejectedError
from storage.log.config import LogConfig

# --- keys and timestamps ----------------------------------------------------------------------------------------------

_INT64_MAX: Final = 2**63 - 1
_SHOWN_ERRORS: Final = 3  # as the message has it: "only showing the first three errors" (core D.2.1)
_MOST_ERRORS: Final = 100_000
"""Most records that a response lists; Kafka lists all of them, and a megabyte can hold many millions.

Ours, a response of some MB.
"""


def may_have_bad_records(batch: RecordBatch, walked: Walked, config: LogConfig, now_ms: int) -> bool:
    """Whether a record may fail, judging by the earliest and latest timestamps and missing keys."""
    if config.compact and walked.has_null_key:
        return True
    if batch.attributes & TIMESTAMP_TYPE_BIT:
        return True
    if config.log_append_time:
        return False
    earliest_ms = batch.base_timestamp_ms + walked.min_timestamp_delta
    latest_ms = batch.base_timestamp_ms + walked.max_timestamp_delta
    return (
        now_ms - earliest_ms > config.message_timestamp_before_max_ms
        or latest_ms - now_ms > config.message_timestamp_after_max_ms
        or latest_ms > _INT64_MAX
    )


def check_records(
    data: bytes | bytearray,
    batch: RecordBatch,
    config: LogConfig,
    now_ms: int,
    topic_partition: str,
    *,
    partly_read: bool,
) -> None:
    """Check every record, and report all errors together.

    `partly_read`: Kafka skips keys and values of a compressed batch that it does not rewrite, as a message shows.

    Raises:
        RecordsRejectedError: INVALID_TIMESTAMP or INVALID_RECORD, with message and record errors.
    """
    checks = RecordChecks(batch, config, now_ms, topic_partition, partly_read=partly_read)
    for index, span in enumerate(spans(data, batch.record_count)):
        checks.check(index, span)
    checks.finish()


class RecordChecks:
    """Collects the errors of a batch's records; the arguments are those of `check_records`."""

    def __init__(
        self, batch: RecordBatch, config: LogConfig, now_ms: int, topic_partition: str, *, partly_read: bool
    ) -> None:
        self._batch, self._config, self._now_ms = batch, config, now_ms
        self._topic_partition, self._partly_read = topic_partition, partly_read
        self._bad_timestamps = False
        self._count = 0
        self._errors: list[tuple[int, str]] = []

    def check(self, index: int, span: Span) -> None:
        """Check one record."""
        batch, config = self._batch, self._config
        if config.compact and span.key_size < 0:
            topic_partition = self._topic_partition
            self._add(index, f"Compacted topic cannot accept message without key in topic partition {topic_partition}")
            return
        timestamp_ms = (
            batch.max_timestamp_ms if batch.is_log_append_time else batch.base_timestamp_ms + span.timestamp_delta
        )
        message = _timestamp_error(timestamp_ms, span, batch, config, self._now_ms, partly_read=self._partly_read)
        if message is not None:
            self._bad_timestamps = True
            self._add(index, message)

    def _add(self, index: int, message: str) -> None:
        self._count += 1
        if self._count <= _MOST_ERRORS:
            self._errors.append((index, message))

    def finish(self) -> None:
        """Reject the batch if a record was bad. Raises RecordsRejectedError, as `check_records`."""
        errors = self._errors
        if not errors:
            return
        # One bad timestamp decides the code, even if other records are bad in another way (core D.2.1).
        if self._bad_timestamps:
            raise RecordsRejectedError(
                ErrorCode.INVALID_TIMESTAMP,
                errors[0][1],
                message="One or more records have been rejected due to invalid timestamp",
                record_errors=errors,
            )
        shown = ", ".join(f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:_SHOWN_ERRORS])
        raise RecordsRejectedError(
            ErrorCode.INVALID_RECORD,
            errors[0][1],
            message=(
                f"One or more records have been rejected due to {self._count} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]"
            ),
            record_errors=errors,
        )


def _timestamp_error(
    timestamp_ms: int, span: Span, batch: RecordBatch, config: LogConfig, now_ms: int, *, partly_read: bool
) -> str | None:
    """Return the error of a record's timestamp, if it has one (core D.2 V12, V13)."""
    if config.log_append_time or timestamp_ms == NO_TIMESTAMP:
        if not batch.is_log_append_time:
            return None
        kind, least = ("PartialDefaultRecord", -1) if partly_read else ("DefaultRecord", 0)
        record = (
            f"{kind}(offset={span.offset_delta}, timestamp={timestamp_ms}, "
            f"key={max(span.key_size, least)} bytes, value={max(span.value_size, least)} bytes)"
        )
        return f"Invalid timestamp type in message {record}. Producer should not set timestamp type to LogAppendTime."
    before_ms, after_ms = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    if now_ms - timestamp_ms > before_ms or timestamp_ms - now_ms > after_ms or timestamp_ms > _INT64_MAX:
        return (
            f"Timestamp {timestamp_ms} of message with offset {span.offset_delta} is out of range. "
            f"The timestamp should be within [{now_ms - before_ms}, {now_ms + after_ms}]"
        )
    return None


# --- rewriting --------------------------------------------------------------------------------------------------------

_TARGETS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def target_codec(batch: RecordBatch, config: LogConfig) -> int:
    """Return the codec in which the batch is stored: the topic's, or its own."""
    source = batch.attributes & CODEC_MASK
    target = _TARGETS.get(config.compression_type, source)
    # A marker and a batch without records are not recompressed.
    if target != source and (batch.record_count <= 0 or batch.is_control):
        return source
    return target


def level_of(codec: int, config: LogConfig) -> int | None:
    """Return the topic's compression level for a codec."""
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(Codec(codec))


def check_rewritable(batch: RecordBatch, walked: Walked, target: int) -> None:
    """Reject batches on which Kafka's rewriting fails with UNKNOWN_SERVER_ERROR (core D.2.4)."""
    source = batch.attributes & CODEC_MASK
    if source and target == source and not walked.is_sequential:
        raise RecordsRejectedError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "offset deltas of a compressed batch are not 0, 1, 2, ..."
        )
    if target != source and _min_timestamp_ms(batch, walked) < NO_TIMESTAMP:
        # MemoryRecordsBuilder accepts no negative timestamps; a batch that is not rebuilt may have them.
        raise RecordsRejectedError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "a batch with a negative timestamp cannot be rebuilt"
        )
    if target != source and batch.producer_id != NO_PRODUCER_ID and batch.producer_epoch == NO_PRODUCER_EPOCH:
        raise RecordsRejectedError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "a batch with a producer id but no epoch cannot be rebuilt"
        )  # likewise
    if target != source and batch.producer_id == NO_PRODUCER_ID and batch.is_transactional:
        raise RecordsRejectedError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "a transactional batch without a producer id cannot be rebuilt"
        )


def _min_timestamp_ms(batch: RecordBatch, walked: Walked) -> int:
    if batch.is_log_append_time:
        return batch.max_timestamp_ms
    return batch.base_timestamp_ms + walked.min_timestamp_delta


def max_timestamp_ms(batch: RecordBatch, walked: Walked) -> int:
    """Return the latest timestamp of the records, at least -1."""
    if batch.attributes & TIMESTAMP_TYPE_BIT:
        return batch.max_timestamp_ms
    return max(batch.base_timestamp_ms + walked.max_timestamp_delta, NO_TIMESTAMP)


def timestamp_shift_ms(batch: RecordBatch, first_delta: int) -> int | None:
    """Return by how much timestamp deltas shrink if the first timestamp becomes the base; None: they become 0."""
    return None if batch.is_log_append_time else first_delta


def rebuilt(
    batch: RecordBatch,
    data: bytes | bytearray,
    config: LogConfig,
    *,
    codec: int,
    first_delta: int,
    latest_ms: int,
    is_sequential: bool,
) -> RecordBatch:
    """Rebuild a batch with another codec, offset deltas 0, 1, 2, ... and the first timestamp as its base."""
    shift_ms = timestamp_shift_ms(batch, first_delta)
    if shift_ms != 0 or not is_sequential:
        data = rebase_records(data, batch.record_count, shift_ms)
    return reframed(batch, data, config, codec=codec, first_delta=first_delta, latest_ms=latest_ms)


def reframed(
    batch: RecordBatch,
    data: Buffer,
    config: LogConfig,
    *,
    codec: int,
    first_delta: int,
    latest_ms: int,
    compressed: bool = False,
) -> RecordBatch:
    """Put a header like that of `batch` before rebased records.

    `compressed`: the records are compressed with `codec` already.
    """
    base_timestamp_ms = wrap_int64(batch.base_timestamp_ms + first_delta)
    if batch.is_log_append_time:
        base_timestamp_ms = batch.max_timestamp_ms
    attributes = batch.attributes & TRANSACTIONAL_BIT | (TIMESTAMP_TYPE_BIT if config.log_append_time else 0)
    return RecordBatch(
        frame_batch(
            data,
            batch.record_count,
            base_offset=0,
            last_offset_delta=batch.record_count - 1,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=latest_ms,
            attributes=attributes | codec if compressed else attributes,
            codec=Codec.NONE if compressed else codec,
            level=level_of(codec, config),
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
    )
