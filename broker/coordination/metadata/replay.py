"""Replay of records into an image, the only code that changes an image (``MetadataDelta`` in Kafka)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from broker.coordination.metadata.image import Broker, BrokerListener, ClusterImage, Partition, Topic
from protocol.java import TimelineMap
from protocol.log_records import metadata as records
from protocol.log_records import metadata_security as security
from protocol.topic_names import colliding_form, may_collide

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Security protocols by Kafka's id."""
CLIENT_METRICS_RESOURCE = 16  # ConfigResource.Type.CLIENT_METRICS


def apply(image: ClusterImage, record: Any) -> None:
    """Apply a record to the image. Records that do not describe the cluster (NoOp) are skipped."""
    change = _CHANGES.get(type(record))
    if change is not None:
        change(image, record)


# --- brokers -------------------------------------------------------------------------------------------------------


def _register(image: ClusterImage, record: records.RegisterBrokerRecord) -> None:
    listeners = {
        end.name.upper(): BrokerListener(end.host, end.port, PROTOCOLS[end.security_protocol])
        for end in record.end_points
    }
    image.brokers[record.broker_id] = Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        listeners=listeners,
        directories=record.log_dirs,
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        cordoned=record.cordoned_log_dirs,
    )


def _unregister(image: ClusterImage, record: records.UnregisterBrokerRecord) -> None:
    image.brokers.pop(record.broker_id, None)


def _change_broker(image: ClusterImage, record: records.BrokerRegistrationChangeRecord) -> None:
    broker = image.brokers[record.broker_id]
    image.brokers[record.broker_id] = replace(
        broker,
        fenced=broker.fenced if record.fenced == 0 else record.fenced == records.BROKER_FENCED,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=record.log_dirs or broker.directories,
        cordoned=broker.cordoned if record.cordoned_log_dirs is None else record.cordoned_log_dirs,
    )


def _fence(image: ClusterImage, record: records.FenceBrokerRecord) -> None:
    image.brokers[record.id] = replace(image.brokers[record.id], fenced=True)


def _unfence(image: ClusterImage, record: records.UnfenceBrokerRecord) -> None:
    image.brokers[record.id] = replace(image.brokers[record.id], fenced=False)


def _register_controller(image: ClusterImage, record: records.RegisterControllerRecord) -> None:
    image.controllers[record.controller_id] = record


def _unregister_controller(image: ClusterImage, record: records.UnregisterControllerRecord) -> None:
    image.controllers.pop(record.controller_id, None)


# --- topics --------------------------------------------------------------------------------------------------------


def _add_topic(image: ClusterImage, record: records.TopicRecord) -> None:
    topic = Topic(record.name, record.topic_id)
    image.topics[record.name] = image.topics_by_id[record.topic_id] = topic
    if may_collide(record.name):
        image.colliding_names.setdefault(colliding_form(record.name), set()).add(record.name)


def _remove_topic(image: ClusterImage, record: records.RemoveTopicRecord) -> None:
    topic = image.topics_by_id.pop(record.topic_id)
    del image.topics[topic.name]
    image.configs.pop((2, topic.name), None)
    image.config_order.pop((2, topic.name), None)
    if may_collide(topic.name):
        form = colliding_form(topic.name)
        image.colliding_names[form].discard(topic.name)
        if not image.colliding_names[form]:
            del image.colliding_names[form]


def _add_partition(image: ClusterImage, record: records.PartitionRecord) -> None:
    image.topics_by_id[record.topic_id].partitions[record.partition_id] = Partition(
        replicas=record.replicas,
        isr=record.isr,
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        adding_replicas=record.adding_replicas,
        removing_replicas=record.removing_replicas,
        elr=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
        directories=record.directories,
        recovering=record.leader_recovery_state == 1,
    )


def _change_partition(image: ClusterImage, record: records.PartitionChangeRecord) -> None:
    partitions = image.topics_by_id[record.topic_id].partitions
    partitions[record.partition_id] = changed(partitions[record.partition_id], record)


