"""Which segments have to go: by log start, size and time (core F.4; Kafka: UnifiedLog.deleteOldSegments)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage import truncation
from storage.segment import Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

Rule = Callable[[Segment, Segment | None], bool]
"""Asked with a segment and the next one (None for the active segment): whether the segment is to go."""


def run(log: "PartitionLog", now_ms: int) -> int:
    """Delete what the topic's settings do not let stay; how many segments went.

    Logs whose policy has no "delete" only lose what lies below their start. The caller leaves compacted logs to the
    cleaner, which applies the same rules to `compact,delete`.
    """
    if not len(log.segments):
        return 0
    deleted = _delete_while(log, _below_start(log), now_ms)
    if log.config.delete:
        deleted += _delete_while(log, _beyond_size(log), now_ms)
        deleted += _delete_while(log, _beyond_time(log, now_ms), now_ms)
    return deleted


def _below_start(log: "PartitionLog") -> Rule:
    return lambda _, following: following is not None and following.base_offset <= log.log_start_offset


def _beyond_size(log: "PartitionLog") -> Rule:
    limit = log.config.retention_bytes
    excess = log.size_bytes - limit

    def rule(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        if limit < 0 or excess - segment.size < 0:
            return False
        excess -= segment.size
        return True

    return rule


def _beyond_time(log: "PartitionLog", now_ms: int) -> Rule:
    limit = log.config.retention_ms
    return lambda segment, _: limit >= 0 and now_ms - segment.largest_time_ms > limit


def _delete_while(log: "PartitionLog", rule: Rule, now_ms: int) -> int:
    """Delete the oldest segments, up to the first one that the rule or the high watermark protects."""
    doomed = []
    for segment in log.segments:
        following = log.segments.after(segment)
        end = log.log_end_offset if following is None else following.base_offset
        is_empty_active = following is None and not segment.size
        if is_empty_active or log.high_watermark < end or not rule(segment, following):
            break
        doomed.append(segment)
    if not doomed:
        return 0
    if len(doomed) == len(log.segments):
        log.roll(now_ms)  # so that a segment is left to append to (rule 5)
    truncation.delete_segments(log, doomed, now_ms)
    truncation.raise_log_start(log, log.segments.first.base_offset)
    return len(doomed)
