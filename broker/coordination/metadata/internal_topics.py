"""Internal topics, which Kafka creates when they are first needed (transactions B.10, groups D.9)."""

from collections.abc import Mapping

from broker.coordination.metadata.controller import Controller
from broker.coordination.metadata.topics import NewTopic

# Broker settings' prefix of each topic's partition count and replication factor.
_PREFIXES: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic",
    "__transaction_state": "transaction.state.log",
    "__share_group_state": "share.coordinator.state.topic",
}


def internal_topic(controller: Controller, name: str) -> NewTopic:
    """Return the specification of an internal topic by the broker's settings.

    Kafka's default replication factor of 3 is lowered to the number of active brokers, so that one broker is enough. A
    configured factor is kept: creation then fails if there are too few brokers, as in Kafka.
    """
    prefix = _PREFIXES[name]
    setting = f"{prefix}.replication.factor"
    factor = controller.settings.int(setting)
    if setting not in controller.settings.static:
        factor = max(1, min(factor, sum(broker.active for broker in controller.image.brokers.values())))
    count = controller.settings.int(f"{prefix}.num.partitions")
    return NewTopic(name, count, factor, configs=_configs(controller, name, prefix))


def _configs(controller: Controller, name: str, prefix: str) -> dict[str, str | None]:
    segment_bytes = str(controller.settings.int(f"{prefix}.segment.bytes"))
    if name == "__transaction_state":
        return {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(controller.settings.int("transaction.state.log.min.isr")),
            "segment.bytes": segment_bytes,
            "unclean.leader.election.enable": "false",
        }
    if name == "__share_group_state":
        return {
            "compression.type": "producer",
            "cleanup.policy": "delete",
            "min.insync.replicas": str(controller.settings.int("share.coordinator.state.topic.min.isr")),
            "segment.bytes": segment_bytes,
            "retention.ms": "-1",
        }
    return {"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": segment_bytes}
