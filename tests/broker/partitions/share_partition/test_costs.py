"""What a share partition does once for many records, and what it leaves alone (groups D.7)."""

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from broker.partitions.share_partition.fetch import Piece
from broker.partitions.share_partition.machine.acknowledge import Acknowledgement, acknowledge, commit, expire, release
from broker.partitions.share_partition.machine.acquire import Acquired, Demand, Span, acquire, leave_out
from broker.partitions.share_partition.machine.inflight import InFlight, ShareSettings
from broker.partitions.share_partition.machine.states import InFlightState
from protocol.records.batch import RecordBatch
from tests.broker.partitions.share_partition.test_machine import ACCEPT, LOCK_MS, RELEASE, RENEW, Bench
from tests.storage.logs import records_batch


def test_the_groups_settings_are_read_once_for_each_operation() -> None:
    """And not for each record: they are made of all settings of the group."""
    reads = 0

    def settings() -> ShareSettings:
        nonlocal reads
        reads += 1
        return ShareSettings()

    partition = InFlight(settings)
    partition.load(0, [])
    spans, demand = [Span(n, n) for n in range(50)], Demand("m1", 500, 10)
    assert acquire(partition, demand, 0, spans, 0)
    assert reads == 1
    commit(partition, acknowledge(partition, "m1", [Acknowledgement(0, 49, [RELEASE] * 50)], 0))
    assert reads == 2
    assert acquire(partition, demand, 0, spans, 0)
    assert reads == 3
    release(partition, "m1", 0)
    expire(partition, LOCK_MS)
    assert reads == 5


def test_renewed_locks_leave_nothing_behind() -> None:
    """However often they are renewed; they end as of the last renewal, in the order of the batches."""
    bench = Bench([Span(0, 9), Span(10, 19)])
    bench.fetch(batch_size=10)
    for _ in range(1000):
        bench.now_ms += 1
        bench.ack(0, 19, RENEW)
    assert len(bench.partition._locks) < 100
    assert bench.wait(LOCK_MS - 1) == []
    assert bench.wait(1) == [(0, 9, 0, 1), (10, 19, 0, 1)]


def test_locks_that_are_renewed_at_one_time_leave_nothing_behind() -> None:
    """Locks that are renewed again and again at one time of a frozen clock leave no timers behind."""
    bench = Bench()
    bench.fetch()
    for _ in range(1000):
        bench.ack(0, 9, RENEW)
    assert len(bench.partition._locks) < 100
    assert bench.wait(LOCK_MS) == [(0, 9, 0, 1)]


def test_an_offset_is_found_without_the_others_of_its_batch() -> None:
    """A request may name single offsets of a large batch as often as it likes."""
    looked_at = 0

    class Offsets(dict[int, InFlightState]):
        def __getitem__(self, offset: int) -> InFlightState:
            nonlocal looked_at
            looked_at += 1
            return super().__getitem__(offset)

        def items(self) -> Any:
            nonlocal looked_at
            looked_at += len(self)
            return super().items()

    bench = Bench([Span(0, 499)])
    bench.fetch()
    bench.ack(0, 0, RENEW)
    (batch,) = bench.partition.batches
    assert batch.offsets is not None
    batch.offsets = Offsets(batch.offsets)
    acknowledge(bench.partition, "m1", [Acknowledgement(7, 7, [RENEW])] * 100, 0)
    leave_out(bench.partition, [], [Span(at, at) for at in range(100, 200)])
    assert looked_at == 200


def test_aborted_batches_behind_what_is_in_flight_are_not_looked_for() -> None:
    """The first of them is the last one that is asked for."""
    bench = Bench([Span(0, 1), Span(2, 4)])
    runs = [Acquired(*each) for each in bench.fetch()]
    aborted = iter([Span(2, 4), Span(6, 7), Span(8, 9), Span(10, 11)])
    assert leave_out(bench.partition, runs, aborted) == [(0, 1, 1)]
    assert list(aborted) == [Span(8, 9), Span(10, 11)]


@pytest.mark.parametrize(
    ("aborted", "left"),
    [
        ([Span(0, 9)], []),
        ([Span(0, 1), Span(4, 5), Span(9, 9)], [(2, 3, 1), (6, 8, 1)]),
        ([Span(3, 3), Span(4, 4)], [(0, 2, 1), (5, 9, 1)]),
        ([], [(0, 9, 1)]),
    ],
)
def test_what_aborted_batches_leave(aborted: Sequence[Span], left: Sequence[tuple[int, int, int]]) -> None:
    """The records before, between and behind them."""
    bench = Bench()
    runs = [Acquired(*each) for each in bench.fetch()]
    assert leave_out(bench.partition, runs, aborted) == left
    assert bench.partition.delivery_complete_count == sum(last - first + 1 for first, last in aborted)


