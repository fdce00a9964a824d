"""Context that the logs of one data directory share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, Protocol
from uuid import UUID

from protocol.errors import ErrorCode, KafkaError
from storage.files import Files
from storage.files.descriptors import none_left
from storage.log.large_batches import MOST_DECOMPRESSED_BYTES
from storage.ownership import remove_partition_directory
from storage.producers.rules import ProducerRules

_SEGMENTS_IN_USE: Final = 64
"""Closed segments whose indexes are kept in memory, over all logs.

Arbitrary, older segments are read one after another.
"""

SYNC_EVERY: Final = "every"
SYNC_ROLL: Final = "roll"
SYNC_NEVER: Final = "never"


class Unloadable(Protocol):
    """A closed segment."""

    def unload(self) -> None:
        """Drop its indexes from memory."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Truncation of a damaged log by recovery: where the log ends now, and how much was lost.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        offset: where the log ends now; or where a gap in it begins, if it was checked only for a missing or torn index.
        size_bytes: of all that was cut off, whole segments included.
        segments: how many whole segments behind the damage were deleted.
    """

    topic: str
    partition: int
    offset: int
    size_bytes: int
    segments: int


@dataclass(slots=True)
class LogContext:
    """File tree, sync policy, random source and failure state of a data directory.

    Attributes:
        files: the tree of the data directory.
        sync: "every": each append is synced before it is acknowledged; "roll": each segment is synced when it is
            rolled; "never". Written data survives the end of the process in every case; a power cut loses what was
            not synced.
        jitter: `jitter(n)` returns a number in [0, n).
        new_uuid: returns a new random id.
        producer_id_expiration_ms: `producer.id.expiration.ms`.
        decompressed_limit: bytes that a batch may decompress to.
        producer_rules: rules that depend on the broker's release and settings.
        offline: the error that took the directory offline.
        on_failure: called once, when that happens; it must not call into the logs.
        sync_later: `sync_later(paths, done)` syncs files in the background, in the order of the calls, and then calls
            `done(error)`. Without it a segment is synced immediately when it is rolled.
        on_left: called with the paths of foreign files that stayed when their partition was removed.
        on_cut: called when recovery has truncated a damaged log.
        flush_at: called when a log with `flush.ms` has something to sync, with the time at which that is due.
    """

    files: Files
    sync: str = SYNC_NEVER
    jitter: Callable[[int], int] = lambda _: 0
    new_uuid: Callable[[], UUID] = lambda: UUID(int=1)
    producer_id_expiration_ms: int = 86_400_000  # Kafka's default, a day
    decompressed_limit: int = MOST_DECOMPRESSED_BYTES
    producer_rules: ProducerRules = field(default_factory=ProducerRules)
    offline: OSError | None = None
    on_failure: Callable[[], None] = lambda: None
    sync_later: Callable[[Sequence[str], Callable[[OSError | None], None]], None] | None = None
    on_left: Callable[[Sequence[str]], None] = lambda _: None
    on_cut: Callable[[Cut], None] = lambda _: None
    flush_at: Callable[[int], None] = lambda _: None
    _in_use: dict[Unloadable, None] = field(default_factory=dict)
    _removals: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    _removals_planned: int = 0

    @property
    def durable(self) -> bool:
        """Whether small files are synced when they are replaced: only if every append is synced too."""
        return self.sync == SYNC_EVERY

    def storage_error(self, error: OSError, *, fatal: bool = False) -> KafkaError:
        """Mark the directory offline, and return the error to raise (core E.2: 56).

        Running out of file descriptors is not a disk failure: only the current request fails. Unless it is `fatal`: a
        log has a batch that its index does not have, so that the next batch would get the same offsets; or a log is
        not loaded, and would be created again over its files.
        """
        if none_left(error) and not fatal:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No file descriptor is left: {error}")
        if self.offline is None:
            self.offline = error
            self.on_failure()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory is offline: {self.offline}")

    def read_error(self, error: OSError) -> KafkaError:
        """Return the error to raise after a failed read; the directory goes offline as after a failed write.

        A missing file is no failure of the disk: its topic may have been deleted while a long search was under way.
        """
        if isinstance(error, FileNotFoundError):
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A file is gone: {error}")
        return self.storage_error(error)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn an OSError of the block into KAFKA_STORAGE_ERROR, with the directory offline."""
        try:
            yield
        except OSError as error:
            raise self.storage_error(error) from error

    def check(self) -> None:
        """Check that the directory is online.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, it is offline.
        """
        if self.offline is not None:
            raise self.storage_error(self.offline)

    def use(self, segment: Unloadable) -> None:
        """Note that a closed segment is read: its indexes stay in memory while it is among the most recently used."""
        used = self._in_use
        if used.pop(segment, False) is False and len(used) >= _SEGMENTS_IN_USE:
            oldest = next(iter(used))
            del used[oldest]
            oldest.unload()
        used[segment] = None

    def remove_at(self, due_ms: int, paths: Sequence[str]) -> None:
        """Schedule the removal of files or directories; in memory they are removed immediately."""
        if self.files.lazy:
            self._remove(paths)
        else:
            self._removals_planned += 1
            heappush(self._removals, (due_ms, self._removals_planned, tuple(paths)))

    @property
    def next_removal_ms(self) -> int | None:
        """Time at which the next scheduled removal is due; None without one."""
        return self._removals[0][0] if self._removals else None

    def remove_due(self, now_ms: int) -> int:
        """Remove files and directories that are due; return how many."""
        removed = 0
        while self._removals and self._removals[0][0] <= now_ms:
            _, _, paths = heappop(self._removals)
            self._remove(paths)
            removed += len(paths)
        return removed

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            if not self.files.is_directory(path):
                self.files.remove(path)
            elif self.files.lazy:
                self.files.remove_tree(path)
            elif left := remove_partition_directory(self.files, path):
                self.on_left(left)
