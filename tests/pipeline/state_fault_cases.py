"""Plants: the coordinators' records and those of the metadata, field by field and beside what they speak of."""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from protocol.log_records import group, metadata, transaction
from protocol.log_records.transaction import TransactionRecord
from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import LATER_MS, TIMEOUT_MS, Planting
from tests.pipeline.log_faults import PLANTS, Places, plant

OFFSETS, STATE, METADATA = "__consumer_offsets", "__transaction_state", "__cluster_metadata"


# --- records that cannot be read -------------------------------------------------------------------------------------


def _raw(topic: str, key: bytes | None, value: bytes | None) -> Callable[[Planting, str], Places]:
    def make(where: Planting, _: str) -> Places:
        at = where.shelf(topic, cleanup_policy="compact").records([(key, value)])
        return {"coordinator-record": {(topic, 0, at)}}

    return make


_OFFSET_KEY, _OFFSET_VALUE = group.encode(group.OffsetCommit("unread", "t", 0, 5, commit_timestamp_ms=1))
_TX_KEY, _TX_VALUE = transaction.encode(
    TransactionRecord("unread", 640, 0, TIMEOUT_MS, State.ONGOING, frozenset({("t", 0)}), 5, 5)
)
assert _OFFSET_VALUE is not None
assert _TX_VALUE is not None
PLANTS.update(
    {
        "offset-value-torn": _raw(OFFSETS, _OFFSET_KEY, _OFFSET_VALUE[:-3]),
        "offset-value-version": _raw(OFFSETS, _OFFSET_KEY, b"\0\x63" + _OFFSET_VALUE[2:]),
        "offset-key-torn": _raw(OFFSETS, _OFFSET_KEY[:-2], _OFFSET_VALUE),
        "offset-key-kind": _raw(OFFSETS, struct.pack(">h", 4711) + _OFFSET_KEY[2:], _OFFSET_VALUE),
        "offset-key-none": _raw(OFFSETS, None, _OFFSET_VALUE),
        "group-value-torn": _raw(OFFSETS, b"\0\2\0\1g", b"\0\3\0"),
        "transaction-value-torn": _raw(STATE, _TX_KEY, _TX_VALUE[:-6]),
        "transaction-value-state": _raw(STATE, _TX_KEY, _TX_VALUE[:16] + b"\x63" + _TX_VALUE[17:]),
        "transaction-value-version": _raw(STATE, _TX_KEY, b"\0\x63" + _TX_VALUE[2:]),
        "transaction-key-kind": _raw(STATE, b"\0\x09" + _TX_KEY[2:], _TX_VALUE),
    }
)


@plant
def metadata_torn(where: Planting, _: str) -> Places:
    """A metadata record that ends too early."""
    value = metadata.encode(metadata.TopicRecord("torn", UUID(int=5000)))[1]
    assert value is not None
    at = where.shelf(METADATA).data(1, keys=[None], values=[value[:-4]])
    return {"coordinator-record": {(METADATA, 0, at)}}


# --- committed offsets and groups -----------------------------------------------------------------------------------


def _commit(expected: str, **fields: Any) -> Callable[[Planting, str], Places]:
    def make(where: Planting, topic: str) -> Places:
        where.shelf(topic).data(3)
        reported: dict[str, Any] = {
            "topic": topic,
            "partition": 0,
            "offset": 2,
            "commit_timestamp_ms": where.tick(),
        } | fields
        where.shelf(OFFSETS, cleanup_policy="compact").records([group.encode(group.OffsetCommit(topic, **reported))])
        return {expected: {(reported["topic"], reported["partition"], reported["offset"])}}

    return make


PLANTS.update(
    {
        "commit-negative": _commit("commit-invalid", offset=-5),
        "commit-unknown-partition": _commit("commit-invalid", partition=77),
        "commit-unknown-topic": _commit("commit-invalid", topic="no-such-topic"),
        "commit-leader-epoch": _commit("commit-invalid", leader_epoch=-7),
        "commit-time-negative": _commit("commit-invalid", commit_timestamp_ms=-9),
        "commit-topic-id": _commit("commit-invalid", topic_id=UUID(int=4242)),
    }
)


@plant
def commit_in_marker_less_partition(where: Planting, topic: str) -> Places:
    """Offsets beyond the end, pending in an open transaction: they are not committed, the transaction is only open."""
    where.shelf(topic).data(3)
    at = where.shelf(OFFSETS, cleanup_policy="compact").next_offset
    where.transaction("pending", 641, 0, State.ONGOING, [(OFFSETS, 0)], at_ms=LATER_MS)
    where.committed_offset("pending", topic, 0, 50, producer=641)
    return {"transaction-open": {(OFFSETS, 0, at)}}


def _group(*records: dict[str, Any]) -> Callable[[Planting, str], Places]:
    """Group records in a row, the last of which is wrong."""

    def make(where: Planting, name: str) -> Places:
        log, at = where.shelf(OFFSETS, cleanup_policy="compact"), -1
        for fields in records:
            member = group.GroupMember("m", "client", "/127.0.0.1", 1000, 1000, b"", b"")
            wrong: dict[str, Any] = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "m",
                    "current_state_timestamp_ms": where.tick(), "members": (member,)} | fields  # fmt: skip
            at = log.records([group.encode(group.GroupMetadata(name, **wrong))])
        return {"group-metadata": {(OFFSETS, 0, at)}}

    return make


