"""The share coordinator's machine: requests, records, fencing, snapshots and pruning (groups D.9)."""

import random

import pytest

from broker.coordination.share_state.machine import StateWrite
from broker.coordination.share_state.persister import SharePartitionKey, StateBatch
from broker.coordination.share_state.state import combine
from protocol.errors import ErrorCode
from protocol.log_records.share_state import RecordedBatch, ShareSnapshot, ShareUpdate
from protocol.types import ZERO_UUID
from tests.coordination.share_state.harness import INTERVAL_MS, KEY, START_MS, TOPIC, Bench

ACKNOWLEDGED, AVAILABLE, ARCHIVED = 2, 0, 4


def test_a_state_begins_with_a_snapshot() -> None:
    """Snapshot epoch 0, the given state epoch, no leader yet."""
    bench = Bench()
    assert bench.initialize(state_epoch=5) is ErrorCode.NONE
    assert bench.records[-1].value == ShareSnapshot(0, 5, 0, -1, START_MS, START_MS, (), -1)
    assert bench.initialize(state_epoch=6, start_offset=4) is ErrorCode.NONE
    assert bench.records[-1].value == ShareSnapshot(1, 6, 0, 4, START_MS, START_MS, (), 0)


@pytest.mark.parametrize(("as_version", "count", "lower"), [("4.3", 6, 2), ("4.4", 5, 5)])
def test_writes_are_updates_that_merge_into_the_state(as_version: str, count: int, lower: int) -> None:
    """A start offset of -1 keeps the stored one; what is below the start offset goes; since 4.4 it never falls."""
    bench = Bench(as_version=as_version)
    bench.initialize()
    assert bench.write(StateBatch(0, 9, ACKNOWLEDGED, 1), start=0, complete=10) is ErrorCode.NONE
    assert bench.records[-1].value == ShareUpdate(0, 0, 0, (RecordedBatch(0, 9, ACKNOWLEDGED, 1),), 10)
    assert bench.write(StateBatch(10, 19, AVAILABLE, 2), start=5, complete=5) is ErrorCode.NONE
    state = bench.read()
    assert (state.start_offset, state.batches) == (5, (StateBatch(5, 9, 2, 1), StateBatch(10, 19, 0, 2)))
    assert bench.write(start=-1, complete=6) is ErrorCode.NONE
    assert (bench.summary().start_offset, bench.summary().delivery_complete_count) == (5, count)
    assert bench.write(start=2, complete=7) is ErrorCode.NONE
    assert bench.summary().start_offset == lower
    negative = bench.write(leader_epoch=-1), bench.write(state_epoch=-1), bench.read(leader_epoch=-1).error
    assert set(negative) == {ErrorCode.NONE if as_version == "4.3" else ErrorCode.INVALID_REQUEST}


def test_reads_of_a_newer_leader_fence_older_ones() -> None:
    """The epoch is recorded by an update; a read of the same leader writes nothing."""
    bench = Bench()
    bench.initialize()
    assert bench.read(leader_epoch=3).error is ErrorCode.NONE
    assert bench.records[-1].value == ShareUpdate(0, 3, -1, (), -1)
    written = len(bench.records)
    assert bench.read(leader_epoch=3).error is ErrorCode.NONE
    assert len(bench.records) == written
    assert bench.read(leader_epoch=2).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.write(leader_epoch=2) is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.write(leader_epoch=3) is ErrorCode.NONE
    assert bench.summary().leader_epoch == 3


def test_an_older_incarnation_is_fenced_by_the_state_epoch() -> None:
    """Writes and initializations with an older state epoch of the group are refused."""
    bench = Bench()
    bench.initialize(state_epoch=7)
    assert bench.write(state_epoch=6) is ErrorCode.FENCED_STATE_EPOCH
    assert bench.initialize(state_epoch=6) is ErrorCode.FENCED_STATE_EPOCH
    assert bench.write(state_epoch=7) is ErrorCode.NONE
    assert bench.initialize(state_epoch=7) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("as_version", "text"),
    [
        ("4.3", "The share coordinator rejected the request because the share-group state epoch did not match."),
        ("4.4", "The coordinator rejected the request because the state epoch did not match."),
    ],
)
def test_the_text_of_a_stale_state_epoch_is_the_releases(as_version: str, text: str) -> None:
    """As `Errors.FENCED_STATE_EPOCH` has it, in both requests that have a state epoch."""
    bench = Bench(as_version=as_version)
    bench.initialize(state_epoch=7)
    initialized = bench.ask(lambda machine, now_ms, to: machine.initialize(KEY, 6, 0, now_ms, to))
    change = StateWrite(6, 0, 0, 0, ())
    written = bench.ask(lambda machine, now_ms, to: machine.write(KEY, change, now_ms, to))
    assert [(each.error, each.message) for each in (initialized, written)] == [(ErrorCode.FENCED_STATE_EPOCH, text)] * 2


