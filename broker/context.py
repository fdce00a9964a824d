"""The context of a request for its handler, and the parts of the cluster that handlers may use."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from broker.answers import Sending
from broker.clock import stopwatch_ns
from broker.cluster_state import ClusterState
from broker.connection import Connection
from broker.node import Node
from broker.releases import Release
from broker.security.authorizer import ANONYMOUS, speaks_as
from protocol.acls import AclOperation, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Message
from protocol.writers import Parts

if TYPE_CHECKING:
    from broker.produce.results import Produced

__all__ = [
    "AclOperation",
    "ClusterView",
    "Exchange",
    "RequestContext",
    "RequestNotes",
    "ResourceType",
]


class ServedApi(Protocol):
    """An API as a request of it is served: :class:`broker.api.Api`, whose handler gets the context."""

    @property
    def key(self) -> ApiKey:
        """Its key."""
        ...

    @property
    def refuse(self) -> Callable[[Any, KafkaError, int], Message | None]:
        """The response to a request that carries an error, in a version."""
        ...

    @property
    def listed(self) -> bool:
        """Whether ApiVersions lists it."""
        ...

    def range(self, *, unstable: bool) -> tuple[int, int]:
        """The versions that are answered."""
        ...


class ClusterView(ClusterState, Protocol):
    """The cluster as handlers use it. ``broker.cluster.cluster.Cluster`` is the only implementation outside tests."""

    nodes: dict[int, Node]


class ByteFault(Protocol):
    """Spoils the bytes of an answer on purpose (``broker.faults.byte_faults``)."""

    def spoil(self, answer: bytes) -> Sending:
        """The bytes that go out instead."""
        ...


class RequestNotes:
    """Notes of handlers and middleware on one request, beside its response.

    The defaults are the class's: most requests leave all of them alone, and every request has them.

    Attributes:
        faults: the ids of the faults that it met, joined by commas; ``None`` for none.
        refused_by: those of them that make the error of its answer.
        byte_fault: spoils the answer's bytes.
        closes: whether the connection is closed behind the answer.
        charged: whether the handler has charged the client's quotas itself.
        produced: the partitions of a Produce request and what became of them, once they are known.
        encoded: the response and its encoded body, if the handler had to know the size; it counts for that response.
        id: the request's in the journal; 0: it is in none.
        refusal: the error that the handler has refused it with, which may name its rule.
    """

    id = 0

    faults: str | None = None
    refused_by: str | None = None
    byte_fault: ByteFault | None = None
    closes: bool = False
    charged: bool = False
    produced: "Sequence[Produced] | None" = None
    encoded: tuple[Message, Parts] | None = None
    refusal: KafkaError | None = None

    def note_fault(self, fault_id: str, *, refuses: bool = False) -> None:
        """A fault has met the request; with ``refuses`` an error in the answer is the fault's."""
        self.faults = f"{self.faults},{fault_id}" if self.faults else fault_id
        if refuses:
            self.refused_by = f"{self.refused_by},{fault_id}" if self.refused_by else fault_id


class Exchange(RequestNotes):
    """A request that is being served, and what becomes of it; the notes of its handler are part of it.

    ``outcome`` describes how it ended; ``parts`` is the answer as it was encoded, before a byte fault spoils it.
    ``id`` and ``era`` are the journal's.
    """

    outcome = "answered"
    request: Message | None = None
    parts: Parts | None = None
    errors: Sequence[ErrorCode] = ()
    """The codes in the answer, those of faults included."""
    era = 0

    def __init__(self, frame: bytearray, connection: Connection, broker: int, at_ms: int) -> None:
        self.frame, self.connection, self.broker, self.at_ms = frame, connection, broker, at_ms
        self.began_ns = stopwatch_ns()


@dataclass(slots=True)
class RequestContext:
    """One request's surroundings. ``apis`` are those that this broker serves; ``request_bytes`` is the frame's size."""

    api: ServedApi
    version: int
    correlation_id: int
    client_id: str
    connection: Connection
    node: Node
    cluster: ClusterView
    notes: RequestNotes = field(default_factory=RequestNotes)
    apis: Sequence[ServedApi] = ()
    request_bytes: int = 0

    @property
    def client_host(self) -> str:
        """The peer's address, without a slash."""
        return self.connection.client_host

    @property
    def listener(self) -> str:
        """Name of the listener that the request came in on."""
        return self.connection.listener

    @property
    def at_controller(self) -> bool:
        """Whether the request came in on the controller's listener."""
        return self.node.is_controller

    @property
    def principal(self) -> str:
        """The principal, such as ``User:ANONYMOUS``: authenticated, else from the setting for the client.

        The single source of a request's principal: authentication sets the connection's.
        """
        own, rules = self.connection.principal, self.node.settings.string("understudy.principals")
        return speaks_as(rules, self.client_id) or own if rules and own == ANONYMOUS else own

    @property
    def release(self) -> Release:
        """The release of Kafka that the requester is shown."""
        return self.connection.release

    @property
    def now_ms(self) -> int:
        """The cluster's time."""
        return self.cluster.clock.now_ms()

    def authorized(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Whether the requester may do that; without an authorizer all operations are allowed."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(self.cluster.image, self, operation, resource_type, name)

    def authorized_somewhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the requester may do that to any resource of a kind, which need not exist (KIP-679)."""
        authorizer = self.node.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_somewhere(self.cluster.image, self, operation, resource_type)
