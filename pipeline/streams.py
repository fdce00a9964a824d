"""Reads logs and journals as streams: start positions, current end positions, and the tasks between two positions.

A log is read up to its high watermark as its broker last wrote it; if unknown, up to its last complete batch. A
position in a log is {"topic-partition": offset}, with known topic ids as {"topic ids": {"topic": id}}; in a journal it
is {"run": [file, byte]}: plain JSON, for checkpoints.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

from pipeline import journal
from pipeline.directory import Partition
from pipeline.locations import read_file
from pipeline.options import EARLIEST, LATEST, Options
from pipeline.query import pick
from pipeline.replicas import log_end
from pipeline.sources import journal_tasks, log_query, log_tasks, partitions_of, plan_logs
from pipeline.splits import split_partition
from pipeline.transactions import last_stable_offset
from protocol.types import uuid_text
from storage.checkpoints import PARTITION_METADATA, CheckpointError, decode_partition_metadata

Place = dict[str, Any]
IDS: Final = "topic ids"
"""Not a partition's name, as it has no number at its end."""


class Limit(NamedTuple):
    """Limit on the amount of one batch."""

    kind: Literal["all", "rows", "bytes", "files"]
    most: int = 0


def open_stream(source: str, texts: Mapping[str, str]) -> "LogStream | JournalStream":
    """Open the stream of a source with these options. Raises ValueError."""
    options = Options(source, texts)
    return JournalStream(options) if source == "wire_journal" else LogStream(options)


