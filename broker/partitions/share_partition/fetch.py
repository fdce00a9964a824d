"""ShareFetch: waiting for records, reading and acquiring them for a member (groups D.5).

After Kafka's ``DelayedShareFetch``: retried whenever records are appended, locks expire, the start offset moves, or
another request of the group begins to acknowledge or has fetched; completed at the latest after the maximum wait time.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from broker.coordination.share_state.persister import SharePartitionKey
from broker.partitions.share_partition.machine.acquire import Acquired, Demand, Span, aborted_spans, acquire, leave_out
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.share_partition.partitions import SharePartitions
from broker.partitions.share_partition.sessions import Interest
from broker.partitions.share_partition.settings import reads_committed
from broker.request.context import RequestContext
from broker.time.clock import Watched, wait_until
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import AcquiredRecords, PartitionData
from protocol.records.batch import RecordBatch, batches
from protocol.types import RecordData
from storage.log.partition_log import PartitionLog

Answer = tuple[Interest, PartitionData]
_base_offset = attrgetter("base_offset")


def failed(interest: Interest, code: ErrorCode) -> PartitionData:
    """Return a partition with an error and no records; quirk: the error has no message (groups D.5 SF9)."""
    return PartitionData(interest.key.partition, code, records=b"")


@dataclass(slots=True)
class Limits:
    """Limits of one response. The first record batch may exceed ``max_bytes``."""

    max_bytes: int
    min_bytes: int
    max_wait_ms: int


class _Looked:
    """Wakes a fetch only if there is enough at the moment of the change, before what the change writes takes effect."""

    def __init__(self, share: SharePartition, enough: Callable[[], bool]) -> None:
        self._share, self._enough = share, enough
        self._calls: dict[Callable[[], None], Callable[[], None]] = {}

    def watch(self, call: Callable[[], None]) -> None:
        """Call on each change after which there is enough."""

        def look() -> None:
            if self._enough():
                call()

        self._calls[call] = look
        self._share.watch(look)

    def unwatch(self, call: Callable[[], None]) -> None:
        """Stop calling."""
        self._share.unwatch(self._calls.pop(call))


class ShareFetch:
    """One ShareFetch of a member from the partitions that it may read."""

    def __init__(self, ctx: RequestContext, shares: SharePartitions, group_id: str, demand: Demand) -> None:
        self._ctx, self._shares, self._group_id, self._demand = ctx, shares, group_id, demand
        self._committed = reads_committed(ctx.cluster, group_id)
        self._accepted: list[tuple[Interest, SharePartition]] = []
        self._errors: list[Answer] = []
        self._looked_up: list[SharePartition] = []
        """Share partitions whose next offset the successful attempt had to look up in the log."""

    async def fetch(self, interests: Sequence[Interest], limits: Limits) -> list[Answer]:
        """Wait, read and acquire; return the partitions that were fetched or failed."""
        if not interests or self._demand.max_records == 0 or limits.max_bytes == 0:
            return []
        for interest in interests:
            try:
                self._accepted.append((interest, self._share_partition(interest)))
            except KafkaError as error:
                self._errors.append((interest, failed(interest, error.code)))
        if self._accepted:
            await self._wait(limits)
        if self._ctx.connection.lost:  # acquired records would be locked, but not delivered
            return []
        locked = self._acquirable()
        answers = [*self._read(locked, limits), *self._errors]
        for _, share in locked:  # DelayedShareFetch.releasePartitionLocksAndAddToActionQueue
            share.wake()
        return answers

    def _share_partition(self, interest: Interest) -> SharePartition:
        assert interest.topic is not None
        assert interest.key.topic_id is not None
        key = SharePartitionKey(self._group_id, interest.key.topic_id, interest.key.partition)
        return self._shares.get_or_load(key, interest.topic)

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def _wait(self, limits: Limits) -> None:
        clock, connection = self._ctx.cluster.clock, self._ctx.connection
        watched: list[Watched] = [connection]
        for _, share in self._accepted:
            watched += [share.partition, _Looked(share, lambda: self._enough(limits))]
        deadline_ms = clock.poll_deadline_ms(limits.max_wait_ms)
        if not await wait_until(lambda: connection.lost or self._enough(limits), watched, clock, deadline_ms):
            self._looked_up = []

    def _acquirable(self) -> list[tuple[Interest, SharePartition]]:
        """Return the partitions that can be fetched now; turn failed ones into errors."""
        acquirable = []
        for interest, share in list(self._accepted):
            if share.failure is not None:
                self._accepted.remove((interest, share))
                self._errors.append((interest, failed(interest, share.failure.code)))
            elif share.active and share.inflight.can_acquire():
                acquirable.append((interest, share))
        return acquirable

    def _log(self, share: SharePartition) -> tuple[PartitionLog, int]:
        """Return the leader's log, and the offset up to which it may be read."""
        log = share.partition.led_by(self._ctx.node.id)
        return log, log.last_stable_offset if self._committed else log.high_watermark

    def _enough(self, limits: Limits) -> bool:
        """Return whether there is enough to read for a response (groups D.5 SF6)."""
        if self._shares.ending:
            return False
        acquirable = self._acquirable()
        if not self._accepted:
            return True  # an error in every partition
        if limits.max_bytes < 0:
            return bool(acquirable)  # fails in those
        available = 0
        self._looked_up = [share for _, share in acquirable if self._look_up(share)]
        for _, share in acquirable:
            offset = share.inflight.next_fetch_offset()
            try:
                log, bound = self._log(share)
            except KafkaError:
                return True
            if offset > bound or offset < log.log_start_offset:
                return True
            if offset < bound:
                if log.reader.in_older_segment(offset, bound):
                    return True
                available += log.reader.bytes_available(offset, bound, limits.max_bytes // len(acquirable))
        return bool(acquirable) and available >= limits.min_bytes

    def _look_up(self, share: SharePartition) -> bool:
        """Look up the next fetch offset if it has changed; return whether it has."""
        offset = share.inflight.next_fetch_offset()
        if offset == share.placed_offset:
            return False
        with contextlib.suppress(KafkaError):
            log, _ = self._log(share)
            if log.log_start_offset <= offset <= log.log_end_offset:
                share.placed_offset = offset
        return True

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read(self, acquirable: Sequence[tuple[Interest, SharePartition]], limits: Limits) -> list[Answer]:
        """Read and acquire; partitions that the last attempt looked up come last (groups D.5 SF8)."""
        if limits.max_bytes < 0:  # Kafka's share of it for each partition is an invalid argument
            return [(interest, failed(interest, ErrorCode.UNKNOWN_SERVER_ERROR)) for interest, _ in acquirable]
        looked_up = self._looked_up
        first = [each for each in acquirable if each[1] not in looked_up]
        answers: list[Answer] = []
        count = 0
        for part in (first, [each for each in acquirable if each[1] in looked_up]):
            for interest, data in self._read_part(part, limits, limits.max_bytes // max(len(acquirable), 1), count):
                count += sum(each.last_offset - each.first_offset + 1 for each in data.acquired_records)
                answers.append((interest, data))
        return answers

    def _read_part(
        self, part: Sequence[tuple[Interest, SharePartition]], limits: Limits, share_of_bytes: int, count: int
    ) -> Iterator[Answer]:
        """Read and acquire from some partitions, as one read with its byte limits and a batch that may exceed them."""
        left, size = limits.max_bytes, 0
        for interest, share in part:
            demand = self._demand._replace(max_records=self._demand.max_records - count)
            most = min(share_of_bytes, left)
            data = PartitionData(interest.key.partition, records=b"")
            try:
                piece, acquired = self._acquire(share, demand, most, min_one=size == 0)
            except KafkaError as error:
                data.error_code = error.code
            else:
                size += piece.size
                left = max(0, left - piece.size)
                if acquired:
                    count += sum(last - first + 1 for first, last, _ in acquired)
                    data.records = piece.overlapping(acquired[0].first, acquired[-1].last)
                    data.acquired_records = [AcquiredRecords(*each) for each in acquired]
            yield interest, data

    def _acquire(
        self, share: SharePartition, demand: Demand, max_bytes: int, *, min_one: bool
    ) -> tuple["Piece", list[Acquired]]:
        inflight = share.inflight
        offset = inflight.next_fetch_offset()
        log, bound = self._log(share)
        if offset < log.log_start_offset:  # retention or DeleteRecords: the next fetch reads from the log start
            inflight.begin_at(log.log_start_offset)
            return Piece([], 0), []
        if offset > log.log_end_offset:
            return Piece([], 0), []
        read = log.reader.read(offset, max_bytes, bound=bound, min_one=min_one)
        piece = Piece(read.buffers, read.size)
        spans = piece.spans(inflight.end_offset, demand.max_records)
        acquired = acquire(inflight, demand, offset, spans, self._ctx.now_ms)
        if acquired and self._committed:
            aborted = log.reader.aborted_within(read, offset, bound)
            if aborted:
                acquired = leave_out(inflight, acquired, aborted_spans(piece.batches(), aborted))
        share.follow_locks()
        return piece, acquired


class Piece:
    """Whole record batches that were read from a log, in its own buffers; their headers are parsed lazily.

    A batch is never in two buffers, because an append never is.
    """

    def __init__(self, buffers: list[memoryview], size: int) -> None:
        self._buffers, self.size = buffers, size
        self._known: list[RecordBatch] = []
        self._further = chain.from_iterable(map(batches, buffers))

    def spans(self, end_offset: int, most: int) -> list[Span]:
        """Return the offsets of batches up to ``most`` offsets after those in flight, and of one more."""
        self._read_beyond(-1)
        if self._known:
            self._read_beyond(max(end_offset, self._known[0].base_offset) + most)
        return [Span(batch.base_offset, batch.last_offset) for batch in self._known]

    def batches(self) -> Iterator[RecordBatch]:
        """Iterate over all batches."""
        yield from self._known
        for batch in self._further:
            self._known.append(batch)
            yield batch

    def overlapping(self, first: int, last: int) -> RecordData:
        """Return the bytes of the batches from the one with offset ``first`` to the one with offset ``last``."""
        self._read_beyond(last)
        if len(self._known) == 1:
            return self._buffers
        begin = max(1, bisect_right(self._known, first, key=_base_offset)) - 1
        end = max(begin + 1, bisect_right(self._known, last, key=_base_offset))
        slices: list[memoryview] = []
        while begin < end:
            begins = self._known[begin]
            while begin + 1 < end and self._known[begin + 1].buffer is begins.buffer:
                begin += 1
            slices.append(memoryview(begins.buffer)[begins.position : self._known[begin].end])
            begin += 1
        return slices

    def _read_beyond(self, offset: int) -> None:
        """Parse headers up to the first batch that begins after an offset."""
        while not self._known or self._known[-1].base_offset <= offset:
            batch = next(self._further, None)
            if batch is None:
                return
            self._known.append(batch)