def changed(old: Partition, record: records.PartitionChangeRecord) -> Partition:
    """Return the registration after a change, which increments the partition epoch, and with a leader its epoch."""
    named = record.leader != records.NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return Partition(
        replicas=_new(record.replicas, old.replicas),
        isr=_new(record.isr, old.isr),
        leader=record.leader if named else old.leader,
        leader_epoch=old.leader_epoch + named,
        partition_epoch=old.partition_epoch + 1,
        adding_replicas=_new(record.adding_replicas, old.adding_replicas),
        removing_replicas=_new(record.removing_replicas, old.removing_replicas),
        elr=_new(record.eligible_leader_replicas, old.elr),
        last_known_elr=_new(record.last_known_elr, old.last_known_elr),
        directories=_new(record.directories, old.directories),
        recovering=old.recovering if recovery == records.NO_RECOVERY_CHANGE else recovery == 1,
    )


def _new(recorded: tuple[Any, ...] | None, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if recorded is None else recorded


def _clear_elr(image: ClusterImage, record: records.ClearElrRecord) -> None:
    for topic, index, old in image.with_eligible_replicas(record.topic_name):
        topic.partitions[index] = replace(old, elr=(), last_known_elr=(), partition_epoch=old.partition_epoch + 1)


# --- the rest ------------------------------------------------------------------------------------------------------


def _set_config(image: ClusterImage, record: records.ConfigRecord) -> None:
    resource = record.resource_type, record.resource_name
    image.subscription_changes += record.resource_type == CLIENT_METRICS_RESOURCE
    configs, order = image.configs.setdefault(resource, {}), image.config_order.setdefault(resource, TimelineMap())
    if record.value is None:
        configs.pop(record.name, None)
        order.pop(record.name)
    else:
        configs[record.name] = record.value
        order[record.name] = None
    if not configs:
        del image.configs[resource], image.config_order[resource]


def _set_feature(image: ClusterImage, record: records.FeatureLevelRecord) -> None:
    image.features_offset = image.offset
    if record.feature_level:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)


def _set_producer_ids(image: ClusterImage, record: records.ProducerIdsRecord) -> None:
    image.next_producer_id = record.next_producer_id


def _set_quota(image: ClusterImage, record: security.ClientQuotaRecord) -> None:
    entity = tuple(sorted(((e.entity_type, e.entity_name) for e in record.entity), key=lambda pair: pair[0]))
    image.quotas.change(entity, record.key, None if record.remove else record.value)


def _add_acl(image: ClusterImage, record: security.AccessControlEntryRecord) -> None:
    image.acls[record.id] = record
    image.acl_changes += 1


def _remove_acl(image: ClusterImage, record: security.RemoveAccessControlEntryRecord) -> None:
    image.acls.pop(record.id, None)
    image.acl_changes += 1


def _set_scram(image: ClusterImage, record: security.UserScramCredentialRecord) -> None:
    image.scram[record.name, record.mechanism] = record


def _remove_scram(image: ClusterImage, record: security.RemoveUserScramCredentialRecord) -> None:
    image.scram.pop((record.name, record.mechanism), None)


def _set_token(image: ClusterImage, record: security.DelegationTokenRecord) -> None:
    image.tokens[record.token_id] = record


def _remove_token(image: ClusterImage, record: security.RemoveDelegationTokenRecord) -> None:
    image.tokens.pop(record.token_id, None)


_CHANGES: dict[type, Callable[[ClusterImage, Any], None]] = {
    records.RegisterBrokerRecord: _register,
    records.UnregisterBrokerRecord: _unregister,
    records.BrokerRegistrationChangeRecord: _change_broker,
    records.FenceBrokerRecord: _fence,
    records.UnfenceBrokerRecord: _unfence,
    records.RegisterControllerRecord: _register_controller,
    records.UnregisterControllerRecord: _unregister_controller,
    records.TopicRecord: _add_topic,
    records.RemoveTopicRecord: _remove_topic,
    records.PartitionRecord: _add_partition,
    records.PartitionChangeRecord: _change_partition,
    records.ClearElrRecord: _clear_elr,
    records.ConfigRecord: _set_config,
    records.FeatureLevelRecord: _set_feature,
    records.ProducerIdsRecord: _set_producer_ids,
    security.ClientQuotaRecord: _set_quota,
    security.AccessControlEntryRecord: _add_acl,
    security.RemoveAccessControlEntryRecord: _remove_acl,
    security.UserScramCredentialRecord: _set_scram,
    security.RemoveUserScramCredentialRecord: _remove_scram,
    security.DelegationTokenRecord: _set_token,
    security.RemoveDelegationTokenRecord: _remove_token,
}
