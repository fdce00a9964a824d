"""The cluster begun anew: thrown away, or put back to where it was, while listeners and connections stay.

What a running cluster knows lies in its logs. So a reset opens empty directories, a snapshot is a copy of the
directories (in memory they share their bytes), and a restore is a restart from such a copy.
"""

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from broker.birth import create_topics, wipe
from broker.coordination.metadata.image import Topic
from broker.coordinators import LOADERS
from broker.hosting import Hosting
from broker.markers import Markers
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC, Node
from broker.playing import play, versions_of
from broker.releases import NEWEST
from broker.releases import release as release_named
from broker.telemetry import Telemetry
from storage.memory_files import MemoryFiles

if TYPE_CHECKING:
    from broker.cluster import Cluster

KEPT = ("topics", "groups", "transactions", "faults", "clock", "journal", "versions")
"""What a reset can be told to keep."""
_IN_LOGS = frozenset({"topics", "groups", "transactions"})


class CannotKeep(Exception):
    """The cluster is in no state for that; the message is for the user."""


@dataclass(frozen=True)
class Snapshot:
    """A cluster as it was: what its brokers' directories held, its chance and its time."""

    files: dict[int, MemoryFiles]
    chance: Any
    ahead_ms: int
    frozen_at_ms: int | None


async def reset(cluster: "Cluster", keep: frozenset[str] = frozenset()) -> None:
    """As just started: nothing but the topics of the command line, and what is to be kept.

    Raises:
        PortTaken: somebody took the port of a broker that was down.
    """
    if "faults" not in keep:
        cluster.faults.clear(reset=True)
    cluster.journal.era += 1
    if "journal" not in keep:
        cluster.journal.clear()
    if "versions" not in keep:
        play(cluster, release_named(cluster.options.as_version or NEWEST))
        cluster.versions = versions_of(cluster.release)
    if "transactions" not in keep:
        cluster.timelines.clear()
    for node in cluster.nodes.values():
        node.telemetry = Telemetry()
        if node.server is not None:
            node.server.end_silence()
    await cluster.lifecycle.recall(range(1, cluster.options.brokers + 1))
    if _IN_LOGS & keep:  # brokers that were added stay: they may hold what is kept
        await _delete(cluster, keep)
    else:
        _throw_away(cluster, keep)
    await _serve_again(cluster)


def _throw_away(cluster: "Cluster", keep: frozenset[str]) -> None:
    waiting = _put_down(cluster)
    for node in cluster.nodes.values():
        wipe(node)
    cluster.lifecycle.dismiss(range(1, cluster.options.brokers + 1))
    cluster.removed.clear()
    if "clock" not in keep:
        cluster.clock.reset()
    cluster.open_state()
    cluster.begin()
    create_topics(cluster, cluster.options.topics)
    for partition in waiting:
        partition.wake()


def _put_down(cluster: "Cluster") -> list[Any]:
    """Close everything that knows anything; the partitions that somebody may be waiting on."""
    cluster.upkeep.stop()
    cluster.lifecycle.clear()
    waiting = list(cluster.partitions.values())
    cluster.close_state(clean=False)
    cluster.hosting = Hosting(cluster, LOADERS)
    cluster.markers = Markers(cluster)
    return waiting


async def _delete(cluster: "Cluster", keep: frozenset[str]) -> None:
    """Some of the logs stay: the others are deleted as topics are."""
    for node in cluster.nodes.values():
        if not node.up:
            await cluster.lifecycle.start(node)
    if "clock" not in keep:
        cluster.clock.reset()
    cluster.markers.holds.clear()
    doomed = [topic.id for topic in cluster.image.topics.values() if not _stays(topic, keep)]
    await cluster.metadata.ask(lambda machine, _now_ms, to: machine.delete_topics(doomed, to))
    if "transactions" not in keep:
        for partition in cluster.partitions.values():
            for log in partition.logs.values():
                log.replace_producers(None)
    create_topics(cluster, cluster.options.topics)


def _stays(topic: Topic, keep: frozenset[str]) -> bool:
    if topic.name == GROUP_TOPIC:
        return "groups" in keep
    if topic.name == TRANSACTION_TOPIC:
        return "transactions" in keep
    return "topics" in keep


async def _serve_again(cluster: "Cluster") -> None:
    """Brokers that were killed listen again, those that were paused read again."""
    for node in cluster.nodes.values():
        if node.server is None or not node.server.listening:
            await cluster.bind(node)
        elif node.server.paused:
            node.server.resume()
        assert node.server is not None
        await node.server.accept()


# --- snapshots -------------------------------------------------------------------------------------------------------


class Snapshots:
    """The states to go back to, by id. They outlive a reset."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._numbers = count(1)
        self.kept: dict[str, Snapshot] = {}

    def take(self) -> str:
        """Keep the state as it is; its id.

        Raises:
            CannotKeep: a data directory on disk, or a broker that is down.
        """
        cluster = self._cluster
        files = {node.id: _copy(node) for node in cluster.nodes.values()}
        clock = cluster.clock
        frozen_at_ms = clock.now_ms() if clock.frozen else None
        snapshot_id = str(next(self._numbers))
        self.kept[snapshot_id] = Snapshot(files, cluster.random.getstate(), clock.pushed_ms, frozen_at_ms)
        return snapshot_id

    async def restore(self, snapshot: Snapshot) -> None:
        """Back to it, as after a restart of all brokers; faults, journal and versions are as they are now.

        Raises:
            PortTaken: somebody took the port of a broker that was down.
        """
        cluster = self._cluster
        await cluster.lifecycle.recall(snapshot.files)
        cluster.journal.era += 1
        waiting = _put_down(cluster)
        cluster.lifecycle.dismiss(snapshot.files)
        cluster.timelines.clear()
        for node in cluster.nodes.values():
            node.files = snapshot.files[node.id].snapshot()
        cluster.clock.put(snapshot.ahead_ms, snapshot.frozen_at_ms)
        cluster.open_state()
        cluster.random.setstate(snapshot.chance)
        cluster.begin(restored=True)
        for partition in waiting:
            partition.wake()
        await _serve_again(cluster)


def _copy(node: Node) -> MemoryFiles:
    if not node.up:
        raise CannotKeep(f"broker {node.id} is down; start it first")
    if not isinstance(node.files, MemoryFiles):
        raise CannotKeep("the cluster has a data directory; only what is in memory can be kept so")
    return node.files.snapshot()
