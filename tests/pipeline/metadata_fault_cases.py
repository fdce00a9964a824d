"""Plants: records of the metadata, and settings, leader epochs and assignments that contradict them."""

from typing import Any, Final
from uuid import UUID

from protocol.consumer_protocol import write_assignment
from protocol.log_records import metadata
from protocol.log_records.consumer_group import AssignedPartitions
from tests.pipeline.batch_fault_cases import old_format, wrapped
from tests.pipeline.coordinator_fault_cases import member
from tests.pipeline.fault_files import T0_MS, Planting
from tests.pipeline.group_fault_cases import owner
from tests.pipeline.planted_topic import METADATA, STATE, Place, Row, Rows, Topic
from tests.protocol.records.test_message_set import message

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
DELETED = UUID(int=7300)


# --- topics and partitions -------------------------------------------------------------------------------------------


def _records(*records: Any) -> Row:
    """Records of the metadata, the last of which is wrong."""
    return "metadata-record", lambda t: t.metadata(*records)


def _partition(number: int, **fields: Any) -> Row:
    known: dict[str, Any] = {"replicas": (2, 3), "isr": (2,), "leader": 2, "leader_epoch": 0, "partition_epoch": 0}
    topic_id = UUID(int=7000 + number)
    topic = metadata.TopicRecord(f"elsewhere-{number}", topic_id)
    return _records(topic, metadata.PartitionRecord(0, topic_id, **(known | fields)))


OF_TOPICS: Final[Rows] = {
    "metadata-isr-outside": _partition(1, isr=(2, 4)),
    "metadata-leader-outside": _partition(2, leader=4),
    "metadata-replica-twice": _partition(3, replicas=(2, 2)),
    "metadata-no-replicas": _partition(4, replicas=(), isr=(), leader=-1),
    "metadata-leader-epoch": _partition(5, leader_epoch=-1),
    "metadata-partition-of-nothing": _records(
        metadata.PartitionRecord(0, UUID(int=7100), (2,), (2,), leader=2, leader_epoch=0, partition_epoch=0)),
    "metadata-change-of-nothing": _records(metadata.PartitionChangeRecord(0, UUID(int=7101), isr=(2,))),
    "metadata-topic-twice": _records(
        metadata.TopicRecord("twice", UUID(int=7102)), metadata.TopicRecord("twice", UUID(int=7103))),
    "metadata-removal-of-nothing": _records(metadata.RemoveTopicRecord(UUID(int=7104))),
    "metadata-producer-ids-back": _records(
        metadata.ProducerIdsRecord(1, 1, 2000), metadata.ProducerIdsRecord(1, 1, 1000)),
    # a topic has partitions 0 and 2
    "partition-number-left-out": ("metadata-record", lambda t: (
        t.data(), t.partition(2).data(3), {Place(METADATA, 0, None)})),
}  # fmt: skip


# --- leader epochs ---------------------------------------------------------------------------------------------------


OF_LEADERS: Final[Rows] = {
    # leaders were named twice, and the ISR changed once; the log has a batch of epoch 3
    "leader-epoch-of-no-leader": ("leader-epoch-unknown", lambda t: (
        t.data(), t.data(leader_epoch=2), t.data(leader_epoch=3), t.log.epoch_listed(2, 3), t.log.epoch_listed(3, 6),
        t.where.led_by(t.name, 1, -2, 1))[2]),
    # by the checkpoint a leader has begun, and has written nothing yet; the metadata do not know it
    "leader-epoch-of-the-checkpoint-only": ("leader-epoch-unknown", lambda t: (
        t.data(), t.where.led_by(t.name), t.log.epoch_listed(1, 3))),
    # the partition of `__transaction_state` never had that leader epoch
    "marker-of-a-later-coordinator": ("leader-epoch-unknown", lambda t: (
        t.where.shelf(STATE, cleanup_policy="compact").next_offset, t.transactional(730),
        t.marker(730, coordinator_epoch=900))),
}  # fmt: skip


# --- settings --------------------------------------------------------------------------------------------------------


def _setting(kind: int, name: str, value: str) -> Row:
    return "setting-invalid", lambda t: t.metadata(
        *([metadata.TopicRecord(t.name, t.id)] if kind == TOPIC else []),
        metadata.ConfigRecord(kind, t.name, name, value),
    )


OF_SETTINGS: Final[Rows] = {
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
    "setting-of-no-topic": ("setting-without-topic", lambda t: t.metadata(
        metadata.ConfigRecord(TOPIC, t.name, "retention.ms", "5"))),
    # the topic was deleted, and then given a setting
    "setting-after-the-topic": ("setting-without-topic", lambda t: t.metadata(
        metadata.TopicRecord(t.name, t.id), metadata.RemoveTopicRecord(t.id),
        metadata.ConfigRecord(TOPIC, t.name, "retention.ms", "5"))),
}  # fmt: skip


# --- assignments: of classic members by the topic's name, of others (KIP-848) by its id -------------------------------


def _classic(t: Topic, topic: str, *partitions: int) -> Place:
    return t.classic_group(member("m", write_assignment({topic: partitions}, 0)))


OF_ASSIGNMENTS: Final[Rows] = {
    "assigned-partition-of-no-topic": ("assignment-unknown", lambda t: _classic(t, "never-there", 0)),
    "assigned-partition-beyond": ("assignment-unknown", lambda t: (t.data(), _classic(t, t.name, 0, 1))),
    "owned-partition-of-no-topic-id": ("assignment-unknown", lambda t: owner(t, AssignedPartitions(t.id, (0,)))),
    "owned-partition-beyond": ("assignment-unknown", lambda t: (
        t.data(), owner(t, AssignedPartitions(t.id, (0, 7))))),
}  # fmt: skip

PLANTS: Final[Rows] = {**OF_TOPICS, **OF_LEADERS, **OF_SETTINGS, **OF_ASSIGNMENTS}


def clean_metadata(where: Planting) -> None:
    """Settings as people write them, a topic that was deleted, later leaders, a log of two formats."""
    setting = metadata.ConfigRecord
    where.recorded(
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
    owner(Topic(where, "owner-of-the-deleted"), AssignedPartitions(DELETED, (0,)))
    _classic(Topic(where, "owner-of-the-deleted-too"), "deleted", 0)
    _classic(Topic(where, "owner"), "orders", 0, 1)
    Topic(where, "all-members-have-left").classic_group()
    Topic(where, "offsets-only").classic_group(protocol_type="")
    led = where.shelf("led-three-times")
    led.data(2)
    led.data(2, leader_epoch=2)
    led.epoch_listed(2, 2)
    where.led_by("led-three-times", 1, -2, 1)
    where.led_by(STATE, *[1] * 7)  # the seventh coordinator has written markers
    preallocated = where.shelf("preallocated", preallocate="true")
    preallocated.data(3)
    preallocated.changed(".log", lambda content: content + bytes(10_000))
    old = where.shelf("of-two-formats")
    for magic in (0, 1):
        old_format(old, magic)
        wrapped(old, magic, message(0 if magic else old.next_offset, 0, b"v", magic, T0_MS))
    old.data(3)
