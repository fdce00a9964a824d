"""Base of all simulated clients: connections, metadata, coordinators, back-off."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.client.in_flight import InFlightRequests
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from simulator.history import LAST_EPOCH, History, Place
from simulator.loop import BEGIN_NS, now_ms, sleep_ms
from simulator.network import Link, Network

GROUP, TRANSACTION = 0, 1
REQUEST_TIMEOUT_MS = 5_000  # shorter than Kafka's 30 s, so that timeouts happen within a run
BACKOFF_MS = 100  # retry.backoff.ms of Kafka's clients
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
FENCED_SINCE = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""API -> first version whose clients know PRODUCER_FENCED (KIP-588)."""


class Lost(Exception):
    """No response to a request: no connection, a connection that ended, or a timeout."""


@dataclass
class World:
    """State that the clients of a run share.

    ``calm``: no fault is under way, so that nothing excuses a broker. ``over``: the last fault has ended, but clients
    may not have recovered yet.
    ``brokers_ms`` is the time of the brokers, whose clock may jump. ``elapsed_ms`` is how long their timers have run,
    jumps of the clock included.
    """

    network: Network
    history: History
    topics: Mapping[str, int]
    seed: int
    over: bool = False
    calm: bool = False
    late: dict[str, int] = field(default_factory=dict)
    features_change: bool = False
    """Whether an administrator changes feature levels."""
    ids_expire: bool = False
    """Whether transactional ids expire within seconds."""
    brokers_ms: Callable[[], int] = now_ms
    elapsed_ms: Callable[[], int] = now_ms
    raise_epoch: Callable[[str, int], bool] = lambda _name, _epoch: False
    """Raises a transactional id to one of its last epochs, as years of transactions would; returns whether it did."""
    has_last_epoch: Callable[[str, int], bool] = lambda _name, _producer_id: False
    """Returns whether a producer id of a transactional id has its last epoch, or had it before the next id."""
    coordinators_wait: bool = False
    """Whether coordinators wait for their followers: some clients have the patience, or impatience, of real ones."""
    share_life: Callable[[str, Place], int] = lambda _group, _place: 0
    """Returns which share partition is in its leader's memory, by number; 0: none."""
    quiet: Callable[[int, int], bool] = lambda _broker, _since_us: False
    """Whether neither a broker nor the network was disturbed since a time in virtual microseconds."""


class Wire:
    """One connection, with one request in flight at a time."""

    def __init__(self, link: Link, client_id: str, *, resets: bool) -> None:
        self._link, self._resets = link, resets
        self._requests = InFlightRequests(client_id)
        self._answer: asyncio.Future[bytes] | None = None
        link.received, link.lost = self._received, self._lost

    @property
    def open(self) -> bool:
        """Whether requests may be sent."""
        return self._link.open

    async def call(self, key: ApiKey, version: int, request: Any, timeout_ms: int) -> Any:
        """Send a request and wait for its response. Raises Lost; BadResponse: the bytes are none."""
        loop = asyncio.get_running_loop()
        self._answer = answer = loop.create_future()
        alarm = loop.call_later(timeout_ms / 1000, self._time_out, answer)
        try:
            self._link.send(self._requests.encode(key, version, request))
            frame = await answer
        finally:
            alarm.cancel()
            if not answer.done() or answer.cancelled() or answer.exception() is not None:
                self.close()
        return self._requests.decode(frame)

    def close(self) -> None:
        """Close the connection; if it resets, no request that was sent arrives any more."""
        if self._resets and self._link.open:
            self._link.break_()
        self._link.close()

    def _time_out(self, answer: "asyncio.Future[bytes]") -> None:
        if not answer.done():
            answer.set_exception(Lost("timed out"))

    def _lost(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Lost("connection lost"))

    def _received(self, data: bytes) -> None:
        self._requests.receive(data)
        frame = self._requests.frame()
        if frame is not None and self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)


