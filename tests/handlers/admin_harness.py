"""Brokers without sockets, for the handlers of metadata and administration: machine, runtime and nodes are real.

Requests and answers go through the codec in the version that is asked in, so that old shapes are seen as clients see
them.
"""

import random
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.image import BrokerListener, ClusterImage, Topic
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.metadata.quorum import Quorum, QuorumController
from broker.coordination.metadata.topics import NewTopic
from broker.coordination.outcome import TransactionalAppend
from broker.coordination.runtime import Runtime
from broker.handlers import APIS
from broker.partitions.share_partition.partitions import SharePartitions
from broker.request.api import AnyApi
from broker.request.connection import Connection
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.fetch_sessions import SessionCache
from broker.request.node import Node
from broker.settings import BrokerSettings
from broker.time.clock import ManualClock
from broker.time.rng import seeded
from protocol.codec import decode_header, decode_request, decode_response, encode_request, encode_response
from protocol.errors import KafkaError
from protocol.log_records.metadata import MetadataCodec
from storage.files import MemoryFiles
from storage.log.context import LogContext
from storage.log_dir import LogDir
from tests.replicated_log import ReplicatedInMemory
from tests.versions import SERVED

START_MS = 1_700_000_000_000
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
Right = tuple[AclOperation, ResourceType] | tuple[AclOperation, ResourceType, str]
Denied = Collection[Right]


class CountingLog(ReplicatedInMemory):
    """A machine's log that remembers nothing but its end."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 0

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], _now_ms: int, _transaction: TransactionalAppend | None
    ) -> int:
        """One batch."""
        base, self.end = self.end, self.end + len(records)
        return base

    def replay(self) -> Iterable[Any]:
        """Nothing was there before."""
        return ()


class FakeLog:
    """What the APIs look at in a partition's log."""

    def __init__(self, size_bytes: int = 0, *, offline: bool = False) -> None:
        self.topic, self.partition = "", -1
        self.segments, self.offline = SimpleNamespace(size=size_bytes), offline
        self.high_watermark = self.log_end_offset = 0


class FakePartition:
    """A partition and the logs of its brokers."""

    def __init__(self, topic: str, index: int, logs: Mapping[int, FakeLog]) -> None:
        self.topic, self.index, self.logs = topic, index, dict(logs)


class FakeCluster:
    """What handlers see of the cluster."""

    def __init__(self, stage: "AdminStage") -> None:
        self._stage = stage
        self.clock, self.cluster_id, self.controller_id = ManualClock(START_MS), CLUSTER_ID, 1
        self.random = random.Random(1)
        self.lazy_coordinators = False
        self.nodes: dict[int, Node] = {}
        self.partitions: dict[tuple[str, int], FakePartition] = {}
        self.metadata: MetadataController
        self.moved: list[tuple[str, int, UUID | None]] = []
        """Topic, partition and directory of each move that a handler began."""
        self.moves = self
        self.quorum = Quorum({1: QuorumController(1, UUID(int=1), address=("b1", 9091))}, [1], 1)

    @property
    def image(self) -> ClusterImage:
        """The metadata as of now."""
        return self.metadata.machine.image

    @property
    def metadata_log(self) -> FakeLog:
        """The end of the metadata log."""
        log = FakeLog()
        log.high_watermark = log.log_end_offset = self.image.offset + 1
        return log

    def begin(self, _node: Node, partition: FakePartition, target: LogDir) -> None:
        """A move between log directories."""
        self.moved.append((partition.topic, partition.index, target.directory_id))

    def new_uuid(self) -> UUID:
        """Ids count up."""
        return self._stage.new_uuid()


