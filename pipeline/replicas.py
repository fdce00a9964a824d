"""Finds the logs of partitions below some paths, one per partition: the longest of several brokers' replicas."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from typing import Final

from pipeline.decoding.batch_scan import Framed, Messages
from pipeline.decoding.legacy import messages
from pipeline.directory import Partition, Paths, logs_below
from pipeline.locations import locate
from pipeline.segment_reader import read_pieces
from pipeline.splits import split_partition

_OFFSET: Final = 8  # bytes of a base offset


def find_partitions(paths: Paths, *, topics: Sequence[str] | None = None, broker: int | None = None) -> list[Partition]:
    """Return the logs below some paths, sorted by topic and partition, without duplicates.

    If several brokers have a replica, the longest one is used, among equals that of the first broker.

    Args:
        paths: data directories, folders of several, partition directories, segment files.
        topics: only these; names, or patterns with `*` and `?`. Internal topics are treated like any other.
        broker: only the replicas below `broker-N`.

    Raises:
        FileNotFoundError: a path does not exist, or has no log.
        OSError: one of several replicas cannot be read.
    """
    locations = [paths] if isinstance(paths, str | PathLike) else list(paths)
    partitions = [each for path in locations for each in logs_below(locate(path))]
    if not partitions:
        raise no_log(locations)
    return longest_replicas(partitions, topics=topics, broker=broker)


def no_log(locations: Iterable[object]) -> FileNotFoundError:
    """Return the error of paths below which no partition has a log."""
    return FileNotFoundError(f"{', '.join(map(str, locations))}: no partition's log there")


def longest_replicas(
    partitions: Iterable[Partition], *, topics: Sequence[str] | None = None, broker: int | None = None
) -> list[Partition]:
    """Return the longest replica of each partition; the arguments and errors are those of `find_partitions`."""
    replicas: dict[tuple[str, int], list[Partition]] = {}
    for each in partitions:
        if topics is not None and not any(fnmatchcase(each.topic, pattern) for pattern in topics):
            continue
        if broker is None or each.broker == broker:
            replicas.setdefault(each.key, []).append(each)
    return [_longest(replicas[key]) for key in sorted(replicas)]


def _longest(replicas: Sequence[Partition]) -> Partition:
    """Return the replica with the highest end offset.

    File sizes do not show it: each broker rolls segments by itself.
    """
    if len(replicas) == 1:
        return replicas[0]
    return max(replicas, key=lambda each: (log_end(each), -(each.broker or 0)))


def log_end(partition: Partition) -> int:
    """Return the offset after the last complete batch, searched from the last index entry. Raises OSError."""
    end = partition.segments[-1].base_offset
    # Beyond every offset: the last index entry is the nearest.
    for split in split_partition(partition, start_offset=2**62, split_bytes=None):
        for chunk in read_pieces(split.ranges[-1], crc=False):
            if isinstance(chunk.piece, Framed):
                head = chunk.piece.headers[-1]
                end = int(head["base_offset"]) + int(head["last_offset_delta"]) + 1
            elif isinstance(chunk.piece, Messages):
                for at, _ in messages(
                    chunk.data, chunk.piece
                ):  # a wrapper message has the offset of its last inner message
                    end = int.from_bytes(chunk.data[at : at + _OFFSET].tobytes()) + 1
    return end
