"""Who has to hear of a change: the effects that follow from the records alone."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from broker.coordination.metadata.image import ClusterImage
from broker.coordination.outcome import Notify
from protocol.log_records import metadata as records
from protocol.log_records.metadata_security import ClientQuotaRecord


def notices(image: ClusterImage, changes: Iterable[Any]) -> tuple[Notify, ...]:
    """In the records' order, each once. The image is that before the records.

    ``partition-changed`` (topic, index) · ``topic-created`` name · ``topic-deleted`` the topic as it was ·
    ``config-changed`` (resource type, name) · ``broker-changed`` id · ``feature-changed`` name ·
    ``quotas-changed``.
    """
    names: dict[UUID, str] = {}
    told: dict[tuple[str, Any], Notify] = {}

    def tell(what: str, about: Any, key: Any = None) -> None:
        told.setdefault((what, about if key is None else key), Notify(what, about))

    for record in changes:
        match record:
            case records.PartitionRecord() | records.PartitionChangeRecord():
                name = names.get(record.topic_id) or image.topics_by_id[record.topic_id].name
                tell("partition-changed", (name, record.partition_id))
            case records.TopicRecord():
                names[record.topic_id] = record.name
                tell("topic-created", record.name)
            case records.RemoveTopicRecord():
                tell("topic-deleted", image.topics_by_id[record.topic_id], record.topic_id)
            case records.ConfigRecord():
                tell("config-changed", (record.resource_type, record.resource_name))
            case (
                records.RegisterBrokerRecord()
                | records.UnregisterBrokerRecord()
                | records.BrokerRegistrationChangeRecord()
            ):
                tell("broker-changed", record.broker_id)
            case records.FeatureLevelRecord():
                tell("feature-changed", record.name)
            case ClientQuotaRecord():
                tell("quotas-changed", None, "all")
            case _:
                pass
    return tuple(told.values())
