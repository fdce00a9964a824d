"""Logs and journals as streams: where they begin, how far they may be read now, and the tasks between two such places.

A log is read up to its high watermark, as its broker last wrote it down; where none is known, up to its last whole
batch. A place in a log is {"topic-partition": offset}, in a journal {"run": [file, byte]}: plain JSON, for checkpoints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from pipeline import journal
from pipeline.decoding.framing import Framed
from pipeline.directory import Partition
from pipeline.options import EARLIEST, LATEST, Options
from pipeline.query import pick
from pipeline.segment_reader import read_pieces
from pipeline.sources import journal_tasks, log_query, log_tasks, partitions_of, plan_logs
from pipeline.splits import split_partition
from pipeline.transactions import last_stable_offset

Place = dict[str, Any]


class Limit(NamedTuple):
    """How much may be read at once."""

    kind: Literal["all", "rows", "bytes", "files"]
    most: int = 0


def open_stream(source: str, given: Mapping[str, str]) -> "LogStream | JournalStream":
    """The stream of a source with these options. Raises ValueError."""
    options = Options(source, given)
    return JournalStream(options) if source == "wire_journal" else LogStream(options)


class LogStream:
    """Partitions' logs, those included that appear later."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def first(self) -> Place:
        """Where the stream begins, by the option `startingOffsets`."""
        place: Place = {}
        for each in partitions_of(self._options):
            at = self._options.offset("startingOffsets", *each.key, EARLIEST)
            place[_name(each)] = _begin(each) if at == EARLIEST else self._end(each) if at == LATEST else at
        return place

    def last(self) -> Place:
        """How far all logs can be read now."""
        return {_name(each): self._end(each) for each in partitions_of(self._options)}

    def next(self, start: Place, limit: Limit, target: Place | None = None) -> Place:
        """How far the next batch goes from `start`.

        Args:
            start: where the one before ended.
            limit: what bounds it. Offsets count as rows; bytes are those of the segments, nearly.
            target: not beyond this; None: as far as can be read now.
        """
        partitions = {_name(each): each for each in partitions_of(self._options)}
        ends = {name: self._end(each) for name, each in partitions.items()} if target is None else target
        begins = {name: start.get(name, _begin(each)) for name, each in partitions.items()}
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
        return {**start, **_shared(begins, ends, ahead, allowed)}

    def tasks(self, start: Place, end: Place, names: Sequence[str]) -> list[bytes]:
        """What workers have to read between two places.

        Raises:
            ValueError: offsets are gone that `start` names, unless `failOnDataLoss` is false.
        """
        options, wanted = self._options, tuple(names)
        query = replace(log_query(options, wanted), by_base=True)
        splits = []
        for each in partitions_of(options):
            begin = self._checked(each, start.get(_name(each), _begin(each)))
            stop = end.get(_name(each), begin)
            if stop > begin:
                splits += plan_logs(options, [each], replace(query, offsets=(begin, stop)))
        return log_tasks(options, wanted, query, splits)

    def _checked(self, partition: Partition, start: int) -> int:
        begin, end = _begin(partition), self._end(partition)
        if begin <= start <= end:
            return start
        if self._options.on("failOnDataLoss", default=True):
            raise ValueError(
                f"{_name(partition)}: the stream stands at offset {start}, the log goes from {begin} to {end}: records "
                "are gone, or the topic was made anew. A new checkpoint begins again; failOnDataLoss=false goes on."
            )
        return min(max(start, begin), end)

    def _end(self, partition: Partition) -> int:
        """After the last offset that may be read."""
        end = partition.high_watermark
        if end is None:
            end = _log_end(partition)
        if self._options["isolation"] == "read_committed" and (stable := last_stable_offset(partition)) is not None:
            end = min(end, stable)
        return end


def _name(partition: Partition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _begin(partition: Partition) -> int:
    return max(partition.log_start_offset, partition.segments[0].base_offset)


def _log_end(partition: Partition) -> int:
    """After the last whole batch, found from the last place that the index names."""
    segment = partition.segments[-1]
    end = segment.base_offset
    for split in split_partition(partition, start_offset=2**62, split_bytes=None):
        for chunk in read_pieces(split.ranges[-1], crc=False):
            if isinstance(chunk.piece, Framed):
                head = chunk.piece.headers[-1]
                end = int(head["base_offset"]) + int(head["last_offset_delta"]) + 1
    return end


def _ahead(partition: Partition, start: int, stop: int) -> tuple[int, int]:
    """Segments and bytes that hold these offsets."""
    splits = split_partition(partition, start_offset=start, stop_offset=stop, split_bytes=None) if stop > start else []
    return len(splits), sum(split.size for split in splits)


def _shared(begins: Mapping[str, int], ends: Mapping[str, int], ahead: int, allowed: int) -> Place:
    """Each partition's part of what is allowed, as much as it is ahead."""
    if allowed >= ahead:
        return dict(ends)
    place: Place = {}
    rest = allowed
    for name, begin in begins.items():
        part = (ends[name] - begin) * allowed // ahead
        place[name] = begin + part
        rest -= part
    for name in begins:  # what rounding left over
        more = min(rest, ends[name] - place[name])
        place[name] += more
        rest -= more
    return place


class JournalStream:
    """The runs of a journal, those included that begin later."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def first(self) -> Place:
        """Where the stream begins: with the first line, or behind the last."""
        return self.last() if self._options["startingOffsets"] == LATEST else {}

    def last(self) -> Place:
        """Behind the last whole line of each run."""
        return {file.run: [file.number, journal.whole_lines(file)] for file in self._files()}

    def next(self, start: Place, limit: Limit, target: Place | None = None) -> Place:
        """How far the next batch goes from `start`. Arguments as of `LogStream.next`; rows are lines."""
        place = dict(start)
        room = {"all": 2**62, "files": limit.most}.get(limit.kind, limit.most)
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
            if room <= 0:
                break
            if limit.kind in {"rows", "bytes"}:
                taken, end = journal.some_lines(file, begin, end, room, count=limit.kind == "rows")
                room -= taken
            else:
                room -= limit.kind == "files"
            place[file.run] = [file.number, end]
        return place

    def tasks(self, start: Place, end: Place, names: Sequence[str]) -> list[bytes]:
        """What workers have to read between two places."""
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
            return []  # the server has not begun
