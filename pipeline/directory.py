"""Lists a data directory: partitions, their segments, and their checkpoints (core F.1).

One listing is enough; nothing is locked and nothing is written, so a broker may own the directory meanwhile.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Final

from pipeline.locations import Entry, Location, files_below, is_file, read_file
from storage.checkpoints import HIGH_WATERMARK, LOG_START, CheckpointError, decode_offsets
from storage.log_dir import partition_of

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_SEGMENT: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)$")
_BROKER: Final = re.compile(r"(?:^|/)broker-(\d+)(?:/[^/]+)?$")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment's files. `size` is that of its log file in bytes when it was listed."""

    location: Location
    base_offset: int
    size: int
    next_base_offset: int | None
    """Base offset of the next segment; None for the last one."""
    indexes: frozenset[str] = frozenset()
    """Which of `index`, `timeindex`, `txnindex` exist."""

    def beside(self, suffix: str) -> Location:
        """Return another file of this segment."""
        return Location(self.location.root, f"{self.location.path.removesuffix('.log')}.{suffix}")


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition's log in one data directory."""

    topic: str
    partition: int
    directory: Location
    segments: tuple[Segment, ...]
    snapshots: tuple[int, ...] = ()
    """Offsets of its producer snapshots."""
    broker: int | None = None
    """Number of the folder `broker-N` that contains it, or its log directory."""
    high_watermark: int | None = None
    """From `replication-offset-checkpoint`; a running broker writes it every few seconds."""
    log_start_offset: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """Return topic and partition."""
        return self.topic, self.partition


def logs_below(location: Location) -> list[Partition]:
    """Return the logs below a location, every replica. Raises FileNotFoundError: nothing exists, or no segment."""
    if is_file(location):
        return _single(location)
    folders: dict[str, list[Entry]] = {}
    for entry in files_below(location):
        folders.setdefault(entry.location.path.rpartition("/")[0], []).append(entry)
    checkpoints: dict[tuple[str, str], dict[tuple[str, int], int]] = {}
    partitions = []
    for folder, entries in sorted(folders.items()):
        key = partition_of(folder.rpartition("/")[2])
        segments = _segments(entries)
        if key is None or not segments:
            continue
        parent = Location(location.root, folder.rpartition("/")[0])
        for name in (HIGH_WATERMARK, LOG_START):
            if (parent.path, name) not in checkpoints:
                checkpoints[parent.path, name] = _checkpoint(parent.child(name))
        broker = _BROKER.search(parent.path)
        partitions.append(
            Partition(
                *key,
                Location(location.root, folder),
                segments,
                _snapshots(entries),
                None if broker is None else int(broker[1]),
                checkpoints[parent.path, HIGH_WATERMARK].get(key),
                checkpoints[parent.path, LOG_START].get(key, 0),
            )
        )
    return partitions


def _single(location: Location) -> list[Partition]:
    """Return the partition of a single segment, named by its folder if possible."""
    folder = Location(location.root, location.path.rpartition("/")[0])
    base = _SEGMENT.search(location.path)
    if base is None or base[2] != "log":
        raise FileNotFoundError(f"{location}: not the name of a segment, such as {0:020d}.log")
    key = partition_of(folder.name) or (folder.name, 0)
    own = f"/{base[1]}."
    entries = [each for each in files_below(folder) if own in each.location.path]
    return [Partition(*key, folder, _segments(entries))]


def _segments(entries: Iterable[Entry]) -> tuple[Segment, ...]:
    logs: dict[int, Entry] = {}
    others: dict[int, set[str]] = {}
    for entry in entries:
        if name_match := _SEGMENT.search(entry.location.path):
            if name_match[2] == "log":
                logs[int(name_match[1])] = entry
            else:
                others.setdefault(int(name_match[1]), set()).add(name_match[2])
    bases = sorted(logs)
    return tuple(
        Segment(logs[base].location, base, logs[base].size, following, frozenset(others.get(base, ())))
        for base, following in zip(bases, [*bases[1:], None], strict=False)
    )


def _snapshots(entries: Iterable[Entry]) -> tuple[int, ...]:
    names = (_SEGMENT.search(entry.location.path) for entry in entries)
    return tuple(sorted(int(name[1]) for name in names if name and name[2] == "snapshot"))


def _checkpoint(location: Location) -> dict[tuple[str, int], int]:
    """Return the offsets of a checkpoint; none if it is missing or unreadable, like a broker."""
    try:
        return decode_offsets(read_file(location))
    except (OSError, CheckpointError):
        return {}
