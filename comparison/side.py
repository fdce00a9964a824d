"""One of the two clusters, as a history sees it: connections, and its ids of topics, producers, members."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from comparison.connection import Connection
from comparison.rules import Names
from protocol.apis import ApiKey

UNKNOWN_PRODUCER_ID = 9_000_000_000
"""What a producer that never got an id goes by: no cluster gave it."""
UNKNOWN_MEMBER_ID = "nobody"
UNKNOWN_TOPIC_ID = UUID("5f0c7bb6-6a3c-4d0e-9a54-7c1f00c0ffee")


@dataclass
class Producer:
    """A producer: its id, its epoch, and the sequence that each partition gets next."""

    transactional_id: str | None = None
    id: int = UNKNOWN_PRODUCER_ID
    epoch: int = 0
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def became(self, producer_id: int, epoch: int) -> None:
        """It has this id and epoch from now on; sequences begin anew where they changed."""
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
class Side:
    """A cluster under its address. Names of topics, groups and transactional ids are the same on both sides.

    ``sessions`` are fetch sessions: id and the epoch of the next request. ``restart`` restarts a broker, in good
    order or not, where that can be done. ``address`` is the first broker's, ``others`` are those of brokers 2 to N.
    """

    address: str
    names: Names = field(default_factory=Names)
    topics: dict[str, UUID] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    restart: Callable[[bool, int], None] | None = None
    connections: dict[str, Connection] = field(default_factory=dict)
    client_id: str = "compare"
    others: tuple[str, ...] = ()

    @property
    def brokers(self) -> tuple[str, ...]:
        """The address of each."""
        return (self.address, *self.others)

    def begin(self, prefix: str, base_ms: int) -> None:
        """Forget what was before: a new history, with names of its own."""
        self.close()
        self.names = Names(prefix, base_ms)
        self.names.name("producer", UNKNOWN_PRODUCER_ID)
        self.topics, self.producers, self.members, self.sessions = {}, {}, {}, {}

    def called(self, symbol: str) -> str:
        """A name of this history; one that begins with `=` is meant as it stands."""
        return symbol[1:] if symbol.startswith("=") else self.names.prefix + symbol

    def connection(self, name: str) -> Connection:
        """A connection, opened on its first use; `0@2` is one to broker 2."""
        if name not in self.connections:
            broker = int(name.partition("@")[2] or 1)
            self.connections[name] = Connection(self.brokers[broker - 1], self.client_id)
        return self.connections[name]

    def call(self, key: ApiKey, version: int, request: Any, broker: int = 1) -> Any:
        """Ask on a connection that no step uses."""
        return self.connection(f"aside@{broker}").call(key, version, request)

    def producer(self, symbol: str) -> Producer:
        """A producer by its symbol; unknown to the cluster until a step initialised it."""
        return self.producers.get(symbol) or Producer()

    def member(self, symbol: str, group: str) -> Member:
        """A member by its symbol."""
        return self.members.setdefault(symbol, Member(group))

    def topic_id(self, symbol: str) -> UUID:
        """The id that the cluster gave to a topic, or one that no topic has."""
        return self.topics.get(symbol, UNKNOWN_TOPIC_ID)

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
