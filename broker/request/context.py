"""The context that a handler gets with its request, and the parts of the cluster that handlers may use."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from broker.access.authorizer import ANONYMOUS, speaks_as
from broker.coordination.coordinators import MetadataController
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.quorum import Quorum
from broker.replication.partition import ReplicatedPartition
from broker.request.answers import Sending
from broker.request.connection import Connection, Versions
from broker.request.node import Node
from broker.settings.releases import Release
from broker.time.clock import Clock, stopwatch_ns
from broker.time.rng import Random
from protocol.acls import AclOperation, ResourceType
from protocol.apis import ApiKey
from protocol.deferred import mypyc_attr
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Message
from protocol.writers import Parts
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir

if TYPE_CHECKING:
    from broker.request.produce_results import Produced

__all__ = [
    "AclOperation",
    "ClusterView",
    "Exchange",
    "RequestContext",
    "RequestNotes",
    "ResourceType",
]


class ServedApi(Protocol):
    """The API of a request: :class:`broker.request.api.Api`, whose handler gets the context."""

    @property
    def key(self) -> ApiKey:
        """Its API key."""
        ...

    @property
    def refuse(self) -> Callable[[Any, KafkaError, int], Message | None]:
        """Build the response that carries an error, from the request, the error and the version."""
        ...


class ServedVersions(Protocol):
    """An API that the broker serves: :class:`broker.request.api.ServedVersions`."""

    @property
    def key(self) -> ApiKey:
        """Its API key."""
        ...

    @property
    def listed(self) -> bool:
        """Whether ApiVersions lists it."""
        ...

    def range(self, *, unstable: bool) -> tuple[int, int]:
        """Return the lowest and the highest version that are served."""
        ...


class ReplicaMoves(Protocol):
    """Moves of replicas between log directories (``broker.partitions.log_dir_moves``)."""

    def begin(self, node: Node, partition: ReplicatedPartition, target: LogDir) -> None:
        """Begin to move a broker's replica to another of its log directories."""
        ...


class ClusterView(Protocol):
    """The cluster as handlers use it: what its brokers share, and the brokers.

    ``broker.cluster.cluster.Cluster`` is the only implementation outside tests.
    """

    nodes: dict[int, Node]
    random: Random
    cluster_id: str
    controller_id: int
    metadata: MetadataController
    quorum: Quorum
    metadata_partition: ReplicatedPartition
    partitions: dict[tuple[str, int], ReplicatedPartition]
    versions: Versions
    release: Release
    lazy_coordinators: bool
    between_brokers: Callable[[], Awaitable[None]] | None
    """Awaited while a coordinator's answer is on its way to another broker; None: it takes no time."""

    @property
    def metadata_log(self) -> PartitionLog:
        """The active controller's log of metadata. Raises KafkaError if there is none."""
        ...

    @property
    def moves(self) -> ReplicaMoves:
        """The moves of replicas between log directories."""
        ...

    @property
    def clock(self) -> Clock:
        """The cluster's clock."""
        ...

    @property
    def image(self) -> ClusterImage:
        """The current metadata image."""
        ...

    def hangs(self, node_id: int) -> bool:
        """Whether a broker or a controller is paused."""
        ...

    def change_voters(self, voters: list[int]) -> None:
        """Replace the voters of the quorum, and record them in the metadata log (KIP-853)."""
        ...

    def new_uuid(self) -> UUID:
        """Return a UUID from the cluster's seeded random numbers."""
        ...

    def allocate_producer_ids(self) -> range:
        """Allocate a block of producer ids, unique in the cluster (KIP-730)."""
        ...


