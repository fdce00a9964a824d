"""Decompression of a batch into portions of whole records: a large batch is never in memory as a whole.

A record that is longer than a portion is yielded in parts: its beginning, pieces of its body, and the fields that were
read from it. So memory is bounded by the size of a portion, no matter what a client sends.
"""

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from protocol.records.batch import VARINT_MAX_BYTES, VARLONG_MAX_BYTES, Span, read_span, read_varint
from protocol.records.compression import Buffer, pieces
from protocol.records.errors import DecompressedTooLargeError, MalformedRecordsError

_LONG: Final = 64 * 1024
"""Size in bytes from which on a record is yielded in parts: arbitrary, shorter ones are cheap to hold."""
_SHORT: Final = 4 * 1024  # of a long record that is passed on at once; ours, little beside _LONG
_NARROW: Final = 0x7F
"""Largest varint of one byte."""
_SHORTEST_RUN: Final = 16  # fewer are not worth the search
_LONGEST_RUN: Final = 4096
"""Records of one shape that are compared at once: fewer are faster one by one, more do not become cheaper."""
_LONGEST_PAUSE: Final = 256
"""Records before the next attempt at a run, doubled after each that failed: attempts cost little in mixed batches."""


class Portion(NamedTuple):
    """Whole records: the first `stop` bytes of `data`, which is reused afterwards."""

    data: bytearray
    stop: int
    first: int
    """Index of the first record within the batch."""
    records: int

    def spans(self) -> Iterator[Span]:
        """Yield the span of each record. Raises MalformedRecordsError."""
        position = 0
        for _ in range(self.records):
            span = read_span(self.data, position)
            yield span
            position = span.end


class LongBegin(NamedTuple):
    """Beginning of a long record: the fields that depend on its batch. The body follows."""

    at: int
    """Index within the batch."""
    timestamp_delta: int
    body_size: int
    """Bytes of the record after its offset delta."""


class LongPart(NamedTuple):
    """Bytes of a long record's body."""

    data: bytes


class LongEnd(NamedTuple):
    """End of a long record, which is valid."""

    at: int
    size: int
    """Bytes of the record without its length field."""
    span: Span
    """Deltas and sizes; the positions are meaningless."""


Passing = Portion | LongBegin | LongPart | LongEnd


def portions(codec: int, data: Buffer, count: int, *, most: int, most_in_one: int) -> Generator[Passing, None, None]:
    """Yield the `count` records of a batch that make up the compressed `data`, in order.

    The structure of the records in a portion is left to `walk`. Each step takes some milliseconds at most.

    Args:
        codec: of the batch.
        data: its records, compressed.
        count: how many there are, by the header.
        most: most bytes of all records.
        most_in_one: most bytes of one record without its length field; those in portions are not checked.

    Raises:
        MalformedRecordsError: missing or superfluous bytes, or a malformed long record.
        DecompressedTooLargeError: more than `most` bytes.
        UnreadableCompressionError: as in `pieces`.
    """
    source = _Source(pieces(codec, data), most)
    index = 0
    try:
        more = True
        while more and not (index == count and source.data):
            more = source.fill()
            records, stop = _whole_records(source.data, count - index)
            if records:
                yield Portion(source.data, stop, index, records)
                index += records
                source.drop(stop)
            if len(source.data) >= _LONG and index < count:
                yield from _long_record(source, index, most_in_one)
                index += 1
    finally:
        source.pieces.close()
    if index < count or source.data:
        raise MalformedRecordsError(
            f"{count - index} records missing" if index < count else f"bytes after the last of {count} records"
        )


class _Source:
    """Buffer of decompressed pieces."""

    def __init__(self, taken: Generator[Buffer, None, None], most: int) -> None:
        self.pieces, self._left = taken, most
        self._most = most
        self.data = bytearray()

    def fill(self) -> bool:
        """Add the next piece; return whether there was one."""
        piece = next(self.pieces, None)
        if piece is None:
            return False
        self._left -= len(piece)
        if self._left < 0:
            raise DecompressedTooLargeError(self._most)
        self.data += piece
        return True

    def drop(self, size: int) -> None:
        """Drop the first bytes."""
        del self.data[:size]


