"""A whole cluster inside the test's own loop: real sockets, real log files in memory, and a frozen clock.

In the loop, not in a process of its own, so that a row may hold a marker or a coordinator where no client can, and a
mutant of the product may be tried on all rows (tests/mutants).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio

from broker.cluster.cluster import Cluster
from broker.options import ServeOptions, TopicOption
from broker.settings.endpoints import Endpoint
from broker.time.clock import PushedClock, turns
from protocol.apis import ApiKey
from protocol.client.in_flight import InFlightRequests

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "connections.max.idle.ms": "-1",
}


class Hung(Exception):
    """The broker closed the connection."""


class AsyncWire:
    """One connection. Requests may be sent without waiting for the answers before them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer = reader, writer
        self._requests = InFlightRequests(client_id)

    def send(self, key: ApiKey, version: int, request: Any) -> None:
        """Send, and leave the answer for :meth:`answer`."""
        self._writer.write(self._requests.encode(key, version, request))

    async def answer(self) -> Any:
        """The answer to the oldest request that has none. Raises Hung."""
        try:
            while (frame := self._requests.frame()) is None:
                self._requests.receive(await self._reader.readexactly(self._requests.missing_bytes))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Hung from error
        return self._requests.decode(frame)

    async def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send and wait."""
        self.send(key, version, request)
        return await self.answer()

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


@dataclass
class Stage:
    """A running cluster. Its clock moves only by :meth:`pass_time`."""

    cluster: Cluster
    clock: PushedClock
    _open: list[AsyncWire] = field(default_factory=list)

    async def connect(self, broker: int = 1, client_id: str = "client") -> AsyncWire:
        """A connection to one broker."""
        host, port = self.bootstrap[broker - 1]
        wire = AsyncWire(*await asyncio.open_connection(host, port), client_id)
        self._open.append(wire)
        return wire

    async def pass_time(self, ms: int) -> None:
        """Push the clock; what became due has run, and the loop, which client and broker share, has read what came."""
        await self.clock.push(ms)
        await turns(4)

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Host and port of each broker."""
        return list(self.cluster.bootstrap)

    async def restart(self, broker: int = 1, *, clean: bool = False) -> None:
        """Kill or stop a broker and start it again; the cluster has not noticed that it was gone."""
        lifecycle, node = self.cluster.lifecycle, self.cluster.nodes[broker]
        if clean:
            await lifecycle.stop(node)
        else:
            lifecycle.kill(node)
        await lifecycle.start(node)

    def kill(self, broker: int) -> None:
        """Kill a broker; the cluster has not noticed yet."""
        self.cluster.lifecycle.kill(self.cluster.nodes[broker])

    async def stop(self, broker: int) -> None:
        """Stop a broker cleanly: it hands over first."""
        await self.cluster.lifecycle.stop(self.cluster.nodes[broker])

    async def start(self, broker: int) -> None:
        """Start a broker that is down."""
        await self.cluster.lifecycle.start(self.cluster.nodes[broker])

    def pause(self, broker: int) -> None:
        """Pause a broker."""
        self.cluster.lifecycle.pause(self.cluster.nodes[broker])

    async def resume(self, broker: int) -> None:
        """Resume it; requests that waited for it are sent again."""
        self.cluster.lifecycle.resume(self.cluster.nodes[broker])
        await self.pass_time(1_000)

    def topic_names(self) -> set[str]:
        """Of all topics."""
        return set(self.cluster.image.topics)

    def topic_id(self, topic: str) -> UUID:
        """Its id."""
        return self.cluster.image.topics[topic].id

    def leader(self, topic: str, index: int) -> int:
        """The broker that leads a partition."""
        partition = self.cluster.image.partition(topic, index)
        assert partition is not None
        return int(partition.leader)

    async def moved(self, topic: str, index: int, brokers: list[int]) -> int:
        """After a partition was reassigned to these brokers, of which the first one leads: the leader epoch."""
        await self.pass_time(0)
        partition = self.cluster.image.partition(topic, index)
        assert partition is not None
        assert (partition.replicas, partition.leader) == (tuple(brokers), brokers[0])
        return partition.leader_epoch

    async def set_epoch(self, name: str, epoch: int, broker: int) -> tuple[int, int]:
        """An initialised producer at that epoch."""
        runtime = self.cluster.nodes[broker].transaction_coordinator(name)
        await runtime.ask(lambda machine, now_ms, to: machine.set_epoch(name, epoch, now_ms, to))
        return runtime.machine.transactions[name].producer_id, epoch

    async def clean(self) -> None:
        """Compact."""
        await self.cluster.maintenance.run_cleaner()

    def close(self) -> None:
        """Hang up everywhere."""
        for wire in self._open:
            wire.close()


@asynccontextmanager
async def running(
    settings: Mapping[str, object] | None = None,
    *,
    brokers: int = 1,
    topics: Mapping[str, int] | None = None,
    features: Mapping[str, int] | None = None,
    data_dir: Path | Sequence[Path] | None = None,
    further: Endpoint | None = None,
) -> AsyncIterator[Stage]:
    """A cluster with these topics (name -> partitions), and perhaps a second listener."""
    own = (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0), *(() if further is None else (further,)))
    options = ServeOptions(
        broker_ids=tuple(range(1, brokers + 1)),
        listeners=(own,) * brokers,
        topics=tuple(TopicOption(name, count) for name, count in (topics or {}).items()),
        settings={**SETTINGS, **{name: str(value) for name, value in (settings or {}).items()}},
        features=dict(features or {}),
        data_dirs=(data_dir,) if isinstance(data_dir, Path) else tuple(data_dir or ()),
        control_port=None,
        seed=1,
        lazy_coordinators=True,  # the rows are Kafka's
    )
    async with anyio.create_task_group() as tasks:
        clock = PushedClock(asyncio.get_running_loop())
        clock.freeze()
        stage = Stage(Cluster(options, clock, tasks), clock)
        try:
            await stage.cluster.start()
        except Exception:  # the end of the process would close what it has bound
            for server in stage.cluster.servers.values():
                server.close()
            raise
        try:
            yield stage
        finally:
            stage.close()
            stage.cluster.stop()
            tasks.cancel_scope.cancel()
