"""The clusters of a process, by id: that of the command line, and those that clients of the control plane make.

Each has everything of its own: brokers, ports, clock, random numbers, metadata, data, faults, journal, snapshots, and
what the control plane keeps of it. They share the process: the event loop, memory, file descriptors, the HTTP server,
the log on stderr (its lines name the cluster), and pure functions' caches.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import count
from typing import Protocol

from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup, TaskStatus

from broker.cluster.cluster import Cluster
from broker.control.activity import Activity
from broker.control.problems import Problem, conflict, not_found
from broker.control.recorder import Recorder
from broker.control.watched import Watched
from broker.logs import Logger, in_all_events
from broker.options import ServeOptions
from broker.server.recent_ports import RecentPorts
from broker.time.clock import PushedClock, soon, turns
from control_api.spelling import host_and_port
from protocol.deferred import dataclass

_log = Logger(__name__)
FIRST = "1"
"""The id of the cluster of the command line."""
_MOST = 1000
"""A bound for programs that forget to delete their clusters.

Arbitrary, as each has descriptors and memory.
"""
_MOST_ENDED, _MOST_ENDED_BYTES = 32, 64 * 1024 * 1024
"""How many ended clusters are kept for their reports, and how large their journals are together.

Arbitrary, as reports are read soon after a test, and memory has to be bounded.
"""
_CHECKS = 4
"""How often a lease is checked: it ends after at most a quarter more than its time."""
_LAST_TURNS = 4
"""Turns of the loop in which the commands that the end has cancelled still send their responses.

Ours, one would do where nothing else waits.
"""
READABLE = frozenset({"report", "journal list", "journal pcap", "metrics"})
"""What can be read of an ended cluster."""


class Build(Protocol):
    """Builds a cluster; ``schema_registry``: with a registry beside its brokers."""

    async def __call__(
        self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup, *, schema_registry: bool
    ) -> Cluster:
        """Build it, not started yet. Raises OptionError: this installation has no registry."""
        ...


@dataclass(eq=False, slots=True)
class Hosted:
    """One cluster (or the one behind a proxy), and what the control plane keeps of it."""

    source: Watched
    id: str = FIRST
    name: str = f"cluster-{FIRST}"
    lease_seconds: int | None = None
    owner: str = ""
    """Who is to end it, for the list of clusters."""
    activity: Activity = field(default_factory=Activity)
    recorder: Recorder = field(default_factory=Recorder)
    ended: str = ""
    """Why it has ended; empty while it runs."""
    requests: int = 0
    """The number of requests to its control plane."""
    _under_way: set[CancelScope] = field(default_factory=set)
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Serve a request to its control plane in the block; raise Problem 410 if the cluster ends meanwhile."""
        self.requests += 1
        with CancelScope() as scope:
            self._under_way.add(scope)
            try:
                yield
            finally:
                self._under_way.discard(scope)
        if scope.cancelled_caught:
            raise self.gone()

    @property
    def seen(self) -> tuple[int, int]:
        """A value that changes with each request, to the control plane or to a broker."""
        return self.requests, self.source.journal.newest_id

    @property
    def waits(self) -> bool:
        """Whether a request is under way."""
        return bool(self._under_way or self.source.journal.under_way)

    def gone(self) -> Problem:
        """Build the error for a request to an ended cluster."""
        return Problem(410, f"cluster {self.id} ({self.name}) has ended: {self.ended}")

    async def live(self, cluster: Cluster, over: Callable[[], None]) -> None:
        """Wait until it is to end, then close everything."""
        try:
            await self._over.wait()
            for scope in self._under_way:
                scope.cancel()
            await turns(_LAST_TURNS)
        finally:  # also if the process ends, or a task of the cluster fails
            over()
            cluster.stop()
            self._closed.set()

    async def end(self, reason: str) -> None:
        """End the cluster, and wait until its ports are closed."""
        self.ended = self.ended or reason
        self._over.set()
        await self._closed.wait()


