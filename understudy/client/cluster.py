# Made from understudy/aio/cluster.py by tools/generate_client.py: change it there.
"""A whole cluster: start, control and stop."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, Unpack

from control_api.clusters import NewCluster
from control_api.spelling import host_and_port
from understudy.client.bridge import Bridge
from understudy.client.coordination import (
    Acls,
    Brokers,
    Controllers,
    Groups,
    Producers,
    Transactions,
    Users,
    Versions,
)
from understudy.client.log import Clock, Topics
from understudy.client.registry import Registry
from understudy.client.scenario import Scenario
from understudy.client.steering import Faults, Journal, Snapshots
from understudy.client.verbs import (
    ClustersVerbs,
    CompactionVerbs,
    CoordinatorsVerbs,
    DiagramsVerbs,
    QuotasVerbs,
    RetentionVerbs,
)
from understudy.client.waiting import Pending, in_thread, pending
from understudy.errors import UnderstudyError
from understudy.judging import Conformance, judge
from understudy.launcher import ServerProcess, command_line, setting_text
from understudy.options import StartOptions, check
from understudy.transport import Address, Transport


class Cluster(Bridge):
    """A running cluster and its control plane. As a context manager it stops what it started: process or cluster."""

    def __init__(
        self,
        address: Address,
        bootstrap_servers: Iterable[str],
        process: ServerProcess | None = None,
        *,
        owned: bool = False,
        schema_registry_url: str = "",
        transport: Transport | None = None,
    ) -> None:
        super().__init__((transport or Transport(address)).ask)
        self.address = address
        self.process = process
        self.owned = owned
        """Whether it ends when it is stopped, because this client made it in a server that runs anyway."""
        self.schema_registry_url = schema_registry_url
        """schema.registry.url for clients; empty unless this client started a server or cluster with a registry."""
        self.servers = list(bootstrap_servers)
        self.clock = Clock(self._send)
        self.topics = Topics(self._send)
        self.retention = RetentionVerbs(self._send)
        self.compaction = CompactionVerbs(self._send)
        self.brokers = Brokers(self._send)
        self.controllers = Controllers(self._send)
        self.coordinators = CoordinatorsVerbs(self._send)
        self.transactions = Transactions(self._send)
        self.producers = Producers(self._send)
        self.groups = Groups(self._send)
        self.users = Users(self._send)
        self.acls = Acls(self._send)
        self.quotas = QuotasVerbs(self._send)
        self.versions = Versions(self._send)
        self.faults = Faults(self._send)
        self.journal = Journal(self._send)
        self.scenario = Scenario(self._send)
        self.diagrams = DiagramsVerbs(self._send)
        self.snapshots = Snapshots(self._send)
        self.registry = Registry(self._send)
        self.clusters = Clusters(self)

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

    def reset(self, *, keep: Iterable[str] = (), disconnect: bool = False) -> None:
        """Reset the cluster to its state after the start.

        `keep` names what stays: topics, groups, transactions, faults, clock, journal, versions.

        `disconnect` closes all clients' connections and moves the listeners to other ports, unless topics, groups or
        transactions are kept or the ports were chosen at the start; `bootstrap_servers` changes accordingly.
        """
        kept = [keep] if isinstance(keep, str) else list(keep)
        chosen = {"keep": kept} if kept else {}
        done = self._ask("reset", **chosen, **({"disconnect": True} if disconnect else {}))
        if disconnect:
            self.servers[:] = done["bootstrap_servers"]  # in place, as the twin shares the list
        if "faults" not in kept:
            self.faults.forget()

    def conformance(self, *, since: int = 0, software: Iterable[str] = ()) -> Conformance:
        """Check the clients since the start or the last reset against the invariants of the protocol.

        It runs `understudy conformance` on the requests in the journal, which takes about two seconds and needs
        `understudy-kafka[duckdb]`. `since`: milliseconds of the cluster's clock, or the id of a request. `software`:
        only clients with these names or patterns, such as `librdkafka*`.
        """
        names = [software] if isinstance(software, str) else list(software)
        entries = (self._ask("journal list", **({"since": since} if since else {})))["entries"]
        return in_thread(judge, entries, names)

    def metrics(self) -> str:
        """Return Prometheus metrics."""
        text: str = self._ask("metrics")
        return text

    def log(self, lines: int = 30) -> str:
        """Return the last lines of the server's log, by default a screen, if this client started it."""
        return "" if self.process is None else self.process.log(lines)

    def stop(self) -> None:
        """Stop the process if this client started it, or end the cluster if it was made with `clusters.create`."""
        if self.owned:
            with suppress(UnderstudyError):  # it has ended already
                self.clusters.delete(self.address.cluster_id)
        if self.process is not None:
            in_thread(self.process.stop)

    def __enter__(self) -> Self:
        """Return the cluster."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop what this client started."""
        self.stop()


class Clusters(ClustersVerbs):
    """The clusters of the process."""

    def __init__(self, beside: Cluster) -> None:
        super().__init__(beside._send)  # noqa: SLF001 - same module
        self.beside = beside

    def _create(self, options: Mapping[str, Any]) -> Cluster:
        __tracebackhide__ = True
        check(options, NewCluster, "clusters.create")
        settings = {name: setting_text(value) for name, value in options.get("settings", {}).items()}
        created = self._ask("clusters create", **{**options, **({"settings": settings} if settings else {})})
        return Cluster(
            self.beside.address.of_cluster(created["id"]),
            created["bootstrap_servers"],
            owned=True,
            schema_registry_url=created.get("schema_registry_url", ""),
        )

    def create(self, **options: Unpack[NewCluster]) -> Pending[Cluster]:
        """Make a cluster in the same process, with brokers, clock, faults and data of its own.

        It ends when it is stopped, as at the end of a `with` block, or with the process.
        """
        __tracebackhide__ = True
        return pending(self._create(options))


def _start(options: dict[str, Any]) -> Cluster:
    check(options, StartOptions, "understudy.start")
    arguments = command_line(**{"port": 0, "control_port": 0, "for_tests": True, **options})
    process = in_thread(ServerProcess, arguments, undo=ServerProcess.stop)
    address = Address(process.ready.control_url or "", options.get("control_token"))
    registry_url = process.ready.schema_registry_url or ""
    return Cluster(address, process.ready.bootstrap_servers, process, schema_registry_url=registry_url)


def _connect(address: Address) -> Cluster:
    cluster = Cluster(address, ())
    info = cluster.info()
    cluster.servers += [host_and_port(broker.host, broker.port) for broker in info.brokers]
    return cluster


def start(**options: Unpack[StartOptions]) -> Pending[Cluster]:
    """Start a cluster in its own process, on free ports; options as in `understudy serve`.

    Clients do not pause as they do with Kafka's settings, which `for_tests=False` keeps.
    """
    return pending(_start(dict(options)))


def connect(control_url: str, token: str | None = None) -> Pending[Cluster]:
    """Connect to the control plane of a running cluster, for instance in a container."""
    url = control_url if "://" in control_url else f"http://{control_url}"
    return pending(_connect(Address(url, token)))
