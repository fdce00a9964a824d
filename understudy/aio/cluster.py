"""A whole cluster: start, control and stop."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, Unpack

from control_api.clusters import NewCluster
from control_api.spelling import host_and_port
from understudy.aio.bridge import AsyncBridge
from understudy.aio.coordination import (
    AsyncAcls,
    AsyncBrokers,
    AsyncControllers,
    AsyncGroups,
    AsyncProducers,
    AsyncTransactions,
    AsyncUsers,
    AsyncVersions,
)
from understudy.aio.log import AsyncClock, AsyncTopics
from understudy.aio.registry import AsyncRegistry
from understudy.aio.scenario import AsyncScenario
from understudy.aio.steering import AsyncFaults, AsyncJournal, AsyncSnapshots
from understudy.aio.verbs import (
    ClustersVerbs,
    CompactionVerbs,
    CoordinatorsVerbs,
    DiagramsVerbs,
    QuotasVerbs,
    RetentionVerbs,
)
from understudy.aio.waiting import Pending, in_thread, pending
from understudy.errors import UnderstudyError
from understudy.judging import Conformance, judge
from understudy.launcher import ServerProcess, command_line, setting_text
from understudy.options import StartOptions, check
from understudy.transport import Address, AsyncTransport


class AsyncCluster(AsyncBridge):
    """A running cluster and its control plane. As a context manager it stops what it started: process or cluster."""

    def __init__(
        self,
        address: Address,
        bootstrap_servers: Iterable[str],
        process: ServerProcess | None = None,
        *,
        owned: bool = False,
        schema_registry_url: str = "",
        transport: AsyncTransport | None = None,
    ) -> None:
        super().__init__((transport or AsyncTransport(address)).ask)
        self.address = address
        self.process = process
        self.owned = owned
        """Whether it ends when it is stopped, because this client made it in a server that runs anyway."""
        self.schema_registry_url = schema_registry_url
        """schema.registry.url for clients; empty unless this client started a server or cluster with a registry."""
        self.servers = list(bootstrap_servers)
        self.clock = AsyncClock(self._send)
        self.topics = AsyncTopics(self._send)
        self.retention = RetentionVerbs(self._send)
        self.compaction = CompactionVerbs(self._send)
        self.brokers = AsyncBrokers(self._send)
        self.controllers = AsyncControllers(self._send)
        self.coordinators = CoordinatorsVerbs(self._send)
        self.transactions = AsyncTransactions(self._send)
        self.producers = AsyncProducers(self._send)
        self.groups = AsyncGroups(self._send)
        self.users = AsyncUsers(self._send)
        self.acls = AsyncAcls(self._send)
        self.quotas = QuotasVerbs(self._send)
        self.versions = AsyncVersions(self._send)
        self.faults = AsyncFaults(self._send)
        self.journal = AsyncJournal(self._send)
        self.scenario = AsyncScenario(self._send)
        self.diagrams = DiagramsVerbs(self._send)
        self.snapshots = AsyncSnapshots(self._send)
        self.registry = AsyncRegistry(self._send)
        self.clusters = AsyncClusters(self)

    def __repr__(self) -> str:
        """Return its address, process and options, without a request to the server."""
        parts = [f"bootstrap_servers={self.bootstrap_servers!r}", f"control_url={self.control_url!r}"]
        if self.process is not None:
            ready = self.process.ready
            state = f"process {ready.pid}" if self.process.alive else f"process {ready.pid}, which has ended"
            parts += [f"cluster_id={ready.cluster_id!r}", f"options={' '.join(self.process.options)!r}", state]
        return f"<{type(self).__name__} {', '.join(parts)}>"

    @property
    def bootstrap_servers(self) -> str:
        """Return bootstrap.servers for clients: HOST:PORT of each broker, joined by commas."""
        return ",".join(self.servers)

    @property
    def control_url(self) -> str:
        """Return the URL of the control plane; empty if there is none, in which case every verb raises Unreachable."""
        return self.address.url

    async def reset(self, *, keep: Iterable[str] = (), disconnect: bool = False) -> None:
        """Reset the cluster to its state after the start.

        `keep` names what stays: topics, groups, transactions, faults, clock, journal, versions.

        `disconnect` closes all clients' connections and moves the listeners to other ports, unless topics, groups or
        transactions are kept or the ports were chosen at the start; `bootstrap_servers` changes accordingly.
        """
        kept = [keep] if isinstance(keep, str) else list(keep)
        chosen = {"keep": kept} if kept else {}
        done = await self._ask("reset", **chosen, **({"disconnect": True} if disconnect else {}))
        if disconnect:
            self.servers[:] = done["bootstrap_servers"]  # in place, as the twin shares the list
        if "faults" not in kept:
            self.faults.forget()

    async def conformance(self, *, since: int = 0, software: Iterable[str] = ()) -> Conformance:
        """Check the clients since the start or the last reset against the invariants of the protocol.

        It runs `understudy conformance` on the requests in the journal, which takes about two seconds and needs
        `understudy-kafka[duckdb]`. `since`: milliseconds of the cluster's clock, or the id of a request. `software`:
        only clients with these names or patterns, such as `librdkafka*`.
        """
        names = [software] if isinstance(software, str) else list(software)
        entries = (await self._ask("journal list", **({"since": since} if since else {})))["entries"]
        return await in_thread(judge, entries, names)

    async def metrics(self) -> str:
        """Return Prometheus metrics."""
        text: str = await self._ask("metrics")
        return text

    def log(self, lines: int = 30) -> str:
        """Return the last lines of the server's log, by default a screen, if this client started it."""
        return "" if self.process is None else self.process.log(lines)

    async def stop(self) -> None:
        """Stop the process if this client started it, or end the cluster if it was made with `clusters.create`."""
        if self.owned:
            with suppress(UnderstudyError):  # it has ended already
                await self.clusters.delete(self.address.cluster_id)
        if self.process is not None:
            await in_thread(self.process.stop)

    async def __aenter__(self) -> Self:
        """Return the cluster."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what this client started."""
        await self.stop()


