"""Records of changed dynamic settings; ``broker.settings`` validates them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from broker.coordination.metadata.controller import BROKER_RESOURCE, MIN_ISR, TOPIC_RESOURCE, Controller
from protocol.java import HashMap
from protocol.log_records.metadata import ClearElrRecord, ConfigRecord


class NewConfigs(NamedTuple):
    """All new settings of a resource; ``named`` are the keys in the request."""

    type: int
    name: str
    configs: Mapping[str, str]
    named: Collection[str] = ()


def alter_configs(controller: Controller, wanted: Sequence[NewConfigs]) -> list[Any]:
    """Return the records that change the stored settings of these resources, and the resulting partition changes.

    A changed min.insync.replicas clears the eligible leader replicas (core C.3). If unclean elections become allowed,
    leaderless partitions wait for the next periodic election (``reassignments.elect_uncleanly``).
    """
    changes = [(one, _changed(controller, one)) for one in wanted]
    records: list[Any] = [ConfigRecord(one.type, one.name, *pair) for one, new in changes for pair in new.items()]
    if controller.elr:
        cleared = [one.name for one, new in changes if MIN_ISR in new and (one.type == TOPIC_RESOURCE or not one.name)]
        records += [ClearElrRecord(name) for name in cleared]
    return records


def _changed(controller: Controller, one: NewConfigs) -> dict[str, str | None]:
    """Return the changed keys: those in the request, then removed ones, each in the order of Kafka's map.

    For brokers also unchanged keys in the request, which make a broker reload its certificate stores (KAFKA-14136).
    """
    old = controller.image.config(one.type, one.name)
    requested_names = HashMap((key, None) for key in one.named)
    repeated = {key for key in one.named if key in one.configs} if one.type == BROKER_RESOURCE else set()
    stored = controller.image.config_order.get((one.type, one.name), ())
    keys = (*requested_names, *stored, *one.configs)
    return {key: one.configs.get(key) for key in keys if one.configs.get(key) != old.get(key) or key in repeated}


def before_elr(controller: Controller) -> list[ConfigRecord]:
    """Return the records that make min.insync.replicas a cluster setting, before ELR is enabled (KIP-966).

    The cluster default is set if it is missing, and overrides of single brokers are removed
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
