"""Walks over the records of a batch without creating an object for each of them.

A broker must look at every record that it appends: its structure, its timestamp, whether it has a key (core D.2
V10 to V13). `walk` checks that in one pass, mostly without looking at single records: records that have
the same shape as their predecessor (same size, same lengths inside, no headers) are compared column by column, with
strided slices. That is sound because a record's structure is decided by its length bytes alone: where those equal the
predecessor's bytes and the variable-width fields end at the same place, the walk would take the same steps.
"""

from typing import Final, NamedTuple

from protocol.records.errors import MalformedRecordsError
from protocol.records.varint import VARLONG_MAX_BYTES, read_varint

_LOW: Final = bytes(range(128))
_HIGH: Final = bytes(range(128, 256))
_SEQUENTIAL: Final = (
    (bytes(range(0, 128, 2)),),
    (bytes(range(128, 256, 2)) * 128, b"".join(bytes([high]) * 64 for high in range(128))),
)
"""Offset deltas 0, 1, 2, ... as columns: the 64 that fit one byte; the 8192 that fit two, first and second bytes."""

_SHORTEST_RUN: Final = 16
"""Fewest records for which the search for a run of the same shape is worth its cost."""
_LONGEST_PAUSE: Final = 256
"""Most records until the next search for a run, after searches that failed."""


class Walked(NamedTuple):
    """Result of `walk` for the records of one batch."""

    min_timestamp_delta: int
    """ms from the batch's base timestamp; never above 0."""
    max_timestamp_delta: int
    """ms from the batch's base timestamp, of the latest record."""
    is_sequential: bool
    """Whether the offset deltas are 0, 1, 2, ..."""
    has_null_key: bool


class Span(NamedTuple):
    """Where the parts of one record lie in the records part; lengths in bytes, -1 for null."""

    timestamp_delta: int
    offset_delta: int
    body_position: int
    """Position of the key's size: from here to `end` nothing depends on the record's batch."""
    key_position: int
    key_size: int
    value_position: int
    value_size: int
    headers_position: int
    """Position of the header count."""
    end: int
    """Position after the record."""


def read_span(data: bytes | bytearray, position: int) -> Span:
    """Read the record at `position`, and check its structure to the last header. Raises MalformedRecordsError."""
    size, position = read_varint(data, position)
    end = position + size
    if size < 0 or end > len(data):
        raise MalformedRecordsError(f"a record of {size} bytes where {len(data) - position} are left")
    timestamp_delta, position = read_varint(data, position + 1, VARLONG_MAX_BYTES)
    offset_delta, body_position = read_varint(data, position)
    key_size, key_position = read_varint(data, body_position)
    value_size, value_position = read_varint(data, key_position + max(key_size, 0))
    headers_position = value_position + max(value_size, 0)
    try:
        position = _skip_headers(data, headers_position)
    except IndexError:
        raise MalformedRecordsError("headers cut short") from None
    if position != end:
        raise MalformedRecordsError(f"a record of {size} bytes whose fields take {size + position - end}")
    # Any negative length is read as null, as Utils.readBytes does.
    return Span(
        timestamp_delta,
        offset_delta,
        body_position,
        key_position,
        max(key_size, -1),
        value_position,
        max(value_size, -1),
        headers_position,
        end,
    )


def _skip_headers(data: bytes | bytearray, position: int) -> int:
    """Skip the headers whose count is at `position`; return the end. Raises MalformedRecordsError or IndexError."""
    count, position = read_varint(data, position)
    if count < 0 or count > len(data) - position:
        raise MalformedRecordsError(f"{count} headers where {len(data) - position} bytes are left")
    for _ in range(count):
        if (size := data[position]) > 0x7F:
            size, position = read_varint(data, position)
            size *= 2
        else:
            position += 1
        if size < 0 or size & 1:
            raise MalformedRecordsError("a header without a key")
        position += size >> 1
        if (size := data[position]) > 0x7F:
            size, position = read_varint(data, position)
            position += max(size, 0)
        else:
            position += 1 if size & 1 else 1 + (size >> 1)
    return position


