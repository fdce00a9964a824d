"""Checks of compressed batches that are too large to be decompressed as a whole, and their rebuilding, in steps.

The rules are those of `validation`. A client's megabyte can decompress to gigabytes, which Kafka's broker streams too.
So the caller of the append takes the steps one by one, and serves other requests in between.
"""

from collections.abc import Generator
from typing import Final, NamedTuple, TypeVar, cast

from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.records.batch import BATCH_HEADER_SIZE, CODEC_MASK, RecordBatch, Walked, read_span, read_varint, walk
from protocol.records.compression import Buffer, Codec, StreamCompressor, pieces
from protocol.records.errors import DecompressedTooLargeError, MalformedRecordsError, UnreadableCompressionError
from protocol.records.record_portions import LongBegin, LongEnd, LongPart, Portion, portions
from protocol.records.records import begin_record, rebase_records
from storage.append_errors import RecordsRejectedError
from storage.log.config import LogConfig
from storage.log.record_rules import (
    RecordChecks,
    check_rewritable,
    level_of,
    max_timestamp_ms,
    may_have_bad_records,
    reframed,
    target_codec,
    timestamp_shift_ms,
)

T = TypeVar("T")

MOST_DECOMPRESSED_BYTES: Final = 2_147_483_639
"""Default limit of a decompressed batch. Kafka limits only single records: a megabyte of zstd can become 30 GB.

Its limit of a record, LogConfig.DEFAULT_MAX_DECOMPRESSED_MESSAGE_BYTES: no Java array is larger.
"""
_UNLIMITED: Final = 2**63  # more bytes than an int64 counts


class CheckedRecords(NamedTuple):
    """Result of a large batch's checks."""

    config: LogConfig
    """Settings by which the records were checked; the topic's may have changed meanwhile."""
    walked: Walked
    rebuilt: RecordBatch | None
    """The batch in the topic's codec, if that is not its own."""


Steps = Generator[None, None, CheckedRecords]


class LargeBatchError(Exception):
    """Batch that has to be checked in steps: its header is valid; `steps` check its records, or reject the batch."""

    def __init__(self, steps: Steps) -> None:
        super().__init__("records that are checked in steps")
        self.steps = steps


