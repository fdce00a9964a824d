"""The four coordinators: their runtime types, and those that one broker leads."""

from collections.abc import Mapping
from typing import Any

from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.outcome_builder import InitializeShareState
from broker.coordination.metadata.effects import MetadataChange
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.outcome import WriteMarkers
from broker.coordination.runtime import Runtime
from broker.coordination.share_state.machine import PruneLog, ShareMachine
from broker.coordination.transaction.machine import TransactionMachine

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
