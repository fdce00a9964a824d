"""An administrator's changes while brokers fail: topic settings and replica assignments."""

from collections.abc import Mapping
from random import Random

from broker.coordination.metadata.configs import NewConfigs
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
"""Topic setting -> values that weaken no promise."""


def alter_settings(servers: Servers, chance: Random) -> str:
    """Replace the settings of a topic; return a line for the story.

    A change of min.insync.replicas makes the controller clear the eligible leader replicas, in Kafka too. So it stays
    the same while a partition has no in-sync replica: then only an unclean election could elect a leader.
    """
    topic = chance.choice(_own(servers))
    # With none, the topic gets its defaults again.
    names = chance.sample(sorted(_SETTINGS), chance.randrange(3))
    chosen = {name: chance.choice(_SETTINGS[name]) for name in names}
    if any(not state.isr for state in servers.cluster.image.topics[topic].partitions.values()):
        present = servers.cluster.image.config(ConfigResourceType.TOPIC, topic)
        chosen.pop(_MIN_ISR, None)
        chosen.update({_MIN_ISR: present[_MIN_ISR]} if _MIN_ISR in present else {})
    _set(servers, topic, chosen)
    return f"{topic} has the settings {chosen}"


def require_all_replicas(servers: Servers, topic: str) -> None:
    """Set min.insync.replicas so that acks=all is rejected unless all replicas of a topic are in sync."""
    _set(servers, topic, {_MIN_ISR: str(len(servers.cluster.nodes))})


def _own(servers: Servers) -> list[str]:
    """Return the topics whose settings change."""
    return sorted(each for each in servers.cluster.image.topics if not each.startswith("__") and each != STRICT)


def _set(servers: Servers, topic: str, wanted: Mapping[str, str]) -> None:
    machine = servers.cluster.metadata.machine
    new = NewConfigs(ConfigResourceType.TOPIC, topic, wanted, tuple(wanted))
    servers.cluster.metadata.submit(lambda _now_ms: machine.alter_configs([new]))


def reassign(servers: Servers, chance: Random) -> str | None:
    """Reassign a partition to other replicas, or to the same ones in another order; return a line for the story.

    With two replicas of three, promises hold only while both are in sync: so at least two running replicas stay.
    """
    place = chance.choice(sorted(servers.cluster.partitions))
    brokers = sorted(servers.cluster.nodes)
    # Three twice as often: with two, one loss ends the writing.
    target = chance.sample(brokers, chance.choice((2, 3, 3)))
    state = servers.cluster.partitions[place].state
    if len({*target} & {*state.isr} & {*servers.up}) < 2:
        return None
    _assign(servers, place, target)
    return f"{place[0]}-{place[1]} is to have the replicas {target}"


def _assign(servers: Servers, place: tuple[str, int], target: list[int]) -> None:
    machine = servers.cluster.metadata.machine
    servers.cluster.metadata.submit(lambda _now_ms: machine.alter_partition_reassignments([(*place, target)], None))


def undo(servers: Servers) -> None:
    """Reset all topics to the broker's settings, and assign all partitions a replica on each broker."""
    for topic in _own(servers):
        if servers.cluster.image.config(ConfigResourceType.TOPIC, topic):
            _set(servers, topic, {})
    brokers = sorted(servers.cluster.nodes)
    for place in sorted(servers.cluster.partitions):
        replicas = list(servers.cluster.partitions[place].state.replicas)
        if len(replicas) < len(brokers):
            _assign(servers, place, [*replicas, *(each for each in brokers if each not in replicas)])
