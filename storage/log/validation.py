"""Validation of a batch by the leader before it is appended, and its rewriting.

Two steps. `scan_first_batch` and `check_partition_records` check a Produce request's bytes before anything else about
the partition (core D.1, transactions D.1 G1, D.2). `validate_append` is part of the append: it checks
header and records (core D.2 V1 to V15) and stamps the batch, or rebuilds it for another codec (core D.3).
Producer rules (core D.2 V16) are in `storage.producers.state`. Kafka: ProduceRequest.validateRecords, UnifiedLog,
LogValidator.
"""

from struct import Struct
from typing import Final

from protocol.errors import ErrorCode
from protocol.records.batch import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    TRANSACTIONAL_BIT,
    Buffer,
    RecordBatch,
    Walked,
    read_span,
    read_varint,
    walk,
)
from protocol.records.compression import Codec, decompress
from protocol.records.errors import (
    DecompressedTooLargeError,
    MalformedRecordsError,
    UnreadableCompressionError,
)
from protocol.records.records import spans
from storage.append_errors import RecordsRejectedError, RequestRejectedError, reports_log_start
from storage.append_info import AppendOrigin
from storage.log.config import LogConfig
from storage.log.large_batches import (
    MOST_DECOMPRESSED_BYTES,
    CheckedRecords,
    LargeBatchError,
    check_in_steps,
    in_one_go,
)
from storage.log.record_rules import (
    check_records,
    check_rewritable,
    max_timestamp_ms,
    may_have_bad_records,
    rebuilt,
    target_codec,
)

__all__ = [
    "AppendOrigin",
    "RecordsRejectedError",
    "RequestRejectedError",
    "check_partition_records",
    "reports_log_start",
    "scan_first_batch",
    "validate_append",
]

_AS_IT_COMES: Final = frozenset({"producer", "uncompressed"})
"""Values of compression.type with which an uncompressed batch is stored as it is."""

_PREFIX: Final = Struct(">8xi4xb").unpack_from
"""Length field and magic byte of a batch of any magic."""
# Bytes and positions in a batch, the next three: core D.4.
_PREFIX_BYTES: Final = 17  # up to and including the magic byte
_MAGIC: Final = 16
_ATTRIBUTES_LOW: Final = 22
_LENGTH: Final = Struct(">i").unpack_from
_SHORTEST_LENGTH: Final = 14  # of a magic-0 message
_MAX_INT: Final = 2**31 - 1
_SMALL: Final = 16 * 1024  # new memory of this size causes no page faults
_MOST_SCRATCH: Final = 4 * 1024 * 1024  # four times max.message.bytes by default


# --- a Produce request's bytes ---------------------------------------------------------------------------------------


def scan_first_batch(records: Buffer) -> bool:
    """Whether the first batch has the transactional bit; checked first for every partition (transactions D.1 G1).

    Raises:
        RequestRejectedError: CORRUPT_MESSAGE for every partition of the request (core D.1 P1), UNKNOWN_SERVER_ERROR
            for a length that overflows.
    """
    try:
        size = _next_batch_size(records, 0)
    except RecordsRejectedError as error:
        raise RequestRejectedError(error.code, error.reason) from error
    if size <= _ATTRIBUTES_LOW or records[_MAGIC] != MAGIC_V2:
        return False
    return records[_ATTRIBUTES_LOW] & TRANSACTIONAL_BIT != 0


def check_partition_records(records: Buffer, *, zstd_allowed: bool = True) -> RecordBatch:
    """Check that a partition's records are one v2 batch, and return it; an incomplete batch after it is ignored.

    Raises:
        RecordsRejectedError: INVALID_RECORD: no batch, an old one or a second one; UNSUPPORTED_COMPRESSION_TYPE; or
            CORRUPT_MESSAGE: a batch shorter than a header, or other bytes after it (core D.1 P3 to P6).
        RequestRejectedError: UNKNOWN_SERVER_ERROR for every partition, an undefined codec before v7 (core D.1 P6) or a
            second batch whose length overflows.
    """
    if len(records) >= BATCH_HEADER_SIZE:  # most often, one whole batch of the newest format and nothing else
        batch = RecordBatch(records)
        if batch.magic == MAGIC_V2 and batch.size == len(records) and (zstd_allowed or batch.codec < Codec.ZSTD):
            return batch
    size = _next_batch_size(records, 0)
    if size == 0:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, "the records have no complete batch")
    batch = RecordBatch(_padded(records))
    if batch.magic != MAGIC_V2:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, f"the batch has magic {batch.magic}")
    if not zstd_allowed and batch.codec >= Codec.ZSTD:
        if batch.codec > Codec.ZSTD:
            raise RequestRejectedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        raise RecordsRejectedError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7")
    if size < len(records) and _next_batch_size(records, size):
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, "the records have a second batch")
    if size < BATCH_HEADER_SIZE:
        raise RecordsRejectedError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes is shorter than a header")
    return batch


