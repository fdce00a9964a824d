"""The interface that verbs need to observe requests and inject faults: of a cluster here, or of a proxy.

Commands that control a cluster, such as those of the clock or of brokers, use the cluster itself
(``ControlRequest.cluster``); a proxy has none, and refuses them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from broker.replication.partition import ReplicatedPartition
from broker.server.file_limits import Shares
from broker.settings import BrokerSettings
from broker.steering.faults.rules import Faults
from broker.steering.journal.ring import Journal
from broker.steering.timelines.groups import GroupTimelines
from broker.steering.timelines.producers import ProducerTimelines
from broker.steering.timelines.transactions import TransactionTimelines

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.control.verbs import Function


class NamedTopic(Protocol):
    """A topic with its name and id."""

    @property
    def id(self) -> UUID:
        """Return the topic id; all zeros before Kafka 2.8."""
        ...

    @property
    def name(self) -> str:
        """Return the name."""
        ...


class Topics(Protocol):
    """The known topics."""

    @property
    def topics(self) -> Mapping[str, NamedTopic]:
        """Return name -> topic."""
        ...

    @property
    def topics_by_id(self) -> Mapping[UUID, NamedTopic]:
        """Return topic id -> topic (KIP-516)."""
        ...


class Watched(Protocol):
    """A cluster whose requests pass through this process: its own, or the one behind a proxy."""

    @property
    def journal(self) -> Journal:
        """Return the journal of requests."""
        ...

    @property
    def faults(self) -> Faults:
        """Return the injected faults."""
        ...

    @property
    def settings(self) -> BrokerSettings:
        """Return the settings of this process."""
        ...

    @property
    def shares(self) -> Shares:
        """Return the limits of file descriptors."""
        ...

    @property
    def image(self) -> Topics:
        """Return the metadata, as far as it is known."""
        ...

    @property
    def known_brokers(self) -> Sequence[int]:
        """Return the ids of the brokers that clients can send requests to."""
        ...

    @property
    def listener_names(self) -> Iterable[str]:
        """Return the names of all listeners."""
        ...

    @property
    def transaction_timelines(self) -> TransactionTimelines:
        """Return the timelines of transactional ids."""
        ...

    @property
    def group_timelines(self) -> GroupTimelines:
        """Return the timelines of groups."""
        ...

    @property
    def producer_timelines(self) -> ProducerTimelines:
        """Return the timelines of producers."""
        ...

    @property
    def partitions(self) -> Mapping[tuple[str, int], ReplicatedPartition]:
        """Return the partitions; a proxy has none."""
        ...

    def function_of(self, verb: str) -> "Function | None":
        """Return the function that replaces a verb's usual one here, if there is one."""
        ...

    @property
    def own(self) -> "Cluster | None":
        """Return the cluster of this process; ``None`` for a proxy."""
        ...

    @property
    def description(self) -> str:
        """Return a short description of this process, such as ``a proxy in front of kafka:9092``."""
        ...