class ByteFault(Protocol):
    """A fault that corrupts the bytes of an answer (``broker.steering.faults.byte_faults``)."""

    def spoil(self, answer: bytes) -> Sending:
        """Return the bytes to send instead."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestNotes:
    """Notes of handlers and middleware on one request, besides its response.

    Attributes:
        faults: the ids of the faults that applied to it, joined by commas; ``None`` for none.
        refused_by: those of them that cause the error in its answer.
        byte_fault: the fault that corrupts the bytes of its answer.
        closes: whether the connection is closed after the answer.
        charged: whether the handler has charged the client's quotas itself.
        produced: the partitions of a Produce request with their results, once they are known.
        encoded: the response with its encoded body, if the handler needed to know its size; used if that response is
            sent.
        id: the id of the request in the journal; 0: it is not in the journal.
        refusal: the error that the handler raised, which may name its rule.
    """

    def __init__(self) -> None:
        self.id = 0
        self.faults: str | None = None
        self.refused_by: str | None = None
        self.byte_fault: ByteFault | None = None
        self.closes = False
        self.charged = False
        self.produced: Sequence[Produced] | None = None
        self.encoded: tuple[Message, Parts] | None = None
        self.refusal: KafkaError | None = None

    def note_fault(self, fault_id: str, *, refuses: bool = False) -> None:
        """Note that a fault applied to the request; ``refuses``: it causes the error in the answer."""
        self.faults = f"{self.faults},{fault_id}" if self.faults else fault_id
        if refuses:
            self.refused_by = f"{self.refused_by},{fault_id}" if self.refused_by else fault_id


@mypyc_attr(allow_interpreted_subclasses=True)
class Exchange(RequestNotes):
    """A request that is being served, from its frame to its answer, with the notes of its handler.

    ``outcome`` describes how it ended; ``parts`` is the encoded answer before a byte fault corrupts it. ``id`` and
    ``era`` are the journal's.
    """

    def __init__(self, frame: bytearray, connection: Connection, broker: int, at_ms: int) -> None:
        super().__init__()
        self.frame, self.connection, self.broker, self.at_ms = frame, connection, broker, at_ms
        self.outcome = "answered"
        self.request: Message | None = None
        self.parts: Parts | None = None
        self.errors: Sequence[ErrorCode] = ()
        """The error codes in the answer, including those of faults."""
        self.era = 0
        self.began_ns = stopwatch_ns()


@mypyc_attr(allow_interpreted_subclasses=True)
class RequestContext:
    """The context of one request. ``apis`` are those that this broker serves; ``request_bytes`` is the frame's size."""

    def __init__(
        self,
        api: ServedApi,
        version: int,
        correlation_id: int,
        client_id: str,
        connection: Connection,
        node: Node,
        cluster: ClusterView,
        notes: RequestNotes | None = None,
        apis: Sequence[ServedVersions] = (),
        request_bytes: int = 0,
    ) -> None:
        self.api, self.version, self.correlation_id, self.client_id = api, version, correlation_id, client_id
        self.connection, self.node, self.cluster = connection, node, cluster
        self.notes = RequestNotes() if notes is None else notes
        self.apis, self.request_bytes = apis, request_bytes

    @property
    def client_host(self) -> str:
        """The peer's address, without a slash."""
        return self.connection.client_host

    @property
    def listener(self) -> str:
        """The name of the listener that received the request."""
        return self.connection.listener

    @property
    def at_controller(self) -> bool:
        """Whether the controller's listener received the request."""
        return self.node.is_controller

    @property
    def principal(self) -> str:
        """The principal, such as ``User:ANONYMOUS``.

        It is the authenticated one; without authentication, that of the setting ``understudy.principals`` for the
        client id. No other code derives the principal of a request.
        """
        own, rules = self.connection.principal, self.node.settings.string("understudy.principals")
        return speaks_as(rules, self.client_id) or own if rules and own == ANONYMOUS else own

    @property
    def release(self) -> Release:
        """The release of Kafka that is emulated for this client."""
        return self.connection.release

    @property
    def now_ms(self) -> int:
        """The cluster's time in ms since 1970."""
        return self.cluster.clock.now_ms()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the principal may do that; without an authorizer everything is allowed."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.cluster.image, self, operation, resource_type, name)

    def authorized_somewhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the principal may do that on any resource of a type, which need not exist (KIP-679)."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_somewhere(self.cluster.image, self, operation, resource_type)
