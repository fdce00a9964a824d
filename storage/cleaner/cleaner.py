"""The log cleaner: selects the compacted log to clean next (core F.6.1; Kafka: LogCleaner, LogCleanerManager).

Called by a timer (`log.cleaner.backoff.ms`) or on demand, always with the cluster's time.
"""

from collections.abc import Iterator

from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import RecordsError
from storage.checkpoints import CLEANER
from storage.cleaner.compaction import DEFAULT_MAP_ENTRIES, OffsetMap, Round, compact
from storage.indexes.segment_index import IndexCorruptError
from storage.log import retention
from storage.log.config import MAX_LONG
from storage.log.partition_log import PartitionLog
from storage.log_dir import Key, LogDir


@dataclass(frozen=True, slots=True)
class Cleanable:
    """Compacted log, clean below `first_dirty_offset` and dirty up to `upper_bound` (LogToClean)."""

    log: PartitionLog
    first_dirty_offset: int
    upper_bound: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Whether the oldest dirty record is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        """Ratio of dirty bytes to all bytes, 0 to 1."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log has to be cleaned by its topic's settings."""
        return (self.overdue and self.dirty_bytes > 0) or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


class LogCleaner:
    """The cleaner of one data directory.

    Args:
        log_dir: the data directory whose logs are cleaned.
        map_entries: how many distinct keys fit into the offset map of a round.
    """

    def __init__(self, log_dir: LogDir, *, map_entries: int = DEFAULT_MAP_ENTRIES) -> None:
        self._log_dir = log_dir
        self._map_entries = map_entries
        self._worked_bytes = 0
        self.uncleanable: dict[Key, KafkaError] = {}
        """Damaged logs, which are skipped until the next start (LogCleanerManager)."""

    def run(self, now_ms: int, *, force: bool = False) -> int:
        """Clean every log that is due, the dirtiest first, then apply retention to compacted logs.

        Args:
            now_ms: the cluster's time.
            force: clean everything that can be cleaned, regardless of the dirty ratio.

        Returns:
            The number of cleaned logs.
        """
        cleaned = 0
        for _ in self.steps(now_ms, force=force):
            cleaned += _ is not None
        return cleaned

    @property
    def worked_bytes(self) -> int:
        """Bytes read in total, by which the caller decides when to let other tasks run."""
        return self._worked_bytes

    def steps(self, now_ms: int, *, force: bool = False) -> Iterator[PartitionLog | None]:
        """Clean as `run` does, in small steps: yields each cleaned log, and None in between.

        The logs may change between two steps, or even be deleted; but only one round may run at a time.
        """
        done: set[Key] = set()
        while self._log_dir.context.offline is None:
            due = [
                cleanable
                for cleanable in self.cleanables(now_ms)
                if (cleanable.log.topic, cleanable.log.partition) not in done
                and (cleanable.is_due or (force and cleanable.dirty_bytes))
            ]
            if not due:
                break
            chosen = max(due, key=lambda cleanable: cleanable.dirty_ratio)
            log = chosen.log
            done.add((log.topic, log.partition))
            for _ in self._clean(chosen, now_ms):
                yield None
            yield log
        for log in self._compacted():
            try:
                retention.run(log, now_ms)
            except KafkaError:
                return

    def cleanables(self, now_ms: int) -> list[Cleanable]:
        """Return all compacted logs that are not empty, with their cleanable ranges."""
        return [self._cleanable(log, now_ms) for log in self._compacted() if log.log_end_offset > log.log_start_offset]

    def due_ms(self, now_ms: int) -> int | None:
        """Return when time alone gives :meth:`run` something to do; None for never.

        A log with a lag in its settings and closed segments that are not clean may be due at any time: ``now_ms``.
        """
        due_times = []
        for log in self._compacted():
            lagging = log.config.min_compaction_lag_ms > 0 or log.config.max_compaction_lag_ms < MAX_LONG
            if lagging and log.segments.active.base_offset > self._first_dirty_of(log):
                return now_ms
            due_times.append(retention.due_ms(log))
        return min((each for each in due_times if each is not None), default=None)

    def _compacted(self) -> list[PartitionLog]:
        return [
            log
            for log in self._log_dir
            if log.config.compact and len(log.segments) and (log.topic, log.partition) not in self.uncleanable
        ]

    def _first_dirty_of(self, log: PartitionLog) -> int:
        """Return the first dirty offset, lowered if the log was truncated below it (maybeTruncateCheckpoint)."""
        key, cut_to = (log.topic, log.partition), log.bounds.take_lowest_cut()
        known = self._log_dir.first_dirty.get(key)
        if known is not None and cut_to < known:
            self._log_dir.first_dirty[key] = known = cut_to
            self._log_dir.write_offsets(CLEANER, self._log_dir.first_dirty)
        return log.log_start_offset if known is None else known

    def _cleanable(self, log: PartitionLog, now_ms: int) -> Cleanable:
        first_dirty = self._first_dirty_of(log)
        if not log.log_start_offset <= first_dirty <= log.log_end_offset:
            first_dirty = log.log_start_offset
        upper_bound = max(first_dirty, self._first_uncleanable(log, first_dirty, now_ms))
        clean = dirty = 0
        oldest_ms = None
        for segment in log.segments:
            following = log.segments.after(segment)
            if segment.base_offset < first_dirty:
                clean += segment.size
            if following is not None and following.base_offset > first_dirty:
                if following.base_offset <= upper_bound:
                    dirty += segment.size
                if segment.first_timestamp_ms > 0:
                    oldest_ms = min(segment.first_timestamp_ms, oldest_ms or segment.first_timestamp_ms)
        overdue = oldest_ms is not None and oldest_ms < now_ms - log.config.max_compaction_lag_ms
        return Cleanable(log, first_dirty, upper_bound, clean, dirty, overdue)

    @staticmethod
    def _first_uncleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
        """Return the base of the first segment that has the last stable offset, is active, or is too young."""
        bounds = [log.last_stable_offset, log.segments.active.base_offset]
        if log.config.min_compaction_lag_ms > 0:
            youngest_ms = now_ms - log.config.min_compaction_lag_ms
            for segment in log.segments.from_offset(first_dirty):
                if segment is not log.segments.active and segment.largest_time_ms > youngest_ms:
                    bounds.append(segment.base_offset)
                    break
        floor = log.segments.floor(min(bounds))
        return log.log_start_offset if floor is None else floor.base_offset

    def _clean(self, cleanable: Cleanable, now_ms: int) -> Iterator[None]:
        log, cuts = cleanable.log, cleanable.log.bounds.cuts
        work = Round(log, cleanable.first_dirty_offset, cleanable.upper_bound, now_ms, OffsetMap(self._map_entries))
        pieces, before = compact(work), 0
        while self._log_dir.get(log.topic, log.partition) is log and log.bounds.cuts == cuts:
            try:
                next(pieces)
            except StopIteration:
                break
            except KafkaError as error:
                self.uncleanable[log.topic, log.partition] = error
                return
            except (RecordsError, IndexCorruptError) as error:  # a batch whose records cannot be read
                self.uncleanable[log.topic, log.partition] = KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))
                return
            except FileNotFoundError:
                return  # its segments were deleted, with their files; the next round starts again
            except OSError as error:
                self._log_dir.context.storage_error(error)
                return
            finally:
                self._worked_bytes += work.worked_bytes - before
                before = work.worked_bytes
            yield None
        else:
            return  # deleted or truncated meanwhile: the map and the cleaned files may contain records that are gone
        if not work.given_up:
            self._log_dir.first_dirty[log.topic, log.partition] = work.end_offset
            self._log_dir.write_offsets(CLEANER, self._log_dir.first_dirty)

    def forget(self, topic: str, partition: int) -> None:
        """Forget the cleaned offset of a deleted log: a new log of that name is dirty from its start."""
        self.uncleanable.pop((topic, partition), None)
        if self._log_dir.first_dirty.pop((topic, partition), None) is not None:
            self._log_dir.write_offsets(CLEANER, self._log_dir.first_dirty)
