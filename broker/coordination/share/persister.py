"""How leaders and group coordinators reach the share coordinator, after Kafka's ``Persister`` (KIP-932, groups D.9).

One call is about one share partition. Nothing is raised: each result has an error code, NONE for success, and a message
for people. Codes of the share coordinator: 3, 14, 15, 16, 42, 69, 74 (FENCED_LEADER_EPOCH), 124 (FENCED_STATE_EPOCH)
and those of its log. Offsets are log offsets; -1 is "not set" for offsets, counts and epochs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.types import uuid_text

UNINITIALIZED_OFFSET = -1
"""Start offset of a share partition whose first offset ``share.auto.offset.reset`` decides."""
UNINITIALIZED_COUNT = -1
"""Delivery-complete count that is not known."""


class SharePartitionKey(NamedTuple):
    """A partition of a topic as one share group consumes it (Kafka's ``SharePartitionKey``)."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The text whose hash selects the partition of ``__share_group_state``, and FindCoordinator's key."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """A run of offsets with one delivery state and count.

    ``delivery_state`` is Kafka's ``RecordState``: 0 AVAILABLE, 1 ACQUIRED (never stored), 2 ACKNOWLEDGED,
    3 ARCHIVING, 4 ARCHIVED.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True, slots=True)
class StateResult:
    """The result of a call that returns no state."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing was changed or read."""
        return self.error is not ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class ReadResult(StateResult):
    """The state of a share partition, as its leader reads it when it loads the partition."""

    state_epoch: int = -1
    start_offset: int = UNINITIALIZED_OFFSET
    batches: tuple[StateBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryResult(StateResult):
    """What administrators see of a share partition's state.

    A partition that was never initialized has offset and count -1, epochs 0, and no error.
    """

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = UNINITIALIZED_COUNT


class Persister(Protocol):
    """Finds the share coordinator of a share partition and asks it; ``context.ClusterView.persister`` is the one used.

    A call ends without waiting if a coordinator is active. While one loads or moves, it is asked again by the cluster's
    clock; after the last attempt the result has that coordinator's error.
    """

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> StateResult:
        """Create the state, or replace an older one: no batches, leader epoch 0 (InitializeShareGroupState)."""
        ...

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadResult:
        """Read the state as the leader of that epoch; older leaders are fenced from then on (ReadShareGroupState)."""
        ...

    async def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> StateResult:
        """Merge batches that changed into the state (WriteShareGroupState).

        ``start_offset`` -1 keeps the stored one. ``delivery_complete_count`` are the acknowledged and archived offsets
        at or above the start offset, -1 if unknown.
        """
        ...

    async def delete(self, key: SharePartitionKey) -> StateResult:
        """Forget the state; no error if there is none (DeleteShareGroupState)."""
        ...

    async def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> SummaryResult:
        """Read offsets and counts without the batches; no leader is fenced (ReadShareGroupStateSummary)."""
        ...
