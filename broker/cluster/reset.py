"""Reset of the cluster to its initial state, and restore of a snapshot; listeners and connections stay open.

All state of a running cluster is in its logs. So a reset opens empty directories, and a restore of a snapshot
(``broker.cluster.snapshots``) is a restart from a copy of the directories.
"""

from broker.cluster.cluster import Cluster
from broker.cluster.data_directories import ResetRefused, check_resettable, clear_directories, release_directories
from broker.cluster.emulation import versions_of
from broker.cluster.snapshots import CannotKeep, Snapshot
from broker.cluster.startup import create_topics, create_users
from broker.coordination.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC
from broker.coordination.metadata.image import Topic
from broker.replication.partition import wake_all
from broker.request.telemetry import Telemetry
from broker.settings.endpoints import PortTaken
from broker.settings.releases import DEFAULT
from broker.settings.releases import release as release_named

KEPT = ("topics", "groups", "transactions", "faults", "clock", "journal", "versions")
"""The parts of the state that a reset can keep."""
_IN_LOGS = frozenset({"topics", "groups", "transactions"})


async def reset(cluster: Cluster, keep: frozenset[str] = frozenset(), *, disconnect: bool = False) -> None:
    """Reset to the state after the start: only the topics and users of the command line, and what ``keep`` names.

    With `disconnect`, all clients are disconnected, and listeners on ports chosen by the system move to other ports, so
    that no client reconnects automatically. They do not move if topics, groups or transactions are kept: the brokers
    are registered with them.

    Raises:
        PortTaken: the port of a broker that was down, or that had to bind its listeners again, is in use.
        ResetRefused: the data directory holds data that Understudy did not write, or another process uses it, or a
            broker is starting; nothing has changed.
        WrongState: the directory of a broker that was down cannot be opened.
    """
    async with cluster.rebuilding.turn:
        await _reset(cluster, keep, disconnect=disconnect)


async def _reset(cluster: Cluster, keep: frozenset[str], *, disconnect: bool) -> None:
    if cluster.lifecycle.starting and _IN_LOGS & keep:
        raise ResetRefused(f"broker {min(cluster.lifecycle.starting)} is starting; reset the cluster after that")
    check_resettable(cluster, empties=not _IN_LOGS & keep)
    _clear(cluster, keep)
    try:
        await cluster.lifecycle.add_missing(cluster.options.broker_ids)
        await cluster.controller_lifecycle.add_missing(cluster.options.controller_ids)
        if disconnect:
            await _disconnect(cluster, move=not _IN_LOGS & keep)
    except PortTaken:
        release_directories(cluster)
        raise
    if _IN_LOGS & keep:  # brokers that were added stay: they may have replicas of what is kept
        await _delete(cluster, keep)
    else:
        await cluster.rebuilding.run(lambda: _throw_away(cluster, keep), len(cluster.partitions))
    await cluster.resume_serving()


def _clear(cluster: Cluster, keep: frozenset[str]) -> None:
    """Drop the state that is in no log, except what is kept."""
    if "faults" in keep:
        cluster.faults.disconnect_delayed()
    else:
        cluster.faults.clear(reset=True)
    cluster.beside.reset(keep)
    cluster.journal.era += 1
    cluster.lazy_coordinators = cluster.options.lazy_coordinators
    if "journal" not in keep:
        cluster.journal.clear()
        for server in cluster.servers.values():
            server.refusals.closed.clear()
    if "versions" not in keep:
        cluster.emulate(release_named(cluster.options.as_version or DEFAULT))
        cluster.versions = versions_of(cluster.release)
    if "transactions" not in keep:
        cluster.transaction_timelines.clear()
        cluster.producer_timelines.clear()
    cluster.deleted_partitions.clear()
    if "groups" not in keep:
        cluster.group_timelines.clear()
        cluster.deleted_partitions.clear()
    for node in cluster.all_nodes:
        node.telemetry = Telemetry()
        cluster.servers[node].end_silence()
    if cluster.controller is not None:
        cluster.controller.end_silence()


