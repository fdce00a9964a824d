"""Plants: values that are possible each, and contradict others of their record, the metadata, a clean stop."""

from typing import Any

from protocol.consumer_protocol import write_assignment
from protocol.log_records import group
from protocol.log_records.transaction import TransactionState as State
from storage.checkpoints import RECOVERY_POINT
from tests.pipeline.fault_files import LATER_MS, T0_MS, Planting
from tests.pipeline.log_faults import Places, plant

OFFSETS = "__consumer_offsets"


def _offsets(where: Planting, record: Any) -> int:
    return where.shelf(OFFSETS, cleanup_policy="compact").records([group.encode(record)])


@plant
def recovery_point_behind_after_a_clean_stop(where: Planting, topic: str) -> Places:
    """The broker has stopped cleanly, and has flushed half of the log."""
    log = where.shelf(topic)
    log.data(3)
    log.data(3)
    where.checkpoints[RECOVERY_POINT, topic, 0] = 3
    return {"checkpoint-offset": {(0, 3)}}


@plant
def producer_epoch_of_no_record(where: Planting, topic: str) -> Places:
    """Records in the last epoch there is: producers get another id before it."""
    log = where.shelf(topic)
    return {"producer-fields": {(0, log.data(3, producer=720, epoch=32_767))}}


@plant
def group_instance_twice(where: Planting, name: str) -> Places:
    """Two static members with one instance id."""
    return _group(where, name, b"", b"", instance="one")


@plant
def group_partition_of_two_members(where: Planting, name: str) -> Places:
    """The leader assigned a partition to both members."""
    for number in (0, 1):
        where.shelf(name, number).data(3)
    both = [write_assignment({name: numbers}, 0) for numbers in ((0, 1), (1,))]
    return _group(where, name, *both)


@plant
def group_assignment_of_other_bytes(where: Planting, name: str) -> Places:
    """A member's assignment ends within the name of a topic."""
    return _group(where, name, write_assignment({"orders": (0,)}, 0)[:9], b"")


def _group(where: Planting, name: str, *assignments: bytes, instance: str | None = None) -> Places:
    members = tuple(
        group.GroupMember(f"m{at}", "client", "/127.0.0.1", 1000, 1000, b"", each, group_instance_id=instance)
        for at, each in enumerate(assignments)
    )
    record = group.GroupMetadata(
        name, protocol_type="consumer", generation=3, protocol="range", leader="m0",
        current_state_timestamp_ms=where.tick(), members=members,
    )  # fmt: skip
    return {"group-metadata": {(OFFSETS, 0, _offsets(where, record))}}


@plant
def commit_that_expires_before_it_is_made(where: Planting, topic: str) -> Places:
    """As only an old client's commit can have it: with a time at which it expires."""
    where.shelf(topic).data(3)
    record = group.OffsetCommit(
        "expired", topic, 0, 2, commit_timestamp_ms=T0_MS, expire_timestamp_ms=T0_MS - 60_000, version=1
    )
    _offsets(where, record)
    return {"commit-invalid": {(0, 2)}}


@plant
def transaction_of_an_unknown_partition(where: Planting, topic: str) -> Places:
    """The coordinator waits for a marker in a partition that its topic never had."""
    where.shelf(topic).data(3)
    at = where.shelf("__transaction_state", cleanup_policy="compact").next_offset
    where.transaction("nowhere", 721, 0, State.ONGOING, [(topic, 77)], at_ms=LATER_MS)
    return {"transaction-record": {("__transaction_state", 0, at)}}


@plant
def partition_number_left_out(where: Planting, topic: str) -> Places:
    """A topic has partitions 0 and 2."""
    for number in (0, 2):
        where.shelf(topic, number).data(3)
    return {"metadata-record": {("__cluster_metadata", 0, None)}}