class LogStream:
    """The logs of partitions, including those created later."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def first(self) -> Place:
        """Return the start position of the stream, by the option `startingOffsets`."""
        partitions = partitions_of(self._options)
        place: Place = _ids(partitions)
        for each in partitions:
            at = self._options.offset("startingOffsets", *each.key, EARLIEST)
            place[_name(each)] = _begin(each) if at == EARLIEST else self._end(each) if at == LATEST else at
        return place

    def last(self) -> Place:
        """Return the current end positions of all logs."""
        partitions = partitions_of(self._options)
        return {_name(each): self._end(each) for each in partitions} | _ids(partitions)

    def next(self, start: Place, limit: Limit, target: Place | None = None) -> Place:
        """Return the end position of the next batch from `start`.

        Args:
            start: where the previous batch ended.
            limit: its limits. Offsets count as rows; bytes are those of the segments, approximately.
            target: the maximum; None: as far as can be read now.
        """
        partitions = {_name(each): each for each in partitions_of(self._options)}
        ends = {name: self._end(each) for name, each in partitions.items()} if target is None else target
        ids = _ids(partitions.values())
        begins = {name: self._start(start, ids, each) for name, each in partitions.items()}
        ends = {name: max(ends.get(name, begin), begin) for name, begin in begins.items()}
        ahead = sum(ends[name] - begin for name, begin in begins.items())
        allowed = ahead
        if limit.kind == "rows":
            allowed = min(ahead, limit.most)
        elif limit.kind != "all" and ahead:
            sizes = {name: _ahead(partitions[name], begin, ends[name]) for name, begin in begins.items()}
            total = (
                sum(size for _, size in sizes.values()) if limit.kind == "bytes" else sum(n for n, _ in sizes.values())
            )
            allowed = min(ahead, max(1, ahead * limit.most // max(total, 1)))
        known = {IDS: start.get(IDS, {}) | ids[IDS]} if ids else {}
        return {**start, **_shared(begins, ends, ahead, allowed), **known}

    def tasks(self, start: Place, end: Place, names: Sequence[str]) -> list[bytes]:
        """Return the tasks for the workers between two positions.

        Raises:
            ValueError: offsets from `start` on are missing, or a topic was recreated, unless `failOnDataLoss` is false.
        """
        options, wanted = self._options, tuple(names)
        query = replace(log_query(options, wanted), by_base=True)
        splits = []
        partitions = partitions_of(options)
        ids = _ids(partitions)
        for each in partitions:
            begin = self._checked(each, self._start(start, ids, each))
            stop = end.get(_name(each), begin)
            if stop > begin:
                splits += plan_logs(options, [each], replace(query, offsets=(begin, stop)))
        return log_tasks(options, wanted, query, splits)

    def _start(self, start: Place, ids: Place, partition: Partition) -> int:
        """Return where a partition continues: at its log start if its topic was deleted and recreated."""
        known, now = (place.get(IDS, {}).get(partition.topic) for place in (start, ids))
        if known is None or now is None or known == now:
            return int(start.get(_name(partition), _begin(partition)))
        if self._options.on("failOnDataLoss", default=True):
            raise ValueError(
                f"{_name(partition)}: the topic was deleted and created again (its id was {known} and is {now}), so "
                "the stream's offsets are those of another log. A new checkpoint begins again; failOnDataLoss=false "
                "goes on."
            )
        return _begin(partition)

    def _checked(self, partition: Partition, start: int) -> int:
        begin, end = _begin(partition), self._end(partition)
        if begin <= start <= end:
            return start
        if self._options.on("failOnDataLoss", default=True):
            raise ValueError(
                f"{_name(partition)}: the stream is at offset {start}, the log goes from {begin} to {end}: records "
                "are gone, or the topic was created again. A new checkpoint begins again; failOnDataLoss=false goes on."
            )
        return min(max(start, begin), end)

    def _end(self, partition: Partition) -> int:
        """Return the offset after the last one that may be read."""
        end = partition.high_watermark
        if end is None:
            end = log_end(partition)
        if self._options["isolation"] == "read_committed" and (stable := last_stable_offset(partition)) is not None:
            end = min(end, stable)
        return end


def _ids(partitions: Iterable[Partition]) -> Place:
    """Return the ids of the topics, as a part of a position; empty if unknown."""
    ids: dict[str, str] = {}
    for each in partitions:
        if each.topic not in ids:
            with suppress(OSError, CheckpointError):
                raw = read_file(each.directory.child(PARTITION_METADATA))
                ids[each.topic] = uuid_text(decode_partition_metadata(raw))
    return {IDS: ids} if ids else {}


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _begin(partition: Partition) -> int:
    return max(partition.log_start_offset, partition.segments[0].base_offset)


def _ahead(partition: Partition, start: int, stop: int) -> tuple[int, int]:
    """Return segments and bytes that contain these offsets."""
    splits = split_partition(partition, start_offset=start, stop_offset=stop, split_bytes=None) if stop > start else []
    return len(splits), sum(split.size for split in splits)


def _shared(begins: Mapping[str, int], ends: Mapping[str, int], ahead: int, allowed: int) -> Place:
    """Distribute the allowed amount over the partitions, in proportion to how far each is behind."""
    if allowed >= ahead:
        return dict(ends)
    place: Place = {}
    rest = allowed
    for name, begin in begins.items():
        part = (ends[name] - begin) * allowed // ahead
        place[name] = begin + part
        rest -= part
    for name in begins:  # the rest from rounding
        more = min(rest, ends[name] - place[name])
        place[name] += more
        rest -= more
    return place


class JournalStream:
    """The runs of a journal, including those that begin later."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def first(self) -> Place:
        """Return the start position of the stream: the first line, or the end."""
        return self.last() if self._options["startingOffsets"] == LATEST else {}

    def last(self) -> Place:
        """Return the position after the last complete line of each run."""
        return {file.run: [file.number, journal.whole_lines(file)] for file in self._files()}

    def next(self, start: Place, limit: Limit, target: Place | None = None) -> Place:
        """Return the end position of the next batch from `start`. Arguments as in `LogStream.next`; rows are lines."""
        place = dict(start)
        left = {"all": 2**62, "files": limit.most}.get(limit.kind, limit.most)  # no limit
        for file in self._files():
            number, done = start.get(file.run, [0, 0])
            last = None if target is None else target.get(file.run)
            is_beyond = target is not None and (last is None or file.number > last[0])
            if file.number < number or is_beyond:
                continue
            begin = done if file.number == number else 0
            end = last[1] if last is not None and file.number == last[0] else journal.whole_lines(file)
            if end <= begin:
                continue
            if left <= 0:
                break
            if limit.kind in {"rows", "bytes"}:
                taken, end = journal.some_lines(file, begin, end, left, count=limit.kind == "rows")
                left -= taken
            else:
                left -= limit.kind == "files"
            place[file.run] = [file.number, end]
        return place

    def tasks(self, start: Place, end: Place, names: Sequence[str]) -> list[bytes]:
        """Return the tasks for the workers between two positions."""
        pick(self._options.available(), names)
        ranges = []
        for file in self._files():
            (first, done), (last, stop) = start.get(file.run, [0, 0]), end.get(file.run, [0, 0])
            if first <= file.number <= last:
                begin = done if file.number == first else 0
                until = stop if file.number == last else None
                if until is None or until > begin:
                    ranges.append(journal.JournalRange(file, begin, until))
        return journal_tasks(self._options, tuple(names), ranges)

    def _files(self) -> list[journal.JournalFile]:
        try:
            return journal.find_files(self._options.paths)
        except FileNotFoundError:
            return []  # the server has not written anything
