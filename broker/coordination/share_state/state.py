"""State of one share partition and its records, after Kafka's ``ShareGroupOffset``."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.coordination.share_state.batches import combine
from broker.coordination.share_state.persister import (
    UNINITIALIZED_COUNT,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    StateBatch,
)
from protocol.log_records.share_state import RecordedBatch, ShareRecord, ShareSnapshot, ShareUpdate

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareState:
    """Offsets, epochs and batches of a share partition: the last snapshot, merged with the updates since then."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0

    @property
    def is_cold(self) -> bool:
        """Whether the last snapshot repeats an older one."""
        return self.create_timestamp_ms != self.write_timestamp_ms

    def updated(self, change: ShareUpdate, *, joined: bool) -> "ShareState":
        """Return the state with an update record merged into it; ``joined``: equal neighbours become one batch."""
        start = self.start_offset if change.start_offset == UNINITIALIZED_OFFSET else change.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if change.leader_epoch == NO_EPOCH else change.leader_epoch,
            start_offset=start,
            delivery_complete_count=change.delivery_complete_count,
            batches=combine((*self.batches, *read_batches(change.state_batches)), start, joined=joined),
        )

    def snapshot_record(self, key: SharePartitionKey) -> ShareRecord:
        """Return the snapshot record of the state."""
        value = ShareSnapshot(
            self.snapshot_epoch,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.create_timestamp_ms,
            self.write_timestamp_ms,
            write_batches(self.batches),
            self.delivery_complete_count,
        )
        return ShareRecord(*key, value)


def initialized(snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int) -> ShareState:
    """Return the state that InitializeShareGroupState creates."""
    count = UNINITIALIZED_COUNT if start_offset == UNINITIALIZED_OFFSET else 0
    return ShareState(snapshot_epoch, state_epoch, 0, start_offset, count, (), now_ms, now_ms)


def of_snapshot(value: ShareSnapshot) -> ShareState:
    """Return the state in a snapshot record."""
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        read_batches(value.state_batches),
        value.create_timestamp_ms,
        value.write_timestamp_ms,
    )


def of_update(value: ShareUpdate) -> ShareState:
    """Return the state in an update record whose snapshot is not in the log."""
    return ShareState(
        value.snapshot_epoch,
        0,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        read_batches(value.state_batches),
    )


def read_batches(recorded: Iterable[RecordedBatch]) -> tuple[StateBatch, ...]:
    """Return the batches in a record."""
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in recorded
    )


def write_batches(batches: Iterable[StateBatch]) -> tuple[RecordedBatch, ...]:
    """Return batches in the form of a record."""
    return tuple(RecordedBatch(*each) for each in batches)
