"""Dynamic settings change: the records of new mappings (what may be set is judged in broker.settings)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from broker.coordination.metadata.controller import BROKER_RESOURCE, MIN_ISR, TOPIC_RESOURCE, UNCLEAN, Controller
from broker.coordination.metadata.elections import Election
from protocol.java import HashMap
from protocol.log_records.metadata import ClearElrRecord, ConfigRecord


class NewConfigs(NamedTuple):
    """All settings that a resource is to have; the request names ``named``."""

    type: int
    name: str
    configs: Mapping[str, str]
    named: Collection[str] = ()


def alter_configs(controller: Controller, wanted: Sequence[NewConfigs]) -> list[Any]:
    """From what is stored to what is wanted: the settings of all resources, then what follows from them.

    A changed min.insync.replicas clears the eligible leader replicas of the old one (core C.3); unclean elections
    that are allowed now are held now, where a leader is missing.
    """
    changes = [(one, _changed(controller, one)) for one in wanted]
    records: list[Any] = [ConfigRecord(one.type, one.name, *pair) for one, new in changes for pair in new.items()]
    if controller.elr:
        cleared = [one.name for one, new in changes if MIN_ISR in new and (one.type == TOPIC_RESOURCE or not one.name)]
        records += [ClearElrRecord(name) for name in cleared]
    for one, new in changes:
        if (new.get(UNCLEAN) or "").strip().lower() == "true":
            records += _unclean_elections(controller, one.type, one.name)
    return records


def _changed(controller: Controller, one: NewConfigs) -> dict[str, str | None]:
    """The keys that differ: those that the request names, then those that go, each in the order of Kafka's map.

    Of brokers also the keys that the request names with the same value: so a broker reads a store of certificates
    again (KAFKA-14136).
    """
    old = controller.image.config(one.type, one.name)
    asked = HashMap((key, None) for key in one.named)
    repeated = {key for key in one.named if key in one.configs} if one.type == BROKER_RESOURCE else set()
    stored = controller.image.config_order.get((one.type, one.name), ())
    keys = (*asked, *stored, *one.configs)
    return {key: one.configs.get(key) for key in keys if one.configs.get(key) != old.get(key) or key in repeated}


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
