"""Flushing a log to disk: by `flush.messages`, by `flush.ms`, and at a roll of a segment (Kafka: UnifiedLog.flush)."""

from collections.abc import Sequence

from storage.log.bounds import LogBounds
from storage.log.config import MAX_LONG, LogConfig
from storage.log.context import LogContext
from storage.log.segment import Segment
from storage.log.segments import Segments


class Flusher:
    """Syncs the segments of one log, and moves its recovery point."""

    __slots__ = ("_bounds", "_context", "_due_ms", "_segments")

    def __init__(self, context: LogContext, segments: Segments, bounds: LogBounds) -> None:
        self._context, self._segments, self._bounds = context, segments, bounds
        self._due_ms: int | None = None

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
        self._due_ms = None
        self._bounds.flushed(self._bounds.log_end_offset)

    def flush_if_due(self, now_ms: int) -> int | None:
        """Flush if `flush.ms` has passed, in the background if possible; else return the time of the next flush."""
        due_ms = self._due_ms
        if due_ms is None or now_ms < due_ms:
            return due_ms
        self._due_ms = None
        self.flush_later(list(self._segments.from_offset(self._bounds.recovery_point)))
        return None

    def flush_later(self, segments: Sequence[Segment]) -> None:
        """Sync segments while appends go on; the recovery point follows (UnifiedLog.roll: flush-log).

        If the context has no `sync_later`, they are synced at once.
        """
        context, bounds, end_offset = self._context, self._bounds, self._bounds.log_end_offset

        def done(error: OSError | None) -> None:
            if isinstance(error, FileNotFoundError):
                return  # deleted in the meantime
            if error is not None:
                context.storage_error(error)
            elif bounds.recovery_point < end_offset <= bounds.log_end_offset:
                bounds.flushed(end_offset)

        if context.sync_later is None:
            with context.guard():
                for segment in segments:
                    segment.sync()
            done(None)
        else:
            context.sync_later([path for segment in segments for path in segment.paths()], done)