def _next_batch_size(records: Buffer, position: int) -> int:
    """Return the size of the batch of any magic at `position`; 0 if incomplete (Kafka: ByteBufferLogInputStream)."""
    left = len(records) - position
    if left < LOG_OVERHEAD:
        return 0
    # The length is checked even if the magic byte is missing.
    length, magic = _PREFIX(records, position) if left >= _PREFIX_BYTES else (*_LENGTH(records, position + 8), None)
    if length < _SHORTEST_LENGTH:
        raise RecordsRejectedError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_SHORTEST_LENGTH})",
        )
    if magic is None:
        return 0
    if not 0 <= magic <= MAGIC_V2:
        raise RecordsRejectedError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    size: int = LOG_OVERHEAD + length
    if size > _MAX_INT:
        # Kafka's sum overflows, and slicing the batch fails the whole request before anything is appended.
        raise RequestRejectedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return size if size <= left else 0


def _padded(records: Buffer) -> Buffer:
    """Pad records to the size of a header; what is too short for a batch is rejected later."""
    return records if len(records) >= BATCH_HEADER_SIZE else bytes(records).ljust(BATCH_HEADER_SIZE, b"\0")


# --- the append ------------------------------------------------------------------------------------------------------


def validate_append(
    batch: RecordBatch,
    config: LogConfig,
    *,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    topic_partition: str = "",
    origin: AppendOrigin = AppendOrigin.CLIENT,
    checked: CheckedRecords | None = None,
    decompressed_limit: int = MOST_DECOMPRESSED_BYTES,
    at_once: bool = True,
) -> RecordBatch:
    """Check a batch and prepare it for writing: stamp offset, leader epoch and timestamps, apply the topic's codec.

    The returned batch is in the same buffer, stamped in place, unless that is read-only or the codec changes.
    A replicated batch is only checked for damage and not changed.

    Args:
        batch: as sent; its buffer may be written to, even when the batch is rejected.
        config: the topic's settings.
        base_offset: the log's end.
        leader_epoch: the partition's.
        now_ms: the cluster's time: for the bounds of timestamps, and for LogAppendTime topics.
        topic_partition: such as `orders-3`, for messages.
        origin: which rules apply.
        checked: the result of the steps of a LargeBatchError.
        decompressed_limit: bytes; a batch that decompresses to more gets INVALID_RECORD (conformance 4 B41).
        at_once: check the records here, however many there are, instead of raising LargeBatchError.

    Raises:
        RecordsRejectedError: with the code, message and record errors of the rule.
        LargeBatchError: the header is valid; the records have to be checked in steps. Not with `at_once`.
    """
    if origin is AppendOrigin.REPLICATION:
        if not batch.crc_ok():
            raise _damaged()
        return batch
    if origin is not AppendOrigin.CLIENT and _needs_no_rewrite(batch, config):
        batch.assign(base_offset, leader_epoch)
        return batch
    _check_header(batch, config, origin)
    if checked is None and (readable := _readable(batch, decompressed_limit)) is None:
        steps = check_in_steps(batch, config, now_ms, topic_partition, decompressed_limit)
        if not at_once:
            raise LargeBatchError(steps)
        checked = in_one_go(steps)
    sent = batch
    if checked is not None:
        config, walked = checked.config, checked.walked
        if checked.rebuilt is not None:
            batch = checked.rebuilt
    else:
        assert readable is not None
        batch, walked = _checked(batch, *readable, config, now_ms, topic_partition)
    # The records' timestamp deltas are relative to the base timestamp with which the batch was sent.
    batch = _stamped(batch, now_ms if config.log_append_time else max_timestamp_ms(sent, walked), config)
    batch.assign(base_offset, leader_epoch)
    return batch


def _stamped(batch: RecordBatch, latest_ms: int, config: LogConfig) -> RecordBatch:
    """Stamp a checked batch with its maximum timestamp, in a buffer that can be written to."""
    if memoryview(batch.buffer).readonly:
        batch = RecordBatch(bytearray(batch.view))
    if batch.size > config.segment_size:  # core D.2 V15
        raise RecordsRejectedError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"the batch has {batch.size} bytes, more than one segment may have"
        )
    batch.set_max_timestamp(latest_ms, log_append_time=config.log_append_time)
    return batch


def _checked(
    batch: RecordBatch, data: bytes | bytearray, size: int, config: LogConfig, now_ms: int, topic_partition: str
) -> tuple[RecordBatch, Walked]:
    """Check the records, which are the first `size` bytes of `data`, and rebuild the batch if its codec changes."""
    source = batch.attributes & CODEC_MASK
    target = source if config.compression_type == "producer" else target_codec(batch, config)
    walked = _walk(data, size, batch, config.max_decompressed_message_bytes)
    if may_have_bad_records(batch, walked, config, now_ms):
        check_records(_own(data, size), batch, config, now_ms, topic_partition, partly_read=0 < source == target)
    if source or target != source:
        check_rewritable(batch, walked, target)
    if target != source:
        batch = rebuilt(
            batch,
            _own(data, size),
            config,
            codec=target,
            first_delta=read_span(data, 0).timestamp_delta,
            latest_ms=now_ms if config.log_append_time else max_timestamp_ms(batch, walked),
            is_sequential=walked.is_sequential,
        )
        if batch.size > config.max_message_bytes:  # core D.2 V14
            raise RecordsRejectedError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {batch.size} bytes as {Codec(target).name}"
            )
    return batch, walked


