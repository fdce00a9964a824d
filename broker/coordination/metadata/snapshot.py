"""Snapshots of the metadata log: the records of an image (KIP-630; Kafka: MetadataImage.write).

Replayed into an empty image, the records give the same image. Features come first, as they determine the versions of
the other records.
"""

from collections.abc import Iterator
from typing import Any

from broker.coordination.metadata.features import CONTROLLER_REGISTRATION_LEVEL, METADATA_VERSION
from broker.coordination.metadata.image import Broker, ClusterImage, Partition, Topic
from broker.coordination.metadata.replay import PROTOCOLS
from protocol.log_records import metadata as records
from protocol.log_records import metadata_security as security


def records_of(image: ClusterImage) -> Iterator[Any]:
    """Iterate over the records of an image, in Kafka's order."""
    for name, level in sorted(image.features.items(), key=lambda feature: (feature[0] != METADATA_VERSION, feature[0])):
        yield records.FeatureLevelRecord(name, level)
    for _, broker in sorted(image.brokers.items()):
        yield _registration(broker)
    if image.features.get(METADATA_VERSION, 0) >= CONTROLLER_REGISTRATION_LEVEL:
        yield from image.controllers.values()
    for topic in image.topics.values():
        yield records.TopicRecord(topic.name, topic.id)
        for index, partition in topic.partitions.items():
            yield _partition(topic, index, partition)
    for (resource_type, resource), configs in image.configs.items():
        for name, value in configs.items():
            yield records.ConfigRecord(resource_type, resource, name, value)
    for entity, quotas in image.quotas.items():
        parts = tuple(security.QuotaEntity(kind, name) for kind, name in entity)
        for name, quota in quotas.items():
            yield security.ClientQuotaRecord(parts, name, quota)
    yield records.ProducerIdsRecord(-1, -1, image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.tokens.values()


def _registration(broker: Broker) -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            records.Endpoint(name, listener.host, listener.port, PROTOCOLS.index(listener.protocol))
            for name, listener in broker.listeners.items()
        ),
        features=tuple(records.SupportedFeature(name, *levels) for name, levels in broker.features.items()),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories,
        cordoned_log_dirs=broker.cordoned,
    )


def _partition(topic: Topic, index: int, partition: Partition) -> records.PartitionRecord:
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic.id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=int(partition.recovering),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=partition.directories,
        eligible_leader_replicas=partition.elr or None,
        last_known_elr=partition.last_known_elr or None,
    )
