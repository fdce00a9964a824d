"""Plants: settings, leader epochs and assignments that contradict the metadata; batches of old formats."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from protocol.consumer_protocol import write_assignment
from protocol.log_records import consumer_group, group, metadata, transaction
from protocol.log_records.transaction import TransactionState as State
from storage.checkpoints import EpochEntry
from tests.pipeline.fault_files import Planting, Shelf, topic_id_of
from tests.pipeline.log_faults import PLANTS, Places, plant

OFFSETS, METADATA = "__consumer_offsets", "__cluster_metadata"
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
DELETED = UUID(int=7300)


def _recorded(where: Planting, *records: Any) -> int:
    """Append records to the metadata log; the offset of the last."""
    values = [metadata.encode(record)[1] for record in records]
    first = where.shelf(METADATA).data(len(values), keys=[None] * len(values), values=values)
    return first + len(values) - 1


def _owner(where: Planting, group_id: str, topic_id: UUID, *partitions: int) -> int:
    """A consumer group (KIP-848) of one member; the offset of what it owns."""
    log, at = where.shelf(OFFSETS, cleanup_policy="compact"), -1
    owned = consumer_group.AssignedPartitions(topic_id, partitions)
    for value, name in (
        (consumer_group.GroupEpoch(3), ""),
        (consumer_group.MemberMetadata(), "a"),
        (consumer_group.CurrentMember(3, 2, 0, (owned,)), "a"),
    ):
        at = log.records([consumer_group.encode(consumer_group.ConsumerRecord.of(group_id, value, name))])
    return at


def _classic(where: Planting, group_id: str, topic: str, *partitions: int) -> int:
    """A classic group of one member; the offset of its record."""
    assigned = write_assignment({topic: partitions}, 0)
    record = group.GroupMetadata(
        group_id, protocol_type="consumer", generation=3, protocol="range", leader="m",
        current_state_timestamp_ms=where.tick(),
        members=(group.GroupMember("m", "client", "/127.0.0.1", 1000, 1000, b"", assigned),),
    )  # fmt: skip
    return where.shelf(OFFSETS, cleanup_policy="compact").records([group.encode(record)])


def _old_format(log: Shelf, magic: int) -> int:
    """Append a message of a format before 2 (KIP-32); its offset."""
    offset = log.next_offset
    builder = LegacyRecordBatchBuilder(magic, 0, 100_000)
    builder.append(0, timestamp=log.owner.tick(), key=b"k", value=b"old")
    message = bytearray(builder.build())
    message[:8] = offset.to_bytes(8, "big")
    log.segment.log.append(bytes(message))
    log.next_offset += 1
    return offset


def clean_metadata(where: Planting) -> None:
    """Settings as people write them, a topic that was deleted, later leaders, a log of two formats."""
    setting = metadata.ConfigRecord
    _recorded(
        where,
        metadata.TopicRecord("deleted", DELETED),
        metadata.PartitionRecord(0, DELETED, (2,), (2,), leader=2, leader_epoch=0, partition_epoch=0),
        setting(TOPIC, "deleted", "segment.bytes", "14"),  # Kafka before 4.0 took it
        setting(TOPIC, "deleted", "cleanup.policy", " compact, delete "),
        setting(TOPIC, "deleted", "cleanup.policy", ""),
        setting(TOPIC, "deleted", "preallocate", "TRUE"),
        setting(TOPIC, "deleted", "retention.ms", "+600000\n"),
        setting(TOPIC, "deleted", "retention.ms", None),
        setting(TOPIC, "deleted", "min.cleanable.dirty.ratio", "5e-1"),
        setting(TOPIC, "deleted", "a.later.setting", "what it takes"),
        setting(BROKER, "", "log.cleaner.threads", "2"),
        setting(GROUP, "any", "share.auto.offset.reset", "by_duration:PT1H"),
        setting(GROUP, "any", "share.auto.offset.reset", "by_duration:-P-1DT0H"),
        setting(GROUP, "any", "share.auto.offset.reset", "by_duration:PT1H-30M1,5S"),
        setting(GROUP, "any", "streams.rack.aware.assignment.tags", "zone, rack,Zone"),
        setting(GROUP, "any", "streams.rack.aware.assignment.tags", ""),
        setting(CLIENT_METRICS, "any", "interval.ms", "100"),
        metadata.RemoveTopicRecord(DELETED),
    )
    _owner(where, "owner-of-the-deleted", DELETED, 0)
    _classic(where, "owner-of-the-deleted-too", "deleted", 0)
    _classic(where, "owner", "orders", 0, 1)
    _grouped(where, "all-members-have-left")
    _grouped(where, "offsets-only", protocol_type="")
    led = where.shelf("led-three-times")
    led.data(2)
    led.data(2, leader_epoch=2)
    led.epochs.append(EpochEntry(2, 2))
    where.led["led-three-times"] = (1, -2, 1)
    where.led["__transaction_state"] = (1,) * 7  # the seventh coordinator has written markers
    preallocated = where.shelf("preallocated", preallocate="true")
    preallocated.data(3)
    where.changed_last[str(preallocated.log_path)] = lambda content: content + bytes(10_000)
    old = where.shelf("of-two-formats")
    _old_format(old, 0)
    _old_format(old, 1)
    old.data(3)


# --- leader epochs ---------------------------------------------------------------------------------------------------


@plant
def leader_epoch_of_no_leader(where: Planting, topic: str) -> Places:
    """Leaders were named twice, and the ISR changed once; the log has a batch of epoch 3."""
    log = where.shelf(topic)
    log.data(3)
    log.data(3, leader_epoch=2)
    at = log.data(3, leader_epoch=3)
    log.epochs += [EpochEntry(2, 3), EpochEntry(3, at)]
    where.led[topic] = (1, -2, 1)
    return {"leader-epoch-unknown": {(0, at)}}


@plant
def leader_epoch_of_the_checkpoint_only(where: Planting, topic: str) -> Places:
    """By the checkpoint a leader has begun, and has written nothing yet; the metadata do not know it."""
    log = where.shelf(topic)
    log.data(3)
    log.epochs.append(EpochEntry(1, 3))
    where.led[topic] = ()
    return {"leader-epoch-unknown": {(0, 3)}}


@plant
def marker_of_a_later_coordinator(where: Planting, topic: str) -> Places:
    """The partition of `__transaction_state` never had that leader epoch."""
    where.shelf("__transaction_state", cleanup_policy="compact")
    log = where.shelf(topic)
    log.data(3, producer=730, transactional=True)
    return {"leader-epoch-unknown": {(0, log.marker(730, 0, committed=True, coordinator_epoch=900))}}


# --- coordinators' logs ----------------------------------------------------------------------------------------------


@plant
def producer_of_the_coordinators_log(where: Planting, name: str) -> Places:
    """Only offsets that are committed in a transaction have a producer."""
    record = transaction.TransactionRecord(name, 731, 0, 1000, State.EMPTY, frozenset(), where.tick(), -1)
    log = where.shelf("__transaction_state", cleanup_policy="compact")
    return {"producer-fields": {(log.topic, 0, log.records([transaction.encode(record)], producer=732))}}


def _group(**fields: Any) -> Callable[[Planting, str], Places]:
    def make(where: Planting, name: str) -> Places:
        return {"group-metadata": {(OFFSETS, 0, _grouped(where, name, **fields))}}

    return make


def _grouped(where: Planting, name: str, **fields: Any) -> int:
    """A classic group without members unless it is given some; the offset of its record."""
    values: dict[str, Any] = {"protocol_type": "consumer", "generation": 3, "protocol": None, "leader": None}
    record = group.GroupMetadata(name, **(values | fields), current_state_timestamp_ms=where.tick())
    return where.shelf(OFFSETS, cleanup_policy="compact").records([group.encode(record)])


PLANTS.update(
    {
        "group-leader-of-no-members": _group(leader="m"),
        "group-protocol-of-no-members": _group(protocol="range"),
        "group-of-no-type": _group(
            protocol_type="", protocol="p", leader="m",
            members=(group.GroupMember("m", "client", "/127.0.0.1", 1000, 1000, b"", b""),),
        ),
    }
)  # fmt: skip

# --- settings --------------------------------------------------------------------------------------------------------


def _setting(kind: int, name: str, value: str) -> Callable[[Planting, str], Places]:
    def make(where: Planting, resource: str) -> Places:
        if kind == TOPIC:
            _recorded(where, metadata.TopicRecord(resource, topic_id_of(resource)))
        return {
            "setting-invalid": {(METADATA, 0, _recorded(where, metadata.ConfigRecord(kind, resource, name, value)))}
        }

    return make


PLANTS.update(
    {
        "setting-tags-repeated": _setting(GROUP, "streams.rack.aware.assignment.tags", "zone, rack,zone"),
        "setting-duration-negative": _setting(GROUP, "share.auto.offset.reset", "by_duration:-P1D"),
        "setting-duration-of-nothing": _setting(GROUP, "share.auto.offset.reset", "by_duration:PT"),
        "setting-choice": _setting(TOPIC, "compression.type", "brotli"),
        "setting-case": _setting(TOPIC, "message.timestamp.type", "logappendtime"),
        "setting-list": _setting(TOPIC, "cleanup.policy", "compact,forget"),
        "setting-no-number": _setting(TOPIC, "retention.ms", "7d"),
        "setting-fraction": _setting(TOPIC, "retention.bytes", "1.5"),
        "setting-below": _setting(TOPIC, "retention.ms", "-2"),
        "setting-beyond-int": _setting(TOPIC, "segment.bytes", "2147483648"),
        "setting-beyond-long": _setting(TOPIC, "segment.ms", "9223372036854775808"),
        "setting-boolean": _setting(TOPIC, "preallocate", "yes"),
        "setting-ratio": _setting(TOPIC, "min.cleanable.dirty.ratio", "1.1"),
        "setting-of-a-group": _setting(GROUP, "share.delivery.count.limit", "1"),
        "setting-of-client-metrics": _setting(CLIENT_METRICS, "interval.ms", "99"),
        "setting-of-nothing": _setting(3, "retention.ms", "5"),
    }
)


@plant
def setting_of_no_topic(where: Planting, name: str) -> Places:
    """The topic was never created."""
    at = _recorded(where, metadata.ConfigRecord(TOPIC, name, "retention.ms", "5"))
    return {"setting-without-topic": {(METADATA, 0, at)}}


@plant
def setting_after_the_topic(where: Planting, name: str) -> Places:
    """The topic was deleted, and then given a setting."""
    at = _recorded(
        where,
        metadata.TopicRecord(name, UUID(int=7301)),
        metadata.RemoveTopicRecord(UUID(int=7301)),
        metadata.ConfigRecord(TOPIC, name, "retention.ms", "5"),
    )
    return {"setting-without-topic": {(METADATA, 0, at)}}


# --- assignments -----------------------------------------------------------------------------------------------------


@plant
def assigned_partition_of_no_topic(where: Planting, name: str) -> Places:
    """A classic member owns a partition of a topic that was never created."""
    return {"assignment-unknown": {(OFFSETS, 0, _classic(where, name, "never-there", 0))}}


@plant
def assigned_partition_beyond(where: Planting, name: str) -> Places:
    """The topic has one partition; a classic member owns the second, too."""
    where.shelf(name).data(3)
    return {"assignment-unknown": {(OFFSETS, 0, _classic(where, name, name, 0, 1))}}


@plant
def owned_partition_of_no_topic_id(where: Planting, name: str) -> Places:
    """As KIP-848 has it, by the topic's id."""
    return {"assignment-unknown": {(OFFSETS, 0, _owner(where, name, UUID(int=7302), 0))}}


@plant
def owned_partition_beyond(where: Planting, name: str) -> Places:
    """A member of a consumer group owns the eighth partition of one."""
    where.shelf(name).data(3)
    return {"assignment-unknown": {(OFFSETS, 0, _owner(where, name, topic_id_of(name), 0, 7))}}


# --- formats ---------------------------------------------------------------------------------------------------------


@plant
def format_one_behind_two(where: Planting, topic: str) -> Places:
    """A message of format 1 behind a batch of format 2."""
    log = where.shelf(topic)
    log.data(3)
    at = _old_format(log, 1)
    log.data(3)
    return {"format-regress": {(0, at)}}
