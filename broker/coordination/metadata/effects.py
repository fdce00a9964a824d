"""Effects of metadata records on brokers' logs, coordinators and settings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.coordination.metadata.features import METADATA_VERSION, SHARE_VERSION
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.outcome import Outcome
from protocol.deferred import dataclass
from protocol.log_records import metadata as records
from protocol.log_records.metadata_security import ClientQuotaRecord
from protocol.pauses import pause


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """A partition's registration was created or changed: replicas, leader, epoch.

    ``loading_ms`` is set by the control plane: how long the partition's coordinator takes to load at its new leader.
    """

    topic: str
    index: int
    loading_ms: int = 0


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic with these partitions was deleted."""

    name: str
    topic_id: UUID
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """The dynamic settings of a resource have changed."""

    resource_type: int
    name: str


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker was registered, fenced, unfenced or unregistered."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class QuotasChanged:
    """Client quotas have changed."""


@dataclass(frozen=True, slots=True)
class KraftVersionChanged:
    """The quorum's ``kraft.version`` has changed, which its own control records store."""

    level: int


@dataclass(frozen=True, slots=True)
class MetadataUpgraded:
    """``metadata.version`` of a running cluster has changed; it was ``before``."""

    before: int


@dataclass(frozen=True, slots=True)
class ShareGroupsDisabled:
    """Share groups were disabled: ``share.version`` of a running cluster is 0 now."""


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
    """Return the effects of these records, in their order, each once. ``image`` is the state before the records."""
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
    """Iterate over the effects of a feature's new level; ``image`` is the state before the record."""
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
    """Iterate over the partitions that a record changes: one, or those with ELR of one topic or of all topics."""
    if not isinstance(record, records.ClearElrRecord):
        yield PartitionChanged(
            names.get(record.topic_id) or image.topics_by_id[record.topic_id].name, record.partition_id
        )
        return
    for topic, index, _ in image.with_eligible_replicas(record.topic_name):
        yield PartitionChanged(topic.name, index)


def loading(outcome: MetadataOutcome, loading_ms: int) -> MetadataOutcome:
    """Return the outcome with coordinators that take ``loading_ms`` to load at new leaders (control plane)."""
    effects = tuple(
        replace(each, loading_ms=loading_ms) if isinstance(each, PartitionChanged) else each for each in outcome.effects
    )
    return replace(outcome, effects=effects)
