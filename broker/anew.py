"""The cluster begun anew while listeners and connections stay.

What a running cluster knows lies in its logs. So a reset opens empty directories, and going back to a snapshot
(``broker.snapshots``) is a restart from a copy of the directories.
"""

from typing import TYPE_CHECKING, Any

from broker.birth import create_topics, wipe
from broker.coordination.metadata.image import Topic
from broker.coordinators import LOADERS
from broker.hosting import Hosting
from broker.markers import Markers
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.playing import play, versions_of
from broker.releases import NEWEST
from broker.releases import release as release_named
from broker.telemetry import Telemetry

if TYPE_CHECKING:
    from broker.cluster import Cluster

KEPT = ("topics", "groups", "transactions", "faults", "clock", "journal", "versions")
"""What a reset can be told to keep."""
_IN_LOGS = frozenset({"topics", "groups", "transactions"})


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
        cluster.producer_timelines.clear()
    if "groups" not in keep:
        cluster.group_timelines.clear()
    for node in cluster.nodes.values():
        node.telemetry = Telemetry()
        if node.server is not None:
            node.server.end_silence()
    await cluster.lifecycle.recall(range(1, cluster.options.brokers + 1))
    if _IN_LOGS & keep:  # brokers that were added stay: they may hold what is kept
        await _delete(cluster, keep)
    else:
        _throw_away(cluster, keep)
    await serve_again(cluster)


def _throw_away(cluster: "Cluster", keep: frozenset[str]) -> None:
    waiting = put_down(cluster)
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


def put_down(cluster: "Cluster") -> list[Any]:
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


async def serve_again(cluster: "Cluster") -> None:
    """Brokers that were killed listen again, those that were paused read again."""
    for node in cluster.nodes.values():
        if node.server is None or not node.server.listening:
            await cluster.bind(node)
        elif node.server.paused:
            node.server.resume()
        assert node.server is not None
        await node.server.accept()
