"""Plants: tasks and topologies of streams groups, epochs of members, groups of one name, times of transactional ids."""

from collections.abc import Callable
from typing import Any

from protocol.log_records import consumer_group, group, streams_group, transaction
from protocol.log_records.share_state import RecordedBatch
from protocol.log_records.streams_group import (
    CopartitionGroup,
    CurrentTasks,
    StreamsCurrentMember,
    StreamsGroupEpoch,
    StreamsMemberMetadata,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TargetTasks,
)
from protocol.log_records.transaction import TransactionRecord
from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import TIMEOUT_MS, Planting, topic_id_of
from tests.pipeline.group_fault_cases import ACKNOWLEDGED, record_of_share
from tests.pipeline.log_faults import PLANTS, Places, plant

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
ARCHIVING, ARCHIVED = 3, 4


def _streams(where: Planting, group_id: str, *records: tuple[Any, str]) -> int:
    """A streams group in epoch 3 that reads `orders`, which has two partitions; the offset of its last record."""
    log = where.shelf(OFFSETS, cleanup_policy="compact")
    for number in (0, 1):
        where.shelf("orders", number)
    at = -1
    for value, name in ((StreamsGroupEpoch(3, 5), ""), *records):
        at = log.records([streams_group.encode(streams_group.StreamsRecord.of(group_id, value, name))])
    return at


_READS_ORDERS = StreamsTopology(0, (Subtopology("0", ("orders",)),))


def _state(*records: tuple[Any, str], check: str = "group-state") -> Callable[[Planting, str], Places]:
    """A streams group whose last record is wrong."""

    def make(where: Planting, group_id: str) -> Places:
        return {check: {(OFFSETS, 0, _streams(where, group_id, *records))}}

    return make


def _member(name: str, process_id: str = "") -> tuple[Any, str]:
    return StreamsMemberMetadata(process_id=process_id), name


def _target(name: str, active: tuple[int, ...] = (), standby: tuple[int, ...] = ()) -> tuple[Any, str]:
    lists = [(TargetTasks("0", numbers),) if numbers else () for numbers in (active, standby)]
    return StreamsTargetMember(*lists), name


PLANTS.update(
    {
        "streams-task-in-two-roles": _state((_READS_ORDERS, ""), _member("a"), _target("a", (0,), (0,))),
        "streams-standby-of-no-subtopology": _state(
            (_READS_ORDERS, ""),
            _member("a"),
            (StreamsCurrentMember(3, 2, 0, (), (CurrentTasks("7", (0,)),)), "a"),
        ),
        "streams-warmup-of-no-subtopology": _state(
            (_READS_ORDERS, ""),
            _member("a"),
            (StreamsTargetMember((), (), (TargetTasks("7", (0,)),)), "a"),
        ),
        "streams-task-beyond-partitions": _state((_READS_ORDERS, ""), _member("a"), _target("a", (5,))),
        "streams-standby-in-one-process": _state(
            (_READS_ORDERS, ""), _member("a", "p"), _member("b", "p"), _target("a", (0,)), _target("b", (), (0,))
        ),
        "streams-subtopology-twice": _state(
            (StreamsTopology(0, (Subtopology("0", ("orders",)), Subtopology("0", ("x",)))), "")
        ),
        "streams-subtopology-without-source": _state((StreamsTopology(0, (Subtopology("0"),)), "")),
        "streams-source-twice": _state(
            (StreamsTopology(0, (Subtopology("0", ("orders",)), Subtopology("1", ("orders",)))), "")
        ),
        "streams-topology-epoch-back": _state(
            (StreamsTopology(2, (Subtopology("0", ("orders",)),)), ""),
            (StreamsTopology(1, (Subtopology("0", ("orders",)),)), ""),
            check="group-record",
        ),
        "streams-topology-validated-before-its-epoch": _state(
            (_READS_ORDERS, ""), (StreamsGroupEpoch(4, 5, validated_topology_epoch=2), "")
        ),
        "streams-copartition-beyond-its-topics": _state(
            (StreamsTopology(0, (Subtopology("0", ("orders",), copartition_groups=(CopartitionGroup((0, 1)),)),)), "")
        ),
        "streams-previous-epoch": _state(
            (_READS_ORDERS, ""), _member("a"), (StreamsCurrentMember(2, 3, 0), "a"), check="group-record"
        ),
        "streams-task-of-a-later-epoch": _state(
            (_READS_ORDERS, ""),
            _member("a"),
            (StreamsCurrentMember(2, 1, 0, (CurrentTasks("0", (0,), (3,)),)), "a"),
            check="group-record",
        ),
    }
)


