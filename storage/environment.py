"""What the logs of one data directory share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final
from uuid import UUID

from protocol.errors import ErrorCode, KafkaError
from storage.files import Files
from storage.producer_rules import ProducerRules

if TYPE_CHECKING:
    from storage.segment import Segment

_SEGMENTS_IN_USE: Final = 64
"""Closed segments whose indexes are kept in memory, over all logs."""

SYNC_EVERY: Final = "every"
SYNC_ROLL: Final = "roll"
SYNC_NEVER: Final = "never"


@dataclass(slots=True)
class LogEnvironment:
    """The tree, the sync policy, chance, and whether the directory still works.

    Attributes:
        files: the tree that the data directory is.
        sync: "every" append is synced before it is acknowledged; each segment is, when it is rolled ("roll"); or
            "never". What a killed process wrote is safe in every case; a machine that loses power takes what was not
            synced.
        jitter: `jitter(n)` answers a number in [0, n).
        new_uuid: a fresh random id.
        producer_id_expiration_ms: `producer.id.expiration.ms`.
        producer_rules: what the broker's release and settings decide about producers.
        offline: the error that took the directory offline.
        on_failure: called once, when that happens; it must not come back into the logs at once.
        sync_later: `sync_later(paths, done)` makes files durable while others go on, in the order in which it is asked,
            and then calls `done(error)`. Without it a segment is synced at once when it is rolled.
        flush_at: told when a log with `flush.ms` has something to sync, and the time at which `flush_if_due` will.
    """

    files: Files
    sync: str = SYNC_NEVER
    jitter: Callable[[int], int] = lambda _: 0
    new_uuid: Callable[[], UUID] = lambda: UUID(int=1)
    producer_id_expiration_ms: int = 86_400_000
    producer_rules: ProducerRules = field(default_factory=ProducerRules)
    offline: OSError | None = None
    on_failure: Callable[[], None] = lambda: None
    sync_later: Callable[[Sequence[str], Callable[[OSError | None], None]], None] | None = None
    flush_at: Callable[[int], None] = lambda _: None
    _in_use: dict["Segment", None] = field(default_factory=dict)
    _removals: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)
    _removals_planned: int = 0

    @property
    def durable(self) -> bool:
        """Whether small files are synced when they are replaced: what depends on every append being safe."""
        return self.sync == SYNC_EVERY

    def refuse(self, error: OSError) -> KafkaError:
        """Take the directory offline; answers what whoever asked is to be told (core E.2: 56)."""
        if self.offline is None:
            self.offline = error
            self.on_failure()
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log directory is offline: {self.offline}")

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn an OSError of the block into KAFKA_STORAGE_ERROR, with the directory offline."""
        try:
            yield
        except OSError as error:
            raise self.refuse(error) from error

    def check(self) -> None:
        """Look whether the directory works.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, it is offline.
        """
        if self.offline is not None:
            raise self.refuse(self.offline)

    def use(self, segment: "Segment") -> None:
        """A closed segment was read: its indexes stay in memory until others have been read more lately."""
        used = self._in_use
        if used.pop(segment, False) is False and len(used) >= _SEGMENTS_IN_USE:
            oldest = next(iter(used))
            del used[oldest]
            oldest.unload()
        used[segment] = None

    def remove_at(self, due_ms: int, paths: Sequence[str]) -> None:
        """Plan to remove files or directories; in a tree that nobody can look at they go at once."""
        if self.files.lazy:
            self._remove(paths)
        else:
            self._removals_planned += 1
            heappush(self._removals, (due_ms, self._removals_planned, tuple(paths)))

    @property
    def next_removal_ms(self) -> int | None:
        """When the next planned removal is due; None without one."""
        return self._removals[0][0] if self._removals else None

    def remove_due(self, now_ms: int) -> int:
        """Remove what is due; how many things were."""
        removed = 0
        while self._removals and self._removals[0][0] <= now_ms:
            _, _, paths = heappop(self._removals)
            self._remove(paths)
            removed += len(paths)
        return removed

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self.files.is_directory(path):
                self.files.remove_tree(path)
            else:
                self.files.remove(path)
