"""Reset of the cluster to its initial state; listeners and connections stay open.

What a running cluster knows lies in its logs. So a reset opens empty directories, and going back to a snapshot
(``broker.cluster.snapshots``) is a restart from a copy of the directories.
"""

from typing import TYPE_CHECKING

from broker.cluster.coordinators import LOADERS
from broker.cluster.data_directories import check_resettable, clear_directory
from broker.cluster.emulation import emulate, versions_of
from broker.cluster.metadata_publisher import MetadataPublisher
from broker.cluster.startup import create_topics, create_users
from broker.coordination.metadata.image import Topic
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.releases import DEFAULT
from broker.releases import release as release_named
from broker.replication.partition import ReplicatedPartition
from broker.telemetry import Telemetry
from broker.transactions.markers import Markers
from protocol.pauses import pause

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

KEPT = ("topics", "groups", "transactions", "faults", "clock", "journal", "versions")
"""The parts of the state that a reset can keep."""
_IN_LOGS = frozenset({"topics", "groups", "transactions"})


async def reset(cluster: "Cluster", keep: frozenset[str] = frozenset(), *, disconnect: bool = False) -> None:
    """As just started: nothing but the topics of the command line, and what is to be kept.

    With `disconnect` every client is disconnected, and listeners on ports that the system chose move to other ones, so
    that no client comes back by itself. They stay where they are if topics, groups or transactions are kept: the
    brokers are registered with them.

    Raises:
        PortTaken: another process took the port of a broker that was down, or was asked to move its listeners.
        ResetRefused: the data directory holds what Understudy did not make; nothing has changed.
    """
    await cluster.rebuilding.over()
    check_resettable(cluster)
    if "faults" not in keep:
        cluster.faults.clear(reset=True)
    cluster.beside.reset(keep)
    cluster.journal.era += 1
    cluster.lazy_coordinators = cluster.options.lazy_coordinators
    if "journal" not in keep:
        cluster.journal.clear()
    if "versions" not in keep:
        emulate(cluster, release_named(cluster.options.as_version or DEFAULT))
        cluster.versions = versions_of(cluster.release)
    if "transactions" not in keep:
        cluster.transaction_timelines.clear()
        cluster.producer_timelines.clear()
    if "groups" not in keep:
        cluster.group_timelines.clear()
    for node in cluster.nodes.values():
        node.telemetry = Telemetry()
        node.server.end_silence()
    if cluster.controller is not None:
        cluster.controller.end_silence()
    await cluster.lifecycle.add_missing(cluster.options.broker_ids)
    if disconnect:
        await _disconnect(cluster, move=not _IN_LOGS & keep)
    if _IN_LOGS & keep:  # brokers that were added stay: they may hold what is kept
        await _delete(cluster, keep)
    else:
        await cluster.rebuilding.run(lambda: _throw_away(cluster, keep), len(cluster.partitions))
    await resume_serving(cluster)


async def _disconnect(cluster: "Cluster", *, move: bool) -> None:
    """Close all connections and, to move, all listeners: those that have no port of their own get another one."""
    for node in cluster.nodes.values():
        node.server.connections.close()
        if move:
            node.server.close()
            node.bound.clear()
    if cluster.controller is not None:
        cluster.controller.disconnect(move=move)
    if not move:
        return
    for node in cluster.nodes.values():
        await cluster.bind(node)
    if cluster.controller is not None:
        await cluster.controller.bind()


def _throw_away(cluster: "Cluster", keep: frozenset[str]) -> None:
    waiting = close_all(cluster)
    for node in cluster.nodes.values():
        clear_directory(node)
    cluster.lifecycle.retain_only(cluster.options.broker_ids)
    cluster.removed.clear()
    if "clock" not in keep:
        cluster.clock.reset()
    cluster.open_state()
    cluster.begin()
    create_topics(cluster, cluster.options.topics)
    create_users(cluster)
    wake(waiting)


def wake(waiting: list[ReplicatedPartition]) -> None:
    """Let the requests go on that wait on partitions of before; the list is empty afterwards."""
    waiting.reverse()
    while waiting:  # one after the other, since most of them are freed by it, with their logs
        waiting.pop().wake()
        pause()


def close_all(cluster: "Cluster") -> list[ReplicatedPartition]:
    """Close everything that has state. Returns the partitions on which requests may be waiting."""
    cluster.maintenance.stop()
    cluster.lifecycle.clear()
    waiting = list(cluster.partitions.values())
    cluster.close_state(clean=False)
    cluster.metadata_publisher = MetadataPublisher(cluster, LOADERS)
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
    await cluster.metadata.ask(
        lambda machine, _now_ms, to: machine.delete_topics(doomed, to), records=len(cluster.partitions)
    )
    if "transactions" not in keep:
        for partition in cluster.partitions.values():
            for log in partition.logs.values():
                log.producer_log.forget_all()
    create_topics(cluster, cluster.options.topics)
    create_users(cluster)


def _stays(topic: Topic, keep: frozenset[str]) -> bool:
    if topic.name == GROUP_TOPIC:
        return "groups" in keep
    if topic.name == TRANSACTION_TOPIC:
        return "transactions" in keep
    return "topics" in keep


async def resume_serving(cluster: "Cluster") -> None:
    """Brokers that were killed listen again, those that were paused read again."""
    for node in cluster.nodes.values():
        if not node.server.listening:
            await cluster.bind(node)
        elif node.server.paused:
            node.server.resume()
        await node.server.accept()
    if cluster.controller is not None:
        await cluster.controller.accept()
