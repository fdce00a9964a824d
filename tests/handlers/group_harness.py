"""One broker without sockets, for the handlers of groups: real runtimes and machines over logs in memory.

Requests and answers go through the codec in the version that is asked in, so that old shapes are seen as clients see
them.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from broker.cluster.group_topics import GroupTopics, own_setting
from broker.coordination.coordinators import Coordinators, ShareCoordinator
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.outcome_builder import InitializeShareState
from broker.coordination.metadata.image import ClusterImage, Partition, Topic
from broker.coordination.outcome import TransactionalAppend
from broker.coordination.runtime import Runtime
from broker.coordination.share_state.machine import ShareMachine
from broker.coordination.share_state.persister import SharePartitionKey
from broker.handlers import join_group, sync_group
from broker.request.api import AnyApi
from broker.request.connection import Connection
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.node import partition_for
from broker.request.share_state import SharePersister, initialize_state
from broker.settings import BrokerSettings
from broker.settings.releases import NEWEST, release
from broker.time.clock import ManualClock
from protocol.codec import decode_header, decode_request, decode_response, encode_request, encode_response
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records import group as codec
from protocol.log_records import share_state as share_codec
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.replicated_log import ReplicatedInMemory

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator


START_MS = 1_700_000_000_000
SHARDS = 2
DENIED = tuple[AclOperation, str]


class MemoryLog(ReplicatedInMemory):
    """A shard's log as a list; ``refuse`` makes appends fail."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.transactions: list[TransactionalAppend] = []
        self.refuse: ErrorCode | None = None

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], now_ms: int, transaction: TransactionalAppend | None
    ) -> int:
        """One batch."""
        assert now_ms >= START_MS
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        if transaction is not None:
            self.transactions.append(transaction)
        self.records += records
        return len(self.records) - len(records)

    def replay(self) -> Iterable[Any]:
        """Nothing was there before."""
        return ()


class Context(RequestContext):
    """A request whose sender may not do what is in ``denied``."""

    denied: frozenset[DENIED] = frozenset()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:  # noqa: ARG002
        """Everything but what is denied."""
        return (operation, name) not in self.denied


class StagePersister(SharePersister):
    """Finds the one share coordinator."""

    def __init__(self, stage: "Stage") -> None:
        super().__init__(cast("Any", stage))
        self._stage = stage

    def _coordinator(self, key: SharePartitionKey) -> ShareCoordinator | None:
        assert key.group_id
        return self._stage.coordinators.share_states.get(0)


