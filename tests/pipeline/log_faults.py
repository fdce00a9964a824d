"""Ways in which a data directory can be wrong, each planted at a known place, and a directory that is in order.

A plant is a row of one of the modules below: name -> the checks that find it, and what writes it for a topic `t`.
"""

from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from protocol.log_records.metadata import ConfigRecord, RemoveTopicRecord, TopicRecord
from protocol.log_records.transaction import TransactionState as State
from protocol.records.records import Record, build_batch
from storage.checkpoints import EpochEntry
from tests.pipeline import (
    batch_fault_cases,
    coordinator_fault_cases,
    group_fault_cases,
    log_fault_cases,
    metadata_fault_cases,
    side_file_fault_cases,
)
from tests.pipeline.fault_files import Planting
from tests.pipeline.planted_topic import Rows, Topic, found_at

PLANTS: Final[Rows] = {
    name: row
    for module in (
        log_fault_cases, batch_fault_cases, side_file_fault_cases, coordinator_fault_cases, group_fault_cases,
        metadata_fault_cases,
    )
    for name, row in module.PLANTS.items()
}  # fmt: skip


class LogFinding(NamedTuple):
    """Where an audit has to point."""

    check: str
    topic: str | None
    partition: int | None
    offset: int | None


def clean(where: Planting) -> None:
    """Plant what looks odd and is right: an audit finds nothing in it."""
    orders, other = where.shelf("orders", 0), where.shelf("orders", 1)
    for number in range(6):
        orders.data(3, producer=10, epoch=0)
        other.data(2, codec=number % 5)
    pairs = [("orders", 0), ("orders", 1)]
    for epoch, committed in ((0, True), (1, False), (2, True)):
        where.transaction("tx", 20, epoch, State.ONGOING, pairs)
        for shelf in (orders, other):
            shelf.data(3, producer=20, epoch=epoch, transactional=True)
            shelf.data(3, producer=20, epoch=epoch, transactional=True)
        prepare, complete = (
            (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if committed else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
        )
        where.transaction("tx", 20, epoch + 1, prepare, pairs)  # KIP-890: each transaction ends in an epoch of its own
        for shelf in (orders, other):
            shelf.marker(20, epoch + 1, committed=committed)
        orders.roll()
        where.transaction("tx", 20, epoch + 1, complete)
    wrapped = where.shelf("wrapped")
    wrapped.data(3, producer=11, sequence=2**31 - 2)  # the first sequence of a producer whose beginning is gone ...
    wrapped.log_start = 1
    wrapped.data(3, producer=11, sequence=1)
    compacted = where.shelf("compacted", cleanup_policy="compact")
    compacted.data(6, drop=(1, 2))
    compacted.data(3, base_offset=20, keys=[b"x", b"y", b"z"])
    compacted.roll()
    where.cleaned("compacted", 0, 23)
    started = where.shelf("started", start=100)
    started.data(4)
    quiet = where.shelf("added-only")  # in the transaction by AddPartitionsToTxn, and then nothing was written
    where.transaction("idle", 21, 0, State.ONGOING, [("added-only", 0)], version=0)
    where.transaction("idle", 21, 0, State.PREPARE_COMMIT, [("added-only", 0)], version=0)
    quiet.marker(21, 0, committed=True)
    where.transaction("idle", 21, 0, State.COMPLETE_COMMIT, version=0)
    where.committed_offset("group", "orders", 0, 9)
    timed = where.shelf("timed", message_timestamp_type="LogAppendTime")
    timed.data(3, log_append_time=True)
    timed.data(3, log_append_time=True)
    epochs = where.shelf("epochs")
    epochs.data(2)
    epochs.epochs.append(EpochEntry(3, 2))
    epochs.data(2, leader_epoch=3)
    cut = where.shelf("cut")  # by DeleteRecords, within its second batch: the epoch then begins there too
    cut.data(4)
    cut.data(4)
    cut.log_start = 6
    cut.epochs[0] = EpochEntry(0, 6)
    clean_of_false_alarms(where)


def clean_of_false_alarms(where: Planting) -> None:
    """What an audit once took for a fault."""
    again = where.shelf("recreated")  # while its idempotent producer went on: the new log does not know it
    where.recreated("recreated")
    again.data(3, producer=12, sequence=40)
    again.data(3, producer=12, sequence=43)
    plain = where.shelf("not-idempotent")  # a batch as KafkaJS sends it, and one as Sarama does
    for epoch in (0, -1):
        record = Record(plain.next_offset, where.tick(), b"k", b"v")
        plain.raw(build_batch([record], producer_epoch=epoch, base_sequence=0, partition_leader_epoch=0))
    clean_of_settings(where)
    marked = where.shelf("markers-left", cleanup_policy="compact")  # all data compacted away, nothing written since
    marked.next_offset = 7
    marked.marker(22, 0, committed=True)
    marked.next_offset = 12
    marked.roll()
    where.cleaned("markers-left", 0, 12)
    where.transaction("compacted", 22, 0, State.ONGOING, [("markers-left", 0)])
    where.transaction("compacted", 22, 0, State.COMPLETE_COMMIT)
    group_fault_cases.clean_groups(where)
    metadata_fault_cases.clean_metadata(where)
    coordinator_fault_cases.clean_transactional_ids(where)
    log_fault_cases.far(Topic(where, "as-far-as-a-segment-goes"), 2**31 - 1)
    where.stopped("orders", 0)
    where.stopped("orders", 1)


def clean_of_settings(where: Planting) -> None:
    """Topics that are not compacted any more: one was set back, the other is the namesake of one that was deleted."""
    former = UUID(int=900)
    where.metadata_before += [
        TopicRecord("namesake", former),
        ConfigRecord(2, "namesake", "cleanup.policy", "compact"),
        RemoveTopicRecord(former),
    ]
    where.shelf("namesake").data(3, keys=[None] * 3)
    where.shelf("set-back", cleanup_policy="compact").data(3, keys=[None] * 3)
    where.metadata_behind.append(ConfigRecord(2, "set-back", "cleanup.policy", None))
    clean_of_changed_settings(where)


def clean_of_changed_settings(where: Planting) -> None:
    """Batches that a topic's settings allowed, since they are not what they were when it was created."""
    once = where.shelf(
        "changed", compression_type="gzip", message_timestamp_type="LogAppendTime", max_message_bytes="200",
        segment_bytes="300", message_timestamp_before_max_ms="1000",
    )  # fmt: skip
    for at_ms in (where.now_ms - 90_000_000, None):
        once.data(1, values=[b"v" * 400], at_ms=at_ms)
    where.metadata_behind += [ConfigRecord(2, "changed", name, None) for name in where.configs["changed"]]


def planted(root: Path, *names: str, clean_too: bool = True) -> set[LogFinding]:
    """Write a directory with some plants (default: all), and answer what has to be found in it."""
    where = Planting(root)
    if clean_too:
        clean(where)
    expected = {
        LogFinding(check, *place)
        for name in names or PLANTS
        for place in found_at(Topic(where, name), PLANTS[name][1])
        for check in PLANTS[name][0].split()
    }
    where.close()
    return expected
