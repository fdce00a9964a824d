"""Plants: committed offsets, classic groups and transactional ids, field by field and beside what they are about."""

import struct
from typing import Any, Final
from uuid import UUID

from protocol.consumer_protocol import write_assignment
from protocol.log_records import group, metadata, transaction
from protocol.log_records.transaction import TransactionRecord
from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.fault_files import T0_MS, TIMEOUT_MS, Planting
from tests.pipeline.planted_topic import METADATA, OFFSETS, STATE, Place, Row, Rows, Steps, Topic

_OFFSET_KEY, _OFFSET_VALUE = map(bytes, group.encode(  # type: ignore[arg-type]  # neither is None
    group.OffsetCommit("unread", "t", 0, 5, commit_timestamp_ms=1)))  # fmt: skip
_TX_KEY, _TX_VALUE = map(bytes, transaction.encode(  # type: ignore[arg-type]  # as above
    TransactionRecord("unread", 640, 0, TIMEOUT_MS, State.ONGOING, frozenset({("t", 0)}), 5, 5)))  # fmt: skip
_TORN: Final = metadata.encode(metadata.TopicRecord("torn", UUID(int=5000)))[1] or b""


def _raw(topic: str, key: bytes | None, value: bytes) -> Row:
    return "coordinator-record", lambda t: t.raw(topic, key, value)


UNREADABLE: Final[Rows] = {
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
    "metadata-torn": ("coordinator-record", lambda t: Place(
        METADATA, 0, t.where.shelf(METADATA).data(1, keys=[None], values=[_TORN[:-4]]))),
}  # fmt: skip


# --- committed offsets and classic groups ----------------------------------------------------------------------------


def _commit(**fields: Any) -> Row:
    return "commit-invalid", lambda t: (t.data(), t.commit(**fields))


OF_OFFSETS: Final[Rows] = {
    "commit-negative": _commit(offset=-5),
    "commit-unknown-partition": _commit(partition=77),
    "commit-unknown-topic": _commit(topic="no-such-topic"),
    "commit-leader-epoch": _commit(leader_epoch=-7),
    # the partition has only had the leader of epoch 0
    "commit-of-a-later-leader-epoch": _commit(leader_epoch=9),
    "commit-time-negative": _commit(commit_timestamp_ms=-9),
    "commit-topic-id": _commit(topic_id=UUID(int=4242)),
    # as only an old client's commit can have it: with a time at which it expires, which is before
    "commit-that-expires-before-it-is-made": _commit(
        commit_timestamp_ms=T0_MS, expire_timestamp_ms=T0_MS - 60_000, version=1),
}  # fmt: skip


def member(
    name: str = "m", assigned: bytes = b"", *, rebalance_ms: int = 1000, session_ms: int = 1000,
    instance: str | None = None,
) -> group.GroupMember:  # fmt: skip
    """A member of a classic group."""
    return group.GroupMember(
        name, "client", "/127.0.0.1", rebalance_ms, session_ms, b"", assigned, group_instance_id=instance
    )


def _group(*members: group.GroupMember, **fields: Any) -> Row:
    return "group-metadata", lambda t: t.classic_group(*members, **fields)


def _partition_of_two(t: Topic) -> Place:
    """The leader assigned a partition to both members."""
    for number in (0, 1):
        t.partition(number).data(3)
    return t.classic_group(*(
        member(name, write_assignment({t.name: numbers}, 0)) for name, numbers in (("m0", (0, 1)), ("m1", (1,)))
    ))  # fmt: skip


OF_CLASSIC_GROUPS: Final[Rows] = {
    "group-generation-back": ("group-metadata", lambda t: (
        t.classic_group(member(), generation=5), t.classic_group(member(), generation=4))),
    "group-generation-negative": _group(member(), generation=-2),
    "group-leader-unknown": _group(member(), leader="absent"),
    "group-member-twice": _group(member(), member()),
    "group-without-protocol": _group(member(), protocol=None),
    "group-rebalance-timeout": _group(member(rebalance_ms=-7)),
    "group-session-timeout": _group(member(session_ms=0)),
    "group-state-before-time": _group(member(), current_state_timestamp_ms=-7),
    # two static members with one instance id
    "group-instance-twice": _group(member("m0", instance="one"), member("m1", instance="one")),
    "group-leader-of-no-members": _group(leader="m"),
    "group-protocol-of-no-members": _group(protocol="range"),
    "group-of-no-type": _group(member(), protocol_type="", protocol="p"),
    "group-partition-of-two-members": ("group-metadata", _partition_of_two),
    # an assignment that ends within the name of a topic
    "group-assignment-of-other-bytes": _group(
        member("m0", write_assignment({"orders": (0,)}, 0)[:9]), member("m1")),
}  # fmt: skip


# --- transactional ids -----------------------------------------------------------------------------------------------


def _states(producer: int, *steps: State, **fields: Any) -> Steps:
    """Records of a transactional id, the last of which is wrong."""

    def make(t: Topic) -> tuple[Place, ...]:
        return tuple(
            _record(t, producer, state, **(fields if number == len(steps) else {}))
            for number, state in enumerate(steps, start=1)
        )

    return make


def _record(t: Topic, producer: int, state: State, **fields: Any) -> Place:
    touched = frozenset({("orders", 0)}) if state in (State.ONGOING, State.PREPARE_ABORT) else frozenset()
    now_ms = t.where.tick()
    known: dict[str, Any] = {
        "producer_id": producer, "producer_epoch": 0, "timeout_ms": TIMEOUT_MS, "state": state, "partitions": touched,
        "last_update_ms": now_ms, "start_ms": now_ms, "client_transaction_version": 0}  # fmt: skip
    return t.state(**(known | fields))


