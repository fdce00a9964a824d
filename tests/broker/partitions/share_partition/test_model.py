"""One share partition against a model that knows each offset by itself and nothing of batches (groups D.7)."""

from dataclasses import dataclass
from unittest import TestCase

import pytest
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.partitions.share_partition.machine.acknowledge import (
    Acknowledgement,
    DeadRecords,
    acknowledge,
    archive_dead,
    commit,
    expire,
    release,
    roll_back,
)
from broker.partitions.share_partition.machine.acquire import Demand, Span, acquire
from broker.partitions.share_partition.machine.inflight import InFlight, ShareSettings
from broker.partitions.share_partition.machine.states import InFlightState, RecordState
from protocol.errors import KafkaError

pytestmark = pytest.mark.slow

MEMBERS = st.sampled_from(["m1", "m2", "m3"])
SETTINGS = ShareSettings(max_delivery_count=3, max_record_locks=20, lock_ms=100)
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
REJECT, RENEW = 3, 4
OUTCOMES = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}


@dataclass
class Record:
    """One offset as the model knows it."""

    state: RecordState = AVAILABLE
    deliveries: int = 0
    member: str = ""
    until_ms: int = 0

    def end(self, state: RecordState, given_up: RecordState) -> None:
        """End an acquisition."""
        if state is AVAILABLE and self.deliveries >= SETTINGS.max_delivery_count:
            state = given_up
        self.state, self.member = state, ""


