"""One share partition in memory, by tables: what is acquired, acknowledged, released and expired (groups D.6, D.7)."""

from collections.abc import Sequence
from typing import Any

import pytest

from broker.coordination.share_state.persister import StateBatch
from broker.partitions.share_partition.machine.acknowledge import (
    Acknowledgement,
    AcknowledgeType,
    acknowledge,
    commit,
    expire,
    roll_back,
)
from broker.partitions.share_partition.machine.acquire import Acquired, Demand, Span, acquire, leave_out
from broker.partitions.share_partition.machine.inflight import InFlight, ShareSettings
from broker.partitions.share_partition.machine.states import RecordState
from protocol.errors import ErrorCode, KafkaError

GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
LOCK_MS = 30_000
TEN = [Span(0, 9)]


class Bench:
    """A share partition over a log of given record batches, with a clock that is set."""

    def __init__(
        self, spans: Sequence[Span] = TEN, start: int = 0, stored: Sequence[StateBatch] = (), **settings: Any
    ) -> None:
        self.settings = ShareSettings()._replace(**settings)
        self.partition = InFlight(lambda: self.settings)
        self.partition.load(start, stored)
        self.spans, self.now_ms = list(spans), 0

    def fetch(
        self, member: str = "m1", most: int = 500, batch_size: int = 500, *, limit: bool = False
    ) -> list[tuple[int, int, int]]:
        """Acquire from the batches at the next fetch offset on."""
        if not self.partition.can_acquire():
            return []
        offset = self.partition.next_fetch_offset()
        spans = [span for span in self.spans if span.last >= offset]
        demand = Demand(member, most, batch_size, limit)
        return [
            (run.first, run.last, run.delivery_count)
            for run in acquire(self.partition, demand, offset, spans, self.now_ms)
        ]

    def ack(self, first: int, last: int, *types: int, member: str = "m1") -> list[tuple[int, ...]]:
        """Acknowledge and write; what is written."""
        change = acknowledge(self.partition, member, [Acknowledgement(first, last, types)], self.now_ms)
        commit(self.partition, change)
        return [tuple(batch) for batch in change.batches]

    def refused(self, first: int, last: int, *types: int, member: str = "m1") -> ErrorCode:
        """The code of a refused acknowledgement."""
        with pytest.raises(KafkaError) as caught:
            self.ack(first, last, *types, member=member)
        return caught.value.code

    def wait(self, ms: int) -> list[tuple[int, ...]]:
        """Let time pass; what is written of the locks that end."""
        self.now_ms += ms
        change = expire(self.partition, self.now_ms)
        self.partition.move_start()
        return [tuple(batch) for batch in change.batches]

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Start and end offset, and the delivery-complete count."""
        return self.partition.start_offset, self.partition.end_offset, self.partition.delivery_complete_count


def test_SHR_10_acquired_records_are_not_available_to_others() -> None:
    """Acquired records are not available to others."""
    bench = Bench()
    bench.fetch()
    assert bench.fetch("m2") == []


def test_SHR_14_beyond_what_is_in_flight() -> None:
    """Acknowledging offsets beyond those in flight gets INVALID_REQUEST, and changes nothing."""
    bench = Bench()
    bench.fetch()
    assert bench.refused(5, 20, ACCEPT) is ErrorCode.INVALID_REQUEST
    assert bench.refused(11, 20, ACCEPT) is ErrorCode.INVALID_REQUEST
    assert bench.ack(5, 9, ACCEPT)  # control: the partition is as before


def test_an_offset_before_anything_in_flight_is_an_invalid_state() -> None:
    """An offset before anything in flight is an invalid state."""
    bench = Bench([Span(5, 9)], start=5)
    bench.fetch()
    bench.ack(5, 5, ACCEPT)
    assert bench.ack(2, 3, ACCEPT) == []  # below the start offset: ignored
    bench = Bench()
    assert bench.refused(0, 3, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_the_first_error_rolls_back_the_whole_partition() -> None:
    """The first error rolls back the whole partition."""
    bench = Bench()
    bench.fetch()
    acknowledgements = [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(5, 20, [ACCEPT])]
    with pytest.raises(KafkaError):
        acknowledge(bench.partition, "m1", acknowledgements, 0)
    assert bench.bounds == (0, 9, 0)
    assert bench.ack(0, 9, ACCEPT)


def test_SHR_19_renewed_locks_end_later_and_nothing_is_written() -> None:
    """Renewed locks end later and nothing is written."""
    bench = Bench()
    bench.fetch()
    bench.now_ms = 20_000
    assert bench.ack(0, 9, RENEW) == []
    assert bench.wait(29_999) == []
    assert bench.wait(1) == [(0, 9, 0, 1)]


def test_renewing_may_be_disabled() -> None:
    """Where renewing is disabled, a renewal is refused."""
    bench = Bench(renew_enabled=False)
    bench.fetch()
    assert bench.refused(0, 9, RENEW) is ErrorCode.INVALID_RECORD_STATE


def test_SHR_27_no_more_than_the_locks_allowed() -> None:
    """No more records are acquired than a partition may have locks."""
    bench = Bench([Span(each, each) for each in range(250)], max_record_locks=100)
    assert bench.fetch(batch_size=1000) == [(0, 99, 1)]
    assert bench.fetch() == []
    bench.ack(0, 9, ACCEPT)
    assert bench.fetch(batch_size=1000) == [(100, 109, 1)]


def test_a_batch_size_of_0_splits_at_each_record_batch() -> None:
    """The member gets an empty range as well, as in Kafka; it is not in flight."""
    bench = Bench([Span(0, 9), Span(10, 19), Span(20, 29)])
    assert bench.fetch(batch_size=0) == [(0, -1, 1), (0, 9, 1), (10, 19, 1), (20, 29, 1)]
    bench.ack(0, 29, ACCEPT)
    assert bench.bounds == (30, 30, 0)
    bench.spans.append(Span(30, 39))
    assert bench.fetch(batch_size=0) == [(30, 29, 1), (30, 39, 1)]
    assert bench.ack(30, 39, ACCEPT) == [(30, 39, 2, 1)]
    assert bench.bounds == (40, 40, 0)
    assert bench.partition.next_lock_end_ms is None


def test_SHR_30_aborted_transactions_are_left_out() -> None:
    """Aborted transactions are left out."""
    bench = Bench([Span(0, 1), Span(2, 4), Span(5, 5)])
    runs = [Acquired(*each) for each in bench.fetch()]
    assert leave_out(bench.partition, runs, [Span(2, 4)]) == [(0, 1, 1), (5, 5, 1)]
    assert bench.bounds == (0, 5, 3)
    bench.ack(0, 1, ACCEPT)
    assert bench.bounds[0] == 5


def test_SHR_33_the_start_waits_for_the_first_record() -> None:
    """The start waits for the first record."""
    bench = Bench()
    bench.fetch()
    bench.ack(5, 9, ACCEPT)
    assert bench.bounds == (0, 9, 5)


def test_SHR_38_stored_batches_and_gaps_are_delivered() -> None:
    """Stored batches and gaps are delivered."""
    bench = Bench(stored=[StateBatch(4, 4, 0, 1)], start=4)
    assert bench.fetch() == [(4, 4, 2), (5, 9, 1)]
    bench = Bench(stored=[StateBatch(2, 3, 2, 1), StateBatch(6, 6, 0, 1)])
    assert bench.partition.next_fetch_offset() == 0
    assert bench.fetch() == [(0, 1, 1), (4, 5, 1), (6, 6, 2), (7, 9, 1)]


def test_stored_batches_that_are_done_move_the_start() -> None:
    """Stored batches that are done move the start."""
    assert Bench(stored=[StateBatch(0, 3, 2, 1)]).bounds == (4, 4, 0)
    with pytest.raises(KafkaError):
        Bench(stored=[StateBatch(3, 4, 0, 1)], start=4)


def test_SHR_41_the_log_begins_later() -> None:
    """When the log start passes acquired records, they are archived and never delivered again."""
    bench = Bench([Span(0, 4), Span(5, 9), Span(10, 19)])
    bench.fetch(most=5, batch_size=5)
    bench.fetch("m2", most=5, batch_size=5)
    bench.ack(5, 9, RELEASE, member="m2")
    bench.partition.begin_at(8)
    assert bench.bounds == (8, 9, 0)
    assert bench.partition.next_fetch_offset() == 8
    assert bench.wait(30_000) == [(0, 4, 4, 1)]  # acquired below the start: archived when it ends
    empty = Bench()
    empty.partition.begin_at(7)
    assert empty.bounds == (7, 7, 0)


def test_offsets_that_compaction_removed_are_archived() -> None:
    """Offsets that compaction removed are archived."""
    bench = Bench([Span(0, 4), Span(5, 9)])
    bench.fetch()
    bench.ack(0, 9, RELEASE)
    bench.spans = [Span(5, 9)]
    assert bench.fetch() == [(5, 9, 2)]
    assert [(first, last, state.state) for first, last, state in bench.partition.runs()][:5] == [
        (offset, offset, RecordState.ARCHIVED) for offset in range(5)
    ]


def test_records_that_were_delivered_often_come_in_small_portions() -> None:
    """Records that were delivered often come in small portions."""
    bench = Bench()
    portions = []
    for _ in range(3):
        portions.append(bench.fetch())
        bench.ack(0, 9, RELEASE)
    assert portions == [[(0, 9, 1)], [(0, 9, 2)], [(0, 9, 3)]]
    assert bench.fetch() == [(0, 4, 4)]  # ten of them shifted by one
    bench.ack(0, 4, RELEASE)
    assert bench.fetch() == [(0, 0, 5)]  # the last attempt is alone
    assert bench.fetch("m2") == [(1, 1, 5)]


def test_a_failed_write_leaves_records_acquired_or_ends_their_lock() -> None:
    """A failed write leaves records acquired or ends their lock."""
    bench = Bench()
    bench.fetch()
    change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 9, [ACCEPT])], 10)
    assert bench.refused(0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE  # a change is being written
    assert bench.bounds == (0, 9, 10)
    roll_back(bench.partition, change, 10)
    assert bench.bounds == (0, 9, 0)
    change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 9, [ACCEPT])], 10)
    assert bench.wait(40_000) == []  # the lock ends while the change is being written
    roll_back(bench.partition, change, bench.now_ms)
    assert bench.fetch("m2") == [(0, 9, 2)]
