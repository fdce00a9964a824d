"""Dynamic settings change: the records of one resource's new mapping (what may be set is judged in broker.settings)."""

from collections.abc import Collection, Mapping
from typing import Any

from broker.coordination.metadata.controller import BROKER_RESOURCE, MIN_ISR, TOPIC_RESOURCE, UNCLEAN, Controller
from broker.coordination.metadata.elections import Election
from protocol.java import HashMap
from protocol.log_records.metadata import ClearElrRecord, ConfigRecord


def alter_configs(
    controller: Controller, resource_type: int, name: str, new: Mapping[str, str], named: Collection[str] = ()
) -> list[Any]:
    """From what is stored to ``new``: one record per key that differs, and what follows from it.

    Those that the request names come first, in the order of Kafka's map of them.
    Of brokers also one per key that the request names, even if its value is the same: so a broker reads a store of
    certificates again (KAFKA-14136).

    A changed min.insync.replicas clears the eligible leader replicas of the old one (core C.3); unclean elections
    that are allowed now are held now, where a leader is missing.
    """
    old = controller.image.config(resource_type, name)
    asked = HashMap((key, None) for key in named)
    repeated = {key for key in named if key in new} if resource_type == BROKER_RESOURCE else set()
    keys = (*asked, *old, *new)
    changed = {key: new.get(key) for key in keys if new.get(key) != old.get(key) or key in repeated}
    records: list[Any] = [ConfigRecord(resource_type, name, key, value) for key, value in changed.items()]
    if controller.elr and MIN_ISR in changed and (resource_type == TOPIC_RESOURCE or not name):
        records.append(ClearElrRecord(name))
    if (changed.get(UNCLEAN) or "").strip().lower() == "true":
        records += _unclean_elections(controller, resource_type, name)
    return records


def _unclean_elections(controller: Controller, resource_type: int, name: str) -> list[Any]:
    if resource_type == TOPIC_RESOURCE:
        found = controller.image.topics.get(name)
        topics = [] if found is None else [found]
    elif resource_type == BROKER_RESOURCE:
        image = controller.image
        topics = [t for t in image.topics.values() if UNCLEAN not in image.config(TOPIC_RESOURCE, t.name)]
    else:
        topics = []
    records = []
    for topic in topics:
        for index, partition in topic.partitions.items():
            if partition.leader < 0:
                record = controller.change(topic, index, election=Election.UNCLEAN).record()
                if record is not None:
                    records.append(record)
    return records


def before_elr(controller: Controller) -> list[ConfigRecord]:
    """What makes min.insync.replicas the cluster's, before eligible leader replicas are kept (KIP-966).

    Its level for all brokers is set, if it is not, and no broker has one of its own
    (ConfigurationControlManager.maybeGenerateElrSafetyRecords).
    """
    configs = controller.image.configs
    records = []
    if MIN_ISR not in controller.image.config(BROKER_RESOURCE, ""):
        records.append(ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, str(controller.settings.int(MIN_ISR))))
    for (resource_type, name), own in configs.items():
        if resource_type == BROKER_RESOURCE and name and MIN_ISR in own:
            records.append(ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None))
    return records
