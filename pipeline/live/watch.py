"""Follows a cluster step by step: a copy of its logs in a folder like a data directory, and its brokers' reports.

Batches are copied unchanged, so the checks of a data directory find the same faults in them. What the cluster compacts
later stays in the copy until it exceeds its size limit, what it deletes is removed in the next step; what was compacted
before is recognized by the gaps.
"""

import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from pipeline.live.asking import Answers, LiveCluster, Place
from pipeline.transfer.wire import EARLIEST, LATEST
from storage.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    PARTITION_METADATA,
    encode_offsets,
    encode_partition_metadata,
)
from storage.log.segment import LOG_SUFFIX, offset_name

SEGMENT_BYTES: Final = 4 << 20  # arbitrary: small, as old segments are dropped whole
MOST_BYTES: Final = 128 << 20  # arbitrary: of all copied logs, which may be on a small disk
COORDINATORS: Final = ("__transaction_state", "__consumer_offsets", "__share_group_state")
"""Copied first: coordinators record a decision before it takes effect in other logs."""
_HEAD: Final = struct.Struct(">qiibIhi")
_OVERHEAD: Final = 12  # bytes before and of the length field (core D.4)
_COUNT_AT: Final = 57  # of the record count
_MAGIC: Final = 2
_FINISHING: Final = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")


class Frame(NamedTuple):
    """A batch, known only by its header, which is not verified."""

    start: int
    stop: int
    base_offset: int
    next_offset: int
    is_full: bool
    """Whether it has a record for each of its offsets."""


def frames(piece: bytes) -> Iterator[Frame]:
    """Return the complete batches of a fetched piece."""
    at = 0
    while at + _HEAD.size <= len(piece):
        base, size, _, magic, _, _, delta = _HEAD.unpack_from(piece, at)
        stop = at + _OVERHEAD + size
        if size <= _HEAD.size - _OVERHEAD or stop > len(piece):
            return
        if magic == _MAGIC and size >= _COUNT_AT + 4 - _OVERHEAD:
            (count,) = struct.unpack_from(">i", piece, at + _COUNT_AT)
            yield Frame(at, stop, base, base + delta + 1, count == delta + 1)
        else:
            yield Frame(at, stop, base, base + 1, is_full=True)
        at = stop


class Copied:
    """The copy of one partition. Offsets are the cluster's."""

    def __init__(self, folder: Path, topic_id: str | None, start: int) -> None:
        self.folder, self.topic_id = folder, topic_id
        self.start = self.end = start
        self.cleaned_to = 0
        """Offset after the last gap."""
        self.segments: list[tuple[int, int, Path]] = []
        """First offset, bytes and file of each segment."""
        folder.mkdir(parents=True)
        self._empty = folder / offset_name(start, LOG_SUFFIX)
        self._empty.touch()
        if topic_id is not None:
            (folder / PARTITION_METADATA).write_bytes(encode_partition_metadata(UUID(topic_id)))

    def append(self, piece: bytes) -> bool:
        """Append what was fetched from `end` on; return False if it has no complete batch that continues the log."""
        new_batches = [each for each in frames(piece) if each.next_offset > self.end]
        if new_batches and not self.segments:
            self._empty.unlink(missing_ok=True)
        for each in new_batches:
            if not self.segments or self.segments[-1][1] >= SEGMENT_BYTES:
                self.segments.append((each.base_offset, 0, self.folder / offset_name(each.base_offset, LOG_SUFFIX)))
            base, size, path = self.segments[-1]
            with path.open("ab") as file:
                file.write(piece[each.start : each.stop])
            self.segments[-1] = base, size + each.stop - each.start, path
            if each.base_offset > self.end or not each.is_full:
                self.cleaned_to = each.next_offset
            self.end = max(self.end, each.next_offset)
        return bool(new_batches)

    def trim(self, start: int) -> int:
        """Remove the segments below an offset; return the number of bytes removed."""
        removed = 0
        while len(self.segments) > 1 and self.segments[1][0] <= start:
            _, size, path = self.segments.pop(0)
            path.unlink()
            removed += size
        self.start = max(self.start, start)
        return removed


