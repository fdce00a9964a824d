"""A cluster as a whole: started, steered, stopped."""

from collections.abc import Iterable
# sync: from functools import cached_property
from types import TracebackType
# sync: from typing import TYPE_CHECKING
from typing import Any, Self, Unpack

from understudy import results
from understudy.aio.coordination import (
    AsyncBrokers,
    AsyncCoordinators,
    AsyncGroups,
    AsyncProducers,
    AsyncTransactions,
    AsyncVersions,
)
from understudy.aio.log import AsyncClock, AsyncCompaction, AsyncRetention, AsyncTopics
from understudy.aio.part import AsyncPart
from understudy.aio.steering import AsyncFaults, AsyncJournal, AsyncSnapshots
from understudy.launcher import ServerProcess, words
from understudy.shape import build
from understudy.transport import Address, AsyncTransport
from understudy.waiting import Pending, in_thread
from understudy.wishes import StartOptions, check

# sync: if TYPE_CHECKING:  # the blocking client needs nothing of it unless asked for
# sync:     from understudy.aio import AsyncCluster


class AsyncCluster(AsyncPart):
    """A running cluster and its control plane. Leaving it as a context manager stops the process that it started."""

    def __init__(
        self, address: Address, bootstrap_servers: Iterable[str], process: ServerProcess | None = None
    ) -> None:
        super().__init__(AsyncTransport(address).ask)
        self.address = address
        self.process = process
        self.bootstrap_servers = ",".join(bootstrap_servers)
        self.clock = AsyncClock(self._send)
        self.topics = AsyncTopics(self._send)
        self.retention = AsyncRetention(self._send)
        self.compaction = AsyncCompaction(self._send)
        self.brokers = AsyncBrokers(self._send)
        self.coordinators = AsyncCoordinators(self._send)
        self.transactions = AsyncTransactions(self._send)
        self.producers = AsyncProducers(self._send)
        self.groups = AsyncGroups(self._send)
        self.versions = AsyncVersions(self._send)
        self.faults = AsyncFaults(self._send)
        self.journal = AsyncJournal(self._send)
        self.snapshots = AsyncSnapshots(self._send)

    @property
    def control_url(self) -> str:
        """Where its control plane listens; empty if it has none, then every verb raises Unreachable."""
        return self.address.url

    # sync: @cached_property
    # sync: def aio(self) -> "AsyncCluster":
    # sync:     """The same cluster for asynchronous code: waiting there does not stop the event loop."""
    # sync:     from understudy.aio import AsyncCluster
    # sync:
    # sync:     twin = AsyncCluster(self.address, [self.bootstrap_servers], self.process)
    # sync:     twin.faults.optional, twin.faults.missed = self.faults.optional, self.faults.missed
    # sync:     return twin
    # sync:
    async def health(self) -> results.Health:
        """Whether the server is alive."""
        return build(results.Health, await self._ask("health"))

    async def info(self) -> results.ClusterInfo:
        """Brokers, controller, features, emulated version, seed."""
        return build(results.ClusterInfo, await self._ask("cluster"))

    async def reset(self, *, keep: Iterable[str] = ()) -> None:
        """As just started; `keep` names what stays (topics, groups, transactions, faults, clock, journal, versions)."""
        kept = [keep] if isinstance(keep, str) else list(keep)
        await self._ask("reset", **({"keep": kept} if kept else {}))
        self.faults.forget()

    async def metrics(self) -> str:
        """Prometheus metrics."""
        text: str = await self._ask("metrics")
        return text

    def log(self, lines: int = 30) -> str:
        """The last lines that the server's process logged, if this client started it."""
        return "" if self.process is None else self.process.log(lines)

    async def stop(self) -> None:
        """Stop the process, if this client started it."""
        if self.process is not None:
            await in_thread(self.process.stop)

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()


async def _start(options: dict[str, Any]) -> AsyncCluster:
    check(options, StartOptions, "understudy.start")
    said = words(**{"port": 0, "control_port": 0, **options})
    process = await in_thread(ServerProcess, said)
    address = Address(process.ready.control_url or "", options.get("control_token"))
    return AsyncCluster(address, process.ready.bootstrap_servers, process)


async def _connect(address: Address) -> AsyncCluster:
    cluster = AsyncCluster(address, ())
    info = await cluster.info()
    cluster.bootstrap_servers = ",".join(f"{broker.host}:{broker.port}" for broker in info.brokers)
    return cluster


def astart(**options: Unpack[StartOptions]) -> Pending[AsyncCluster]:
    """Start a cluster in a process of its own, on free ports; options as in `understudy serve`."""
    return Pending(_start(dict(options)))


def aconnect(control_url: str, token: str | None = None) -> Pending[AsyncCluster]:
    """Steer a cluster that runs already, for instance in a container, by the URL of its control plane."""
    url = control_url if "://" in control_url else f"http://{control_url}"
    return Pending(_connect(Address(url, token)))
