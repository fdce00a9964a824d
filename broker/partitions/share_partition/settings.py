"""Settings of share groups on partition leaders (groups 0.7)."""

from broker.partitions.share_partition.machine.inflight import ShareSettings
from broker.request.context import ClusterView
from broker.settings import BrokerSettings, groups
from broker.settings.checks import duration_ms
from broker.settings.model import ConfigResourceType

LATEST, EARLIEST, BY_DURATION = "latest", "earliest", "by_duration:"
DEAD_LETTERS_SINCE = 2
"""The first ``share.version`` with dead-letter queues (KIP-1191)."""
_DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
_LIMITS = ("share.delivery.count.limit", "share.partition.max.record.locks", "share.record.lock.duration.ms")
_RENEW = "share.renew.acknowledge.enable"


def share_settings(cluster: ClusterView, settings: BrokerSettings, group_id: str) -> ShareSettings:
    """Return a group's settings: its own clamped to the broker's bounds, else the broker's."""
    stored = cluster.image.config(ConfigResourceType.GROUP, group_id)
    if not stored:
        deliveries, locks, lock_ms = (settings.int(f"group.{name}") for name in _LIMITS)
        return ShareSettings(deliveries, locks, lock_ms)
    values = groups.effective(stored, settings, (*_LIMITS, _RENEW))
    deliveries, locks, lock_ms = (int(str(values[name])) for name in _LIMITS)
    renew_enabled = bool(values[_RENEW])
    return ShareSettings(deliveries, locks, lock_ms, renew_enabled, has_dead_letters(cluster, group_id))


def dead_letter_topic(cluster: ClusterView, group_id: str) -> str:
    """Return the topic of a group's dead-letter queue; "" for none."""
    return cluster.image.config(ConfigResourceType.GROUP, group_id).get(_DEAD_LETTER_TOPIC, "")


def has_dead_letters(cluster: ClusterView, group_id: str) -> bool:
    """Return whether dead-letter queues are enabled (share.version 2) and the group has one."""
    enabled = cluster.image.features.get("share.version", 0) >= DEAD_LETTERS_SINCE
    return enabled and bool(dead_letter_topic(cluster, group_id))


def reads_committed(cluster: ClusterView, group_id: str) -> bool:
    """Return whether the group's isolation level is read_committed."""
    stored = cluster.image.config(ConfigResourceType.GROUP, group_id)
    return stored.get("share.isolation.level") == "read_committed"


def offset_reset(cluster: ClusterView, group_id: str) -> tuple[str, int]:
    """Return the group's ``share.auto.offset.reset``: strategy, and for ``by_duration:`` the duration (ms)."""
    text = cluster.image.config(ConfigResourceType.GROUP, group_id).get("share.auto.offset.reset", LATEST)
    if text.startswith(BY_DURATION):
        return BY_DURATION, duration_ms(text.removeprefix(BY_DURATION)) or 0
    return text, 0
