"""Plants: offsets, times and bytes of batches, what producers and coordinators did, and the files beside the log."""

from typing import Final

from protocol.log_records.transaction import TransactionState as State
from protocol.records.records import Record
from tests.pipeline.fault_files import LATER_MS, STEP_MS, T0_MS, TIMEOUT_MS
from tests.pipeline.planted_topic import OFFSETS, Place, Rows, Topic

A_DAY_MS: Final = 86_400_000
FAR_FUTURE_MS: Final = 4_000_000_000_000
APPEND_TIME: Final = {"log_append_time": True}


OF_PRODUCERS: Final[Rows] = {
    # the broker forgot its producer between two appends of a batch
    "sequence-duplicate": ("sequence-duplicate", lambda t: (
        t.batches(2, producer=30), t.data(producer=30, sequence=3), t.data(producer=30))[1]),
    "sequence-gap": ("sequence-gap", lambda t: (t.data(producer=31), t.data(producer=31, sequence=8))),
    # a new epoch does not begin at 0
    "sequence-start": ("sequence-start", lambda t: (t.data(producer=32), t.data(producer=32, epoch=1, sequence=3))),
    # a fenced producer's batch follows its successor's
    "epoch-regress": ("epoch-regress", lambda t: (
        t.data(producer=33), t.data(producer=33, epoch=1), t.data(producer=33, epoch=0))),
    # the last epoch there is: producers get another id before it
    "producer-epoch-of-no-record": ("producer-fields", lambda t: t.data(producer=720, epoch=32_767)),
}  # fmt: skip