class Client:
    """A client with its own connections and its own view of the cluster's metadata."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.history = world.history
        self.chance = Random(f"{world.seed} {name}")  # noqa: S311 - replayed from the seed
        self.stopping = False
        self.resets = False
        """Whether it resets a connection whose request it gives up, so that none arrives after the next attempt."""
        self.resetting: set[str] = set()
        """Channels that it resets even if ``resets`` is False."""
        self.unanswered: dict[str, int] = {}
        """Channel -> time of the last request without a response. It may arrive late, and begin or end a session."""
        self._wires: dict[tuple[int, str], Wire] = {}
        self.known_topics: dict[UUID, str] = {}
        self._ports: dict[int, int] = {}
        self._leaders: dict[Place, int] = {}
        self._read_us: dict[Place, int] = {}
        self._epochs: dict[Place, int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    @property
    def now_us(self) -> int:
        """Virtual microseconds since the start."""
        return self.world.network.now_us

    @property
    def record_ms(self) -> int:
        """Timestamp of a record that is sent now."""
        return BEGIN_NS // 1_000_000 + self.now_us // 1000

    def note(self, what: str) -> None:
        """Add a line to the story."""
        self.world.network.trace.add(self.now_us, self.name, what)

    async def run(self) -> None:
        """Work until the client is stopped; this base does nothing."""

    async def pause(self, ms: int = BACKOFF_MS) -> None:
        """Sleep between two attempts or operations.

        The lengths are arbitrary but for their order: writers pause some hundred ms, readers longer, so that each look
        finds something new.
        """
        await sleep_ms(ms + self.chance.randrange(ms + 1))

    def close(self) -> None:
        """Close all connections."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    # --- requests ----------------------------------------------------------------------------------------------------

    async def ask(
        self,
        broker: int,
        key: ApiKey,
        version: int,
        request: Any,
        what: str = "",
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        channel: str = "",
    ) -> Any:
        """Send a request to a broker; return the response. Raises Lost.

        Calls name a version that has the fields they use: a newer one must not change what a seed plays. Up to Fetch 12
        and Produce 12, topics have names; EndTxn 3 and 5 are of producers before and of KIP-890.
        """
        title = f"{key.title}{' ' if what else ''}{what}"
        calm = self.world.calm
        self.note(f"-> broker {broker}: {title}")
        try:
            wire = await self._wire(broker, channel)
            answer = await wire.call(key, version, request, timeout_ms)
        except (Lost, ConnectionRefusedError) as error:
            self._wires.pop((broker, channel), None)
            self.unanswered[channel] = self.now_us
            self.note(f"   broker {broker}: {title}: {error}")
            if calm and self.world.calm:
                self.history.violate(
                    f"{self.name}: {title} to broker {broker} has no response although no fault is under way: {error}"
                )
            raise Lost(str(error)) from error
        code = first_error(answer)
        self.note(f"<- broker {broker}: {title}: {code.name}")
        if code is ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE.get(key, 0):
            self.history.violate(f"{self.name}: {title}, version {version}, got PRODUCER_FENCED")
        if code is ErrorCode.UNKNOWN_SERVER_ERROR and not may_find_epochs_exhausted(
            key, request, self.world.has_last_epoch
        ):
            self.history.violate(f"{self.name}: {title} got UNKNOWN_SERVER_ERROR")
        return answer

    async def _wire(self, broker: int, channel: str) -> Wire:
        wire = self._wires.get((broker, channel))
        if wire is None or not wire.open:
            network = self.world.network
            port = next(port for port, each in network.broker_of.items() if each == broker)
            resets = self.resets or channel in self.resetting
            wire = self._wires[broker, channel] = Wire(await network.connect(self.name, port), self.name, resets=resets)
        return wire

    async def ask_any(self, key: ApiKey, version: int, request: Any, what: str = "") -> Any:
        """Send a request to any broker; retry until there is a response, and return it."""
        brokers = sorted(self.world.network.broker_of.values())
        while True:
            try:
                return await self.ask(self.chance.choice(brokers), key, version, request, what)
            except Lost:
                await self.pause()

    # --- metadata and coordinators -----------------------------------------------------------------------------------

    async def leader(self, place: Place) -> int:
        """Return the leader of a partition by metadata, never one of an older epoch than was seen before (KIP-320)."""
        while place not in self._leaders:
            names = [MetadataRequestTopic(place[0])]
            answer = await self.ask_any(ApiKey.METADATA, 12, MetadataRequest(names), place[0])
            for topic in answer.topics:
                self.known_topics[topic.topic_id] = topic.name
                for each in topic.partitions:
                    key = topic.name, each.partition_index
                    if each.leader_epoch >= self._epochs.get(key, -1):
                        self._epochs[key] = each.leader_epoch
                        if each.leader_id >= 0:
                            self._leaders[key], self._read_us[key] = each.leader_id, self.now_us
            if place not in self._leaders:
                await self.pause()
        return self._leaders[place]

    def leader_epoch(self, place: Place) -> int:
        """Return the leader's epoch, -1 before metadata was read."""
        return self._epochs.get(place, -1)

    def leader_read_us(self, place: Place) -> int:
        """Return when metadata was read: the client does not know a leader that was elected later."""
        return self._read_us.get(place, 0)

    def forget_leader(self, place: Place) -> None:
        """Forget the leader, so that metadata is read before the next request."""
        self._leaders.pop(place, None)

    async def topic_names(self, wanted: Sequence[str]) -> dict[UUID, str]:
        """Return topic ids and names, including those of ``wanted``; a topic's id never changes."""
        for topic in wanted:
            if topic not in self.known_topics.values():
                self.forget_leader((topic, 0))
                await self.leader((topic, 0))
        return self.known_topics

    def hang_up(self, broker: int, channel: str) -> None:
        """Close a connection."""
        if (wire := self._wires.pop((broker, channel), None)) is not None:
            wire.close()

    def connected(self, broker: int, channel: str) -> bool:
        """Whether a connection is open."""
        return (wire := self._wires.get((broker, channel))) is not None and wire.open

    async def coordinator(self, kind: int, key: str) -> int:
        """Return the coordinator of a group or a transactional id."""
        while (kind, key) not in self._coordinators:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            (located,) = (await self.ask_any(ApiKey.FIND_COORDINATOR, 4, request, key)).coordinators
            if located.error_code is ErrorCode.NONE:
                self._coordinators[kind, key] = located.node_id
            else:
                await self.pause()
        return self._coordinators[kind, key]

    async def ask_coordinator(
        self,
        kind: int,
        name: str,
        key: ApiKey,
        version: int,
        request: Any,
        what: str = "",
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        channel: str = "",
        retry: bool = True,
        once: bool = False,
        lost: Callable[[], None] = lambda: None,
    ) -> Any:
        """Return a response of the coordinator without a retriable error; without ``retry``, raise Lost instead.

        ``once``: raise Lost for a retriable error, too. ``lost`` is called for each attempt without a response: the
        request may still arrive after later attempts.
        """
        while True:
            broker = await self.coordinator(kind, name)
            try:
                answer = await self.ask(broker, key, version, request, what, timeout_ms=timeout_ms, channel=channel)
            except Lost:
                self._coordinators.pop((kind, name), None)
                lost()
                if not retry:
                    raise
            else:
                if (code := first_error(answer)) not in RETRIABLE:
                    return answer
                if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    self._coordinators.pop((kind, name), None)
                if once:
                    raise Lost(code.name)
            await self.pause()


