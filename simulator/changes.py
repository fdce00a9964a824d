"""What an administrator changes while brokers fail: settings of topics, replicas of partitions, preferred leaders."""

from collections.abc import Mapping
from random import Random

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.elections import Election
from broker.settings.model import ConfigResourceType
from simulator.clients.transaction_prober import STRICT
from simulator.cluster import Servers

_MIN_ISR = "min.insync.replicas"
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "segment.ms": ("300", "2000"),
    "index.interval.bytes": ("0", "100"),
    "compression.type": ("gzip", "zstd", "uncompressed"),
    "message.timestamp.type": ("LogAppendTime",),
    _MIN_ISR: ("3",),
    "flush.messages": ("1", "3"),
}
"""Setting -> values that make no promise weaker."""


def alter_settings(servers: Servers, chance: Random) -> str:
    """Give a topic some settings in place of those that it has; the note for the story.

    The controller forgets eligible leader replicas with another min.insync.replicas, in Kafka too. So that stays as it
    is while a partition has no replica in sync: only an unclean election would bring a leader then.
    """
    topic = chance.choice(_own(servers))
    names = chance.sample(sorted(_SETTINGS), chance.randrange(3))
    chosen = {name: chance.choice(_SETTINGS[name]) for name in names}
    if any(not state.isr for state in servers.cluster.image.topics[topic].partitions.values()):
        present = servers.cluster.image.config(ConfigResourceType.TOPIC, topic)
        chosen.pop(_MIN_ISR, None)
        chosen.update({_MIN_ISR: present[_MIN_ISR]} if _MIN_ISR in present else {})
    _set(servers, topic, chosen)
    return f"{topic} has the settings {chosen}"


def require_all_replicas(servers: Servers, topic: str) -> None:
    """Have acks=all refused unless all replicas of a topic are in sync."""
    _set(servers, topic, {_MIN_ISR: str(len(servers.cluster.nodes))})


def _own(servers: Servers) -> list[str]:
    """The topics whose settings change."""
    return sorted(each for each in servers.cluster.image.topics if not each.startswith("__") and each != STRICT)


def _set(servers: Servers, topic: str, wanted: Mapping[str, str]) -> None:
    machine = servers.cluster.metadata.machine
    new = NewConfigs(ConfigResourceType.TOPIC, topic, wanted, tuple(wanted))
    servers.cluster.metadata.submit(lambda _now_ms: machine.alter_configs([new]))


def reassign(servers: Servers, chance: Random) -> str | None:
    """Give a partition other replicas, or the same ones in another order; the note for the story.

    Two replicas of three keep a promise only as long as both are in sync: so the partition keeps at least two that run.
    """
    place = chance.choice(sorted(servers.cluster.partitions))
    brokers = sorted(servers.cluster.nodes)
    target = chance.sample(brokers, chance.choice((2, 3, 3)))
    state = servers.cluster.partitions[place].state
    if len({*target} & {*state.isr} & {*servers.up}) < 2:
        return None
    _assign(servers, place, target)
    return f"{place[0]}-{place[1]} is to have the replicas {target}"


def _assign(servers: Servers, place: tuple[str, int], target: list[int]) -> None:
    machine = servers.cluster.metadata.machine
    servers.cluster.metadata.submit(lambda _now_ms: machine.alter_partition_reassignments([(*place, target)], None))


def elect_preferred(servers: Servers) -> None:
    """Hold the election of preferred leaders that an administrator asks for, of all partitions."""
    machine = servers.cluster.metadata.machine
    places = sorted(servers.cluster.partitions)
    servers.cluster.metadata.submit(lambda _now_ms: machine.elect_leaders(places, Election.PREFERRED))


def undo(servers: Servers) -> None:
    """All topics have the broker's settings, and all partitions a replica on each broker."""
    for topic in _own(servers):
        if servers.cluster.image.config(ConfigResourceType.TOPIC, topic):
            _set(servers, topic, {})
    brokers = sorted(servers.cluster.nodes)
    for place in sorted(servers.cluster.partitions):
        replicas = list(servers.cluster.partitions[place].state.replicas)
        if len(replicas) < len(brokers):
            _assign(servers, place, [*replicas, *(each for each in brokers if each not in replicas)])
