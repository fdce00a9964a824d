"""One upstream broker: its address, and its listener in the proxy."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from broker.server.server import BrokerServer
from broker.settings.endpoints import Endpoint
from broker.steering.journal.ring import MOST_TOPIC_NAMES
from protocol.errors import ErrorCode, KafkaError
from proxy.sessions import Sessions

UNKNOWN_ID = -1
"""Broker id of an ``--upstream`` address until a response shows the real one."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that a response named."""

    name: str
    id: UUID


@dataclass(slots=True)
class KnownTopics:
    """Topics that responses named, with their ids: used to match faults and to show names."""

    topics: dict[str, Topic] = field(default_factory=dict)
    topics_by_id: dict[UUID, Topic] = field(default_factory=dict)
    changes: int = 0

    def learn(self, name: str | None, topic_id: UUID | None) -> Topic | None:
        """Note a topic; return ``None`` if it is known already. If there are too many, the oldest are dropped."""
        if not name or topic_id is None or not topic_id.int:
            return None
        topic = self.topics.get(name)
        if topic is not None and topic.id == topic_id:
            return None
        topic = self.topics[name] = self.topics_by_id[topic_id] = Topic(name, topic_id)
        if len(self.topics_by_id) > MOST_TOPIC_NAMES:
            oldest = self.topics_by_id.pop(next(iter(self.topics_by_id)))
            if self.topics.get(oldest.name) is oldest:
                del self.topics[oldest.name]
        self.changes += 1
        return topic


async def _addresses_of(host: str, port: int) -> frozenset[str]:
    """Resolve a host. Raises OSError, also for an impossible host name or port."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (ValueError, OverflowError) as error:
        raise OSError(str(error)) from error
    return frozenset(str(address[0]) for *_, address in infos)


class Upstream:
    """An upstream broker, with the attributes of ``broker.request.node.Node`` that faults and views use."""

    server: BrokerServer
    """Its listener; set when the proxy opens one."""

    def __init__(self, broker_id: int, host: str, port: int) -> None:
        self.id, self.host, self.port = broker_id, host, port
        self.rack: str | None = None
        self.bound: Mapping[str, tuple[Endpoint, int]] = {}
        self.sessions = Sessions()
        self._resolved: frozenset[str] = frozenset()

    async def resolve(self) -> None:
        """Resolve its addresses, so that it is recognised by another host name. Raises OSError."""
        self._resolved = await _addresses_of(self.host, self.port)

    async def is_at(self, host: str, port: int) -> bool:
        """Whether this is the same address, perhaps by another host name."""
        if port != self.port:
            return False
        if host == self.host:
            return True
        with suppress(OSError):
            return bool(self._resolved & await _addresses_of(host, port))
        return False

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return f"{self.host}:{self.port}"

    @property
    def advertised(self) -> tuple[str, int]:
        """Address of the proxy's listener for clients."""
        endpoint, port = next(iter(self.bound.values()))
        return endpoint.host_for_clients, endpoint.port_for_clients(port)

    @staticmethod
    def group_coordinator(group_id: str) -> None:
        """Refuse: the proxy has no group coordinator.

        Raises:
            KafkaError: NOT_COORDINATOR.
        """
        raise KafkaError(ErrorCode.NOT_COORDINATOR, group_id)
