"""The four coordinators: their runtime types, those that one broker leads, and its block of producer ids."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.coordination.metadata.effects import MetadataChange
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.outcome import WriteMarkers
from broker.coordination.runtime import Runtime
from broker.coordination.share_state.machine import PruneLog, ShareMachine
from broker.coordination.transaction.machine import TransactionMachine
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    # Sixty modules, for the first partition of __consumer_offsets (broker.cluster.coordinators).
    from broker.coordination.group.machine import GroupMachine
    from broker.coordination.group.outcome_builder import InitializeShareState

    GroupCoordinator = Runtime[GroupMachine, InitializeShareState]

TransactionCoordinator = Runtime[TransactionMachine, WriteMarkers]
ShareCoordinator = Runtime[ShareMachine, PruneLog]
MetadataController = Runtime[MetadataMachine, MetadataChange]

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"


class Coordinators:
    """The coordinators that one broker leads, each by the partition of its internal topic."""

    def __init__(self) -> None:
        self.groups: dict[int, GroupCoordinator] = {}
        self.transactions: dict[int, TransactionCoordinator] = {}
        self.share_states: dict[int, ShareCoordinator] = {}
        """They keep the state of share partitions (KIP-932)."""
        self.by_topic: Mapping[str, dict[int, Any]] = {
            GROUP_TOPIC: self.groups,
            TRANSACTION_TOPIC: self.transactions,
            SHARE_TOPIC: self.share_states,
        }

    def close(self) -> None:
        """Resign from every role; parked requests are answered NOT_COORDINATOR."""
        for coordinators in self.by_topic.values():
            for coordinator in list(coordinators.values()):
                coordinator.close()
            coordinators.clear()


class ProducerIds:
    """The current block of one broker. Ids left in it when the broker stops are never used, as in Kafka."""

    def __init__(self) -> None:
        self._left: list[int] = []

    def next(self, allocate: Callable[[], range]) -> int:
        """Return a new producer id; calls ``allocate`` for another block when the current one is used up.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS if no block is available now (transactions A.4).
        """
        if not self._left:
            self._left = list(reversed(allocate()))
        if not self._left:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._left.pop()
