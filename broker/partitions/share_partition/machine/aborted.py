"""Record batches of aborted transactions, which read_committed share groups skip (groups D.7)."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from broker.partitions.share_partition.machine.acquire import Span
from protocol.records.batch import RecordBatch
from protocol.records.records import parse_marker


def aborted_spans(batches: Iterable[RecordBatch], aborted: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Iterate lazily over the offsets of the batches to archive, in order.

    Args:
        batches: record batches in offset order.
        aborted: producer id and first offset of each aborted transaction with data among them.
    """
    pending = deque(sorted(aborted, key=lambda each: each[1]))
    open_ids: set[int] = set()
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while pending and pending[0][1] <= batch.last_offset:
            open_ids.add(pending.popleft()[0])
        marker = parse_marker(batch)
        if marker is not None and not marker.committed:
            open_ids.discard(batch.producer_id)
        elif not batch.is_control and batch.is_transactional and batch.producer_id in open_ids:
            yield Span(batch.base_offset, batch.last_offset)