_MEMBER = group.GroupMember("m", "client", "/127.0.0.1", 1000, 1000, b"", b"")
PLANTS.update(
    {
        "group-generation-back": _group({"generation": 5}, {"generation": 4}),
        "group-generation-negative": _group({"generation": -2}),
        "group-leader-unknown": _group({"leader": "absent"}),
        "group-member-twice": _group({"members": (_MEMBER, _MEMBER)}),
        "group-without-protocol": _group({"protocol": None}),
        "group-rebalance-timeout": _group(
            {"members": (group.GroupMember("m", "client", "/127.0.0.1", -7, 1000, b"", b""),)}
        ),
        "group-state-before-time": _group({"current_state_timestamp_ms": -7}),
        "group-session-timeout": _group(
            {"members": (group.GroupMember("m", "client", "/127.0.0.1", 1000, 0, b"", b""),)}
        ),
    }
)


# --- transactions ----------------------------------------------------------------------------------------------------


def _states(expected: str, producer: int, *steps: State, **fields: Any) -> Callable[[Planting, str], Places]:
    """Records of a transactional id, the last of which is wrong."""

    def make(where: Planting, name: str) -> Places:
        log, at = where.shelf(STATE, cleanup_policy="compact"), -1
        for number, state in enumerate(steps):
            is_last = number == len(steps) - 1
            touched = frozenset({("orders", 0)}) if state in (State.ONGOING, State.PREPARE_ABORT) else frozenset()
            reported: dict[str, Any] = {
                    "transactional_id": name, "producer_id": producer, "producer_epoch": 0, "timeout_ms": TIMEOUT_MS,
                    "state": state, "partitions": touched, "last_update_ms": where.tick(), "start_ms": where.now_ms,
                    "client_transaction_version": 0}  # fmt: skip
            if is_last:
                reported |= fields
            at = log.records([transaction.encode(TransactionRecord(**reported))])
        return {expected: {(STATE, 0, at)}}

    return make


PLANTS.update(
    {
        "state-complete-without-prepare": _states(
            "transaction-state-jump", 650, State.EMPTY, State.ONGOING, State.COMPLETE_ABORT
        ),
        "state-prepare-from-empty": _states(
            "transaction-state-jump", 651, State.EMPTY, State.PREPARE_COMMIT, partitions=frozenset({("orders", 0)}),
            timeout_ms=900_000,
        ),
        "state-empty-from-ongoing": _states("transaction-state-jump", 652, State.ONGOING, State.EMPTY),
        "state-ongoing-from-prepare": _states(
            "transaction-state-jump", 653, State.ONGOING, State.PREPARE_ABORT, State.ONGOING
        ),
        "state-commit-after-prepare-abort": _states(
            "transaction-state-jump", 654, State.ONGOING, State.PREPARE_ABORT, State.COMPLETE_COMMIT
        ),
        "state-dead": _states("transaction-state-jump", 655, State.EMPTY, State.DEAD),
        "state-epoch-back": _states("transaction-record", 656, State.EMPTY, State.EMPTY, producer_epoch=-1),
        "state-timeout": _states("transaction-record", 657, State.EMPTY, timeout_ms=0),
        "state-producer-none": _states("transaction-record", 658, State.ONGOING, producer_id=-1),
        "state-start-after-update": _states("transaction-record", 659, State.ONGOING, start_ms=2**50),
        "state-started-before-time": _states("transaction-record", 690, State.EMPTY, start_ms=-7),
        "state-previous-producer": _states("transaction-record", 691, State.EMPTY, previous_producer_id=-7),
        "state-next-producer": _states("transaction-record", 692, State.EMPTY, next_producer_id=-7),
        "state-client-version": _states("transaction-record", 693, State.EMPTY, client_transaction_version=-7),
        "state-ongoing-of-nothing": _states("transaction-record", 660, State.ONGOING, partitions=frozenset()),
        "state-complete-of-something": _states(
            "transaction-record", 661, State.ONGOING, State.PREPARE_ABORT, State.COMPLETE_ABORT,
            partitions=frozenset({("orders", 0)}),
        ),
    }
)  # fmt: skip


@plant
def producer_of_two_names(where: Planting, name: str) -> Places:
    """Two transactional ids with one producer id."""
    where.transaction(f"{name}-a", 662, 0, State.EMPTY)
    at = where.shelf(STATE).next_offset
    where.transaction(f"{name}-b", 662, 0, State.EMPTY)
    return {"transaction-record": {(STATE, 0, at)}}


def _ended(where: Planting, name: str, producer: int, *outcomes: bool, partitions: list[tuple[str, int]]) -> None:
    """Transactions of a client before KIP-890 in the coordinator's log: the epoch stays."""
    for committed in outcomes:
        where.transaction(name, producer, 0, State.ONGOING, partitions, version=0)
        where.transaction(
            name, producer, 0, State.PREPARE_COMMIT if committed else State.PREPARE_ABORT, partitions, version=0
        )
        where.transaction(name, producer, 0, State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT, version=0)


