"""Plans and runs reads: a query and paths become splits (on the driver), a split becomes rows (on a worker)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from pipeline.batches import BatchTable
from pipeline.decoding import columns
from pipeline.decoding.batch_scan import Framed, Messages
from pipeline.decoding.damage import Damage, DamagedError
from pipeline.decoding.legacy import decode_messages
from pipeline.decoding.records import Wanted, decode
from pipeline.directory import Partition
from pipeline.query import Query
from pipeline.segment_reader import Chunk, Range, read_pieces
from pipeline.splits import Split, split_partition
from pipeline.transactions import aborted_ranges, last_stable_offset


def plan_records(partitions: Sequence[Partition], query: Query, split_bytes: int | None = None) -> list[Split]:
    """Return the splits with the requested records, and their transactions from the other files.

    Records before the log start offset are left out: no consumer can read them.
    """
    splits: list[Split] = []
    for partition in partitions:
        start, stop = max(query.start_offset, partition.log_start_offset), query.stop_offset
        if query.is_committed and (stable := last_stable_offset(partition)) is not None:
            stop = min(stop, stable)
        partition_splits = split_partition(
            partition, start_offset=start, stop_offset=stop, start_ms=query.times[0], split_bytes=split_bytes
        )
        if partition_splits and (query.is_committed or "aborted" in query.schema.names):
            aborted = aborted_ranges(partition, start)
            partition_splits = [replace(each, aborted=aborted) for each in partition_splits]
        splits += partition_splits
    return splits


def plan_batches(partitions: Sequence[Partition], query: Query, split_bytes: int | None = None) -> list[Split]:
    """Return the splits with the requested batches, including those before the log start offset."""
    return [
        split
        for partition in partitions
        for split in split_partition(
            partition,
            start_offset=query.start_offset,
            stop_offset=query.stop_offset,
            start_ms=query.times[0],
            split_bytes=split_bytes,
        )
    ]


def read_records(split: Split, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the records of a split. Raises DamagedError in mode `fail`, OSError if a file cannot be read."""
    wanted = Wanted(
        split.topic,
        split.partition,
        query.schema,
        split.start_offset,
        split.stop_offset,
        *query.times,
        query.control,
        query.is_committed,
        split.aborted,
    )
    for span in split.ranges:
        path = str(span.segment.location)
        for chunk in read_pieces(span, crc=query.crc):
            for part in _records(chunk, wanted, path):
                if not isinstance(part, Damage):
                    yield part
                elif _is_serious(part, span, split) and query.mode != "skip":
                    if query.mode == "fail":
                        raise DamagedError(path, part)
                    yield _damaged_record(part, wanted, path)


def _records(chunk: Chunk, wanted: Wanted, path: str) -> Iterator[pa.RecordBatch | Damage]:
    if isinstance(chunk.piece, Framed):
        yield from decode(chunk.data, chunk.piece, wanted, path, chunk.origin)
    elif isinstance(chunk.piece, Messages):
        yield from decode_messages(chunk.data, chunk.piece, wanted, path, chunk.origin)
    else:
        yield chunk.piece


def _is_serious(damage: Damage, span: Range, split: Split) -> bool:
    """Return whether damage is more than an incomplete end of a log, as of a broker that is writing or was killed."""
    is_open = damage.is_tail and span.stop is None and span.segment.next_base_offset is None
    if not is_open or split.high_watermark is None or damage.base_offset is None:
        return not is_open
    return damage.base_offset < split.high_watermark


def _damaged_record(damage: Damage, wanted: Wanted, path: str) -> pa.RecordBatch:
    known = {
        "topic": wanted.topic,
        "partition": wanted.partition,
        "offset": damage.base_offset,
        "batch_base_offset": damage.base_offset,
        "segment": path,
        "position": damage.position,
        "damage": damage.reason,
    }
    arrays = [columns.repeated(known.get(field.name), field.type, 1) for field in wanted.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)


def read_batches(split: Split, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split. Raises DamagedError in mode `fail`, OSError if a file cannot be read."""
    for span in split.ranges:
        table = BatchTable(
            split.topic,
            split.partition,
            str(span.segment.location),
            query.schema,
            split.start_offset,
            split.stop_offset,
            *query.times,
            query.by_base,
        )
        for chunk in read_pieces(span, crc=query.crc):
            for part in table.rows(chunk):
                if not isinstance(part, Damage):
                    yield part
                elif query.mode == "report":
                    yield table.damage(part)
                elif query.mode == "fail" and _is_serious(part, span, split):
                    raise DamagedError(table.path, part)