class Watch:
    """All steps of the audit of one cluster. `folder` holds the copy."""

    def __init__(
        self,
        cluster: LiveCluster,
        folder: Path,
        now_ms: Callable[[], int],
        *,
        topics: Sequence[str] = (),
        from_end: bool = False,
        most_bytes: int = MOST_BYTES,
        look: Callable[["Watch"], None] = lambda _: None,
    ) -> None:
        """Prepare the first step.

        Args:
            cluster: its connection.
            folder: an empty folder.
            now_ms: the time.
            topics: names or patterns; none: all. The coordinators' topics are always copied.
            from_end: whether the logs of ordinary topics are copied only from their current ends.
            most_bytes: maximum size of the copy; above it, the oldest segments of the longest logs are removed.
            look: called with what is new in the copy, before old segments are removed.
        """
        self.cluster, self.folder, self._now_ms = cluster, folder, now_ms
        self._topics, self._from_end, self._most_bytes = tuple(topics), from_end, most_bytes
        self._look = look
        self.copied: dict[Place, Copied] = {}
        self.changes: list[dict[str, Any]] = []
        self.renewed: list[Place] = []
        """Copies that were restarted since the last call of `look`."""
        self.steps = 0
        self._bounds: dict[tuple[Place, str], int] = {}
        self._states: dict[tuple[str, int, int, str], int] = {}

    def step(self) -> Answers:
        """Query the brokers, and copy what is new. Raises OSError, WireError."""
        self.cluster.refresh()
        self.steps += 1
        places = [(topic, number) for topic in self._wanted() for number in sorted(self.cluster.topics[topic].leaders)]
        self._forget(set(places))
        answers = Answers(commits=self.cluster.commits())
        reported = dict(self.cluster.producers(places)) if self.cluster.lists_transactions else {}
        starts = self.cluster.bounds(places, EARLIEST)
        stable = self.cluster.bounds(places, LATEST, committed=True)
        marks = self.cluster.bounds(places, LATEST)
        answers.transactions, answers.has_transactions = (
            self.cluster.transactions() if self.cluster.lists_transactions else ([], False)
        )
        self._age(answers.transactions)
        for place in places:
            if place in starts and place in stable and place in marks:
                self._take_bounds(answers, place, (starts[place], stable[place], marks[place]), reported.get(place))
        self._copy(starts, marks)
        self._settle(starts, marks)
        return answers

    def _wanted(self) -> list[str]:
        """Return the topics, the coordinators' first."""
        names = [
            name
            for name in self.cluster.topics
            if name in COORDINATORS or not self._topics or any(fnmatchcase(name, each) for each in self._topics)
        ]
        order = {name: number for number, name in enumerate(COORDINATORS)}
        return sorted(names, key=lambda name: (order.get(name, len(order)), name))

    def _forget(self, places: set[Place]) -> None:
        """Remove the copies of topics that were deleted, or deleted and recreated."""
        for place, each in list(self.copied.items()):
            if place not in places or each.topic_id != self.cluster.topic_ids.get(place[0]):
                self._remove(place)
                for name in ("log_start", "last_stable_offset", "high_watermark"):
                    self._bounds.pop((place, name), None)

    def _remove(self, place: Place) -> None:
        shutil.rmtree(self.copied.pop(place).folder)
        self.renewed.append(place)

    def _take_bounds(
        self, answers: Answers, place: Place, bounds: tuple[int, int, int], reported: list[dict[str, Any]] | None
    ) -> None:
        topic, number = place
        names = ("log_start", "last_stable_offset", "high_watermark")
        topic_id = self.cluster.topic_ids.get(topic)
        row = {"topic": topic, "partition": number, "topic_id": topic_id}
        has = {"has_producers": reported is not None, "has_transactions": answers.has_transactions}
        answers.partitions.append({**row, **dict(zip(names, bounds, strict=True)), **has})
        answers.producers += [{"topic": topic, "partition": number, **each} for each in reported or ()]
        for name, offset in zip(names, bounds, strict=True):
            before = self._bounds.get((place, name), offset)
            if offset < before:
                change = {"topic": topic, "partition": number, "what": name, "offset": offset, "before": before}
                self.changes.append({**change, "step": self.steps})
            self._bounds[place, name] = offset
        start, _, mark = bounds
        if place in self.copied and self.copied[place].end > mark:
            self._remove(place)  # the log was truncated: the copy is no longer its content
        if place not in self.copied:
            begin = mark if self._from_end and topic not in COORDINATORS else start
            self.copied[place] = Copied(self.folder / f"{topic}-{number}", topic_id, begin)
        copied = self.copied[place]
        copied.trim(start)
        if copied.end < start:
            self._remove(place)
            self.copied[place] = Copied(self.folder / f"{topic}-{number}", topic_id, start)

    def _age(self, transactions: list[dict[str, Any]]) -> None:
        """Record how long transactions have been open, and how long they have been seen in their state."""
        now, states = self._now_ms(), {}
        for row in transactions:
            key = row["transactional_id"], row["producer_id"], row["producer_epoch"], row["state"]
            states[key] = self._states.get(key, now)
            row["age_ms"] = now - row["start_ms"] if row["start_ms"] >= 0 else None
            row["in_state_ms"] = now - states[key] if row["state"] in _FINISHING else None
        self._states = states

    def _copy(self, starts: dict[Place, int], marks: dict[Place, int]) -> None:
        """Fetch up to the high watermarks, coordinators' topics first."""
        for coordinators in (True, False):
            places = [each for each in self.copied if (each[0] in COORDINATORS) == coordinators]
            behind = {each: self.copied[each].end for each in places if self.copied[each].end < marks.get(each, 0)}
            while behind:
                moved = {place for place, piece in self.cluster.pieces(behind) if self.copied[place].append(piece)}
                ends = {each: self.copied[each].end for each in behind} if moved else {}
                behind = {each: end for each, end in ends.items() if end < marks[each]}
                if self._size() > self._most_bytes:
                    self._settle(starts, marks)

    def _settle(self, starts: dict[Place, int], marks: dict[Place, int]) -> None:
        self._write_checkpoints(starts, marks)
        self._look(self)
        self._shrink()

    def _size(self) -> int:
        return sum(part for each in self.copied.values() for _, part, _ in each.segments)

    def _shrink(self) -> None:
        """Remove the oldest segments of the longest logs while the copy is too large."""
        size = self._size()
        while size > self._most_bytes:
            longest = max(self.copied.values(), key=lambda each: len(each.segments))
            if len(longest.segments) < 2:
                return
            size -= longest.trim(longest.segments[1][0])

    def _write_checkpoints(self, starts: dict[Place, int], marks: dict[Place, int]) -> None:
        topics = {topic for topic, _ in self.copied}
        compacted = self.cluster.compacted(sorted(topics)) | (topics.intersection(COORDINATORS))
        begins = {place: max(starts.get(place, 0), each.start) for place, each in self.copied.items()}
        (self.folder / LOG_START).write_bytes(encode_offsets(begins))
        ends = {place: min(marks.get(place, each.end), each.end) for place, each in self.copied.items()}
        (self.folder / HIGH_WATERMARK).write_bytes(encode_offsets(ends))
        cleaned = {place: each.cleaned_to for place, each in self.copied.items() if place[0] in compacted}
        (self.folder / CLEANER).write_bytes(encode_offsets(cleaned))
