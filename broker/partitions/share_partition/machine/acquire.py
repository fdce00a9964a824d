"""Acquisition of a share partition's records by a member (groups D.7, Kafka's ``SharePartition.acquire``)."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from broker.partitions.share_partition.machine.inflight import InFlight, ShareSettings
from broker.partitions.share_partition.machine.states import InFlightBatch, InFlightState, RecordState
from protocol.deferred import dataclass
from protocol.records.batch import RecordBatch
from protocol.records.records import parse_marker


class Span(NamedTuple):
    """The offsets of one record batch of the log."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Offsets that a member has acquired, with their delivery count."""

    first: int
    last: int
    delivery_count: int


class Demand(NamedTuple):
    """The limits of a member's fetch.

    Attributes:
        record_limit: acquire at most ``max_records`` (KIP-1206); else whole record batches.
        batch_size: smallest size of a batch in flight, if there are enough offsets.
    """

    member: str
    max_records: int
    batch_size: int
    record_limit: bool = False


@dataclass(slots=True)
class _Acquisition:
    """One call of :func:`acquire`: the fetched record batches, and the offsets acquired so far."""

    inflight: InFlight
    settings: ShareSettings
    demand: Demand
    spans: Sequence[Span]
    now_ms: int
    most: int
    acquired: list[Acquired]
    count: int = 0

    @property
    def left(self) -> int:
        return self.most - self.count

    @property
    def lock_until_ms(self) -> int:
        return self.now_ms + self.settings.lock_ms

    # --- new records -------------------------------------------------------------------------------------------------

    def take_new(self, first: int, last: int) -> None:
        """Acquire offsets that are not in flight yet."""
        inflight = self.inflight
        if not inflight.batches and inflight.end_offset > first:
            first = inflight.end_offset
        if self.left < last - first + 1:
            limit, last_asked = last, first + self.left - 1
            last = self._end_of_span(last_asked)
            if inflight.gap_start is not None:
                last = min(last, limit)
        runs = self._in_batches(first, last)
        if inflight.batches[0].first == first:
            inflight.start_offset = first
        inflight.end_offset = max(inflight.end_offset, last)
        if self.demand.record_limit:
            last = runs[0].last
        inflight.close_gap_before(last + 1)
        self.acquired += runs
        self.count += last - first + 1

    def _end_of_span(self, offset: int) -> int:
        """Return the last offset of the record batch with an offset; the offset itself if there is none."""
        before = None
        for span in self.spans:
            if offset < span.first:
                break
            before = span
        return before.last if before is not None and offset <= before.last else offset

    def _in_batches(self, first: int, last: int) -> list[Acquired]:
        """Put a range in flight: one batch, or several of ``batch_size`` that begin with record batches."""
        runs = []
        batch_size = max(self.demand.batch_size, 0)
        if not self.demand.record_limit and last - first + 1 > batch_size:
            for span in self.spans:
                if span.first > last:
                    break
                if span.first - first >= batch_size:
                    runs.append(Acquired(first, span.first - 1, 1))
                    first = span.first
        runs.append(Acquired(first, last, 1))
        if self.demand.record_limit and last - first + 1 > self.left:
            return [self._take_part(first, last)]
        for run in runs:
            if run.last < run.first:  # with a batch size of 0: returned to the member, but the next run replaces it
                continue
            state = InFlightState(RecordState.ACQUIRED, 1, self.demand.member, self.lock_until_ms, self.now_ms)
            batch = InFlightBatch(run.first, run.last, state)
            self.inflight.add(batch)
            self.inflight.lock(batch, state, run.first)
        return runs

    def _take_part(self, first: int, last: int) -> Acquired:
        """Acquire only the first offsets of a record batch; the rest is in flight and available."""
        batch = InFlightBatch(first, last, InFlightState(RecordState.AVAILABLE, 0))
        end = first + self.left - 1
        for offset, state in batch.by_offset().items():
            if offset <= end:
                state.acquire(self.demand.member, self.lock_until_ms, self.now_ms)
                self.inflight.lock(batch, state, offset)
        self.inflight.add(batch)
        self.inflight.note_available()
        return Acquired(first, end, 1)

    # --- records in flight -------------------------------------------------------------------------------------------

    def take_again(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Acquire available offsets of a batch in flight; return whether the acquisition ends there (groups D.7)."""
        throttled = self._is_throttled(batch, first, last)
        if throttled and self.count > 0:
            return True
        state = batch.whole
        partial = self.demand.record_limit and len(batch) > self.left
        if state is not None and not state.acquirable:
            return False
        if state is not None and batch.is_within(first, last) and not partial and not throttled:
            state.acquire(self.demand.member, self.lock_until_ms, self.now_ms)
            self.inflight.lock(batch, state, batch.first)
            self.acquired.append(Acquired(batch.first, batch.last, state.delivery_count))
            self.count += len(batch)
            return False
        taken = self._take_offsets(batch, first, last)
        self.count += taken
        return throttled and taken > 0

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Return whether records of the batch were delivered so often that one of them may be a poison message."""
        counts = (
            state.delivery_count
            for offset, _, state in batch.runs()
            if state.acquirable and (batch.whole is not None or first <= offset <= last)
        )
        return max(counts, default=0) >= self.settings.throttled_from

    def _take_offsets(self, batch: InFlightBatch, first: int, last: int) -> int:
        most_deliveries, throttled_from = self.settings.max_delivery_count, self.settings.throttled_from
        runs: list[Acquired] = []
        taken, portion = 0, -1
        offsets = self.inflight.split(batch)
        for offset, state in offsets.items():
            if offset < first or not state.acquirable:
                continue
            if offset > last:
                break
            deliveries = state.delivery_count
            if most_deliveries > 2 and deliveries == most_deliveries - 1 and taken:
                break  # a record's last delivery attempt is alone in a fetch
            if deliveries >= throttled_from and portion < 0:
                portion = max(1, len(offsets) >> (deliveries - throttled_from + 1))
            state.acquire(self.demand.member, self.lock_until_ms, self.now_ms)
            self.inflight.lock(batch, state, offset)
            taken += 1
            _append(runs, offset, state.delivery_count)
            alone = most_deliveries > 2 and state.delivery_count == most_deliveries
            if alone or (self.demand.record_limit and taken == self.left) or taken == portion:
                break
        self.acquired += runs
        return taken


def _append(runs: list[Acquired], offset: int, delivery_count: int) -> None:
    """Append an offset; adjacent offsets with the same delivery count form one run."""
    if runs and (runs[-1].last + 1, runs[-1].delivery_count) == (offset, delivery_count):
        runs[-1] = Acquired(runs[-1].first, offset, delivery_count)
    else:
        runs.append(Acquired(offset, offset, delivery_count))


def acquire(
    inflight: InFlight, demand: Demand, fetch_offset: int, spans: Sequence[Span], now_ms: int
) -> list[Acquired]:
    """Acquire from the record batches read at ``fetch_offset``; return the acquired ranges in offset order."""
    if demand.max_records <= 0 or not spans or spans[-1].last < inflight.start_offset:
        return []
    last, settings = spans[-1].last, inflight.settings
    most = min(demand.max_records, settings.max_record_locks - inflight.count)
    if most <= 0:  # at the limit: only offsets in flight
        most = min(demand.max_records, inflight.end_offset - fetch_offset + 1)
        last = min(last, inflight.end_offset)
    if most <= 0:
        return []
    first = base = spans[0].first
    _archive_compacted(inflight, fetch_offset, base)
    place = inflight.floor(base)
    if place < 0:
        base = max(base, inflight.start_offset)
    elif inflight.batches[place].last >= base:
        base = inflight.batches[place].first
    known = inflight.between(min(first, base), last)
    run = _Acquisition(inflight, settings, demand, spans, now_ms, most, [])
    if not known:
        run.take_new(base, last)
        return run.acquired
    closed = _acquire_known(run, known, base, last)
    if not closed and run.left > 0 and known[-1].last < last:
        run.take_new(known[-1].last + 1, last)
    if run.acquired:
        inflight.close_gap_before(run.acquired[-1].last + 1)
    return run.acquired


def _acquire_known(run: _Acquisition, known: Sequence[InFlightBatch], base: int, last: int) -> bool:
    """Acquire from batches in flight and the gaps between them; return whether the acquisition ends there."""
    gap = base
    for batch in known:
        if run.left <= 0:
            break
        if run.inflight.gap_start is not None:
            if gap < batch.first:
                run.take_new(gap, batch.first - 1)
            gap = batch.last + 1
            if run.left <= 0:
                break
        if run.take_again(batch, run.spans[0].first, last):
            return True
    return False


def _archive_compacted(inflight: InFlight, fetch_offset: int, base: int) -> None:
    """Archive the available offsets before the first fetched batch, which compaction has removed."""
    if not inflight.batches or fetch_offset >= base:
        return
    place = inflight.floor(fetch_offset)
    floor = fetch_offset
    if place >= 0 and inflight.batches[place].last >= fetch_offset:
        floor = inflight.batches[place].first
    stale = inflight.between(floor, base - 1)
    archived = inflight.archive(fetch_offset, base - 1, RecordState.AVAILABLE, stale)
    if archived:
        inflight.delivery_complete_count += archived
        inflight.note_available()


def leave_out(inflight: InFlight, acquired: Sequence[Acquired], aborted: Iterable[Span]) -> list[Acquired]:
    """Archive acquired records of aborted transactions; return the remaining acquired ones (read_committed)."""
    kept, left = list[Acquired](), deque(acquired)
    for span in aborted:
        place = max(inflight.floor(span.first), 0)
        touched = inflight.batches[place : inflight.floor(span.last) + 1]
        inflight.delivery_complete_count += inflight.archive(span.first, span.last, RecordState.ACQUIRED, touched)
        while left and left[0].last < span.first:
            kept.append(left.popleft())
        while left and left[0].first <= span.last:
            run = left.popleft()
            if run.first < span.first:
                kept.append(Acquired(run.first, span.first - 1, run.delivery_count))
            if run.last > span.last:
                left.appendleft(Acquired(span.last + 1, run.last, run.delivery_count))
        if span.first > inflight.end_offset:
            break  # later spans are not in flight either
    return [*kept, *left]


# --- aborted transactions, which read_committed groups skip -----------------------------------------------------------


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
