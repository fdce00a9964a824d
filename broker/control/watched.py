"""What verbs that observe and disturb need: of Understudy's own cluster, or of a proxy in front of another one.

Verbs that steer, such as those of the clock or of brokers, use the cluster itself (``Asked.cluster``); a proxy has
none, and answers them with one sentence.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from broker.control.verbs import Function
from broker.faults.rules import Script
from broker.journal.ring import Journal
from broker.network.file_limits import Shares
from broker.replication.partition import ReplicatedPartition
from broker.settings import BrokerSettings
from broker.timelines.groups import GroupTimelines
from broker.timelines.producers import ProducerTimelines
from broker.timelines.transactions import TransactionTimelines

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster


class NamedTopic(Protocol):
    """A topic that is known by name and id."""

    @property
    def id(self) -> UUID:
        """Its id; all zeros before Kafka 2.8."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...


class Topics(Protocol):
    """The topics that are known."""

    @property
    def topics(self) -> Mapping[str, NamedTopic]:
        """By name."""
        ...

    @property
    def topics_by_id(self) -> Mapping[UUID, NamedTopic]:
        """By id (KIP-516)."""
        ...


class Watched(Protocol):
    """A cluster whose requests pass through this process."""

    @property
    def journal(self) -> Journal:
        """The requests."""
        ...

    @property
    def faults(self) -> Script:
        """The faults that requests meet."""
        ...

    @property
    def settings(self) -> BrokerSettings:
        """The settings of this process."""
        ...

    @property
    def shares(self) -> Shares:
        """The limits of its file descriptors."""
        ...

    @property
    def image(self) -> Topics:
        """The metadata as it is known."""
        ...

    @property
    def known_brokers(self) -> Sequence[int]:
        """The ids of the brokers that requests can be sent to."""
        ...

    @property
    def listener_names(self) -> Iterable[str]:
        """The names of all listeners."""
        ...

    @property
    def transaction_timelines(self) -> TransactionTimelines:
        """The events of transactional ids."""
        ...

    @property
    def group_timelines(self) -> GroupTimelines:
        """The events of groups."""
        ...

    @property
    def producer_timelines(self) -> ProducerTimelines:
        """The events of producers."""
        ...

    @property
    def partitions(self) -> Mapping[tuple[str, int], ReplicatedPartition]:
        """Its own partitions; a proxy has none."""
        ...

    def function_of(self, verb: str) -> Function | None:
        """What answers a verb here, where it is not what answers it for a cluster."""
        ...

    @property
    def own(self) -> "Cluster | None":
        """The cluster itself, where this process is one; ``None``: it is a proxy."""
        ...

    @property
    def description(self) -> str:
        """A short description of this process, such as ``a proxy in front of kafka:9092``."""
        ...
