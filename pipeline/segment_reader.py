"""Reads a segment, or a range of its bytes, piece by piece, in chunks that fit the processor's cache."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from pipeline.decoding.batch_scan import Framer, Piece
from pipeline.decoding.damage import Damage
from pipeline.decoding.varints import PADDING, Bytes
from pipeline.directory import Segment
from pipeline.locations import Location, open_file

CHUNK_BYTES: Final = 8 * 1024 * 1024  # arbitrary: few reads, and bounded memory
PROBE_BYTES: Final = 4096
"""Bytes of a segment's end that are checked first: a page of the file system, as zeros there are rare."""


class Range(NamedTuple):
    """Bytes of a segment, from the start of one batch to the start of another."""

    segment: Segment
    start: int = 0
    stop: int | None = None
    """None: to the end of the file when it is opened."""
    due_offset: int | None = None
    """The lowest offset that may come first; None: the segment's base offset."""
    limit_offset: int | None = None
    """Offset after the range; None: the next segment's base offset."""


class Chunk(NamedTuple):
    """A piece, and the bytes that its positions refer to."""

    data: Bytes
    """With `PADDING` zeros at the end."""
    origin: int
    """Position of the bytes in the file."""
    piece: Piece


def read_pieces(span: Range, *, crc: bool = True, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield the pieces of a range in order.

    Raises:
        OSError: the file cannot be read.
    """
    segment = span.segment
    due = segment.base_offset if span.due_offset is None else span.due_offset
    limit = segment.next_base_offset if span.limit_offset is None else span.limit_offset
    with _opened(segment.location) as file:
        size = file.size()
        stop = size if span.stop is None else min(span.stop, size)
        zeros_from = _zeros_from(file, span.start, stop) if stop == size and segment.next_base_offset is None else None
        framer = Framer(due, limit, crc=crc, zeros_from=zeros_from)
        at, wanted = span.start, 0
        while at < stop:
            length = min(max(chunk_bytes, wanted), stop - at)
            data = np.empty(length + PADDING, np.uint8)
            length = _fill(file, at, data, length)
            data[length:] = 0
            if not length:
                return  # truncated meanwhile
            pieces, used, wanted = framer.frame(data[:length], at, at_end=at + length >= stop)
            last = pieces[-1] if pieces else None
            if isinstance(last, Damage) and last.is_tail and at + length < stop:  # zeros to the end of the file
                left = stop - last.position
                pieces[-1] = last._replace(size=left, reason=f"{left} bytes of zeros")
                used = stop - at
            for piece in pieces:
                yield Chunk(data, at, piece)
            at += used
            wanted = max(wanted, length + 1 if not used else 0)


def _zeros_from(file: Any, start: int, stop: int) -> int:
    """Return where the zeros at the end of a file begin; an active segment may be preallocated (`preallocate`)."""
    data, span = np.empty(CHUNK_BYTES, np.uint8), PROBE_BYTES
    while stop > start:
        length = min(span, stop - start)
        length = _fill(file, stop - length, data, length)
        (used,) = np.nonzero(data[:length])
        if len(used) or not length:
            return stop - length + int(used[-1]) + 1 if len(used) else stop
        stop -= length
        span = CHUNK_BYTES
    return start


def _fill(file: Any, at: int, data: Bytes, length: int) -> int:
    """Read `length` bytes from `at`; return the number of bytes read."""
    file.seek(at)
    view = data.data
    done = 0
    while done < length:
        got = file.readinto(view[done:length])
        if not got:
            break
        done += got
    return done


def _opened(location: Location) -> Any:
    """Open a file, even if retention or compaction has just renamed it: it remains for a minute (core F.5)."""
    try:
        return open_file(location)
    except FileNotFoundError:
        return open_file(Location(location.root, f"{location.path}.deleted"))
