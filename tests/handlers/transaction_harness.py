"""Two brokers without sockets, for the handlers of transactions: real runtimes and machines, fake partitions."""

import random
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from broker.coordination.coordinators import Coordinators, ProducerIds, TransactionCoordinator
from broker.coordination.metadata.image import ClusterImage, Partition, Topic
from broker.coordination.outcome import WriteMarkers
from broker.coordination.runtime import Runtime
from broker.coordination.transaction.machine import TransactionMachine
from broker.partitions.transactions.markers import Markers
from broker.request.api import AnyApi
from broker.request.connection import Connection
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.node import partition_for
from broker.settings import BrokerSettings
from broker.settings.releases import NEWEST, release
from broker.time.clock import ManualClock
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records import transaction as codec
from storage.producers.state import ProducerStates
from tests.replicated_log import ReplicatedInMemory

START_MS = 1_700_000_000_000
SHARDS = 4


class MemoryLog(ReplicatedInMemory):
    """A machine's log as a list; ``refuse`` makes appends fail."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.refuse: ErrorCode | None = None

    def append(self, records: list[tuple[bytes | None, bytes | None]], _now_ms: int, _transaction: object) -> int:
        """One batch."""
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        self.records += records
        return len(self.records) - len(records)

    def replay(self) -> Iterable[Any]:
        """Nothing was there before."""
        return ()


class FakeLog:
    """What a marker's writer looks at."""

    high_watermark = 0

    def __init__(self) -> None:
        self.producers = ProducerStates()


class FakePartition:
    """A partition that remembers its markers; ``behind`` keeps them from being replicated, ``short`` of replicas."""

    def __init__(self, leader: int) -> None:
        self.leader, self.markers = leader, [object()] * 0
        self.refuse: ErrorCode | None = None
        self.behind = self.short = False
        self.log = FakeLog()
        self._watchers: list[Callable[[], None]] = []

    def led_by(self, broker_id: int) -> FakeLog:
        """The leader's log."""
        if broker_id != self.leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log

    def append_marker(self, broker_id: int, *marker: Any, all_in_sync: bool = True) -> Any:
        """Producer id, epoch, committed, coordinator epoch, transaction version, time."""
        self.led_by(broker_id)
        if all_in_sync and self.short:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        self.markers.append(marker[:5])
        offset = len(self.markers) - 1
        if not self.behind:
            self.log.high_watermark = offset + 1
        return type("Info", (), {"last_offset": offset})

    def replicate(self) -> None:
        """The followers have caught up."""
        self.log.high_watermark = len(self.markers)
        self.wake()

    def wake(self) -> None:
        """Something moved."""
        for call in list(self._watchers):
            call()

    def watch(self, call: Callable[[], None]) -> None:
        """Call when something moves."""
        self._watchers.append(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        """No more."""
        self._watchers.remove(call)


class Context(RequestContext):
    """A request whose sender may not do what is in ``denied``."""

    denied: frozenset[tuple[AclOperation, str]] = frozenset()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:  # noqa: ARG002
        """Everything but what is denied."""
        return (operation, name) not in self.denied

    def authorized_somewhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:  # noqa: ARG002
        """Unless it is denied for any name."""
        return (operation, "*") not in self.denied


class FakeNode:
    """One broker: settings, shards, producer ids, partitions."""

    def __init__(self, stage: "Stage", broker_id: int) -> None:
        self.stage, self.id, self.up = stage, broker_id, True
        self.server = SimpleNamespace(paused=False)
        self.settings = BrokerSettings(broker_id, stage.settings)
        self.coordinators = Coordinators()
        self.producer_ids = ProducerIds()

    @property
    def silent(self) -> bool:
        """As :attr:`broker.request.node.Node.silent`."""
        return not self.up

    def transaction_coordinator(self, name: str) -> TransactionCoordinator:
        """As :meth:`broker.request.node.Node.transaction_coordinator`."""
        shard = self.coordinators.transactions.get(partition_for(name, SHARDS))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    def coordinating_partition(self, _topic: str, key: str) -> int:
        """As :meth:`broker.request.node.Node.coordinating_partition`; both topics have as many partitions."""
        return partition_for(key, SHARDS)

    def partition(self, topic: str, index: int) -> FakePartition:
        """As :meth:`broker.request.node.Node.partition`."""
        partition = self.stage.partitions.get((topic, index))
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition


class Stage:
    """Two brokers; by default the first coordinates every transactional id and leads every partition."""

    def __init__(self, *, transaction_version: int = 2, **settings: str) -> None:
        self.settings = {
            "transaction.state.log.num.partitions": str(SHARDS),
            "offsets.topic.num.partitions": str(SHARDS),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.clock, self.release = ManualClock(START_MS), release(NEWEST)
        self.between_brokers: Callable[[], Awaitable[None]] | None = None
        self.image = ClusterImage(features={"transaction.version": transaction_version})
        self.partitions: dict[tuple[str, int], FakePartition] = {}
        self.nodes = {broker_id: FakeNode(self, broker_id) for broker_id in (1, 2)}
        self.random = random.Random(0)
        self.blocks = 0
        self.markers = Markers(cast("Any", self), lambda: 0)
        self.log = MemoryLog()
        self.sent: list[WriteMarkers] = []
        self.topic("__transaction_state", SHARDS)
        for index in range(SHARDS):
            self.coordinate(index, 1)

    def coordinate(self, index: int, broker_id: int, *, load: bool = True) -> TransactionCoordinator:
        """Let a broker have a partition of the transaction log."""
        node = self.nodes[broker_id]
        machine = TransactionMachine(
            node.settings,
            lambda: node.producer_ids.next(self.allocate_producer_ids),
            lambda: self.image.features["transaction.version"],
        )
        runtime = Runtime(machine, codec, self.log, self.clock, self._perform, partition=index, epoch=7)
        node.coordinators.transactions[index] = runtime
        if load:
            runtime.load()
        return runtime

    def _perform(self, runtime: TransactionCoordinator, effect: WriteMarkers) -> None:
        self.sent.append(effect)
        self.markers.perform(runtime, effect)

    def topic(self, name: str, partitions: int = 1, leader: int = 1) -> None:
        """Create a topic."""
        topic = Topic(name, UUID(int=len(self.image.topics) + 10))
        for index in range(partitions):
            topic.partitions[index] = Partition((leader,), (leader,), leader)
            self.partitions[name, index] = FakePartition(leader)
        self.image.topics[name] = topic

    def allocate_producer_ids(self) -> range:
        """Blocks of a thousand."""
        self.blocks += 1
        return range(1000 * self.blocks, 1000 * self.blocks + 1000)

    def context(
        self, api: AnyApi, version: int, denied: Iterable[tuple[AclOperation, str]] = (), broker_id: int = 1
    ) -> Context:
        """The surroundings of one request."""
        ctx = Context(
            api,
            version,
            1,
            "test",
            Connection("c", "PLAINTEXT", "127.0.0.1", 1),
            cast("Any", self.nodes[broker_id]),
            cast("Any", self),
        )
        ctx.denied = frozenset(denied)
        return ctx

    async def ask(
        self,
        api: AnyApi,
        request: Any,
        version: int,
        denied: Iterable[tuple[AclOperation, str]] = (),
        broker_id: int = 1,
    ) -> Any:
        """The handler's answer, or its refusal, as a client would read it."""
        try:
            return await api.handle(request, self.context(api, version, denied, broker_id))
        except KafkaError as error:
            return api.refuse(request, error, version)