async def _disconnect(cluster: Cluster, *, move: bool) -> None:
    """Close all connections and, with ``move``, all listeners: ports chosen by the system change."""
    for node in cluster.all_nodes:
        cluster.servers[node].connections.close()
        if move:
            cluster.servers[node].close()
            cluster.recent_ports.add(port for _, port in node.bound.values())
            node.bound.clear()
    if cluster.controller is not None:
        cluster.controller.disconnect(move=move)
    if not move:
        return
    for node in (*cluster.controllers.values(), *cluster.remaining_nodes()):
        await cluster.bind(node)
    if cluster.controller is not None:
        await cluster.controller.bind()


def _throw_away(cluster: Cluster, keep: frozenset[str]) -> None:
    waiting = cluster.forget()
    clear_directories(cluster.all_nodes)
    cluster.lifecycle.retain_only(cluster.options.broker_ids)
    cluster.controller_lifecycle.retain_only(cluster.options.controller_ids)
    cluster.removed.clear()
    cluster.moved_leaders.clear()
    if "clock" not in keep:
        cluster.clock.reset()
    cluster.open_state()
    cluster.begin()
    create_topics(cluster, cluster.options.topics)
    create_users(cluster)
    wake_all(waiting)


async def _delete(cluster: Cluster, keep: frozenset[str]) -> None:
    """Reset only some of the logs, by deleting their topics."""
    for node in list(cluster.controllers.values()):
        if not node.up:
            await cluster.controller_lifecycle.start(node)
    cluster.controller_lifecycle.elect()
    for node in cluster.remaining_nodes():
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


# --- snapshots -------------------------------------------------------------------------------------------------------


async def take_snapshot(cluster: Cluster) -> str:
    """Take a snapshot of the cluster, and return its id.

    Raises:
        CannotKeep: a broker is down, the data directory is read-only, or the disk is full.
    """
    async with cluster.rebuilding.turn:
        for node in cluster.all_nodes:
            if not node.up:
                raise CannotKeep(
                    f"{'controller' if node.is_controller else 'broker'} {node.id} is down; start it first"
                )
        if cluster.options.read_only:
            raise CannotKeep("the data directory is read-only; a reset returns to its state")
        snapshots = cluster.snapshots
        return await cluster.rebuilding.run(snapshots.take, len(cluster.partitions), copied=snapshots.on_disk)


async def restore(cluster: Cluster, snapshot: Snapshot) -> None:
    """Restore a snapshot, as by a restart of all brokers; faults, journal and versions stay as they are now.

    Raises:
        PortTaken: the port of a broker that was down is in use.
        CannotKeep: there is no space in the data directory; nothing has changed.
    """
    async with cluster.rebuilding.turn:
        await cluster.lifecycle.add_missing(snapshot.brokers)
        await cluster.controller_lifecycle.add_missing(snapshot.controllers)
        most = max(len(cluster.partitions), snapshot.partitions)
        await cluster.rebuilding.run(lambda: _put_back(cluster, snapshot), most, copied=cluster.snapshots.on_disk)
        await cluster.resume_serving()


def _put_back(cluster: Cluster, snapshot: Snapshot) -> None:
    cluster.snapshots.bring(snapshot)
    cluster.faults.disconnect_delayed()
    cluster.journal.era += 1
    waiting = cluster.forget()
    cluster.lifecycle.retain_only(snapshot.brokers)
    cluster.controller_lifecycle.retain_only(snapshot.controllers)
    cluster.transaction_timelines.clear()
    cluster.group_timelines.clear()
    cluster.producer_timelines.clear()
    cluster.snapshots.put_back(snapshot)
    cluster.clock.put(snapshot.ahead_ms, snapshot.frozen_at_ms)
    cluster.open_state()
    cluster.random.setstate(snapshot.chance)
    cluster.begin(restored=True)
    wake_all(waiting)
