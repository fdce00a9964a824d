"""The effects of metadata records: which brokers' logs, coordinators and settings have to follow."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from broker.coordination.metadata.features import METADATA_VERSION, SHARE_VERSION
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.outcome import Outcome
from protocol.log_records import metadata as records
from protocol.log_records.metadata_security import ClientQuotaRecord
from protocol.pauses import pause


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """A partition has another registration: replicas, leader, epoch.

    ``loading_ms`` is steering: if the partition has a coordinator, that takes so long to load at its new leader.
    """

    topic: str
    index: int
    loading_ms: int = 0


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone, with these partitions."""

    name: str
    topic_id: UUID
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """The settings of a resource have changed."""

    resource_type: int
    name: str


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker has registered, was fenced or unfenced, or is gone."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class QuotasChanged:
    """The quotas of clients have changed."""


@dataclass(frozen=True, slots=True)
class KraftVersionChanged:
    """The quorum has another ``kraft.version``, which its own control records keep."""

    level: int


@dataclass(frozen=True, slots=True)
class MetadataUpgraded:
    """``metadata.version`` of a cluster that runs has another level; it was ``before``."""

    before: int


@dataclass(frozen=True, slots=True)
class ShareGroupsDisabled:
    """``share.version`` of a cluster that runs went to a level without share groups."""


MetadataChange = (
    PartitionChanged
    | TopicDeleted
    | ConfigChanged
    | BrokerChanged
    | QuotasChanged
    | KraftVersionChanged
    | MetadataUpgraded
    | ShareGroupsDisabled
)
MetadataOutcome = Outcome[MetadataChange]


def effects_of(image: ClusterImage, changes: Iterable[Any]) -> tuple[MetadataChange, ...]:
    """The effects of these records, in their order, each once. The image is that before the records."""
    names: dict[UUID, str] = {}
    effects: dict[MetadataChange, None] = {}  # in order
    for record in changes:
        pause()
        match record:
            case records.TopicRecord():
                names[record.topic_id] = record.name
            case records.PartitionRecord() | records.PartitionChangeRecord() | records.ClearElrRecord():
                effects.update(dict.fromkeys(_partitions(image, names, record)))
            case records.RemoveTopicRecord():
                topic = image.topics_by_id[record.topic_id]
                effects[TopicDeleted(topic.name, topic.id, tuple(topic.partitions))] = None
            case records.ConfigRecord():
                effects[ConfigChanged(record.resource_type, record.resource_name)] = None
            case (
                records.RegisterBrokerRecord()
                | records.UnregisterBrokerRecord()
                | records.BrokerRegistrationChangeRecord()
            ):
                effects[BrokerChanged(record.broker_id)] = None
            case records.FeatureLevelRecord():
                effects.update(dict.fromkeys(_features(image, record)))
            case ClientQuotaRecord():
                effects[QuotasChanged()] = None
            case _:
                pass
    return tuple(effects)


def _features(image: ClusterImage, record: records.FeatureLevelRecord) -> Iterator[MetadataChange]:
    """What follows a feature that has another level."""
    name, level = record.name, record.feature_level
    if name == METADATA_VERSION and (before := image.features.get(name, level)) != level:
        yield MetadataUpgraded(before)
    elif name == SHARE_VERSION and not level:
        yield ShareGroupsDisabled()


def _partitions(
    image: ClusterImage,
    names: Mapping[UUID, str],
    record: records.PartitionRecord | records.PartitionChangeRecord | records.ClearElrRecord,
) -> Iterator[PartitionChanged]:
    """The partitions that a record changes: one, or those of a topic, or of all, that have eligible leader replicas."""
    if not isinstance(record, records.ClearElrRecord):
        yield PartitionChanged(
            names.get(record.topic_id) or image.topics_by_id[record.topic_id].name, record.partition_id
        )
        return
    for topic, index, _ in image.with_eligible_replicas(record.topic_name):
        yield PartitionChanged(topic.name, index)


def loading(outcome: MetadataOutcome, loading_ms: int) -> MetadataOutcome:
    """The outcome, with coordinators that take ``loading_ms`` to load where leaders have moved (steering)."""
    effects = tuple(
        replace(each, loading_ms=loading_ms) if isinstance(each, PartitionChanged) else each for each in outcome.effects
    )
    return replace(outcome, effects=effects)
