"""What the journal keeps of a message: all of it, or the pieces between its records."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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

_MOST_HEADS = 4096
_SHORTEST_RECORDS = 512
"""Parts of a fetch response that are not records are smaller."""

WITH_RECORDS = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})
"""The APIs whose answers have records, which are left out where they are large."""

Kept = bytes | bytearray | tuple[Any, ...]
"""A whole message; or pieces of it, with size and head of a set of records between each two (see :func:`expand`).

The head is the first batch's header, or those of all batches, one after the other.
"""


def weight_of(kept: Kept) -> int:
    """The memory that it takes, about."""
    if not isinstance(kept, tuple):
        return len(kept)
    return sum(map(len, kept[::3])) + sum(map(len, kept[2::3])) + len(kept) * 40


def without_records(frame: bytearray, request: Any) -> Kept:
    """A request's frame; where it carries records, the pieces between them. Others are kept as they are."""
    if not (len(frame) > 4 and frame[0] == 0 and frame[1] == ApiKey.PRODUCE and request is not None):
        return frame
    flexible = is_flexible(ApiKey.PRODUCE, frame[2] << 8 | frame[3])
    pieces: list[Any] = []
    at = 0
    for topic in request.topic_data:
        for partition in topic.partition_data:
            if not partition.records:
                continue
            size, head = len(partition.records), bytes(partition.records[:BATCH_HEADER_SIZE])
            begin = frame.find(head, at)  # the records are slices of the frame, in its order
            prefix = len(uvarint(size + 1)) if flexible else 4
            pieces += (bytes(frame[at : begin - prefix]), size, head)
            at = begin + size
    return (*pieces, bytes(frame[at:]))


def answer_without_records(parts: Parts, *, every: bool = False) -> Kept:
    """A fetch response as it is written; slices of the log are left out with the size before them.

    Of these, the first batch's header is kept, or, with ``every``, those of all batches.
    """
    kinds = list(map(type, parts))
    records = kinds.count(memoryview)
    if records and not every:  # one partition, nearly always: found without a look at each part
        first = kinds.index(memoryview)
        end = first + records
        behind = b"".join(parts[end:])
        if len(behind) < _SHORTEST_RECORDS and kinds[first:end].count(memoryview) == records and len(parts[first]):
            before = b"".join(parts[: first - 1])
            if len(before) < _SHORTEST_RECORDS:
                return before, sum(map(len, parts[first:end])), bytes(parts[first][:BATCH_HEADER_SIZE]), behind
    return _without_records(parts, every=every)


def _without_records(parts: Parts, *, every: bool) -> Kept:
    """As `answer_without_records`, of any number of partitions, records that are not slices of the log included."""
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
    """The headers of all batches in a set of records that is given in slices; of very many, the first 4096.

    Of a set in an older format, whose headers have no such fields, the first 61 bytes.
    """
    found: list[bytes] = []
    skip = 0
    for data in slices:
        size, at = len(data), skip
        while at + BATCH_HEADER_SIZE <= size and len(found) < _MOST_HEADS:
            head = bytes(data[at : at + BATCH_HEADER_SIZE])
            at += max(int.from_bytes(head[LENGTH_POSITION:LEADER_EPOCH_POSITION]) + LOG_OVERHEAD, BATCH_HEADER_SIZE)
            found.append(head)
            if head[MAGIC_POSITION] < MAGIC_V2:
                return found[0]
        if at < size and len(found) < _MOST_HEADS and len(slices) > 1:
            return heads([b"".join(slices)])  # a header lies on both sides of a cut
        skip = at - size
    return b"".join(found) or bytes(slices[0][:BATCH_HEADER_SIZE])


def expand(
    kept: Kept, key: int, version: int, left: Callable[[bytes], bytes] = bytes
) -> tuple[bytes | bytearray, list[int] | None]:
    """A message that can be decoded, and the sizes that its sets of records have had; ``None``: it is whole.

    The records are replaced by what ``left`` makes of the headers that were kept; by default these themselves.
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
