"""Retention: deletes segments by log start, size and time (core F.4; Kafka: UnifiedLog.deleteOldSegments).

Of a log with a remote tier only what is copied goes, into the tier, by the local limits (core F.10).
"""

from collections.abc import Callable

from storage.log import tiering
from storage.log.config import LogConfig
from storage.log.offsets import LogBounds
from storage.log.partition_log import PartitionLog
from storage.log.segment import Segment, Segments

Rule = Callable[[Segment, Segment | None], bool]
"""A segment and the next one (None for the active segment) -> whether to delete the segment."""


def run(log: PartitionLog, now_ms: int) -> int:
    """Delete segments by the topic's settings; return how many.

    Logs whose policy has no "delete" only lose segments below their start. The caller leaves compacted logs to the
    cleaner, which applies the same rules to `compact,delete`.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
    """
    config, segments = log.config, log.segments
    if not segments:
        return 0
    with log.context.guard():
        deleted = _delete_while(log, _below_start(log.bounds), now_ms)
        if config.delete or config.copied:
            deleted += _delete_while(log, _beyond_size(segments, config), now_ms)
            deleted += _delete_while(log, _beyond_time(config, now_ms), now_ms)
    return deleted


def due_ms(log: PartitionLog) -> int | None:
    """Return when time alone makes :func:`run` delete something; None for never."""
    first = next(iter(log.segments), None)
    if first is None or not (log.config.delete or log.config.copied) or log.config.local_ms < 0:
        return None
    if first is log.segments.active and not first.size:
        return None
    return first.largest_time_ms + log.config.local_ms + 1


def _delete_while(log: PartitionLog, rule: Rule, now_ms: int) -> int:
    doomed = _deletable(log, rule)
    if log.config.copied:
        return _move_away(log, doomed, rule, now_ms)
    if not doomed:
        return 0
    if len(doomed) == len(log.segments):
        log.roll(now_ms)  # so that a segment is left to append to (core F.4.5)
    log.delete_segments(doomed, now_ms)
    log.raise_start(log.segments.first.base_offset)
    return len(doomed)


def _move_away(log: PartitionLog, doomed: list[Segment], rule: Rule, now_ms: int) -> int:
    """Move to the tier what is copied; roll the active segment if only its being active keeps it."""
    active = log.segments.active
    is_last = len(doomed) == len(log.segments) - 1
    if is_last and active.size and log.high_watermark >= log.log_end_offset and rule(active, None):
        log.roll(now_ms)
    below = [
        each for each in doomed if (after := log.segments.after(each)) and after.base_offset <= log.log_start_offset
    ]
    log.delete_segments(below, now_ms)
    tiering.move(log, doomed[len(below) :], now_ms)
    return len(doomed)


def _below_start(bounds: LogBounds) -> Rule:
    return lambda _, following: following is not None and following.base_offset <= bounds.log_start_offset


def _beyond_size(segments: Segments, config: LogConfig) -> Rule:
    limit = config.local_bytes
    excess = segments.size - limit

    def rule(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        # A segment goes only if what is left still reaches the limit: a log keeps up to a segment more than it.
        if limit < 0 or excess - segment.size < 0:
            return False
        excess -= segment.size
        return True

    return rule


def _beyond_time(config: LogConfig, now_ms: int) -> Rule:
    limit = config.local_ms
    return lambda segment, _: limit >= 0 and now_ms - segment.largest_time_ms > limit


def _deletable(log: PartitionLog, rule: Rule) -> list[Segment]:
    """List the oldest segments, up to the first one that the rule, the high watermark or the tier protects."""
    doomed: list[Segment] = []
    segments, bounds = log.segments, log.bounds
    for segment in segments:
        following = segments.after(segment)
        end = bounds.log_end_offset if following is None else following.base_offset
        is_empty_active = following is None and not segment.size
        # The log start never passes the high watermark: what is not replicated stays, however old.
        if is_empty_active or bounds.high_watermark < end:
            break
        if (log.config.copied and not tiering.is_copied(log, following)) or not rule(segment, following):
            break
        doomed.append(segment)
    return doomed