def _check_sizes(data: bytes | bytearray, batch: RecordBatch, limit: int) -> None:
    """Reject a record that takes more than `max.decompressed.message.bytes`, its own length aside (Kafka 4.4)."""
    start = 0
    for span in spans(data, batch.record_count):
        _, body = read_varint(data, start)
        if span.end - body > limit:
            raise RecordsRejectedError(
                ErrorCode.INVALID_RECORD, f"a record of {span.end - body} bytes, more than {limit}"
            )
        start = span.end


def _needs_no_rewrite(batch: RecordBatch, config: LogConfig) -> bool:
    """Whether a batch built by this broker needs neither checks nor rewriting."""
    return (
        not batch.codec
        and config.compression_type in _AS_IT_COMES
        and not config.log_append_time
        and batch.size <= min(config.max_message_bytes, config.segment_size)
        and not memoryview(batch.buffer).readonly
    )


def _check_header(batch: RecordBatch, config: LogConfig, origin: AppendOrigin) -> None:
    """Check the header: offset, size, counts, control bit, sequence (core D.2 V1 to V9)."""
    is_client = origin is AppendOrigin.CLIENT
    # In the order of UnifiedLog.analyzeAndValidateRecords: what is too large is refused without a pass over its bytes.
    if is_client and batch.base_offset != 0:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, f"the base offset is {batch.base_offset}, not 0")
    if batch.size > config.max_message_bytes:
        raise RecordsRejectedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {batch.size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if not batch.crc_ok():  # core D.2 V3
        raise _damaged()
    codec = batch.attributes & CODEC_MASK
    # CompressionType.forId throws an IllegalArgumentException, for which Kafka has no code of its own.
    if codec > Codec.ZSTD:
        raise RecordsRejectedError(ErrorCode.UNKNOWN_SERVER_ERROR, f"undefined compression code {codec}")
    # From here on LogValidator.validateBatch, which checks what clients send only.
    if not is_client:
        return
    count = batch.record_count
    if batch.last_offset_delta < 0 or count <= 0 or batch.last_offset_delta + 1 != count:
        raise RecordsRejectedError(
            ErrorCode.INVALID_RECORD,
            f"the batch has {count} records, but the last offset delta {batch.last_offset_delta}",
        )
    if batch.attributes & CONTROL_BIT:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, "a client sent a control batch")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise RecordsRejectedError(
            ErrorCode.INVALID_RECORD, f"an idempotent producer sent sequence {batch.base_sequence}"
        )


def _damaged() -> RecordsRejectedError:
    return RecordsRejectedError(ErrorCode.CORRUPT_MESSAGE, "the batch's checksum does not match, or bytes are missing")


_scratch = bytearray()
"""Buffer for the records that are walked. New memory for each batch would cause page faults, which took as long as the
rest of an append. It grows to `_MOST_SCRATCH`; compressed records that do not fit are never in memory as a whole."""


def _scratch_of(size: int) -> bytearray:
    """Return the scratch buffer, of at least `size` bytes."""
    global _scratch  # noqa: PLW0603 - its contents are only used within one append
    if len(_scratch) < size:
        _scratch = bytearray(size)
    return _scratch


def _readable(batch: RecordBatch, limit: int) -> tuple[bytes | bytearray, int] | None:
    """Return the decompressed records and their size in bytes; other bytes may follow.

    None: they are too large, or unreadable; in that case the error depends on how far they can be read.
    """
    codec, view = batch.attributes & CODEC_MASK, batch.records_view
    if not codec:
        size = len(view)
        if not _SMALL < size <= _MOST_SCRATCH:
            return bytes(view), size
        scratch = _scratch_of(size)
        with memoryview(scratch) as target:  # assigning to the bytearray itself would copy twice
            target[:size] = view
        return scratch, size
    scratch = _scratch_of(_MOST_SCRATCH)
    try:
        data = decompress(codec, view, min(limit, _MOST_SCRATCH), scratch=scratch)
    except (DecompressedTooLargeError, UnreadableCompressionError):
        return None
    if isinstance(data, memoryview):
        return scratch, len(data)
    return data, len(data)


def _own(data: bytes | bytearray, size: int) -> bytes | bytearray:
    """Return the records without the bytes after them."""
    return data if len(data) == size else bytes(memoryview(data)[:size])


def _walk(data: bytes | bytearray, size: int, batch: RecordBatch, most: int) -> Walked:
    """Walk the records: lengths, counts, the compressed stream and `most` bytes each must fit (core D.2 V10)."""
    try:
        try:
            walked = walk(data, batch.record_count, size)
        except MalformedRecordsError:
            if len(data) == size:
                raise
            walked = walk(_own(data, size), batch.record_count)  # so that the error is that of these bytes alone
    except MalformedRecordsError as error:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, str(error)) from error
    if batch.attributes & CODEC_MASK and size > most:
        _check_sizes(_own(data, size), batch, most)
    return walked
