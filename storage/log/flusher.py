"""Flushing a log to disk: by `flush.messages`, by `flush.ms`, and at a roll of a segment (Kafka: UnifiedLog.flush)."""

from collections.abc import Callable, Sequence

from storage.log.config import MAX_LONG, LogConfig
from storage.log.context import SYNC_NEVER, SYNC_ROLL, LogContext
from storage.log.offsets import LogBounds
from storage.log.segment import Segment, Segments


class Flusher:
    """Syncs the segments of one log, and moves its recovery point."""

    __slots__ = ("_appended_since", "_bounds", "_context", "_due_ms", "_is_syncing", "_requested", "_segments")

    def __init__(self, context: LogContext, segments: Segments, bounds: LogBounds) -> None:
        self._context, self._segments, self._bounds = context, segments, bounds
        self._due_ms: int | None = None
        self._is_syncing = self._appended_since = False  # of flush_soon
        self._requested = (0, 0)  # truncations of the log, and the offset up to which background syncs were requested

    def appended(self, config: LogConfig, now_ms: int) -> None:
        """Flush after an append, or schedule the flush."""
        bounds = self._bounds
        if bounds.log_end_offset - bounds.recovery_point >= config.flush_messages:
            self.flush()
        elif config.flush_ms != MAX_LONG and self._due_ms is None:
            self._due_ms = now_ms + config.flush_ms
            self._context.flush_at(self._due_ms)

    def flush(self) -> None:
        """Sync all segments that are not flushed yet, independent of the sync policy."""
        with self._context.guard():
            for segment in self._segments.from_offset(self._bounds.recovery_point):
                segment.sync()
            if self._segments.names_are_new:
                self._segments.sync_names()
        self._due_ms = None
        self._bounds.flushed(self._bounds.log_end_offset)

    def synced_at_roll(self) -> bool:
        """Sync what is not flushed yet before a roll; False if the sync policy leaves that to the background.

        After a kill these may be segments of the earlier process, too: the recovery point is about to pass them.
        """
        context = self._context
        if context.sync == SYNC_ROLL and context.sync_later is not None:
            return False
        if context.sync != SYNC_NEVER:
            for segment in self._segments.from_offset(self._bounds.recovery_point):
                segment.sync()
        return True

    def flush_if_due(self, now_ms: int) -> int | None:
        """Flush if `flush.ms` has passed, in the background if possible; else return the time of the next flush."""
        due_ms = self._due_ms
        if due_ms is None or now_ms < due_ms:
            return due_ms
        self._due_ms = None
        self.flush_later(list(self._segments.from_offset(self._bounds.recovery_point)))
        return None

    def flush_soon(self) -> None:
        """Sync the active segment in the background, and once more if batches are appended meanwhile.

        For the metadata log under the policy "roll": without a topic's records its partitions are strays, no matter
        how much of them is on disk.
        """
        if self._context.sync != SYNC_ROLL or self._context.sync_later is None:
            return
        if self._is_syncing:
            self._appended_since = True
            return
        self._is_syncing, self._appended_since = True, False
        self.flush_later([self._segments.active], self._synced)

    def _synced(self) -> None:
        self._is_syncing = False
        if self._appended_since and self._context.offline is None and self._segments:
            self.flush_soon()

    def flush_later(self, segments: Sequence[Segment], then: Callable[[], None] = lambda: None) -> None:
        """Sync segments while appends continue, then advance the recovery point (UnifiedLog.roll: flush-log).

        Older segments whose sync was not requested yet come first. Without `sync_later` everything is synced
        immediately. `then` is called at the end.
        """
        context, bounds = self._context, self._bounds
        end_offset, cuts = bounds.log_end_offset, bounds.cuts
        requested_offset = self._requested[1] if self._requested[0] == cuts else 0
        older = self._segments.from_offset(max(bounds.recovery_point, requested_offset))
        wanted = [*(each for each in older if each.base_offset < segments[0].base_offset), *segments]
        self._requested = (cuts, end_offset)

        def done(error: OSError | None) -> None:
            if error is None:
                if bounds.recovery_point < end_offset <= bounds.log_end_offset and bounds.cuts == cuts:
                    bounds.flushed(end_offset)
            elif not isinstance(error, FileNotFoundError):  # else: deleted in the meantime
                context.storage_error(error)
            then()

        if context.sync_later is None:
            with context.guard():
                for segment in wanted:
                    segment.sync()
                self._segments.sync_names()
            done(None)
        else:
            self._segments.names_are_new = False
            context.sync_later([*(path for each in wanted for path in each.paths()), *self._segments.names()], done)