def walk(data: bytes | bytearray, count: int, stop: int | None = None, first: int = 0) -> Walked:
    """Check the structure of the `count` records that make up `data` up to `stop`. Raises MalformedRecordsError.

    `count` includes the `first` records of the batch, which came before `data`. Narrow varints are read in line, others
    by `read_span`. An error message may differ if `data` continues after `stop`.
    """
    stop = len(data) if stop is None else stop
    position = previous_size = try_at = null_keys = 0
    index, pause, last_try, sequential, deltas = first, 1, count - _SHORTEST_RUN, True, set[int]()
    while index < count and position < stop:
        start = position
        try:
            if (size := data[position]) > 0x7F:
                position += 1
                size = size & 0x7F | data[position] << 7
            end = position + 1 + (size >> 1)
            position += 2  # the size, and the attributes, which are not used
            if (delta := data[position]) > 0x7F:
                position += 1
                delta = delta & 0x7F | data[position] << 7
            position += 1
            if (offset := data[position]) > 0x7F:
                position += 1
                offset = offset & 0x7F | data[position] << 7
            position += 1
            if (key := data[position]) > 0x7F:
                position += 1
                key = key & 0x7F | data[position] << 7
            position += 1 if key & 1 else 1 + (key >> 1)
            if (value := data[position]) > 0x7F:
                position += 1
                value = value & 0x7F | data[position] << 7
            position += 1 if value & 1 else 1 + (value >> 1)
            # Bit 14 marks a third byte, so that `position` is wrong; an odd size is a negative one.
            whole = (size | delta | offset | key | value) < 0x4000 and not size & 1
            bare = whole and not data[position]
            whole = whole and end == (position + 1 if bare else _skip_headers(data, position))
        except (IndexError, MalformedRecordsError):
            whole = False
        if not whole:
            span = read_span(data, start)
            bare, end = not data[span.headers_position], span.end
            delta, offset, key = _zig_zag(span.timestamp_delta), _zig_zag(span.offset_delta), span.key_size
        deltas.add(delta)
        null_keys |= key & 1 if whole else key < 0
        sequential = sequential and offset == index + index
        position, size = end, end - start
        if bare and size == previous_size and try_at <= index <= last_try:
            run = _run_alike(data, start, size, index, min(count, index + (stop - start) // size))
            deltas |= run.timestamp_deltas
            sequential = sequential and run.is_sequential
            position = start + size * run.records
            index += run.records - 1
            pause = 1 if run.records > 1 else min(2 * pause, _LONGEST_PAUSE)
            try_at = index + pause
        previous_size, index = size, index + 1
    return _walked(deltas, sequential, null_keys != 0, stop - position, index, count)


def _walked(
    deltas: set[int], is_sequential: bool, has_null_key: bool, bytes_left: int, records: int, count: int
) -> Walked:
    if records < count:
        read_span(b"", 0)  # raises the error for missing bytes
    if bytes_left:
        raise MalformedRecordsError(f"{bytes_left} bytes after the last of {count} records")
    if len(deltas) == 1:
        (delta,) = deltas
        time = (delta >> 1) ^ -(delta & 1)
        return Walked(time, time, is_sequential, has_null_key)
    times = [(delta >> 1) ^ -(delta & 1) for delta in deltas] or [0]
    return Walked(min(times), max(times), is_sequential, has_null_key)


class _Run(NamedTuple):
    """Consecutive records of one shape, and the values of their varying fields; a single record is not a run."""

    records: int
    timestamp_deltas: set[int]
    """In zig-zag encoding, as written."""
    is_sequential: bool


_NO_RUN: Final = _Run(1, set(), is_sequential=True)


def _run_alike(data: bytes | bytearray, start: int, size: int, index: int, count: int) -> _Run:
    """Find the run of records from `start` on (record `index` of at most `count`, `size` bytes each) of one shape."""
    same, deltas, offsets = _shape(data, start)
    records = count - index
    for position in same + deltas + offsets:
        column = data[position : position + size * (records - 1) + 1 : size]
        alike = column[:1] if position in same else _HIGH if data[position] > 0x7F else _LOW
        records -= len(column.lstrip(alike))
        if records < _SHORTEST_RUN:
            return _NO_RUN
    stop = size * (records - 1) + 1
    columns = [data[at : at + stop : size] for at in deltas]
    timestamps = set(columns[0]) if len(columns) == 1 else {_number(each) for each in set(zip(*columns, strict=True))}
    columns = [data[at : at + stop : size] for at in offsets]
    if len(columns) <= len(_SEQUENTIAL):
        sequential = columns == [column[index : index + records] for column in _SEQUENTIAL[len(columns) - 1]]
    else:
        written = [_number(each) for each in zip(*columns, strict=True)]
        sequential = written == list(range(2 * index, 2 * (index + records), 2))
    return _Run(records, timestamps, sequential)


def _shape(data: bytes | bytearray, start: int) -> tuple[list[int], list[int], list[int]]:
    """Return the positions of the sizes and header count, the timestamp delta, and the offset delta at `start`."""
    span = read_span(data, start)
    same = _varint_at(data, start)
    deltas = _varint_at(data, same[-1] + 2)
    offsets = _varint_at(data, deltas[-1] + 1)
    same += _varint_at(data, offsets[-1] + 1)
    same += _varint_at(data, span.key_position + max(span.key_size, 0))
    same.append(span.headers_position)
    return same, deltas, offsets


def _varint_at(data: bytes | bytearray, position: int) -> list[int]:
    """Return the positions of all bytes of the varint at `position`."""
    positions = [position]
    while data[position] > 0x7F:
        position += 1
        positions.append(position)
    return positions


def _number(varint: tuple[int, ...]) -> int:
    """Return the unsigned number that these bytes encode."""
    number = 0
    for place, byte in enumerate(varint):
        number |= (byte & 0x7F) << 7 * place
    return number & 0xFFFF_FFFF_FFFF_FFFF


def _zig_zag(value: int) -> int:
    """`value` as it is written: 0, -1, 1, -2, ... become 0, 1, 2, 3, ..."""
    return (value << 1) ^ (value >> 63)
