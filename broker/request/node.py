"""One broker: its identity, its logs, the coordinators it leads, its connections."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from broker.access.authorizer import authorizer_of
from broker.access.quotas import BrokerQuotas
from broker.access.sasl.key_set import KeySet
from broker.coordination.coordinators import (
    GROUP_TOPIC,
    SHARE_TOPIC,
    TRANSACTION_TOPIC,
    Coordinators,
    ProducerIds,
    ShareCoordinator,
    TransactionCoordinator,
)
from broker.coordination.runtime import Runtime
from broker.replication.partition import ReplicatedPartition, known_partition
from broker.request.fetch_sessions import SessionCache
from broker.request.refusal_log import RefusalLog
from broker.request.telemetry import Telemetry
from broker.settings import BrokerSettings
from broker.settings.endpoints import Endpoint
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import absolute_hash
from storage.files import Files
from storage.log_dir import LogDir

if TYPE_CHECKING:
    from broker.coordination.coordinators import GroupCoordinator
    from broker.coordination.share_state.persister import Persister

R = TypeVar("R", bound=Runtime[Any, Any])
_COUNTS = {
    GROUP_TOPIC: "offsets.topic.num.partitions",
    TRANSACTION_TOPIC: "transaction.state.log.num.partitions",
    SHARE_TOPIC: "share.coordinator.state.topic.num.partitions",
}
"""Internal topic -> the setting for its number of partitions."""


@lru_cache(maxsize=4096)  # ours: more ids than are in use at a time, each of which every request names
def partition_for(key: str, partitions: int) -> int:
    """Return the internal topic's partition that coordinates a group or transactional id (transactions F.9)."""
    return absolute_hash(key) % partitions


@dataclass(frozen=True, slots=True)
class CreationFailure:
    """The last failed attempt to create a topic, remembered until ``forgotten_at_ms``."""

    message: str
    forgotten_at_ms: int


@dataclass(slots=True)
class ControllerChannel:
    """A broker's connection to a controller, which it keeps for all requests that it forwards.

    ``controller_id`` is -1 before the first one, ``waits_since_ms`` when a request began to wait for one that hangs.
    ``waiting`` are the requests that are not served yet, in the order of their arrival.
    """

    controller_id: int = -1
    waits_since_ms: int | None = None
    waiting: dict[object, None] = field(default_factory=dict)

    def is_next(self, request: object) -> bool:
        """Whether no request waits that arrived before this one."""
        return next(iter(self.waiting), request) is request

    def close(self) -> None:
        """Give the connection up; the next one is to the active controller."""
        self.controller_id, self.waits_since_ms = -1, None


class Listeners(Protocol):
    """A broker's listeners as requests meet them; :class:`broker.server.server.BrokerServer` opens and closes them."""

    paused: bool
    """Whether connections are accepted, and nothing is read from them, as with a process that hangs."""
    refusals: RefusalLog

    async def wait_for_resumption(self, deadline_ms: int) -> None:
        """Wait like a request of another broker: until this broker resumes, it stops, or the deadline passes."""
        ...


class LedSharePartitions(Protocol):
    """The share partitions that a broker leads, as far as its life matters to them."""

    @property
    def persister(self) -> "Persister":
        """The access to their share coordinators, until the broker's process ends."""
        ...

    def close(self) -> None:
        """Forget them all: the process ends."""
        ...