class Queue(RuleBasedStateMachine):
    settings = SETTINGS

    def __init__(self) -> None:
        super().__init__()
        self.dead: list[DeadRecords] = []
        self.given_up = self.settings.limit.then
        self.partition = InFlight(lambda: self.settings)
        self.partition.load(0, [])
        self.spans: list[Span] = []
        self.records: list[Record] = []
        self.now_ms = 0

    @rule(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3))
    def produce(self, sizes: list[int]) -> None:
        """Append record batches."""
        for size in sizes:
            self.spans.append(Span(len(self.records), len(self.records) + size - 1))
            self.records += [Record() for _ in range(size)]

    @rule(member=MEMBERS, most=st.integers(1, 12), size=st.integers(0, 6), limit=st.booleans(), read=st.integers(1, 4))
    def fetch(self, member: str, most: int, size: int, limit: bool, read: int) -> None:
        """Acquire what some record batches have."""
        if not self.partition.can_acquire():
            return
        offset = self.partition.next_fetch_offset()
        spans = [span for span in self.spans if span.last >= offset][:read]
        runs = acquire(self.partition, Demand(member, most, size, limit), offset, spans, self.now_ms)
        taken = [(each, run.delivery_count) for run in runs for each in range(run.first, run.last + 1)]
        assert len({each for each, _ in taken}) == len(taken)
        for each, deliveries in taken:
            record = self.records[each]
            assert record.state is AVAILABLE, each
            assert deliveries == record.deliveries + 1
            record.state, record.member, record.deliveries = ACQUIRED, member, deliveries
            record.until_ms = self.now_ms + SETTINGS.lock_ms
        if limit:
            assert len(taken) <= most
        if spans and spans[-1].last >= offset:
            assert taken, (offset, spans)

    def held(self, member: str) -> list[int]:
        """The offsets that a member has."""
        return [offset for offset, each in enumerate(self.records) if each.member == member]

    @precondition(lambda self: any(each.member for each in self.records))
    @rule(data=st.data(), written=st.booleans(), kind=st.integers(0, 4))
    def acknowledge_some(self, data: st.DataObject, written: bool, kind: int) -> None:
        """Acknowledge a run of what a member has."""
        member = data.draw(st.sampled_from(sorted({each.member for each in self.records if each.member})))
        held = self.held(member)
        first = data.draw(st.sampled_from(held))
        last = first
        while last + 1 in held and data.draw(st.booleans()):
            last += 1
        change = acknowledge(self.partition, member, [Acknowledgement(first, last, [kind])], self.now_ms)
        assert bool(change) == (kind != RENEW)
        if not written:
            roll_back(self.partition, change, self.now_ms)
        else:
            commit(self.partition, change)
            self.dead += change.dead
        for each in self.records[first : last + 1]:
            if kind == RENEW:
                each.until_ms = self.now_ms + SETTINGS.lock_ms
            elif written:
                each.end(self.given_up if kind == REJECT else OUTCOMES[kind], self.given_up)

    @rule(member=MEMBERS, first=st.integers(0, 40), length=st.integers(1, 5))
    def acknowledge_any(self, member: str, first: int, length: int) -> None:
        """What is not all the member's own is refused, and changes nothing."""
        start = self.partition.start_offset
        end = first + length
        if end <= len(self.records) and all(each.member == member for each in self.records[max(first, start) : end]):
            return
        try:
            change = acknowledge(self.partition, member, [Acknowledgement(first, first + length - 1, [1])], self.now_ms)
        except KafkaError:
            return
        raise AssertionError((first, length, change.batches))

    @rule(member=MEMBERS)
    def close(self, member: str) -> None:
        """Release what a member has."""
        change = release(self.partition, member, self.now_ms)
        commit(self.partition, change)
        self.dead += change.dead
        for offset in self.held(member):
            self.records[offset].end(AVAILABLE, self.given_up)

    @rule(ms=st.integers(1, 120))
    def advance(self, ms: int) -> None:
        """Let time pass."""
        self.now_ms += ms
        self.dead += expire(self.partition, self.now_ms).dead
        self.partition.move_start()
        for each in self.records:
            if each.state is ACQUIRED and each.until_ms <= self.now_ms:
                each.end(AVAILABLE, self.given_up)

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        """The dead-letter queue is done with some records."""
        dead = self.dead.pop(data.draw(st.integers(0, len(self.dead) - 1)))
        archive_dead(self.partition, dead)
        self.partition.move_start()
        for each in self.records[dead.first : dead.last + 1]:
            assert each.state is ARCHIVING
            each.state = ARCHIVED

    @invariant()
    def same_states(self) -> None:
        """The partition and the model agree."""
        known: dict[int, InFlightState] = {}
        for first, last, state in self.partition.runs():
            for offset in range(first, last + 1):
                assert offset not in known
                known[offset] = state
        for offset, record in enumerate(self.records):
            expected = known.get(offset)
            if expected is None:
                done = record.state.terminal and offset < self.partition.start_offset
                assert done or (record.state is AVAILABLE and record.deliveries == 0), offset
            else:
                same = (expected.state, expected.delivery_count, expected.member)
                assert same == (
                    record.state,
                    record.deliveries,
                    record.member,
                )
        start = self.partition.start_offset
        assert self.partition.delivery_complete_count == sum(
            state.state.terminal for offset, state in known.items() if offset >= start
        )
        assert all(record.state.terminal for record in self.records[:start])
        assert start >= len(self.records) or not self.records[start].state.terminal
        burying = {offset for each in self.dead for offset in range(each.first, each.last + 1)}
        assert burying == {offset for offset, each in enumerate(self.records) if each.state is ARCHIVING}
        ends = [record.until_ms for record in self.records if record.state is ACQUIRED]
        assert self.partition.next_lock_end_ms == min(ends, default=None)


class QueueWithDeadLetters(Queue):
    """Records that are given up are ARCHIVING until the dead-letter queue is done with them."""

    settings = SETTINGS._replace(dead_letters=True)


TestQueue: type[TestCase] = Queue.TestCase
TestQueueWithDeadLetters: type[TestCase] = QueueWithDeadLetters.TestCase
QueueWithDeadLetters.TestCase.settings = examples(max_examples=40, stateful_step_count=40, deadline=None)
Queue.TestCase.settings = examples(max_examples=60, stateful_step_count=40, deadline=None)
