"""Interface of partition leaders and group coordinators to the share coordinator (KIP-932, groups D.9).

After Kafka's ``Persister``. One call is about one share partition. Nothing is raised: each result has an error code,
NONE for success, and a message. Codes of the share coordinator: 3, 14, 15, 16, 42, 69, 74 (FENCED_LEADER_EPOCH), 124
(FENCED_STATE_EPOCH) and those of its log. Offsets are log offsets; -1 means "not set" for offsets, counts and epochs.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.types import uuid_text

UNINITIALIZED_OFFSET = -1
"""Start offset of a share partition that is decided by ``share.auto.offset.reset``."""
UNINITIALIZED_COUNT = -1
"""Unknown delivery-complete count."""


class SharePartitionKey(NamedTuple):
    """A partition of a topic as one share group consumes it (Kafka's ``SharePartitionKey``)."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key of FindCoordinator, whose hash selects the partition of ``__share_group_state``."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """A range of offsets with one delivery state and count.

    ``delivery_state`` is Kafka's ``RecordState``: 0 AVAILABLE, 1 ACQUIRED (never stored), 2 ACKNOWLEDGED,
    3 ARCHIVING, 4 ARCHIVED.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(frozen=True, slots=True)
class StateResult:
    """The result of a call without a state in its response."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the call failed: nothing was changed or read."""
        return self.error is not ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class ReadResult(StateResult):
    """The state of a share partition that its leader reads when it loads the partition."""

    state_epoch: int = -1
    start_offset: int = UNINITIALIZED_OFFSET
    batches: tuple[StateBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryResult(StateResult):
    """The summary of a share partition's state for administration.

    For a partition that was never initialized: offset and count -1, epochs 0, and no error.
    """

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = UNINITIALIZED_COUNT


class Persister(Protocol):
    """Calls the share coordinator of a share partition; the instance in use is ``node.Node.persister``.

    A call does not wait if a coordinator is active. While it loads or moves, the call is retried by the cluster's
    clock; after the last attempt the result has that coordinator's error.
    """

    def close(self) -> None:
        """End with the broker's process, which is killed or reset: calls that wait are not repeated.

        A late write to what a new leader has read, or to another cluster with the same topic ids, would change it.
        """
        ...

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> StateResult:
        """Create or replace the state, with leader epoch 0 and without batches (InitializeShareGroupState)."""
        ...

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadResult:
        """Read the state as the leader of that epoch, which fences older leaders (ReadShareGroupState)."""
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
        """Merge changed batches into the state (WriteShareGroupState).

        ``start_offset`` -1 keeps the stored one. ``delivery_complete_count`` is the number of acknowledged and archived
        offsets at or above the start offset, -1 if unknown.
        """
        ...

    async def delete(self, key: SharePartitionKey) -> StateResult:
        """Delete the state; no error if there is none (DeleteShareGroupState)."""
        ...

    async def read_summary(self, key: SharePartitionKey, leader_epoch: int) -> SummaryResult:
        """Read offsets and counts without the batches; no leader is fenced (ReadShareGroupStateSummary)."""
        ...