def test_what_was_never_initialized() -> None:
    """Reads and writes are invalid, a summary is empty, a deletion succeeds without a record."""
    bench = Bench()
    assert bench.read().error is ErrorCode.INVALID_REQUEST
    assert bench.write() is ErrorCode.INVALID_REQUEST
    summary = bench.summary()
    assert (summary.error, summary.start_offset, summary.delivery_complete_count, summary.state_epoch) == (0, -1, -1, 0)
    assert bench.delete() is ErrorCode.NONE
    assert not bench.records
    bench.initialize()
    assert bench.read().error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (SharePartitionKey("g", ZERO_UUID, 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (SharePartitionKey("g", TOPIC, -1), ErrorCode.INVALID_REQUEST),
        (SharePartitionKey("g", TOPIC, 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (SharePartitionKey("g", TOPIC, 2), ErrorCode.NONE),
    ],
)
def test_keys_of_no_partition(key: SharePartitionKey, code: ErrorCode) -> None:
    """Are refused by every operation that does not need a state before."""
    bench = Bench()
    assert bench.initialize(key=key) is code
    assert bench.summary(key=key).error is code
    assert bench.delete(key=key) is code


def test_deletion_is_a_tombstone() -> None:
    """Of the snapshot's key; a deleted topic takes all its share partitions along."""
    bench = Bench()
    other = SharePartitionKey("h", TOPIC, 1)
    bench.initialize(state_epoch=9)
    bench.initialize(key=other)
    assert bench.delete() is ErrorCode.NONE
    assert bench.records[-1].value is None
    assert bench.initialize(state_epoch=1) is ErrorCode.NONE
    bench.do(bench.machine.topics_deleted([TOPIC], bench.now_ms))
    assert [record.value for record in bench.records[-2:]] == [None, None]
    assert not bench.machine.states


def test_a_snapshot_follows_after_many_updates() -> None:
    """The count begins again behind it, and the merged state is in it."""
    bench = Bench(share__coordinator__snapshot__update__records__per__snapshot=2)
    bench.initialize()
    for at in range(6):
        bench.write(StateBatch(at, at, ACKNOWLEDGED, 1), start=0, complete=at + 1)
    kinds = [type(record.value) for record in bench.records]
    assert kinds == [ShareSnapshot, ShareUpdate, ShareUpdate, ShareSnapshot, ShareUpdate, ShareUpdate, ShareSnapshot]
    value = bench.records[-1].value
    assert isinstance(value, ShareSnapshot)
    assert (value.snapshot_epoch, value.state_batches) == (2, (RecordedBatch(0, 5, ACKNOWLEDGED, 1),))


def test_idle_states_are_repeated_once() -> None:
    """The creation time stays; then nothing is written until there is a new snapshot."""
    bench = Bench()
    bench.initialize()
    bench.advance(INTERVAL_MS)
    value = bench.records[-1].value
    assert isinstance(value, ShareSnapshot)
    assert (value.snapshot_epoch, value.create_timestamp_ms, value.write_timestamp_ms) == (
        1,
        START_MS,
        START_MS + INTERVAL_MS,
    )
    written = len(bench.records)
    for _ in range(3):
        bench.advance(INTERVAL_MS)
    assert (len(bench.records), bench.timers) == (written, {})


def test_the_log_is_pruned_below_the_oldest_needed_snapshot() -> None:
    """It is not pruned again before more of it is redundant."""
    bench = Bench(share__coordinator__cold__partition__snapshot__interval__ms=10 * INTERVAL_MS)
    bench.initialize(key=KEY)
    bench.initialize(key=SharePartitionKey("h", TOPIC, 0))
    bench.advance(INTERVAL_MS)
    assert bench.pruned == []
    bench.initialize(key=KEY)
    bench.advance(INTERVAL_MS)
    assert bench.pruned == [1]
    bench.advance(INTERVAL_MS)
    bench.delete(key=SharePartitionKey("h", TOPIC, 0))
    bench.advance(INTERVAL_MS)
    assert bench.pruned == [1, 2]


def test_the_log_brings_the_state_back() -> None:
    """After each prefix of a history the machine is as it was then."""
    chance = random.Random(7)
    bench = Bench(share__coordinator__snapshot__update__records__per__snapshot=3)
    states = [dict(bench.machine.states)]
    bench.initialize()
    while len(bench.log) < 60:
        states += [dict(bench.machine.states)] * (len(bench.log) + 1 - len(states))
        key = SharePartitionKey(chance.choice("gh"), TOPIC, chance.randrange(2))
        first = chance.randrange(20)
        batch = StateBatch(first, first + chance.randrange(5), chance.choice([0, 2, 4]), chance.randrange(1, 4))
        match chance.randrange(5):
            case 0:
                bench.initialize(key=key, start_offset=0)
            case 1 | 2 as which:
                bench.write(batch, start=-1 if which == 1 else first % 5, complete=1, leader_epoch=9, key=key)
            case 3:
                bench.read(leader_epoch=first % 4, key=key)
            case _:
                bench.delete(key=key)
    for size, state in enumerate(states):
        again = Bench(bench.log[:size], share__coordinator__snapshot__update__records__per__snapshot=3)
        assert again.machine.states == state
    again = Bench(bench.log, share__coordinator__snapshot__update__records__per__snapshot=3)
    assert again.machine.states == bench.machine.states


COMBINED = [
    ("0-9:2/1 10-19:2/1", "0-19:2/1", "0-19:2/1"),
    ("0-9:0/1 5-14:2/1", "0-4:0/1 5-14:2/1", "0-4:0/1 5-14:2/1"),
    ("0-9:0/2 5-14:2/1", "0-9:0/2 10-14:2/1", "0-9:0/2 10-14:2/1"),
    ("0-9:0/1 3-5:2/2", "0-2:0/1 3-5:2/2 6-9:0/1", "0-2:0/1 3-5:2/2 6-9:0/1"),
    ("0-4:2/1 5-9:0/1 5-9:2/1", "0-4:2/1 5-9:2/1", "0-9:2/1"),
    ("1-1:0/2 2-2:0/1 2-2:0/2", "1-1:0/2 2-2:0/2", "1-2:0/2"),
]


@pytest.mark.parametrize(("batches", "before", "since_4_4"), COMBINED)
def test_batches_are_merged_as_kafka_merges_them(batches: str, before: str, since_4_4: str) -> None:
    """Delivery count before state (answers of the PersisterStateBatchCombiner of 4.3.1 and of 4.4.0)."""
    for joined, expected in ((False, before), (True, since_4_4)):
        assert combine(map(_batch, batches.split()), -1, joined=joined) == tuple(map(_batch, expected.split()))


@pytest.mark.parametrize(("as_version", "apart"), [("4.3", True), ("4.4", False)])
def test_equal_neighbours_are_joined_since_4_4(as_version: str, apart: bool) -> None:
    """Two records whose locks expired one after the other, each for the second time."""
    bench = Bench(as_version=as_version)
    bench.initialize(start_offset=1)
    for first, last, count in ((1, 2, 1), (1, 1, 2), (2, 2, 2)):
        bench.write(StateBatch(first, last, AVAILABLE, count), start=1)
    each = (StateBatch(1, 1, AVAILABLE, 2), StateBatch(2, 2, AVAILABLE, 2))
    assert bench.read().batches == (each if apart else (StateBatch(1, 2, AVAILABLE, 2),))


class Counted(int):
    """A number that counts how often one is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        """As of any number."""
        Counted.compared += 1
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        """As of any number."""
        return int.__hash__(self)


def test_merging_many_batches_compares_each_with_few_others() -> None:
    """Each overlaps the next: the pieces of two are not searched for in all others."""
    size = 1000
    batches = [StateBatch(Counted(2 * n), 2 * n + 2, 2 * (n % 2), 1) for n in range(size)]
    Counted.compared = 0
    assert combine(batches, -1, joined=True)
    assert Counted.compared < 100 * size


def test_merged_batches_cover_each_offset_once() -> None:
    """With the highest count and state that any batch has for it."""
    for seed in range(300):
        chance = random.Random(seed)
        batches = [
            StateBatch(first, first + chance.randrange(6), chance.choice([0, 2, 4]), chance.randrange(1, 4))
            for first in (chance.randrange(15) for _ in range(6))
        ]
        best: dict[int, tuple[int, int]] = {}
        for each in batches:
            for offset in range(max(each.first_offset, 5), each.last_offset + 1):
                best[offset] = max(best.get(offset, (0, 0)), (each.delivery_count, each.delivery_state))
        combined = [
            (offset, (each.delivery_count, each.delivery_state))
            for each in combine(batches, 5, joined=True)
            for offset in range(each.first_offset, each.last_offset + 1)
        ]
        assert combined == sorted(best.items())


def _batch(text: str) -> StateBatch:
    offsets, state = text.split(":")
    first, last = map(int, offsets.split("-"))
    delivery_state, count = map(int, state.split("/"))
    return StateBatch(first, last, delivery_state, count)