def _ended(t: Topic, producer: int, *outcomes: bool, partitions: tuple[int, ...] = (0,), offsets: bool = False) -> int:
    """Transactions of a client before KIP-890 in the coordinator's log: the epoch stays."""
    pairs = [(t.name, number) for number in partitions] + ([(OFFSETS, 0)] if offsets else [])
    for committed in outcomes:
        prepare, complete = (
            (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if committed else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
        )
        t.where.transaction(t.name, producer, 0, State.ONGOING, pairs, version=0)
        t.where.transaction(t.name, producer, 0, prepare, pairs, version=0)
        t.where.transaction(t.name, producer, 0, complete, version=0)
    return len(outcomes)


def _marked(t: Topic, producer: int, partition: int, *outcomes: bool) -> int:
    """Transactions in a partition, with their markers; the last one's offset."""
    return [
        (t.transactional(producer, partition), t.marker(producer, committed=each, partition=partition))[1]
        for each in outcomes
    ][-1]


OF_TRANSACTIONS: Final[Rows] = {
    # the coordinator knows that it goes on
    "transaction-open": ("transaction-open", lambda t: (
        t.coordinator("open", 34, State.ONGOING, 0, at_ms=LATER_MS), t.transactional(34), t.data())[1]),
    # its timeout is over for long, and the coordinator still calls it ongoing
    "transaction-overdue": ("transaction-overdue", lambda t: (
        t.coordinator("overdue", 37, State.ONGOING, 0, at_ms=T0_MS - 2 * TIMEOUT_MS), t.transactional(37),
        t.data())[1]),
    # its coordinator has finished it, or never heard of it, and no marker came (KIP-664)
    "transaction-hanging": ("transaction-hanging", lambda t: (
        t.data(), unknown := t.transactional(35), t.data(), t.coordinator("hanging", 36, State.ONGOING, 1, version=0),
        finished := t.transactional(36, 1), t.coordinator("hanging", 36, State.PREPARE_ABORT, 1, version=0),
        t.coordinator("hanging", 36, State.COMPLETE_ABORT, version=0), {t.at(unknown), t.at(finished, 1)})),
    "marker-without-data": ("marker-without-data", lambda t: (t.data(), t.marker(37))),
    # all of the transaction is there, and no coordinator ever gave out its producer id
    "transaction-of-an-unknown-producer": ("marker-without-data", lambda t: (
        t.transactional(t.where.stranger(670)), t.marker(670))),
    # the marker's epoch is below that of the records that it ends
    "marker-epoch": ("marker-epoch", lambda t: (
        t.transactional(38), t.marker(38), t.transactional(38, epoch=5), t.marker(38, 4))),
    # a coordinator that had been replaced wrote a marker all the same
    "coordinator-epoch-regress": ("coordinator-epoch-regress", lambda t: (
        t.transactional(39), t.marker(39, coordinator_epoch=7), t.transactional(39),
        t.marker(39, coordinator_epoch=6))),
    # committed on one partition, aborted on the other
    "transaction-torn": ("transaction-torn", lambda t: (
        t.coordinator("torn", 40, State.ONGOING, 0, 1), t.transactional(40), t.transactional(40, 1),
        t.coordinator("torn", 40, State.PREPARE_COMMIT, 0, 1, epoch=1), t.marker(40, 1),
        wrong := t.marker(40, 1, committed=False, partition=1),
        t.coordinator("torn", 40, State.COMPLETE_COMMIT, epoch=1), t.at(wrong, 1))),
    # the second of three transactions of librdkafka: committed here, aborted there
    "torn-between-partitions": ("transaction-torn", lambda t: (
        _ended(t, 663, True, True, False, partitions=(0, 1)), _marked(t, 663, 0, True, True, False),
        _marked(t, 663, 1, True, False, False), t.at(7, 1))),
    # the output is committed, and the offsets of its input are aborted
    "torn-from-the-offsets": ("transaction-torn", lambda t: (
        _ended(t, 664, True, offsets=True), t.transactional(664), t.marker(664),
        t.where.committed_offset(t.name, t.name, 0, 1, producer=664),
        Place(OFFSETS, 0, t.where.shelf(OFFSETS).marker(664, 0, committed=False)))),
    # the coordinator decided on abort, and the marker is a commit; a client before KIP-890
    "torn-from-the-coordinator": ("transaction-torn", lambda t: (
        _ended(t, 665, True, False), _marked(t, 665, 0, True, True))),
    # markers of one epoch (KIP-890), committed in one partition and aborted in the other; no coordinator's state
    "torn-without-a-coordinator": ("transaction-torn", lambda t: (
        t.transactional(666), t.transactional(666, 1), t.marker(666, 1),
        t.at(t.marker(666, 1, committed=False, partition=1), 1))),
    # the coordinator finished a transaction of two partitions; one of them has neither records nor marker
    "marker-that-never-came": ("transaction-marker-missing", lambda t: (
        _ended(t, 667, True, partitions=(0, 1)), t.transactional(667), t.marker(667), t.partition(1).data(3),
        t.at(None, 1))),
    # a batch outside the transaction, from a producer that has one open
    "transaction-mixed": ("transaction-mixed", lambda t: (
        t.transactional(41), t.data(producer=41), t.marker(41))[1]),
    # the coordinator waits for a marker in a partition that its topic never had
    "transaction-of-an-unknown-partition": ("transaction-record", lambda t: (
        t.data(), t.coordinator("nowhere", 721, State.ONGOING, 77, at_ms=LATER_MS))),
    # pending in an open transaction, and beyond the end: the transaction is only open
    "commit-in-marker-less-partition": ("transaction-open", lambda t: (
        t.data(), t.where.transaction("pending", 641, 0, State.ONGOING, [(OFFSETS, 0)], at_ms=LATER_MS),
        Place(OFFSETS, 0, t.where.committed_offset("pending", t.name, 0, 50, producer=641)))),
}  # fmt: skip


def _aged(t: Topic) -> set[Place]:
    log, now_ms = t.where.shelf(t.name, retention_ms="60000"), t.where.now_ms
    for at_ms in (now_ms - 2 * A_DAY_MS, now_ms - A_DAY_MS, None, now_ms - A_DAY_MS):
        log.data(3, at_ms=at_ms)
        log.roll()
    log.data(3)
    return {t.at(0), t.at(3)}


def _sized(t: Topic) -> set[Place]:
    """What is behind the second of four is all that is kept. One topic keeps a byte more, another one is compacted."""
    for name, more, policy in ((t.name, 0, "delete"), (f"{t.name}-within", 1, "delete"),
                               (f"{t.name}-compacted", 0, "compact")):  # fmt: skip
        log = t.where.shelf(name, cleanup_policy=policy)
        sizes = []
        for _ in range(4):
            log.data(3, at_ms=t.where.now_ms - 7_200_000)
            sizes.append(log.log_path.stat().st_size)
            log.roll()
        t.where.configs[name]["retention.bytes"] = str(sum(sizes[2:]) + more)
    return {t.at(0), t.at(3), Topic(t.where, f"{t.name}-within").at(0)}


OF_LOGS: Final[Rows] = {
    "offset-hole": ("offset-hole", lambda t: (t.data(), t.data(base_offset=10))),
    "offset-overlap": ("offset-overlap", lambda t: (t.data(5), t.data(base_offset=3))),
    # a batch is in a segment whose name has a later base offset
    "offset-outside-segment": ("offset-outside-segment", lambda t: (
        t.data(), t.log.roll(base_offset=5), t.data(base_offset=3))),
    # the newest segment begins behind the end of the one before, and is empty
    "segment-lost-at-the-end": ("offset-hole", lambda t: (t.data(), t.log.roll(9), t.log.skip_to(9))),
    # as far behind the base offset of its segment as no index entry reaches
    "offset-beyond-the-range-of-a-segment": ("offset-outside-segment", lambda t: far(t, 2**31)),
    "segment-lost-in-the-middle": ("offset-hole", lambda t: (*_rolled(t), t.data(), t.log.without_segment(2))[3]),
    # the middle record is gone from a batch where no cleaner has been
    "records-lost-inside": ("records-missing", lambda t: (t.data(), t.data(drop=(1,)))),
    # append times that go back
    "timestamp-backwards": ("timestamp-backwards", lambda t: (
        t.of(message_timestamp_type="LogAppendTime"), t.batches(2, **APPEND_TIME),
        t.data(**APPEND_TIME, at_ms=T0_MS - A_DAY_MS))),
    # the header's latest time is not that of any record
    "timestamp-header": ("timestamp-header", lambda t: (
        t.data(), t.data(max_timestamp_ms=t.where.now_ms + 60 * STEP_MS))),
    # a producer's clock in seconds where it should be milliseconds, or the other way round
    "timestamp-future": ("timestamp-future", lambda t: (t.data(), t.data(at_ms=FAR_FUTURE_MS))),
    # one byte of a value has flipped
    "batch-crc": ("batch-crc", lambda t: (
        t.data(), begin := t.log.segment.size, t.data(), t.data(), t.log.overwritten(begin + 73, b"("))[2]),
    # the machine lost power in the middle of a batch
    "tail-torn": ("tail-torn", lambda t: (t.data(), t.log.torn(Record(
        3, t.where.tick(), b"k", b"a value that is cut off"), by=9))),
    # a length that no batch can have, in the middle of a closed segment
    "batch-damaged": ("batch-damaged", lambda t: (
        t.data(), begin := t.log.segment.size, t.data(), t.data(), t.log.roll(), t.data(),
        t.log.overwritten(begin + 8, b"\0\0\0\5", segment=0))[2]),
    "leader-epoch-regress": ("leader-epoch-regress", lambda t: (
        t.data(), t.log.epoch_listed(2, 3), t.batches(2, leader_epoch=2), t.data(leader_epoch=1))),
    # truncation would cut at the wrong place
    "leader-epoch-checkpoint": ("leader-epoch-checkpoint", lambda t: (
        t.data(), t.data(leader_epoch=1), t.log.epoch_listed(1, 5))),
    # the broker was killed before the log start of a DeleteRecords was on disk, and a later epoch follows
    "records-returned": ("records-returned", lambda t: (
        t.data(4), t.data(1, leader_epoch=1), t.log.epochs_listed((0, 2), (1, 4)), 0)),
    # a group has committed an offset that the log does not have
    "commit-beyond-end": ("commit-beyond-end", lambda t: (
        t.data(), t.where.committed_offset("beyond", t.name, 0, 50), 50)),
    # a group has not read what was deleted; another one is at the start
    "commit-before-start": ("commit-before-start", lambda t: (
        t.where.shelf(t.name, start=20).data(3), t.where.committed_offset("late", t.name, 0, 12),
        t.where.committed_offset("in-time", t.name, 0, 20), 12)),
    # two segments are beyond retention.ms; the third is not, and keeps an older one behind it
    "retention-overdue": ("retention-overdue", _aged),
    "retention-by-size-overdue": ("retention-overdue", _sized),
    # a record without a key, which a broker refuses where it compacts
    "key-null-in-a-table": ("compacted-key", lambda t: (
        t.of(cleanup_policy="compact"), t.data(2), t.log.records([(b"a", b"1"), (None, b"2")]) + 1)),
    # two values of a key where the cleaner has been
    "key-twice-below-the-cleaner": ("compacted-key", lambda t: (
        t.of(cleanup_policy="compact"), t.log.records([(b"a", b"1"), (b"b", b"2")]), t.log.records([(b"a", b"3")]),
        t.log.roll(), t.log.records([(b"a", b"4")]), t.where.cleaned(t.name, 0, 3))[1]),
}  # fmt: skip


def far(t: Topic, distance: int) -> int:
    """The cleaner has left a record and another one, so far behind it that a segment just holds both, or does not."""
    t.of(cleanup_policy="compact")
    t.data(1)
    at = t.data(1, base_offset=distance, at_ms=t.where.now_ms - 1, keys=[b"far"])
    t.where.cleaned(t.name, 0, t.log.roll())
    t.data(1)
    return at


def _rolled(t: Topic) -> tuple[int, ...]:
    """Three segments of a batch each, and one that is empty."""
    return tuple(t.data() + t.log.roll() for _ in range(3))


PLANTS: Final[Rows] = {**OF_PRODUCERS, **OF_TRANSACTIONS, **OF_LOGS}
