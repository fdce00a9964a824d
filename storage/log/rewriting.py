"""Rewriting of a batch with the topic's codec: which batches cannot be rewritten, and how the others are rebuilt.

Rules: core D.2.4, D.3.

Kafka: LogValidator, MemoryRecordsBuilder.
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
    Walked,
    wrap_int64,
)
from protocol.records.compression import Codec
from protocol.records.records import frame_batch, rebase_records
from storage.append_errors import RecordsRejectedError
from storage.log.config import LogConfig

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
