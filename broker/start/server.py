"""Serve a cluster: one process, one event loop."""

import gc
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

from anyio import to_thread
from anyio.abc import TaskGroup

from broker.cluster.cluster import Cluster
from broker.cluster.heap import keep_freed_memory
from broker.options import OptionError, ServeOptions
from broker.options.settings import FOR_TESTS
from broker.settings.tables import BROKER
from broker.start.runner import Announcement, run
from broker.time.clock import PushedClock, soon
from control_api.spelling import host_and_port

_FIRST_CLIENT_MS = 100
"""For so long after the start, a client that waited for it goes before what can wait. Ours."""
_USUAL = (
    *(f"broker.handlers.{name}" for name in ("metadata", "produce", "fetch", "list_offsets", "find_coordinator")),
    "broker.coordination.group.machine",
    *(f"broker.handlers.{name}" for name in ("join_group", "sync_group", "heartbeat", "offset_fetch", "offset_commit")),
    *(f"broker.handlers.{name}" for name in ("leave_group", "init_producer_id", "create_topics", "delete_topics")),
)
"""What the requests of nearly every client need, in the order in which they come."""


def serve(options: ServeOptions) -> int:
    """Run a cluster until a signal stops it, and return the exit code (see :func:`broker.start.runner.run`)."""
    return run("serve", options, Cluster, announcement, afterwards, further)


async def further(options: ServeOptions, clock: PushedClock, tasks: TaskGroup, *, schema_registry: bool) -> Cluster:
    """Build a cluster that a client of the control plane makes.

    The registry's packages are above this one, and most servers need none: they are imported by name, in a thread.

    Raises:
        OptionError: this installation has no registry.
    """
    if not schema_registry:
        return Cluster(options, clock, tasks)
    try:
        await to_thread.run_sync(import_module, "registry.app")
        registry: Any = await to_thread.run_sync(import_module, "registry.server")
    except ImportError as error:
        raise OptionError(f"schema_registry: this installation has no schema registry ({error})") from error
    cluster: Cluster = registry.beside(options, clock, tasks)
    return cluster


def afterwards() -> None:
    """Set up the memory, and import what usual requests need, while clients connect: it takes some milliseconds."""
    soon(_FIRST_CLIENT_MS, keep_freed_memory)
    soon(_FIRST_CLIENT_MS, partial(import_next, iter(_USUAL)))


def import_next(modules: Iterator[str]) -> None:
    """Import the next one; those behind it have later turns of the loop, so that requests go between."""
    module = next(modules, None)
    if module is None:
        gc.freeze()  # as at the start: what an import makes stays alive
    else:
        import_module(module)
        soon(1, partial(import_next, modules))


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
    lines = [] if controller is None else [f"bootstrap.controllers={host_and_port(controller.host, controller.port)}"]
    return Announcement(
        f"{count} broker{'s' * (count > 1)}, cluster {cluster.cluster_id}",
        brokers,
        [*lines, *settings_for_tests(cluster.options)],
        cluster.beside.addresses,
    )


def settings_for_tests(options: ServeOptions) -> list[str]:
    """Return lines that name the settings of `--for-tests` with Kafka's defaults, and how to get those instead."""
    if not options.for_tests:
        return []
    changed = [name for name, value in FOR_TESTS.items() if options.settings.get(name) == value]
    return [
        "These settings differ from Kafka's defaults, so that clients do not pause (--for-tests);",
        "UNDERSTUDY_FOR_TESTS=false, or no --for-tests, keeps Kafka's own:",
        *(f"  {name}={FOR_TESTS[name]} (Kafka: {str(BROKER[name].default).lower()})" for name in changed),
    ]