class Node:
    """One broker of the cluster, which may be up or down.

    ``partitions`` holds all partitions of the cluster and is shared by the nodes; a partition itself refuses what only
    its leader may do. ``new_sessions`` creates an empty cache of fetch sessions, ``new_shares`` one of share
    partitions.
    """

    server: Listeners
    """Set when the broker joins the cluster, closed while the broker is down."""

    def __init__(
        self,
        broker_id: int,
        settings: BrokerSettings,
        partitions: Mapping[tuple[str, int], ReplicatedPartition],
        new_sessions: Callable[[], SessionCache],
        new_shares: Callable[[], LedSharePartitions],
    ) -> None:
        # Its identity and configuration.
        self.id, self.settings, self.partitions = broker_id, settings, partitions
        self.rack: str | None = settings.optional_string("broker.rack")
        self.authorizer = authorizer_of(settings)
        self.telemetry = Telemetry()
        self.key_sets: dict[tuple[str, int], KeySet] = {}
        """The keys of token issuers that this broker has fetched, by URL and refresh interval."""
        self.is_controller = False
        """Whether this is the controller on its own listener, rather than a broker."""

        # Its listeners: those to open, and the bound ones by name, each with its port.
        self.endpoints: tuple[Endpoint, ...] = ()
        self.bound: dict[str, tuple[Endpoint, int]] = {}

        # Its log directories, in the order of log.dirs. The first one has the metadata log of a controller.
        self.log_dir_paths: tuple[str, ...] = ()
        """Their absolute paths; those of directories in memory are only names."""
        self.files: tuple[Files, ...] = ()
        """Their trees; none before they are opened for the first time."""
        self.owns_directories: bool | None = None
        """Whether Understudy formatted them all and no other software has opened them; None: not known yet."""
        self.preferred_log_dirs: dict[tuple[str, int], LogDir] = {}
        """Topic and partition -> the log directory of a log that does not exist yet, as far as that is decided."""

        # Its registration with the controller.
        self.epoch = -1
        self.incarnation_id: UUID | None = None
        self.internal_counts: dict[str, int] = {}
        """Internal topic -> its number of partitions at the broker's start; as in Kafka, a later change is ignored."""
        self.meters = BrokerQuotas(settings)
        self.quotas: BrokerQuotas | None = None
        """:attr:`meters` if the metadata has any quota, else None."""

        # Its state in memory while it is up.
        self.up = False
        self.log_dirs: tuple[LogDir, ...] = ()
        """Its open log directories, as :attr:`log_dir_paths`."""
        self._new_sessions = new_sessions
        self.sessions = new_sessions()
        self.large_batches = asyncio.Lock()
        """Held while a large compressed batch is validated: one at a time, so that others are served in between. Not
        anyio's lock, because a request begins without a task.
        """
        self._new_shares = new_shares
        self.shares: LedSharePartitions = new_shares()
        """``partitions.share_partition.partitions.led_by`` has them with all that they can do."""
        self.producer_ids = ProducerIds()
        self.channel = ControllerChannel()
        self.coordinators = Coordinators()
        self.streams_topic_failures: dict[str, CreationFailure] = {}
        """Internal topics of streams groups whose creation failed recently (groups E.5)."""

    @property
    def silent(self) -> bool:
        """Whether it does not answer other brokers: it is down or paused."""
        return not self.up or self.server.paused

    @property
    def persister(self) -> "Persister":
        """Its access to the share coordinators, until its process ends."""
        return self.shares.persister

    @property
    def metadata_dir(self) -> LogDir:
        """The open log directory that has the metadata log, if the broker is the controller's (metadata.log.dir)."""
        return self.log_dirs[0]

    def log_dir_of(self, topic: str, index: int) -> LogDir | None:
        """Return the log directory that has a partition's log, if there is one."""
        return next((each for each in self.log_dirs if (topic, index) in each.logs), None)

    def power_off(self, *, clean: bool) -> None:
        """Drop the broker's memory: its process ends, or it is reset. Its coordinators have resigned before.

        ``clean``: everything is written first. The files stay as they are.
        """
        for log_dir in self.log_dirs:
            log_dir.close(clean=clean, broker_epoch=self.epoch)
        self.log_dirs = ()
        self.preferred_log_dirs.clear()
        self.up, self.sessions, self.producer_ids = False, self._new_sessions(), ProducerIds()
        self.channel.close()
        self.shares.close()
        self.shares = self._new_shares()

    def partition(self, topic: str, index: int) -> ReplicatedPartition:
        """Return a partition of the cluster.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        return known_partition(self.partitions, topic, index)

    def group_coordinator(self, group_id: str) -> "GroupCoordinator":
        """Return the coordinator of a group, if this broker leads its partition.

        Raises:
            KafkaError: NOT_COORDINATOR; while the partition is being loaded, the runtime itself refuses requests.
        """
        return _leader(self.coordinators.groups, self.coordinating_partition(GROUP_TOPIC, group_id))

    def transaction_coordinator(self, transactional_id: str) -> "TransactionCoordinator":
        """Return the coordinator of a transactional id, if this broker leads its partition.

        Raises: as :meth:`group_coordinator`.
        """
        return _leader(self.coordinators.transactions, self.coordinating_partition(TRANSACTION_TOPIC, transactional_id))

    def share_coordinator(self, key: str) -> "ShareCoordinator":
        """Return the share coordinator for a ``SharePartitionKey.coordinator_key``."""
        return _leader(self.coordinators.share_states, self.coordinating_partition(SHARE_TOPIC, key))

    def coordinating_partition(self, topic: str, key: str) -> int:
        """Return the partition of an internal topic whose leader coordinates the key (transactions F.9, groups F.1).

        The number of partitions is the topic's when the broker started; without the topic, that of the settings.
        """
        return partition_for(key, self.internal_counts.get(topic) or self.settings.int(_COUNTS[topic]))


def _leader(coordinators: "dict[int, R]", partition: int) -> R:
    coordinator = coordinators.get(partition)
    if coordinator is None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    return coordinator