def _jump(producer: int, *steps: State, **fields: Any) -> Row:
    return "transaction-state-jump", _states(producer, *steps, **fields)


def _field(producer: int, *steps: State, **fields: Any) -> Row:
    return "transaction-record", _states(producer, *steps, **fields)


def _at(t: Topic, producer: int, state: State, at_ms: int, *topics: str) -> Place:
    touched = frozenset((topic, 0) for topic in topics)
    return _record(t, producer, state, partitions=touched, last_update_ms=at_ms, start_ms=at_ms)


def _with_a_producer(t: Topic) -> Place:
    """Only offsets that are committed in a transaction have one."""
    log = t.where.shelf(STATE, cleanup_policy="compact")
    record = TransactionRecord(t.name, 731, 0, 1000, State.EMPTY, frozenset(), t.where.tick(), -1)
    return Place(STATE, 0, log.records([transaction.encode(record)], producer=732))


_ORDERS: Final = frozenset({("orders", 0)})
OF_TRANSACTIONAL_IDS: Final[Rows] = {
    "state-complete-without-prepare": _jump(650, State.EMPTY, State.ONGOING, State.COMPLETE_ABORT),
    "state-prepare-from-empty": _jump(
        651, State.EMPTY, State.PREPARE_COMMIT, partitions=_ORDERS, timeout_ms=900_000),
    "state-empty-from-ongoing": _jump(652, State.ONGOING, State.EMPTY),
    "state-ongoing-from-prepare": _jump(653, State.ONGOING, State.PREPARE_ABORT, State.ONGOING),
    "state-commit-after-prepare-abort": _jump(654, State.ONGOING, State.PREPARE_ABORT, State.COMPLETE_COMMIT),
    "state-dead": _jump(655, State.EMPTY, State.DEAD),
    "state-epoch-back": _field(656, State.EMPTY, State.EMPTY, producer_epoch=-1),
    "state-timeout": _field(657, State.EMPTY, timeout_ms=0),
    "state-producer-none": _field(658, State.ONGOING, producer_id=-1),
    "state-start-after-update": _field(659, State.ONGOING, start_ms=2**50),
    "state-started-before-time": _field(690, State.EMPTY, start_ms=-7),
    "state-previous-producer": _field(691, State.EMPTY, previous_producer_id=-7),
    "state-next-producer": _field(692, State.EMPTY, next_producer_id=-7),
    "state-next-producer-of-an-open-transaction": _field(694, State.ONGOING, next_producer_id=5),
    "state-next-producer-before-the-last-epoch": _field(
        695, State.ONGOING, State.PREPARE_ABORT, next_producer_id=5, timeout_ms=900_000),
    "state-previous-producer-of-no-record": _field(696, State.EMPTY, State.EMPTY, previous_producer_id=5),
    "state-producer-never-given": ("producer-id-unallocated", _states(99_001, State.EMPTY)),
    "state-next-producer-never-given": ("producer-id-unallocated", _states(
        699, State.EMPTY, State.PREPARE_ABORT, producer_epoch=32_767, next_producer_id=99_002, timeout_ms=900_000)),
    "state-client-version": _field(693, State.EMPTY, client_transaction_version=-7),
    "state-ongoing-of-nothing": _field(660, State.ONGOING, partitions=frozenset()),
    "state-complete-of-something": _field(
        661, State.ONGOING, State.PREPARE_ABORT, State.COMPLETE_ABORT, partitions=_ORDERS),
    "state-of-an-unknown-topic": _field(681, State.ONGOING, partitions=frozenset({("no-such-topic", 0)})),
    "producer-of-the-coordinators-log": ("producer-fields", _with_a_producer),
    # a change is before the last one
    "state-time-back": ("timestamp-backwards", lambda t: (
        _at(t, 680, State.EMPTY, T0_MS + 5000), _at(t, 680, State.EMPTY, T0_MS))),
    # two transactional ids with one producer id
    "producer-of-two-names": ("transaction-record", lambda t: (
        t.coordinator(f"{t.name}-a", 662, State.EMPTY), t.coordinator(f"{t.name}-b", 662, State.EMPTY))),
    # all markers of a transaction are there, and the coordinator never finished it
    "prepared-for-ever": ("transaction-overdue", lambda t: (
        t.transactional(682), t.marker(682),
        _at(t, 682, State.PREPARE_COMMIT, t.where.now_ms - TIMEOUT_MS - 60_000, t.name), t.data(1))[2]),
}  # fmt: skip

PLANTS: Final[Rows] = {**UNREADABLE, **OF_OFFSETS, **OF_CLASSIC_GROUPS, **OF_TRANSACTIONAL_IDS}


def clean_transactional_ids(where: Planting) -> None:
    """The epochs of a producer are exhausted: what ends its last transaction gives it another id (KIP-890)."""
    t = Topic(where, "rotating")
    _record(t, 697, State.EMPTY, producer_epoch=32_766, previous_producer_id=697)
    of_none: dict[str, Any] = {"partitions": frozenset(), "previous_producer_id": 697, "client_transaction_version": 2}
    _record(t, 697, State.PREPARE_ABORT, producer_epoch=32_767, next_producer_id=698, **of_none)
    for _ in range(2):  # a record may be written twice
        _record(t, 698, State.COMPLETE_ABORT, **of_none)
    _record(t, 698, State.EMPTY, producer_epoch=1, previous_producer_id=698)
