"""Serve a cluster: one process, one event loop."""

from broker.cluster.cluster import Cluster
from broker.cluster.heap import keep_freed_memory
from broker.options import ServeOptions
from broker.start.runner import Announcement, run
from broker.time.clock import soon
from control_api.spelling import host_and_port


def serve(options: ServeOptions) -> int:
    """Run a cluster until a signal stops it, and return the exit code (see :func:`broker.start.runner.run`)."""
    return run("serve", options, Cluster, announcement, afterwards)


def afterwards() -> None:
    """Set up the memory while clients connect: it takes some milliseconds."""
    soon(100, keep_freed_memory)


def announcement(cluster: Cluster) -> Announcement:
    """Return the banner and the contents of the ready file for a cluster and the servers beside it."""
    brokers = [
        {
            "id": node.id,
            "host": host,
            "port": port,
            "listeners": [listener._asdict() for listener in cluster.listeners_of(node)],
        }
        for node, (host, port) in zip(cluster.nodes.values(), cluster.bootstrap, strict=True)
    ]
    count, controller = len(brokers), cluster.controller_listener
    return Announcement(
        f"{count} broker{'s' * (count > 1)}, cluster {cluster.cluster_id}",
        brokers,
        () if controller is None else (f"bootstrap.controllers={host_and_port(controller.host, controller.port)}",),
        cluster.beside.addresses,
    )
