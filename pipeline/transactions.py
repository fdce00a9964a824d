"""Finds aborted and open transactions of a partition in the files in which its broker keeps them.

Aborted ones are in `.txnindex`, open ones in the newest producer snapshot and the batches after it (transactions D.10,
D.11). If those files cannot be read, all batches are scanned.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from pipeline.decoding.aborted import AbortedRange, AbortedRanges
from pipeline.decoding.batch_scan import Framed
from pipeline.directory import Partition, Segment
from pipeline.locations import read_file
from pipeline.segment_reader import Chunk, Range, read_pieces
from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch
from protocol.records.records import Marker, parse_marker
from storage.indexes.segment_index import IndexCorruptError
from storage.indexes.txn_index import decode_transactions
from storage.producers.snapshot import SnapshotCorruptError, decode_snapshot

_NEITHER: Final = TRANSACTIONAL_BIT | CONTROL_BIT


def aborted_ranges(partition: Partition, start_offset: int = 0) -> AbortedRanges:
    """Return the aborted transactions that may contain records from `start_offset` on."""
    ranges: list[AbortedRange] = []
    for segment in partition.segments:
        is_passed = segment.next_base_offset is not None and segment.next_base_offset <= start_offset
        if is_passed:
            continue
        if not segment.indexes:
            return AbortedRanges(_aborted_by_batches(partition))  # a copy without indexes, such as of a fetched log
        if "txnindex" not in segment.indexes:
            continue  # Kafka creates it with its first entry
        try:
            entries = decode_transactions(read_file(segment.beside("txnindex")), str(segment.beside("txnindex")))
        except FileNotFoundError:
            continue  # deleted with its segment
        except (OSError, IndexCorruptError):
            return AbortedRanges(_aborted_by_batches(partition))
        ranges += [AbortedRange(each.producer_id, each.first_offset, each.last_offset) for each in entries]
    return AbortedRanges(ranges)


def last_stable_offset(partition: Partition) -> int | None:
    """Return the first offset of the earliest open transaction; None if none is open."""
    offset, open_transactions = _snapshot(partition)
    for segment in partition.segments:
        if segment.next_base_offset is None or segment.next_base_offset > offset:
            for producer_id, base_offset, marker in _steps(segment):
                if base_offset < offset:
                    continue
                if marker is None:
                    open_transactions.setdefault(producer_id, base_offset)
                else:
                    open_transactions.pop(producer_id, None)
    return min(open_transactions.values(), default=None)


def _snapshot(partition: Partition) -> tuple[int, dict[int, int]]:
    """Return the offset of the newest readable snapshot, and its open transactions: producer -> first offset."""
    for offset in reversed(partition.snapshots):
        try:
            entries = decode_snapshot(read_file(partition.directory.child(f"{offset:020d}.snapshot")))
        except (OSError, SnapshotCorruptError):
            continue
        first_offsets = ((each.producer_id, each.transaction_first_offset) for each in entries)
        return offset, {producer_id: first for producer_id, first in first_offsets if first is not None}
    return 0, {}


def _aborted_by_batches(partition: Partition) -> Iterator[AbortedRange]:
    firsts: dict[int, int] = {}
    for segment in partition.segments:
        for producer_id, base_offset, marker in _steps(segment):
            if marker is None:
                firsts.setdefault(producer_id, base_offset)
                continue
            first = firsts.pop(producer_id, None)
            if first is not None and not marker.committed:
                yield AbortedRange(producer_id, first, base_offset)


def _steps(segment: Segment) -> Iterator[tuple[int, int, Marker | None]]:
    """Yield producer and base offset of each transactional batch in a segment, and its marker type, if it is one."""
    for chunk in read_pieces(Range(segment), crc=False):
        if isinstance(chunk.piece, Framed):
            yield from _steps_of(chunk, chunk.piece)


def _steps_of(chunk: Chunk, framed: Framed) -> Iterator[tuple[int, int, Marker | None]]:
    bits = framed.headers["attributes"] & _NEITHER
    for index in np.flatnonzero(bits & TRANSACTIONAL_BIT).tolist():
        head = framed.headers[index]
        marker = None
        if bits[index] & CONTROL_BIT:
            marker = parse_marker(RecordBatch(chunk.data.data, int(framed.positions[index])))
            if marker is None:
                continue
        yield int(head["producer_id"]), int(head["base_offset"]), marker