def in_one_go(steps: Generator[None, None, T]) -> T:
    """Take all steps without a pause; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)


def check_in_steps(batch: RecordBatch, config: LogConfig, now_ms: int, topic_partition: str, limit: int) -> Steps:
    """Check the records of a compressed batch, and rebuild it if its codec changes; the header is checked already.

    The arguments are those of `validate_append`; `limit` is in bytes. Memory is bounded by a portion of records, and by
    `max.message.bytes` for a batch that is rebuilt.
    """
    source, target = batch.attributes & CODEC_MASK, target_codec(batch, config)
    checks = RecordChecks(batch, config, now_ms, topic_partition, partly_read=source == target)
    progress = _Progress()
    try:
        yield from _walk_in_steps(batch, config, now_ms, limit, checks, progress)
        # As in `validate_append`: bad records (core D.2 V11 to V13) before what cannot be rewritten (core D.2.4).
        checks.finish()
        walked = progress.walked()
        check_rewritable(batch, walked, target)
        rebuilt_batch = None
        if target != source:
            latest_ms = now_ms if config.log_append_time else max_timestamp_ms(batch, walked)
            rebuilt_batch = yield from _rebuild_in_steps(batch, config, target, progress, latest_ms)
    except (MalformedRecordsError, DecompressedTooLargeError) as error:
        raise RecordsRejectedError(ErrorCode.INVALID_RECORD, str(error)) from error
    except UnreadableCompressionError as error:
        raise RecordsRejectedError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    return CheckedRecords(config, walked, rebuilt_batch)


@dataclass(slots=True)
class _Progress:
    """Properties of the records that were read so far."""

    first_delta: int | None = None
    min_delta: int = 2**63  # beyond every int64, as is the next
    max_delta: int = -(2**63)
    is_sequential: bool = True
    has_null_key: bool = False

    def add(self, first_delta: int, walked: Walked) -> None:
        if self.first_delta is None:
            self.first_delta = first_delta
        self.min_delta = min(self.min_delta, walked.min_timestamp_delta)
        self.max_delta = max(self.max_delta, walked.max_timestamp_delta)
        self.is_sequential = self.is_sequential and walked.is_sequential
        self.has_null_key = self.has_null_key or walked.has_null_key

    def walked(self) -> Walked:
        return Walked(self.min_delta, self.max_delta, self.is_sequential, self.has_null_key)


def _walk_in_steps(
    batch: RecordBatch, config: LogConfig, now_ms: int, limit: int, checks: RecordChecks, progress: _Progress
) -> Generator[None, None, None]:
    codec, most_in_one = batch.attributes & CODEC_MASK, config.max_decompressed_message_bytes
    passing = portions(codec, batch.records_view, batch.record_count, most=limit, most_in_one=most_in_one)
    for each in passing:
        if isinstance(each, Portion):
            data, first = each.data, each.first
            walked = walk(data, first + each.records, each.stop, first)
            progress.add(read_span(data, 0).timestamp_delta, walked)
            # Too large a record (core D.2 V10) before what is wrong in it (core D.2 V11 to V13).
            if each.stop > most_in_one:
                _check_sizes(each, most_in_one)
            if may_have_bad_records(batch, walked, config, now_ms):
                for index, span in enumerate(each.spans(), first):
                    checks.check(index, span)
        elif isinstance(each, LongEnd):
            span = each.span
            delta = span.timestamp_delta
            walked = Walked(delta, delta, span.offset_delta == each.at, span.key_size < 0)
            progress.add(delta, walked)
            if may_have_bad_records(batch, walked, config, now_ms):
                checks.check(each.at, span)
        yield


def _check_sizes(portion: Portion, most_in_one: int) -> None:
    start = 0
    for span in portion.spans():
        _, body = read_varint(portion.data, start)
        if span.end - body > most_in_one:
            raise MalformedRecordsError(f"a record of {span.end - body} bytes, more than {most_in_one}")
        start = span.end


def _rebuild_in_steps(
    batch: RecordBatch, config: LogConfig, target: int, progress: _Progress, latest_ms: int
) -> Generator[None, None, RecordBatch]:
    """Rebuild a batch whose records were found sound. Raises RecordsRejectedError: MESSAGE_TOO_LARGE (core D.2 V14)."""
    first_delta = progress.first_delta or 0
    shift_ms = timestamp_shift_ms(batch, first_delta)
    compressor = StreamCompressor(target, level_of(target, config))
    for data in _rebased(batch, shift_ms, changes=shift_ms != 0 or not progress.is_sequential):
        compressor.add(data)
        _check_rebuilt(len(compressor.output), target, config)
        yield
    records = compressor.finish()
    _check_rebuilt(len(records), target, config)
    return reframed(batch, records, config, codec=target, first_delta=first_delta, latest_ms=latest_ms, compressed=True)


def _check_rebuilt(size: int, target: int, config: LogConfig) -> None:
    if BATCH_HEADER_SIZE + size > config.max_message_bytes:
        raise RecordsRejectedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has more than {config.max_message_bytes} bytes as {Codec(target).name}",
        )


def _rebased(batch: RecordBatch, shift_ms: int | None, *, changes: bool) -> Generator[Buffer, None, None]:
    """Yield the decompressed records with offset deltas 0, 1, 2, ... and other timestamps."""
    codec, count = batch.attributes & CODEC_MASK, batch.record_count
    if not changes:
        yield from pieces(codec, batch.records_view)
        return
    for each in portions(codec, batch.records_view, count, most=_UNLIMITED, most_in_one=_UNLIMITED):
        if isinstance(each, Portion):
            yield rebase_records(bytes(each.data[: each.stop]), each.records, shift_ms, each.first)
        elif isinstance(each, LongBegin):
            head = bytearray()
            begin_record(head, each.timestamp_delta, each.at, each.body_size, shift_ms)
            yield head
        elif isinstance(each, LongPart):
            yield each.data