def _whole_records(data: bytearray, most: int) -> tuple[int, int]:
    """Count the whole records at the beginning, at most `most`; return the count and the position after them."""
    position = records = try_at = 0
    previous, pause, end = 0, 1, len(data)
    while records < most and position < end:
        size, body = data[position] >> 1, position + 1
        if data[position] & 0x81:  # wide, or negative
            if end - position < VARINT_MAX_BYTES and data[end - 1] > 0x7F:
                break  # it may be cut short
            size, body = read_varint(data, position)
            if size < 0:
                raise MalformedRecordsError(f"a record of {size} bytes")
        following = body + size
        if following > end:
            break
        records += 1
        length = following - position
        if length == previous and records >= try_at:
            run = _run(data, position, length, body - position, min(most - records, (end - following) // length))
            records += run
            following += run * length
            pause = 1 if run else min(2 * pause, _LONGEST_PAUSE)
            try_at = records + pause
        previous, position = length, following
    return records, position


def _run(data: bytearray, position: int, length: int, size_bytes: int, most: int) -> int:
    """Count the next records that have the same size as the one at `position`."""
    run = min(most, _LONGEST_RUN)
    for at in range(position, position + size_bytes):
        column = data[at : at + run * length + 1 : length]
        run -= len(column.lstrip(column[:1]))
        if run < _SHORTEST_RUN:
            return 0
    return run


def _long_record(source: _Source, index: int, most_in_one: int) -> Generator[Passing, None, None]:
    """Yield the parts of a record whose first `_LONG` bytes are in the buffer."""
    reader = _LongReader(source)
    size = reader.varint()
    if size > most_in_one:
        raise MalformedRecordsError(f"a record of {size} bytes, more than {most_in_one}")
    begin = reader.read
    reader.varint(1)  # the attributes, which are not used
    timestamp_delta = reader.varint(VARLONG_MAX_BYTES)
    offset_delta = reader.varint()
    source.drop(reader.position)
    reader.position = 0
    yield LongBegin(index, timestamp_delta, size - (reader.read - begin))
    key_size = reader.varint()
    yield from reader.skip(key_size)
    value_size = reader.varint()
    yield from reader.skip(value_size)
    headers = reader.varint()
    if not 0 <= headers <= size:
        raise MalformedRecordsError(f"{headers} headers in a record of {size} bytes")
    while headers:
        headers -= reader.short_headers(headers)
        yield from reader.pass_on(_SHORT)
        if headers:
            name_size = reader.varint()
            if name_size < 0:
                raise MalformedRecordsError("a header without a key")
            yield from reader.skip(name_size)
            yield from reader.skip(reader.varint())
            headers -= 1
    if reader.read - begin != size:
        raise MalformedRecordsError(f"a record of {size} bytes whose fields take {reader.read - begin}")
    yield from reader.pass_on()
    span = Span(timestamp_delta, offset_delta, 0, 0, max(key_size, -1), 0, max(value_size, -1), 0, 0)
    yield LongEnd(index, size, span)


class _LongReader:
    """Reads the fields of a long record, and yields the bytes that were read."""

    def __init__(self, source: _Source) -> None:
        self._source, self.position = source, 0
        self.read = 0
        """Bytes so far."""

    def varint(self, max_bytes: int = VARINT_MAX_BYTES) -> int:
        """Read a number."""
        source = self._source
        while len(source.data) - self.position < max_bytes and source.fill():
            pass
        if max_bytes == 1:
            self.position, self.read = self.position + 1, self.read + 1
            return 0
        value, position = read_varint(source.data, self.position, max_bytes)
        self.read += position - self.position
        self.position = position
        return value

    def short_headers(self, most: int) -> int:
        """Skip short headers that are in the buffer; return how many. A record may have a billion of them."""
        data, position = self._source.data, self.position
        end = min(len(data) - 2 * _NARROW, position + _SHORT)
        headers = 0
        while headers < most and position < end:
            if (name := data[position]) > _NARROW or name & 1:
                break
            following = position + 1 + (name >> 1)
            if (value := data[following]) > _NARROW:
                break
            position = following + (1 if value & 1 else 1 + (value >> 1))
            headers += 1
        self.read += position - self.position
        self.position = position
        return headers

    def skip(self, size: int) -> Generator[LongPart, None, None]:
        """Skip `size` bytes, which need not be in the buffer yet; none if it is negative."""
        self.read += max(size, 0)
        self.position += max(size, 0)
        yield from self.pass_on(_SHORT)

    def pass_on(self, least: int = 0) -> Generator[LongPart, None, None]:
        """Yield the bytes that were read, if there are more than `least`."""
        data = self._source.data
        while self.position > least:
            if not data and not self._source.fill():
                raise MalformedRecordsError("a record cut short")
            yield LongPart(self._take(min(self.position, len(data))))

    def _take(self, size: int) -> bytes:
        taken = bytes(self._source.data[:size])
        self._source.drop(size)
        self.position -= size
        return taken