class StagedContext(RequestContext):
    """A request of a principal that may do everything except what is denied."""

    denied: Denied = ()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Unless denied, for this name or for all."""
        denied = {(operation, resource_type), (operation, resource_type, name)}
        return denied.isdisjoint(self.denied)


def directory_id(broker_id: int, index: int = 0) -> UUID:
    """The id of a broker's log directory; that of the first one is the broker's."""
    return UUID(int=broker_id + 100 * index)


class AdminStage:
    """Brokers 1.. in one cluster, registered with the listener PLAINTEXT, and requests to them."""

    def __init__(self, brokers: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self._ids = 999
        self.cluster = cluster = FakeCluster(self)
        for broker_id in range(1, brokers + 1):
            own = BrokerSettings(broker_id, {"log.dirs": f"/data/{broker_id}", **(settings or {})})
            node = cluster.nodes[broker_id] = Node(
                broker_id,
                own,
                cast("Any", {}),
                lambda: SessionCache(1000, seeded(1)),
                partial(SharePartitions, cast("Any", cluster), broker_id, own, cast("Any", None)),
            )
            node.log_dir_paths = own.list("log.dirs")
            for index in range(len(node.log_dir_paths)):
                log_dir = LogDir(LogContext(MemoryFiles()))
                log_dir.directory_id = directory_id(broker_id, index)
                node.log_dirs += (log_dir,)
        log = CountingLog()
        machine = MetadataMachine(
            cluster.nodes[1].settings,
            new_uuid=self.new_uuid,
            below=lambda _n: 0,
            next_offset=lambda: log.end,
        )
        codec = cast("Any", MetadataCodec())
        cluster.metadata = Runtime(machine, codec, log, cluster.clock, lambda _runtime, _effect: None, epoch=3)
        cluster.metadata.load()
        for broker_id in cluster.nodes:
            self.arrive(broker_id)
        self.connection = Connection("c1", "PLAINTEXT", "127.0.0.1", 40_000)

    def new_uuid(self) -> UUID:
        """The next id, from 1000 on."""
        self._ids += 1
        return UUID(int=self._ids)

    @property
    def machine(self) -> MetadataMachine:
        """The metadata machine."""
        return self.cluster.metadata.machine

    @property
    def image(self) -> ClusterImage:
        """The metadata as of now."""
        return self.machine.image

    def arrive(self, broker_id: int, listeners: Mapping[str, BrokerListener] | None = None) -> None:
        """Register a broker, by default as ``b<id>:909<id>``, and unfence it."""
        known = listeners or {"PLAINTEXT": BrokerListener(f"b{broker_id}", 9090 + broker_id)}
        directories = [each.directory_id for each in self.cluster.nodes[broker_id].log_dirs if each.directory_id]
        who = Registration(broker_id, self.new_uuid(), known, directories)
        self.cluster.metadata.submit(lambda _now_ms: self.machine.register_broker(who))
        self.cluster.metadata.submit(lambda _now_ms: self.machine.unfence_broker(broker_id))

    def stop(self, broker_id: int) -> None:
        """A broker leaves in an orderly way."""
        self.cluster.metadata.submit(lambda _now_ms: self.machine.broker_stopped(broker_id))

    def topic(self, name: str, *assignments: list[int], configs: Mapping[str, str] | None = None) -> Topic:
        """A topic with these replicas, or with one partition on broker 1, and a log for each replica."""
        replicas = assignments or ([1],)
        wanted = NewTopic(name, assignments=list(enumerate(replicas)), configs=dict(configs or {}))
        self.cluster.metadata.submit(lambda _now_ms: self.machine.create_topics([wanted]))
        for index, brokers in enumerate(replicas):
            self.host(name, index, {broker_id: FakeLog() for broker_id in brokers})
        return self.image.topics[name]

    def host(self, name: str, index: int, logs: Mapping[int, FakeLog]) -> None:
        """A partition with these logs, each in the first directory of its broker."""
        self.cluster.partitions[name, index] = FakePartition(name, index, logs)
        for broker_id, log in logs.items():
            log.topic, log.partition = name, index
            self.cluster.nodes[broker_id].log_dirs[0].logs[name, index] = cast("Any", log)

    async def ask(
        self,
        api: AnyApi,
        request: Any,
        version: int | None = None,
        *,
        broker: int = 1,
        denied: Denied = (),
        connection: Connection | None = None,
    ) -> Any:
        """The answer of the handler, or of ``refuse`` where it raises, as a client reads it in that version."""
        number = SERVED[api.key].versions[1] if version is None else version
        frame = encode_request(api.key, number, 7, "test", request)[4:]
        header = decode_header(frame)
        ctx = StagedContext(
            api,
            number,
            header.correlation_id,
            header.client_id,
            connection or self.connection,
            self.cluster.nodes[broker],
            cast("Any", self.cluster),
            apis=APIS,
        )
        ctx.denied = denied
        read = decode_request(frame, header)
        try:
            response = await api.handle(read, ctx)
        except KafkaError as error:
            response = api.refuse(read, error, number)
        parts = encode_response(api.key, number, header.correlation_id, response)
        correlation_id, answer = decode_response(api.key, number, b"".join(map(bytes, parts))[4:])
        assert correlation_id == header.correlation_id
        return answer
