"""Tiered storage: copies closed segments, moves copied ones out of the local log, and expires both (core F.10).

The remote tier is a part of the log's own directory: the files of a segment that local retention removes get the suffix
`.tiered`. So each replica has the tier for itself, and nothing is written twice (Kafka: RemoteLogManager).
"""

import itertools
from collections.abc import Iterator, Sequence

from storage.log.config import LogConfig
from storage.log.partition_log import PartitionLog
from storage.log.segment import LOG_SUFFIX, TIERED_SUFFIX, Segment
from storage.log.tier import Tier

_NOTHING = -1


def tier_of(log: PartitionLog) -> Tier:
    """Return the log's tier, creating it if it has none."""
    if log.tier is None:
        log.tier = log.reader.tier = Tier(log.context, log.directory)
    return log.tier


def load(log: PartitionLog, bases: Sequence[int]) -> None:
    """Open the segments of the tier, which begin at these offsets."""
    for base in bases:
        context, tier = log.context, tier_of(log)
        segment = Segment(context.files, log.directory, base, log.config.segment_index_bytes, TIERED_SUFFIX)
        segment.created_ms = segment.modified_ms = context.files.mtime_ms(segment.path_of(LOG_SUFFIX))
        segment.restore_largest_timestamp_by_scan()
        segment.close()
        segment.unload()
        tier.segments.add(segment)
    if log.tier is not None:
        log.tier.copied = log.segments.first.base_offset - 1 if log.segments else _NOTHING


# --- copying ----------------------------------------------------------------------------------------------------------


def copy(log: PartitionLog, now_ms: int) -> None:
    """Copy the closed segments below the last stable offset, except those that the lag keeps (RLMCopyTask)."""
    tier, stable_offset = tier_of(log), log.last_stable_offset
    if tier.copied >= stable_offset:
        return
    waiting = list(log.segments.from_offset(max(tier.copied + 1, log.log_start_offset)))
    behind = sum(segment.size for segment in waiting)
    for segment, following in itertools.pairwise(waiting):
        if following.base_offset > stable_offset:
            break
        behind -= segment.size
        if not _may_copy(log.config, segment, now_ms, behind):
            break
        tier.copied = following.base_offset - 1


def _may_copy(config: LogConfig, segment: Segment, now_ms: int, behind: int) -> bool:
    """Whether a segment is old enough, or enough bytes are behind it (KIP-1241)."""
    lag_ms, lag_bytes = config.remote_copy_lag_ms, config.remote_copy_lag_bytes
    lag_ms = config.local_ms if lag_ms == -1 else lag_ms
    lag_bytes = config.local_bytes if lag_bytes == -1 else lag_bytes
    if lag_ms == 0 or lag_bytes == 0:
        return True
    age_ms = now_ms - segment.largest_time_ms
    return (lag_ms > 0 and (age_ms < 0 or age_ms >= lag_ms)) or 0 < lag_bytes <= behind


def follow(log: PartitionLog, copied: int) -> None:
    """Note at a replica what the leader has copied, and remove from the tier what is below the log's start."""
    tier = tier_of(log)
    tier.copied = copied
    with log.context.guard():
        for segment in tier.segments:
            following = tier.segments.after(segment) or log.segments.first
            if following.base_offset > log.log_start_offset:
                break
            tier.segments.remove(segment)
            segment.remove()


# --- retention --------------------------------------------------------------------------------------------------------


def is_copied(log: PartitionLog, following: Segment | None) -> bool:
    """Whether the segment before ``following`` may leave the local log: it is copied, or below the log's start."""
    if following is None:
        return False
    end, tier = following.base_offset, log.tier
    return end <= log.log_start_offset or (tier is not None and end - 1 <= tier.copied)


def move(log: PartitionLog, segments: Sequence[Segment], now_ms: int) -> None:
    """Move segments that local retention removes to the tier."""
    tier = tier_of(log)
    for segment in segments:
        snapshots = log.producer_log.detach_snapshot(segment.base_offset)
        log.context.remove_at(now_ms + log.config.file_delete_delay_ms, snapshots)
        log.segments.remove(segment)
        segment.close()
        segment.rename_suffix(TIERED_SUFFIX)
        tier.segments.add(segment)


def expire(log: PartitionLog, now_ms: int) -> None:
    """Raise the log's start by `retention.ms` and `retention.bytes` over both tiers (RLMExpirationTask)."""
    config, start = log.config, log.log_start_offset
    excess = _size(log) - config.retention_bytes if config.retention_bytes >= 0 else 0
    until_ms = now_ms - config.retention_ms if config.retention_ms >= 0 else -1
    for segment, end in _copied(log):
        if end <= start:
            continue
        if until_ms >= 0 and segment.largest_time_ms <= until_ms:
            start = end
        elif excess > 0 and excess >= segment.size:
            excess -= segment.size
            start = end
        else:
            break
    if start > log.log_start_offset:
        log.raise_start(start)


def _copied(log: PartitionLog) -> Iterator[tuple[Segment, int]]:
    """Yield the copied segments, local or not, and where each ends."""
    tier = tier_of(log)
    everything = [*tier.segments, *log.segments]
    for segment, following in itertools.pairwise(everything):
        if following.base_offset - 1 > tier.copied:
            return
        yield segment, following.base_offset


def _size(log: PartitionLog) -> int:
    """Return the bytes of both tiers from the log's start on."""
    tier, start = tier_of(log), log.log_start_offset
    everything = [*tier.segments, *log.segments]
    ends = [*(each.base_offset for each in everything[1:]), log.log_end_offset + 1]
    return sum(segment.size for segment, end in zip(everything, ends, strict=True) if end > start)


def due_ms(log: PartitionLog) -> int | None:
    """Return when time alone gives a round something to do; None for never."""
    tier = log.tier
    waiting = log.segments.from_offset(0 if tier is None else tier.copied + 1)
    if log.config.copied and len(list(waiting)) > 1:
        return 0
    if log.config.retention_ms < 0 or tier is None:
        return None
    oldest = next(_copied(log), None)
    return None if oldest is None else oldest[0].largest_time_ms + log.config.retention_ms


def drop(log: PartitionLog) -> None:
    """Remove the tier with all that is in it; the log starts where its local part does."""
    tier = log.tier
    if tier is None:
        return
    log.raise_start(log.local_log_start_offset)
    with log.context.guard():
        for segment in tier.segments:
            tier.segments.remove(segment)
            segment.remove()
    log.tier = log.reader.tier = None