class Clusters:
    """The clusters of this process."""

    def __init__(self, first: Hosted, tasks: TaskGroup, build: Build | None = None) -> None:
        self.first = first
        self._tasks, self._build = tasks, build
        self.running: dict[str, Hosted] = {first.id: first}
        self._ended: OrderedDict[str, Hosted] = OrderedDict()
        self._ids = count(int(FIRST) + 1)
        self._starting = 0
        self.recent_ports = RecentPorts()

    @property
    def further(self) -> list[Hosted]:
        """The running clusters but the first."""
        return [hosted for hosted in self.running.values() if hosted is not self.first]

    def of(self, id: str) -> Hosted:
        """Return a cluster, running or ended. Raises Problem 404."""
        hosted = self.running.get(id) or self._ended.get(id)
        if hosted is None:
            raise not_found(f"there is no cluster {id}; GET /v1/clusters lists those that run")
        return hosted

    async def create(
        self,
        options: ServeOptions,
        name: str | None = None,
        lease_seconds: int | None = None,
        *,
        owner: str = "",
        schema_registry: bool = False,
    ) -> Hosted:
        """Make and start a cluster.

        Raises:
            Problem: 409, there are too many, or this process is a proxy.
            PortTaken, OSError, TlsError, OptionError: it cannot start; nothing is left of it.
        """
        if self._build is None:
            raise conflict(f"this is {self.first.source.description}, which has no clusters of its own")
        if len(self.running) + self._starting > _MOST:
            raise conflict(f"this process has {_MOST} clusters; delete those that are no longer used")
        id = str(next(self._ids))
        name = f"cluster-{id}" if name is None else name
        build = partial(self._build, options, schema_registry=schema_registry)
        self._starting += 1
        try:
            make = partial(Hosted, id=id, name=name, lease_seconds=lease_seconds, owner=owner)
            hosted: Hosted = await self._tasks.start(partial(self._run, build, make, id))
        finally:
            self._starting -= 1
        return hosted

    async def _run(
        self,
        build: Callable[[PushedClock, TaskGroup], Awaitable[Cluster]],
        make: Callable[[Cluster], Hosted],
        id: str,
        *,
        task_status: TaskStatus[Hosted],
    ) -> None:
        """Run a cluster from its start to its end, in a task of its own."""
        in_all_events(cluster=id)
        refusal: Exception | None = None
        try:
            async with create_task_group() as tasks:
                cluster: Cluster | None = None
                try:
                    cluster = await build(PushedClock(asyncio.get_running_loop()), tasks)
                    cluster.recent_ports = self.recent_ports
                    await cluster.start()
                except Exception as error:  # noqa: BLE001 - it is raised again, outside of the group
                    refusal = error
                    if cluster is not None:
                        cluster.stop()
                else:
                    hosted = self.running[id] = make(cluster)
                    if hosted.lease_seconds is not None:
                        self._watch(hosted, hosted.seen, 0)
                    task_status.started(hosted)
                    await hosted.live(cluster, partial(self._over, hosted, cluster))
                tasks.cancel_scope.cancel()
        except Exception as error:
            if id not in self._ended:
                raise
            _log.error("a cluster ended because of a defect of Understudy", exc_info=error)
        if refusal is not None:
            raise refusal

    def _over(self, hosted: Hosted, cluster: Cluster) -> None:
        """Note the end of a cluster, just before its ports are closed."""
        hosted.ended = hosted.ended or "a defect of Understudy, see the log of the server"
        del self.running[hosted.id]
        self.recent_ports.add(port for node in cluster.nodes.values() for _, port in node.bound.values())
        self._ended[hosted.id] = hosted
        while len(self._ended) > _MOST_ENDED or (
            len(self._ended) > 1 and sum(each.source.journal.bytes for each in self._ended.values()) > _MOST_ENDED_BYTES
        ):
            self._ended.popitem(last=False)

    async def end(self, hosted: Hosted, reason: str) -> None:
        """End a cluster, and wait until its ports are closed. Raises Problem 409 for that of the command line."""
        if hosted is self.first:
            raise conflict(f"cluster {hosted.id} is that of the command line, which ends with the process")
        await hosted.end(reason)

    def _watch(self, hosted: Hosted, seen: tuple[int, int], unchanged: int) -> None:
        """End a cluster whose lease is over, or look again later."""
        assert hosted.lease_seconds is not None
        if hosted.ended:
            return
        if unchanged >= _CHECKS and not hosted.waits:
            reason = f"there was no request for {hosted.lease_seconds} s (lease_seconds)"
            self._tasks.start_soon(hosted.end, reason)
            return
        now = hosted.seen
        following = unchanged + 1 if now == seen and not hosted.waits else 1
        soon(hosted.lease_seconds * 1000 // _CHECKS, lambda: self._watch(hosted, now, following))


def addresses(source: Watched) -> list[str]:
    """Return HOST:PORT of each broker, as clients connect to them."""
    cluster = source.own
    return [] if cluster is None else [host_and_port(host, port) for host, port in cluster.bootstrap]