def piece_of(spans: Sequence[Span]) -> Piece:
    """Record batches of these offsets, as they were read from a log."""
    data = bytearray()
    for first, last in spans:
        batch = records_batch(*[b"v"] * (last - first + 1))
        RecordBatch(batch).assign(first, 0)
        data += batch
    return Piece([memoryview(data)], len(data))


def test_headers_are_read_as_far_as_records_may_be_acquired() -> None:
    """As many offsets as are asked for, behind what is in flight, and one batch more; all if all may be acquired."""
    spans = [Span(n, n) for n in range(100)]
    piece = piece_of(spans)
    assert piece.spans(0, 10) == spans[:12]
    assert piece.spans(20, 10) == spans[:32]
    assert [batch.base_offset for batch in piece.batches()] == list(range(100))
    assert piece.spans(0, 500) == spans


def sent(spans: Sequence[Span], first: int, last: int) -> bytes:
    """The bytes of the batches that a range is in."""
    return b"".join(cast("list[memoryview]", piece_of(spans).overlapping(first, last)))


def test_records_that_are_sent_are_those_of_the_acquired_batches() -> None:
    """Only acquired batches are sent, however few headers were read to find them."""
    spans = [Span(0, 4), Span(5, 9), Span(10, 14), Span(15, 19)]
    whole = sent(spans, 0, 19)
    size = len(whole) // 4
    for first, last, begin, end in [(0, 4, 0, 1), (5, 12, 1, 3), (7, 7, 1, 2), (16, 19, 3, 4)]:
        assert sent(spans, first, last) == whole[begin * size : end * size], (first, last)
    assert piece_of([]).spans(0, 10) == []


def test_records_that_are_sent_are_slices_of_the_logs_own_buffers() -> None:
    """Nothing of a read is copied, however much of it was read beyond what is acquired; one slice of each buffer."""
    spans = [Span(0, 4), Span(5, 9), Span(10, 14), Span(15, 19)]
    buffers = [bytearray(sent(spans[at : at + 2], 0, 19)) for at in (0, 2)]
    for first, last, counts in [(0, 19, [2, 2]), (5, 14, [1, 1]), (0, 9, [2]), (16, 17, [1])]:
        piece = Piece([memoryview(each) for each in buffers], sum(map(len, buffers)))
        slices = cast("list[memoryview]", piece.overlapping(first, last))
        owners = buffers[: len(counts)] if first < 10 else buffers[1:]
        assert [each.obj for each in slices] == owners
        assert all(each.obj is owner for each, owner in zip(slices, owners, strict=True))
        assert [len(each) for each in slices] == [count * len(buffers[0]) // 2 for count in counts]
        assert piece.overlapping(first, last) == slices


@pytest.mark.slow
def test_what_is_acquired_does_not_depend_on_the_headers_behind() -> None:
    """One of two partitions has all record batches of a read, the other those that were looked at."""
    for seed in range(200):
        chance = random.Random(seed)
        spans, base = list[Span](), chance.randrange(3)
        for _ in range(25):
            size = chance.randrange(1, 6)
            spans.append(Span(base, base + size - 1))
            base += size + chance.choice([0, 0, 0, 2])  # compaction leaves holes
        both = [Bench(spans, max_record_locks=20, max_delivery_count=4) for _ in range(2)]
        for _ in range(30):
            member, limit = chance.choice(["m1", "m2"]), chance.random() < 0.3
            demand = Demand(member, chance.randrange(1, 12), chance.randrange(8), limit)
            taken = [_acquired(bench, demand, whole=bench is both[0]) for bench in both]
            assert taken[0] == taken[1], seed
            for first, last, _ in taken[0]:
                kind = chance.choice([ACCEPT, RELEASE, RELEASE])
                if last >= first and chance.random() < 0.7:
                    assert len({tuple(bench.ack(first, last, kind, member=member)) for bench in both}) == 1, seed
            assert both[0].bounds == both[1].bounds, seed


def _acquired(bench: Bench, demand: Demand, *, whole: bool) -> list[Acquired]:
    partition = bench.partition
    if not partition.can_acquire():
        return []
    offset = partition.next_fetch_offset()
    spans = [span for span in bench.spans if span.last >= offset]
    if not whole:
        spans = piece_of(spans).spans(partition.end_offset, demand.max_records)
    return acquire(partition, demand, offset, spans, bench.now_ms)