class Stage:
    """The broker (its node and cluster in one), which coordinates every group."""

    id = 1

    def __init__(self, shards: int = SHARDS, **settings: str) -> None:
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = BrokerSettings(
            1,
            {
                "offsets.topic.num.partitions": str(shards),
                "group.initial.rebalance.delay.ms": "0",
                **texts,
            },
        )
        self.clock = ManualClock(START_MS)
        self.image = ClusterImage(features={"group.version": 1, "share.version": 1})
        self.logs = [MemoryLog() for _ in range(shards)]
        self.coordinators = Coordinators()
        self.share_log = MemoryLog()
        self.persister = StagePersister(self)
        self.tasks: list[asyncio.Task[None]] = []
        self.release = release(NEWEST)
        self.coordinators.share_states[0] = self._share_coordinator()
        self._ids = 0
        for index in range(shards):
            self.coordinate(index)
        self.foo = self.topic("foo", 3)
        self.bar = self.topic("bar", 1)

    def coordinate(self, index: int, *, load: bool = True) -> "GroupCoordinator":
        """Lead a partition of the offsets topic."""
        machine = GroupMachine(
            self.settings,
            self.new_uuid,
            topics=GroupTopics(lambda: self.image),
            group_setting=own_setting(lambda: self.image, self.settings),
        )
        runtime: GroupCoordinator = Runtime(
            machine, codec, self.logs[index], self.clock, self._perform, partition=index
        )
        self.coordinators.groups[index] = runtime
        if load:
            runtime.load()
        return runtime

    def _perform(self, runtime: "GroupCoordinator", effect: InitializeShareState) -> None:
        """Have the state of share partitions created, in a later turn of the loop."""
        self.tasks.append(asyncio.ensure_future(initialize_state(self.persister, runtime, effect)))

    async def settle(self) -> None:
        """Return when the share coordinator has answered everything."""
        while self.tasks:
            await self.tasks.pop(0)

    def _share_coordinator(self) -> ShareCoordinator:
        """The one share coordinator."""
        machine = ShareMachine(self.settings, self._partition_count)
        runtime: ShareCoordinator = Runtime(machine, share_codec, self.share_log, self.clock, lambda *_: None)
        runtime.load()
        return runtime

    def _partition_count(self, topic_id: UUID) -> int:
        topic = self.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def share_coordinator(self, key: str) -> ShareCoordinator:
        """As :meth:`broker.request.node.Node.share_coordinator`."""
        assert key.count(":") >= 2
        if not self.coordinators.share_states:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self.coordinators.share_states[0]

    def new_uuid(self) -> UUID:
        """Ids in order."""
        self._ids += 1
        return UUID(int=self._ids)

    def coordinating_partition(self, topic: str, key: str) -> int:  # noqa: ARG002 - the groups' topic alone
        """As :meth:`broker.request.node.Node.coordinating_partition`."""
        return partition_for(key, len(self.logs))

    def group_coordinator(self, group_id: str) -> "GroupCoordinator":
        """As :meth:`broker.request.node.Node.group_coordinator`."""
        shard = self.coordinators.groups.get(partition_for(group_id, len(self.logs)))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    def log_of(self, group_id: str) -> MemoryLog:
        """The log that remembers a group."""
        return self.logs[partition_for(group_id, len(self.logs))]

    def topic(self, name: str, partitions: int) -> UUID:
        """Create a topic; its id."""
        topic = Topic(name, self.new_uuid())
        topic.partitions.update({index: Partition((1,), (1,), 1) for index in range(partitions)})
        self.image.topics[name] = self.image.topics_by_id[topic.id] = topic
        return topic.id

    def forget_topic(self, name: str) -> None:
        """A topic is not there any more."""
        del self.image.topics_by_id[self.image.topics.pop(name).id]

    def context(self, api: AnyApi, version: int, denied: Iterable[DENIED] = ()) -> Context:
        """The surroundings of one request."""
        connection = Connection("c", "PLAINTEXT", "127.0.0.1", 1, release=self.release)
        ctx = Context(api, version, 1, "client", connection, cast("Any", self), cast("Any", self))
        ctx.denied = frozenset(denied)
        return ctx

    async def ask(self, api: AnyApi, request: Any, version: int, denied: Iterable[DENIED] = ()) -> Any:
        """The answer as a client of that version reads it."""
        frame = bytes(encode_request(api.key, version, 1, "client", request)[4:])
        header = decode_header(frame)
        decoded = decode_request(frame, header)
        ctx = self.context(api, version, denied)
        try:
            response = await api.handle(decoded, ctx)
        except KafkaError as error:
            response = api.refuse(decoded, error, version)
        parts = encode_response(api.key, version, 1, response)
        return decode_response(api.key, version, b"".join(parts)[4:])[1]

    @property
    def cluster(self) -> "Stage":
        """The cluster is this broker."""
        return self

    async def join(self, group_id: str = "g") -> tuple[str, int]:
        """One member in a Stable group: its id and generation."""
        protocols = [JoinGroupRequestProtocol("range", b"meta")]
        request = JoinGroupRequest(group_id, 10_000, "", "consumer", protocols, 60_000)
        joining = asyncio.ensure_future(self.ask(join_group.API, request, 3))
        await asyncio.wait({joining}, timeout=0)
        self.clock.advance(0)
        joined = await joining
        assignments = [SyncGroupRequestAssignment(joined.member_id, b"mine")]
        sync = SyncGroupRequest(group_id, joined.generation_id, joined.member_id, assignments)
        assert (await self.ask(sync_group.API, sync, 4)).assignment == b"mine"
        return joined.member_id, joined.generation_id