def _consumer(current: consumer_group.CurrentMember) -> Callable[[Planting, str], Places]:
    """A consumer group of one member, whose record is wrong."""

    def make(where: Planting, group_id: str) -> Places:
        where.shelf(group_id).data(3)
        log, at = where.shelf(OFFSETS, cleanup_policy="compact"), -1
        for value, name in ((consumer_group.GroupEpoch(3), ""), (consumer_group.MemberMetadata(), "m"), (current, "m")):
            at = log.records([consumer_group.encode(consumer_group.ConsumerRecord.of(group_id, value, name))])
        return {"group-record": {(OFFSETS, 0, at)}}

    return make


@plant
def consumer_partition_of_a_later_epoch(where: Planting, group_id: str) -> Places:
    """A partition was assigned in an epoch that the member does not have yet."""
    owned = consumer_group.AssignedPartitions(topic_id_of(group_id), (0,), (3,))
    return _consumer(consumer_group.CurrentMember(2, 1, 0, (owned,)))(where, group_id)


@plant
def consumer_epochs_of_other_partitions(where: Planting, group_id: str) -> Places:
    """A member has one partition, and the epochs of two."""
    owned = consumer_group.AssignedPartitions(topic_id_of(group_id), (0,), (1, 1))
    return _consumer(consumer_group.CurrentMember(2, 1, 0, (owned,)))(where, group_id)


@plant
def consumer_epoch_of_a_partition_negative(where: Planting, group_id: str) -> Places:
    """A partition was assigned before the first epoch."""
    owned = consumer_group.AssignedPartitions(topic_id_of(group_id), (0,), (-7,))
    return _consumer(consumer_group.CurrentMember(2, 1, 0, (owned,)))(where, group_id)


PLANTS["consumer-previous-epoch-negative"] = _consumer(consumer_group.CurrentMember(2, -7, 0))
PLANTS["streams-task-negative"] = _state((_READS_ORDERS, ""), _member("a"), _target("a", (-7,)), check="group-record")
PLANTS["streams-described-before-its-epoch"] = _state(
    (StreamsGroupEpoch(3, 0, stored_description_topology_epoch=-7), ""), check="group-record"
)
PLANTS["consumer-previous-epoch"] = _consumer(consumer_group.CurrentMember(2, 3, 0))


@plant
def classic_group_beside_a_consumer_group(where: Planting, group_id: str) -> Places:
    """Both have the same name."""
    log = where.shelf(OFFSETS, cleanup_policy="compact")
    log.records([group.encode(group.GroupMetadata(group_id, "consumer", 3, None, None, where.tick()))])
    record = consumer_group.ConsumerRecord.of(group_id, consumer_group.GroupEpoch(3), "")
    return {"group-state": {(OFFSETS, 0, log.records([consumer_group.encode(record)]))}}


@plant
def commit_of_a_later_leader_epoch(where: Planting, topic: str) -> Places:
    """The partition has only had the leader of epoch 0."""
    where.shelf(topic).data(3)
    commit = group.OffsetCommit(topic, topic, 0, 2, leader_epoch=9, commit_timestamp_ms=where.tick())
    where.shelf(OFFSETS, cleanup_policy="compact").records([group.encode(commit)])
    return {"commit-invalid": {(0, 2)}}


PLANTS["share-acknowledged-without-delivery"] = record_of_share(20, RecordedBatch(0, 4, ACKNOWLEDGED, 0))
PLANTS["share-archiving-without-delivery"] = record_of_share(21, RecordedBatch(0, 4, ARCHIVING, 0))
PLANTS["share-archived-without-delivery"] = record_of_share(22, RecordedBatch(0, 4, ARCHIVED, 0))


def _transaction(where: Planting, name: str, producer: int, state: State, at_ms: int, *topics: str) -> int:
    touched = frozenset((topic, 0) for topic in topics)
    record = TransactionRecord(
        name, producer, 0, TIMEOUT_MS, state, touched, at_ms, at_ms, client_transaction_version=0
    )
    return where.shelf(STATE, cleanup_policy="compact").records([transaction.encode(record)])


@plant
def state_time_back(where: Planting, name: str) -> Places:
    """A change of a transactional id is before the last one."""
    now_ms = where.tick()
    _transaction(where, name, 680, State.EMPTY, now_ms)
    return {"timestamp-backwards": {(STATE, 0, _transaction(where, name, 680, State.EMPTY, now_ms - 5000))}}


@plant
def state_of_an_unknown_topic(where: Planting, name: str) -> Places:
    """A transaction in a topic that never was."""
    now_ms = where.tick()
    at = _transaction(where, name, 681, State.ONGOING, now_ms, f"{name}-absent")
    return {"transaction-record": {(STATE, 0, at)}}


@plant
def prepared_for_ever(where: Planting, topic: str) -> Places:
    """All markers of a transaction are there, and the coordinator never finished it."""
    log = where.shelf(topic)
    log.data(3, producer=682, transactional=True)
    log.marker(682, 0, committed=True)
    at = _transaction(where, topic, 682, State.PREPARE_COMMIT, where.now_ms - TIMEOUT_MS - 60_000, topic)
    log.data(1)
    return {"transaction-overdue": {(STATE, 0, at)}}