@plant
def torn_between_partitions(where: Planting, topic: str) -> Places:
    """The second of three transactions of librdkafka: committed here, aborted there."""
    pairs, at = [(topic, 0), (topic, 1)], -1
    _ended(where, topic, 663, True, True, False, partitions=pairs)
    for number in (0, 1):
        log = where.shelf(topic, number)
        for turn, committed in enumerate((True, number == 0, False)):
            log.data(3, producer=663, transactional=True)
            marker = log.marker(663, 0, committed=committed)
            at = marker if (number, turn) == (1, 1) else at
    return {"transaction-torn": {(1, at)}}


@plant
def torn_from_the_offsets(where: Planting, topic: str) -> Places:
    """The output is committed, and the offsets of its input are aborted."""
    _ended(where, topic, 664, True, partitions=[(topic, 0), (OFFSETS, 0)])
    log, offsets = where.shelf(topic), where.shelf(OFFSETS, cleanup_policy="compact")
    log.data(3, producer=664, transactional=True)
    log.marker(664, 0, committed=True)
    where.committed_offset(topic, topic, 0, 1, producer=664)
    return {"transaction-torn": {(OFFSETS, 0, offsets.marker(664, 0, committed=False))}}


@plant
def torn_from_the_coordinator(where: Planting, topic: str) -> Places:
    """The coordinator decided on abort, and the marker is a commit; a client before KIP-890."""
    _ended(where, topic, 665, True, False, partitions=[(topic, 0)])
    log = where.shelf(topic)
    log.data(3, producer=665, transactional=True)
    log.marker(665, 0, committed=True)
    log.data(3, producer=665, transactional=True)
    return {"transaction-torn": {(0, log.marker(665, 0, committed=True))}}


@plant
def torn_without_a_coordinator(where: Planting, topic: str) -> Places:
    """Markers of one epoch (KIP-890), committed in one partition and aborted in the other; no coordinator's state."""
    for number in (0, 1):
        log = where.shelf(topic, number)
        log.data(3, producer=666, transactional=True)
    where.shelf(topic, 0).marker(666, 1, committed=True)
    return {"transaction-torn": {(1, where.shelf(topic, 1).marker(666, 1, committed=False))}}


@plant
def marker_that_never_came(where: Planting, topic: str) -> Places:
    """The coordinator finished a transaction of two partitions; one of them has neither records nor marker."""
    _ended(where, topic, 667, True, partitions=[(topic, 0), (topic, 1)])
    log = where.shelf(topic)
    log.data(3, producer=667, transactional=True)
    log.marker(667, 0, committed=True)
    where.shelf(topic, 1).data(3)
    return {"transaction-marker-missing": {(1, None)}}


# --- the metadata ----------------------------------------------------------------------------------------------------


def _metadata(*records: Any) -> Callable[[Planting, str], Places]:
    """Records of the metadata, the last of which is wrong."""

    def make(where: Planting, _: str) -> Places:
        log, at = where.shelf(METADATA), -1
        for record in records:
            at = log.data(1, keys=[None], values=[metadata.encode(record)[1]])
        return {"metadata-record": {(METADATA, 0, at)}}

    return make


def _partition(number: int, **fields: Any) -> Callable[[Planting, str], Places]:
    topic_id = UUID(int=7000 + number)
    reported: dict[str, Any] = {"replicas": (2, 3), "isr": (2,), "leader": 2, "leader_epoch": 0, "partition_epoch": 0}
    return _metadata(
        metadata.TopicRecord(f"elsewhere-{number}", topic_id),
        metadata.PartitionRecord(0, topic_id, **(reported | fields)),
    )


PLANTS.update(
    {
        "metadata-isr-outside": _partition(1, isr=(2, 4)),
        "metadata-leader-outside": _partition(2, leader=4),
        "metadata-replica-twice": _partition(3, replicas=(2, 2)),
        "metadata-no-replicas": _partition(4, replicas=(), isr=(), leader=-1),
        "metadata-leader-epoch": _partition(5, leader_epoch=-1),
        "metadata-partition-of-nothing": _metadata(
            metadata.PartitionRecord(0, UUID(int=7100), (2,), (2,), leader=2, leader_epoch=0, partition_epoch=0)
        ),
        "metadata-change-of-nothing": _metadata(metadata.PartitionChangeRecord(0, UUID(int=7101), isr=(2,))),
        "metadata-topic-twice": _metadata(
            metadata.TopicRecord("twice", UUID(int=7102)), metadata.TopicRecord("twice", UUID(int=7103))
        ),
        "metadata-removal-of-nothing": _metadata(metadata.RemoveTopicRecord(UUID(int=7104))),
        "metadata-producer-ids-back": _metadata(
            metadata.ProducerIdsRecord(1, 1, 2000), metadata.ProducerIdsRecord(1, 1, 1000)
        ),
    }
)
