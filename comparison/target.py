"""A cluster on which histories are played: its connections, and its ids of topics, producers and members."""

from base64 import b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from comparison.connection import Connection, connect
from comparison.rules import Names
from protocol.apis import ApiKey
from protocol.client.sasl import Credentials
from protocol.types import ZERO_UUID

PROBE_TOPIC = "comparison-bell"
"""Topic whose config is changed: a broker that returns the new value has applied all earlier metadata records."""
UNKNOWN_PRODUCER_ID = 9_000_000_000
"""Id of a producer that was never initialised; no cluster allocates it."""
UNKNOWN_MEMBER_ID = "nobody"  # as in recorded histories
UNKNOWN_TRANSACTIONAL_ID = "nobody"
UNKNOWN_PROOF = b"unknown"
"""HMAC of a token that does not exist."""
UNKNOWN_TOPIC_ID = UUID("5f0c7bb6-6a3c-4d0e-9a54-7c1f00c0ffee")


@dataclass
class Producer:
    """Producer: its id, its epoch, and the next sequence of each partition."""

    transactional_id: str | None = None
    id: int = UNKNOWN_PRODUCER_ID
    epoch: int = 0
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def became(self, producer_id: int, epoch: int) -> None:
        """Set the id and epoch; sequences start at 0 if they changed."""
        if (producer_id, epoch) != (self.id, self.epoch):
            self.sequences.clear()
        self.id, self.epoch = producer_id, epoch


@dataclass
class Member:
    """A member of a classic group."""

    group: str
    id: str = ""
    generation: int = -1
    instance_id: str | None = None
    leads: bool = False
    members: list[str] = field(default_factory=list)


@dataclass
class Consumer:
    """A member of a consumer group, which generates its own id; ``assigned`` are partitions by topic id."""

    epoch: int = 0
    assigned: dict[UUID, list[int]] = field(default_factory=dict)


@dataclass
class Sharer:
    """A member of a share group: its epoch, the epoch of its session's next request, the offsets that it has acquired.

    ``places`` are the partitions of its session.
    """

    epoch: int = 0
    session: int = 0
    held: dict[tuple[UUID, int], set[int]] = field(default_factory=dict)
    places: dict[tuple[UUID, int], None] = field(default_factory=dict)


@dataclass
class Streamer:
    """A member of a streams group: its epochs, and its tasks by role, as pairs of subtopology and partitions."""

    epoch: int = 0
    endpoint_epoch: int = 0
    tasks: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)


@dataclass
class Instance:
    """A client that pushes metrics: its id, and the ids of its last subscription and of the previous one.

    Subscription ids are without the part that is derived from the client's id.
    """

    id: UUID = ZERO_UUID
    subscription: int = 0
    stale: int = 0


@dataclass
class Target:
    """Cluster at an address. Names of topics, groups and transactional ids are the same on both clusters.

    ``sessions`` are fetch sessions: id and the epoch of the next request. ``restart`` restarts a broker, clean or
    not, if it can be restarted. ``address`` is the first broker's, ``others`` are those of brokers 2 to N.
    ``shared`` are the share partitions (group and partition) that the leader has probably loaded. ``internal_topics``
    are those of streams groups' topologies, by group, ``expected`` those that the coordinator is creating.
    ``secured`` is the address of the SASL listener. ``tokens`` are delegation tokens: id and HMAC.
    ``steer`` pauses, resumes, stops, kills or starts a broker; those that then give no response are ``away``, and those
    that have no process ``ended``. ``steer_controllers`` does that to controllers, which it knows as `active`,
    `another`, `others`, `all`, `away` or `paused`; from then on, until one is active, it is ``leaderless``.
    ``probe`` is the name of its own probe topic: others may play on the same cluster at the same time. ``draws`` is a
    context that determines the id that the cluster generates next; None: ids are random. ``advance`` moves its clock
    forward by milliseconds; None: it has the real time.
    """

    address: str
    names: Names = field(default_factory=Names)
    topics: dict[str, UUID] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    sharers: dict[tuple[str, str], Sharer] = field(default_factory=dict)
    shared: set[tuple[str, tuple[UUID, int]]] = field(default_factory=set)
    streamers: dict[tuple[str, str], Streamer] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    internal_topics: dict[str, set[str]] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    restart: Callable[[bool, int], None] | None = None
    steer: Callable[[str, int], None] | None = None
    steer_controllers: Callable[[str, str], None] | None = None
    away: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    leaderless: bool = False
    connections: dict[str, Connection] = field(default_factory=dict)
    client_id: str = "compare"
    others: tuple[str, ...] = ()
    secured: str | None = None
    tokens: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    probe: str = PROBE_TOPIC
    draws: Callable[[UUID | None], AbstractContextManager[None]] | None = None
    advance: Callable[[int], None] | None = None

    @property
    def brokers(self) -> tuple[str, ...]:
        """Addresses of all brokers."""
        return (self.address, *self.others)

    @property
    def present(self) -> list[int]:
        """Numbers of the brokers that respond."""
        return [broker for broker in range(1, len(self.brokers) + 1) if broker not in self.away]

    def begin(self, prefix: str, base_ms: int) -> None:
        """Reset the state for a new history, with its own names."""
        self.close()
        self.names = Names(prefix, base_ms)
        self.names.name("producer", UNKNOWN_PRODUCER_ID)
        self.topics, self.producers, self.sessions, self.tokens = {}, {}, {}, {}
        self.members, self.consumers, self.instances = {}, {}, {}
        self.sharers, self.shared = {}, set()
        self.streamers, self.internal_topics, self.expected = {}, {}, set()

    def called(self, symbol: str) -> str:
        """Return the name of a symbol in this history; a symbol that begins with `=` is taken literally."""
        return symbol[1:] if symbol.startswith("=") else self.names.prefix + symbol

    def connection(self, name: str) -> Connection:
        """Return a connection, opened on first use; `0@2` is to broker 2; :meth:`login_of` has those with a login."""
        if name not in self.connections:
            login = self.login_of(name)
            if login is None:
                broker = int(name.partition("@")[2] or 1)
                self.connections[name] = connect(self.brokers[broker - 1], self.client_id)
            else:
                self.connections[name] = connect(self.secured or self.address, self.client_id, login=login)
        return self.connections[name]

    def login_of(self, name: str) -> Credentials | None:
        """Return a connection's credentials: alice's for `as:alice`, the token k0 for `token:k0:7`, else None."""
        kind, _, rest = name.partition(":")
        if kind == "as":
            user = rest.partition(":")[0]
            return Credentials("PLAIN", user, f"{user}-secret")
        if kind == "token":
            token_id, proof = self.tokens.get(rest.partition(":")[0], ("unknown", UNKNOWN_PROOF))
            return Credentials("SCRAM-SHA-256", token_id, b64encode(proof).decode(), by_token=True)
        return None

    def call(self, key: ApiKey, version: int, request: Any, broker: int = 1) -> Any:
        """Send a request on a connection that no step uses.

        The versions of such calls are ours: all brokers since 4.0 serve them, and they have the fields that are read.
        """
        return self.connection(f"aside@{broker}").call(key, version, request)

    def producer(self, symbol: str) -> Producer:
        """Return a producer by its symbol; it has no id until a step has initialised it."""
        return self.producers.get(symbol) or Producer()

    def member(self, symbol: str, group: str) -> Member:
        """Return a member by its symbol."""
        return self.members.setdefault(symbol, Member(group))

    def topic_id(self, symbol: str) -> UUID:
        """Return the id of a topic, or an unknown id."""
        return self.topics.get(symbol, UNKNOWN_TOPIC_ID)

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
