# Made from understudy/aio/cluster.py by tools/generate_client.py: change it there.
"""A cluster as a whole: started, steered, stopped."""

from collections.abc import Iterable
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from understudy import results
from understudy.client.coordination import (
    Brokers,
    Coordinators,
    Groups,
    Producers,
    Transactions,
    Versions,
)
from understudy.client.log import Clock, Compaction, Retention, Topics
from understudy.client.part import Part
from understudy.client.steering import Faults, Journal, Snapshots
from understudy.launcher import ServerProcess, words
from understudy.shape import build
from understudy.transport import Address, Transport
from understudy.wishes import StartOptions, check

if TYPE_CHECKING:  # the blocking client needs nothing of it unless asked for
    from understudy.aio import AsyncCluster


class Cluster(Part):
    """A running cluster and its control plane. Leaving it as a context manager stops the process that it started."""

    def __init__(
        self, address: Address, bootstrap_servers: Iterable[str], process: ServerProcess | None = None
    ) -> None:
        super().__init__(Transport(address).ask)
        self.address = address
        self.process = process
        self.bootstrap_servers = ",".join(bootstrap_servers)
        self.clock = Clock(self._send)
        self.topics = Topics(self._send)
        self.retention = Retention(self._send)
        self.compaction = Compaction(self._send)
        self.brokers = Brokers(self._send)
        self.coordinators = Coordinators(self._send)
        self.transactions = Transactions(self._send)
        self.producers = Producers(self._send)
        self.groups = Groups(self._send)
        self.versions = Versions(self._send)
        self.faults = Faults(self._send)
        self.journal = Journal(self._send)
        self.snapshots = Snapshots(self._send)

    @property
    def control_url(self) -> str:
        """Where its control plane listens; empty if it has none, then every verb raises Unreachable."""
        return self.address.url

    @cached_property
    def aio(self) -> "AsyncCluster":
        """The same cluster for asynchronous code: waiting there does not stop the event loop."""
        from understudy.aio import AsyncCluster

        twin = AsyncCluster(self.address, [self.bootstrap_servers], self.process)
        twin.faults.optional, twin.faults.missed = self.faults.optional, self.faults.missed
        return twin

    def health(self) -> results.Health:
        """Whether the server is alive."""
        return build(results.Health, self._ask("health"))

    def info(self) -> results.ClusterInfo:
        """Brokers, controller, features, emulated version, seed."""
        return build(results.ClusterInfo, self._ask("cluster"))

    def reset(self, *, keep: Iterable[str] = ()) -> None:
        """As just started; `keep` names what stays (topics, groups, transactions, faults, clock, journal, versions)."""
        kept = [keep] if isinstance(keep, str) else list(keep)
        self._ask("reset", **({"keep": kept} if kept else {}))
        self.faults.forget()

    def metrics(self) -> str:
        """Prometheus metrics."""
        text: str = self._ask("metrics")
        return text

    def log(self, lines: int = 30) -> str:
        """The last lines that the server's process logged, if this client started it."""
        return "" if self.process is None else self.process.log(lines)

    def stop(self) -> None:
        """Stop the process, if this client started it."""
        if self.process is not None:
            self.process.stop()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def _start(options: dict[str, Any]) -> Cluster:
    check(options, StartOptions, "understudy.start")
    said = words(**{"port": 0, "control_port": 0, **options})
    process = ServerProcess(said)
    address = Address(process.ready.control_url or "", options.get("control_token"))
    return Cluster(address, process.ready.bootstrap_servers, process)


def _connect(address: Address) -> Cluster:
    cluster = Cluster(address, ())
    info = cluster.info()
    cluster.bootstrap_servers = ",".join(f"{broker.host}:{broker.port}" for broker in info.brokers)
    return cluster


def start(**options: Unpack[StartOptions]) -> Cluster:
    """Start a cluster in a process of its own, on free ports; options as in `understudy serve`."""
    return _start(dict(options))


def connect(control_url: str, token: str | None = None) -> Cluster:
    """Steer a cluster that runs already, for instance in a container, by the URL of its control plane."""
    url = control_url if "://" in control_url else f"http://{control_url}"
    return _connect(Address(url, token))
