"""Runtime types of the four coordinators: each names its machine and the machine's own effects."""

from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.outcome_builder import InitializeShareState
from broker.coordination.metadata.effects import MetadataChange
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.outcome import WriteMarkers
from broker.coordination.runtime import Runtime
from broker.coordination.share.machine import PruneLog, ShareMachine
from broker.coordination.transaction.machine import TransactionMachine

GroupCoordinator = Runtime[GroupMachine, InitializeShareState]
TransactionCoordinator = Runtime[TransactionMachine, WriteMarkers]
ShareCoordinator = Runtime[ShareMachine, PruneLog]
MetadataController = Runtime[MetadataMachine, MetadataChange]
