"""Periodic work of the share coordinator (groups D.9): repeated snapshots, and pruning of the log.

Kafka runs it every ``share.coordinator.cold.partition.snapshot.interval.ms`` and
``share.coordinator.state.topic.prune.interval.ms``. Here a timer runs only if there may be work, so that idle
coordinators do not slow down an advance of the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from broker.coordination.outcome import Outcome, SetTimer
from broker.coordination.settings import Settings
from broker.coordination.share_state.persister import SharePartitionKey
from broker.coordination.share_state.state import ShareState

_SNAPSHOT_INTERVAL = "share.coordinator.cold.partition.snapshot.interval.ms"
_PRUNE_INTERVAL = "share.coordinator.state.topic.prune.interval.ms"


@dataclass(frozen=True, slots=True)
class PruneLog:
    """Delete the log's records below ``offset``, which later snapshots have replaced."""

    offset: int


ShareOutcome = Outcome[PruneLog]


class Rounds:
    """The two kinds of rounds over the ``states`` of one machine."""

    def __init__(self, settings: Settings, states: Mapping[SharePartitionKey, ShareState]) -> None:
        self._settings, self._states = settings, states
        self._snapshots: dict[SharePartitionKey, int] = {}
        """Share partition -> log offset of its last snapshot."""
        self._last_offset = 0
        self._pruned = 0
        self._due_ms: dict[str, int] = {}
        """When each armed timer fires (ms); a time in the past, left by a refused record, does not count."""

    # --- replay ------------------------------------------------------------------------------------------------------

    def snapshot_at(self, key: SharePartitionKey, offset: int) -> None:
        """Note a snapshot record."""
        self._snapshots[key] = self._last_offset = offset

    def deleted_at(self, key: SharePartitionKey, offset: int) -> None:
        """Note a tombstone."""
        self._snapshots.pop(key, None)
        self._last_offset = offset

    @property
    def last_redundant_offset(self) -> int:
        """The offset below which later records replace all others (Kafka's ``ShareCoordinatorOffsetsManager``)."""
        return min(self._snapshots.values(), default=self._last_offset)

    # --- timers ------------------------------------------------------------------------------------------------------

    def start(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the timers after the log was read, if there are snapshots."""
        self._due_ms.clear()
        if not self._snapshots:
            return ()
        return self.watch(now_ms)

    def watch(self, now_ms: int) -> tuple[SetTimer, ...]:
        """Arm the timers that are not armed, as a record is being written."""
        timers = []
        for interval, then in ((_SNAPSHOT_INTERVAL, self.repeat_snapshots), (_PRUNE_INTERVAL, self.prune)):
            if self._due_ms.get(interval, -1) < now_ms:
                self._due_ms[interval] = now_ms + self._settings.int(interval)
                timers.append(SetTimer(interval, self._due_ms[interval], then))
        return tuple(timers)

    def repeat_snapshots(self, now_ms: int) -> ShareOutcome:
        """Write snapshots of share partitions without recent writes, unless the last snapshots of all are repeats."""
        self._due_ms.pop(_SNAPSHOT_INTERVAL, None)
        if all(state.is_cold for state in self._states.values()):
            return Outcome()
        interval_ms = self._settings.int(_SNAPSHOT_INTERVAL)
        records = tuple(
            replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms).snapshot_record(key)
            for key, state in self._states.items()
            if now_ms - state.write_timestamp_ms >= interval_ms
        )
        return Outcome(records, self.watch(now_ms))

    def prune(self, now_ms: int) -> ShareOutcome:
        """Have the log pruned, if more records have become redundant since the last time."""
        self._due_ms.pop(_PRUNE_INTERVAL, None)
        offset = self.last_redundant_offset
        if offset <= self._pruned:
            return Outcome()
        self._pruned = offset
        return Outcome(effects=(*self.watch(now_ms), PruneLog(offset)))