def may_find_epochs_exhausted(key: ApiKey, request: Any, has_last_epoch: Callable[[str, int], bool]) -> bool:
    """Whether Kafka may answer a request with UNKNOWN_SERVER_ERROR, as the epochs of its producer id are exhausted.

    So it answers an InitProducerId with any other epoch than the last one, which the transactional id has by then: that
    of a producer that repeats the bump to it after a lost response, or of a stale one
    (TransactionMetadata.prepareIncrementProducerEpoch, transactions A.3 E3).
    """
    if key is not ApiKey.INIT_PRODUCER_ID or request.producer_epoch < 0:
        return False
    return request.producer_epoch == LAST_EPOCH - 1 or has_last_epoch(request.transactional_id, request.producer_id)


_NESTED = ("responses", "topics", "partitions", "partition_responses", "groups", "results_by_transaction")
_DEEPER = ("topic_results", "results_by_partition", "coordinators", "members", "markers")


def first_error(answer: Any) -> ErrorCode:
    """Return the first error code of a response, at any depth."""
    code: ErrorCode = getattr(answer, "error_code", ErrorCode.NONE)
    if code is ErrorCode.NONE:
        code = getattr(answer, "partition_error_code", ErrorCode.NONE)
    if code is not ErrorCode.NONE:
        return code
    for name in (*_NESTED, *_DEEPER):
        for each in getattr(answer, name, None) or ():
            inner = first_error(each)
            if inner is not ErrorCode.NONE:
                return inner
    return ErrorCode.NONE
