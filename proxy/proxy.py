"""The composition root of the proxy: upstream brokers, their listeners, journal, faults, views."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from anyio.abc import TaskGroup

from broker.control.verbs import Function
from broker.logs import Logger
from broker.replication.partition import ReplicatedPartition
from broker.request.answers import Disconnect
from broker.server import file_limits
from broker.server.dispatcher import Chain
from broker.server.server import BrokerServer
from broker.settings import BrokerSettings
from broker.settings.endpoints import EndpointError, PortTaken
from broker.steering.faults.rules import Faults
from broker.steering.journal.ring import journal_of
from broker.steering.timelines.groups import GroupTimelines
from broker.steering.timelines.producers import ProducerTimelines
from broker.steering.timelines.transactions import TransactionTimelines
from broker.time.clock import PushedClock
from broker.time.rng import new_seed, seeded
from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataResponse
from proxy.addresses import BROKERS
from proxy.authentication import authenticate, in_time
from proxy.forwarder import Forwarder
from proxy.link import Link
from proxy.options import ProxyOptions
from proxy.upstream import UNKNOWN_ID, KnownTopics, Upstream
from proxy.views import Views

_log = Logger(__name__)
_ALWAYS_READ = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})


class Proxy:
    """An upstream cluster, and a listener for each of its known brokers.

    ``function_of`` returns the proxy's own function for a verb of the control plane; ``None``: the usual one serves it.
    """

    def __init__(
        self,
        options: ProxyOptions,
        clock: PushedClock,
        tasks: TaskGroup,
        function_of: Callable[[str], Function | None],
    ) -> None:
        self.options, self.clock, self._tasks, self.function_of = options, clock, tasks, function_of
        self.settings = BrokerSettings(1, options.settings)
        self.seed = new_seed() if options.seed is None else options.seed
        is_observed = options.journal_dir is not None or options.otlp_endpoint is not None
        self.journal = journal_of(options.settings, observed=is_observed)
        self.faults = Faults(seeded(self.seed))
        self.views = Views(clock)
        self.chain = Chain(
            frames=(self.journal.record,), messages=(*self.views.outer, self.faults.apply, self.views.inner)
        )
        """Middleware of every request, outermost first."""
        # Two sides to each connection: a client's and the broker's. Listeners: ours, for as many upstream brokers.
        self.shares = file_limits.shares(2, on_disk=False, listeners=8)
        self._read = _ALWAYS_READ | self.views.keys
        self.image = KnownTopics()
        self.partitions: Mapping[tuple[str, int], ReplicatedPartition] = {}
        self.cluster_id = ""
        self.controller_id = UNKNOWN_ID
        self.upstreams: list[Upstream] = []
        """Known upstream brokers, in the order in which they became known; those of ``--upstream`` first."""
        self._by_id: dict[tuple[int, int], Upstream] = {}
        self._placing = asyncio.Lock()
        self._tls = options.security.context() if options.security.has_tls else None

    # --- for the control plane (Watched) -----------------------------------------------------------------------------

    @property
    def own(self) -> None:
        """None: a proxy has no cluster of its own."""
        return

    @property
    def transaction_timelines(self) -> TransactionTimelines:
        """Timelines of transactional ids."""
        return self.views.transactions

    @property
    def group_timelines(self) -> GroupTimelines:
        """Timelines of groups."""
        return self.views.groups

    @property
    def producer_timelines(self) -> ProducerTimelines:
        """Timelines of producers."""
        return self.views.producers

    @property
    def description(self) -> str:
        """A short description of this process."""
        return "a proxy in front of " + ",".join(f"{host}:{port}" for host, port in self.options.upstream)

    @property
    def known_brokers(self) -> Sequence[int]:
        """Ids of the known brokers."""
        return sorted(broker_id for kind, broker_id in self._by_id if kind == BROKERS)

    @property
    def listener_names(self) -> Iterable[str]:
        """Names of all listeners: there is one."""
        return [self.options.listener.name]

    @property
    def topics_state(self) -> object:
        """A value that changes whenever a topic becomes known."""
        return self.image.changes

    def topic_names(self) -> Iterable[tuple[UUID, str]]:
        """Return ids and names of all known topics."""
        return ((topic.id, topic.name) for topic in self.image.topics.values())

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen for each address of ``--upstream``.

        Raises:
            PortTaken: a port is in use.
        """
        for host, port in self.options.upstream:
            await self._add(UNKNOWN_ID, host, port)

    def stop(self) -> None:
        """Close everything."""
        for upstream in self.upstreams:
            upstream.server.close()
        self.clock.close()

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """Return the addresses of the listeners for ``--upstream``."""
        return [upstream.advertised for upstream in self.upstreams[: len(self.options.upstream)]]

    # --- brokers -----------------------------------------------------------------------------------------------------

    async def place(self, kind: int, broker_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the proxy's address for the upstream broker at this address, opening its listener if it has none.

        If no listener can be opened, return the broker's own address: the client then goes past the proxy.
        """
        async with self._placing:
            upstream = self._by_id.get((kind, broker_id))
            if upstream is None:
                upstream = await self._unnamed(host, port)
                if upstream is None:
                    try:
                        upstream = await self._add(broker_id, host, port)
                    except PortTaken as error:
                        _log.error("no listener could be opened for a broker", broker=broker_id, reason=str(error))
                        return host, port
                upstream.id = broker_id
                self._by_id[kind, broker_id] = upstream
                _log.info(
                    "broker", id=broker_id, upstream=f"{host}:{port}", proxy=":".join(map(str, upstream.advertised))
                )
            upstream.host, upstream.port = host, port
            return upstream.advertised

    async def _unnamed(self, host: str, port: int) -> Upstream | None:
        """Return the upstream of an ``--upstream`` address that is this one, if its broker id was not known yet."""
        for upstream in self.upstreams:
            if upstream.id == UNKNOWN_ID and await upstream.is_at(host, port):
                return upstream
        return None

    async def _add(self, broker_id: int, host: str, port: int) -> Upstream:
        upstream = Upstream(broker_id, host, port)
        forwarder = Forwarder(self, upstream, self._tasks)
        server = BrokerServer(forwarder, self.settings, self.clock, self._tasks)
        server.joined = forwarder.connect
        index, first = len(self.upstreams), self.options.listener
        try:
            endpoint = first.of_broker(index)
            bound = await server.listen(endpoint)
        except (EndpointError, PortTaken) as error:
            if index < len(self.options.upstream):
                raise
            _log.warning("the next port cannot be used, so this broker gets a free one", reason=str(error))
            endpoint = replace(first, port=0, advertised_port=None)
            bound = await server.listen(endpoint)
        upstream.server, upstream.bound = server, {endpoint.name: (endpoint, bound)}
        self.upstreams.append(upstream)
        for each in self.upstreams:
            each.server.connections.most = max(self.shares.connections // len(self.upstreams), 1)
        with suppress(OSError):
            await upstream.resolve()
        await server.accept()
        return upstream

    async def open_link(self, upstream: Upstream) -> Link:
        """Connect to a broker, and authenticate if the proxy has credentials. Raises Disconnect."""
        link = await Link.open(upstream.host, upstream.port, self._tls)
        if self.options.security.has_sasl:
            await in_time(self.authenticate(link), link)
        return link

    async def authenticate(self, link: Link) -> None:
        """Authenticate with the proxy's credentials, for the first time or to renew a session. Raises Disconnect."""
        try:
            await authenticate(link, self.options.security)
        except Disconnect as error:
            _log.error("the upstream broker rejects the proxy", reason=error.reason)
            link.close()
            raise

    # --- requests ----------------------------------------------------------------------------------------------------

    def reads(self, key: int) -> bool:
        """Whether requests of an API have to be read for a fault or a view."""
        return key in self._read or any(fault.match.api in (None, key) for fault in self.faults.faults.values())

    def learn(self, response: Any) -> None:
        """Note brokers and topics in a response."""
        if isinstance(response, MetadataResponse):
            if response.cluster_id:
                self.cluster_id = response.cluster_id
            self.controller_id = response.controller_id
            for topic in response.topics:
                learned = self.image.learn(topic.name, topic.topic_id)
                if learned is not None:
                    self.journal.add_topic(learned.id, learned.name)