class AsyncClusters(ClustersVerbs):
    """The clusters of the process."""

    def __init__(self, beside: AsyncCluster) -> None:
        super().__init__(beside._send)  # noqa: SLF001 - same module
        self.beside = beside

    async def _create(self, options: Mapping[str, Any]) -> AsyncCluster:
        __tracebackhide__ = True
        check(options, NewCluster, "clusters.create")
        settings = {name: setting_text(value) for name, value in options.get("settings", {}).items()}
        created = await self._ask("clusters create", **{**options, **({"settings": settings} if settings else {})})
        return AsyncCluster(
            self.beside.address.of_cluster(created["id"]),
            created["bootstrap_servers"],
            owned=True,
            schema_registry_url=created.get("schema_registry_url", ""),
        )

    def create(self, **options: Unpack[NewCluster]) -> Pending[AsyncCluster]:
        """Make a cluster in the same process, with brokers, clock, faults and data of its own.

        It ends when it is stopped, as at the end of a `with` block, or with the process.
        """
        __tracebackhide__ = True
        return pending(self._create(options))


async def _start(options: dict[str, Any]) -> AsyncCluster:
    check(options, StartOptions, "understudy.start")
    arguments = command_line(**{"port": 0, "control_port": 0, "for_tests": True, **options})
    process = await in_thread(ServerProcess, arguments, undo=ServerProcess.stop)
    address = Address(process.ready.control_url or "", options.get("control_token"))
    registry_url = process.ready.schema_registry_url or ""
    return AsyncCluster(address, process.ready.bootstrap_servers, process, schema_registry_url=registry_url)


async def _connect(address: Address) -> AsyncCluster:
    cluster = AsyncCluster(address, ())
    info = await cluster.info()
    cluster.servers += [host_and_port(broker.host, broker.port) for broker in info.brokers]
    return cluster


def astart(**options: Unpack[StartOptions]) -> Pending[AsyncCluster]:
    """Start a cluster in its own process, on free ports; options as in `understudy serve`.

    Clients do not pause as they do with Kafka's settings, which `for_tests=False` keeps.
    """
    return pending(_start(dict(options)))


def aconnect(control_url: str, token: str | None = None) -> Pending[AsyncCluster]:
    """Connect to the control plane of a running cluster, for instance in a container."""
    url = control_url if "://" in control_url else f"http://{control_url}"
    return pending(_connect(Address(url, token)))
