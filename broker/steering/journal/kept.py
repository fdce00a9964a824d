"""What the journal keeps of a message: the whole message, or the pieces around its record sets."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.codec import is_flexible
from protocol.records.batch import (
    BATCH_HEADER_SIZE,
    LEADER_EPOCH_POSITION,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
)
from protocol.uvarint import uvarint
from protocol.writers import Parts

_MOST_HEADS: Final = 4096  # batches of a message whose headers are kept: 250 KB at most; ours, more are not read
_SHORTEST_RECORDS: Final = 512
"""The size below which a part of a fetch response is not a record set.

Arbitrary, as keeping fewer bytes whole costs less than a tuple of pieces.
"""

WITH_RECORDS: Final = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
"""The APIs whose responses have record sets, which are omitted if they are large."""

Kept = bytes | bytearray | tuple[Any, ...]
"""A whole message; or its pieces, with size and head of the omitted record set between two pieces (:func:`expand`).

The head is the header of the first batch, or the headers of all batches, concatenated.
"""


def weight_of(kept: Kept) -> int:
    """Estimate the memory that a kept message takes, in bytes."""
    if not isinstance(kept, tuple):
        return len(kept)
    return sum(map(len, kept[::3])) + sum(map(len, kept[2::3])) + len(kept) * 40  # an empty bytes object has 33 bytes


def without_records(frame: bytearray, request: Any) -> Kept:
    """Return the pieces of a Produce request's frame around its record sets; other frames are returned unchanged."""
    # Api key and version, two bytes each.
    if not (len(frame) > 4 and frame[0] == 0 and frame[1] == ApiKey.PRODUCE and request is not None):
        return frame
    flexible = is_flexible(ApiKey.PRODUCE, frame[2] << 8 | frame[3])  # the version
    pieces: list[Any] = []
    at = 0
    for topic in request.topic_data:
        for partition in topic.partition_data:
            if not partition.records:
                continue
            size, head = len(partition.records), bytes(partition.records[:BATCH_HEADER_SIZE])
            begin = frame.find(head, at)  # record sets are slices of the frame, in the same order
            prefix = len(uvarint(size + 1)) if flexible else 4  # the length before it, an int32 in older versions
            pieces += (bytes(frame[at : begin - prefix]), size, head)
            at = begin + size
    return (*pieces, bytes(frame[at:]))


def answer_without_records(parts: Parts, *, every: bool = False) -> Kept:
    """Return the pieces of a fetch response around its record sets (slices of the log with the size before them).

    Of each set, the first batch header is kept; with ``every``, all batch headers.
    """
    kinds = list(map(type, parts))
    records = kinds.count(memoryview)
    if records and not every:  # a fast path: nearly always there is one partition
        first = kinds.index(memoryview)
        end = first + records
        behind = b"".join(parts[end:])
        if len(behind) < _SHORTEST_RECORDS and kinds[first:end].count(memoryview) == records and len(parts[first]):
            before = b"".join(parts[: first - 1])
            if len(before) < _SHORTEST_RECORDS:
                return before, sum(map(len, parts[first:end])), bytes(parts[first][:BATCH_HEADER_SIZE]), behind
    return _without_records(parts, every=every)


def _without_records(parts: Parts, *, every: bool) -> Kept:
    """Like `answer_without_records`, for any number of partitions, and record sets that are not slices of the log."""
    pieces: list[Any] = []
    plain: list[bytes] = []
    slices: list[Any] = []

    def leave_out() -> None:
        head = heads(slices) if every else bytes(slices[0][:BATCH_HEADER_SIZE])
        pieces.extend((b"".join(plain[:-1]), sum(map(len, slices)), head))
        plain.clear()
        slices.clear()

    for part in parts:
        if type(part) is bytes and len(part) < _SHORTEST_RECORDS:
            if slices:
                leave_out()
            plain.append(part)
        elif len(part):
            slices.append(part)
    if slices:
        leave_out()
    return (*pieces, b"".join(plain))


def heads(slices: Sequence[Any]) -> bytes:
    """Return the concatenated headers of all batches in a record set given as slices, the first 4096 at most.

    For older formats, whose headers have no such fields: the first 61 bytes of the set.
    """
    headers: list[bytes] = []
    skip = 0
    for data in slices:
        size, at = len(data), skip
        while at + BATCH_HEADER_SIZE <= size and len(headers) < _MOST_HEADS:
            head = bytes(data[at : at + BATCH_HEADER_SIZE])
            at += max(int.from_bytes(head[LENGTH_POSITION:LEADER_EPOCH_POSITION]) + LOG_OVERHEAD, BATCH_HEADER_SIZE)
            headers.append(head)
            if head[MAGIC_POSITION] < MAGIC_V2:
                return headers[0]
        if at < size and len(headers) < _MOST_HEADS and len(slices) > 1:
            return heads([b"".join(slices)])  # a header is split over two slices
        skip = at - size
    return b"".join(headers) or bytes(slices[0][:BATCH_HEADER_SIZE])


def expand(
    kept: Kept, key: int, version: int, left: Callable[[bytes], bytes] = bytes
) -> tuple[bytes | bytearray, list[int] | None]:
    """Return a message that can be decoded, and the original sizes of its record sets; ``None`` if none was omitted.

    Each record set is replaced by ``left(kept headers)``; by default by the headers themselves.
    """
    if not isinstance(kept, tuple):
        return kept, None
    flexible = is_flexible(key, version)
    out = bytearray()
    sizes = []
    for piece, size, head in _triples(kept):
        out += piece
        if size is not None:
            instead = left(head)
            out += uvarint(len(instead) + 1) if flexible else len(instead).to_bytes(4, "big")
            out += instead
            sizes.append(size)
    return out, sizes


def _triples(kept: tuple[Any, ...]) -> Iterator[tuple[bytes, int | None, bytes]]:
    for at in range(0, len(kept) - 1, 3):
        yield kept[at], kept[at + 1], kept[at + 2]
    yield kept[-1], None, b""
