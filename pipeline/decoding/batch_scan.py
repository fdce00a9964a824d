"""Finds the batches of a segment: their positions and headers, each checked for consistency.

Header fields outside the checksum (base offset, length, leader epoch, magic) are trusted if they fit their
neighbours: offsets and epochs increase along a log. After bytes that are not a batch, the next valid batch is found by
its checksum, so that one broken length does not hide what follows.
"""

from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.damage import Damage
from pipeline.decoding.offset_order import disordered
from protocol.checksums import crc32c
from protocol.records.batch import (
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CRC_POSITION,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_LEADER_EPOCH,
)
from protocol.records.compression import Codec

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]
Headers = NDArray[Any]

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
assert HEADER.itemsize == BATCH_HEADER_SIZE
SMALLEST_MESSAGE: Final = 26
"""Bytes of a magic-0 message without key and value."""
MAGIC_POSITION: Final = 16  # after offset, length and leader epoch (core D.4)

_LARGE: Final = 32 * 1024 * 1024  # beyond any batch but one that a damaged length announces
_LENGTH, _LENGTH_AND_MAGIC = Struct(">i"), Struct(">i4xb")


class Framed(NamedTuple):
    """Consecutive valid batches: their positions in the bytes, and their headers."""

    positions: Positions
    headers: Headers


class Messages(NamedTuple):
    """Consecutive messages of magic 0 and 1: the range of bytes that they occupy."""

    start: int
    stop: int


Piece = Framed | Messages | Damage
"""`Damage.position` is relative to the file, the other positions to the given bytes."""


@dataclass(slots=True)
class Framer:
    """Frames the bytes of one segment, chunk by chunk.

    Args:
        base_offset: the segment's, from its name.
        next_base_offset: of the next segment; None for the last one.
        crc: whether to verify checksums.
        zeros_from: position in the file from which there are only zeros; None: unknown.
    """

    base_offset: int
    next_base_offset: int | None = None
    crc: bool = True
    zeros_from: int | None = None
    due_offset: int = field(init=False)
    """The lowest offset that may come next."""
    due_epoch: int = field(default=NO_LEADER_EPOCH, init=False)
    is_lost: bool = field(default=False, init=False)
    """Whether the preceding bytes were skipped as damaged, so that the next batch has to be searched."""

    def __post_init__(self) -> None:
        self.due_offset = self.base_offset

    def frame(self, data: Bytes, origin: int, *, at_end: bool) -> tuple[list[Piece], int, int]:
        """Return the pieces in `data`, which begins at byte `origin` of the file.

        Args:
            data: some bytes.
            origin: their position in the file.
            at_end: whether the file ends with them.

        Returns:
            The pieces in order; the bytes consumed; the bytes that the next batch needs, 0 if unknown.
        """
        pieces: list[Piece] = []
        at = 0
        while at < len(data):
            if self.is_lost:
                next_batch = find_batch(data, at, self.due_offset)
                stop, sound = (len(data) if at_end else max(at, len(data) - BATCH_HEADER_SIZE), False)
                if next_batch is not None:
                    stop, sound = next_batch
                if stop > at:
                    pieces.append(Damage(origin + at, stop - at, "bytes that belong to no batch"))
                if not sound:
                    return pieces, stop, 0 if next_batch is None else _size(data, stop)
                at, self.is_lost = stop, False
            positions, at, wanted = hop(data, at)
            swallowed = self._checked(data, positions, origin, pieces)
            if swallowed is not None:
                at = swallowed
                continue
            if at == len(data):
                break
            piece = self._stopped(data, at, origin, wanted, at_end=at_end)
            if piece is None:
                return pieces, at, wanted
            if isinstance(piece, Messages):
                at = piece.stop
            else:
                at = piece.position - origin + piece.size
                self.is_lost = not piece.is_tail
            pieces.append(piece)
        return pieces, at, 0

    def _stopped(self, data: Bytes, at: int, origin: int, wanted: int, *, at_end: bool) -> Messages | Damage | None:
        """Return the kind of the bytes at which `hop` ended; None for a batch of which more bytes must be read."""
        left = len(data) - at
        if left > MAGIC_POSITION and data[at + MAGIC_POSITION] < MAGIC_V2 and wanted >= SMALLEST_MESSAGE:
            stop = _messages(data, at)
            if stop > at:
                return Messages(at, stop)
        is_short = left < BATCH_HEADER_SIZE or wanted > left
        if is_short and not at_end and not self._is_hidden(data, at, wanted):
            return None
        if not data[at:].any():
            is_tail = at_end or (self.zeros_from is not None and origin + at >= self.zeros_from)
            return Damage(origin + at, left, f"{left} bytes of zeros", self.due_offset, is_tail)
        later = find_batch(data, at + 1, self.due_offset)
        is_tail = is_short and (later is None or not later[1]) and not _is_whole(data, at)
        size = left if later is None or is_tail else later[0] - at
        offset = self.due_offset if is_tail else self._likely(data, at)
        return Damage(origin + at, size, _reason(data, at), offset, is_tail)

    def _is_hidden(self, data: Bytes, at: int, wanted: int) -> bool:
        """Return whether a very large length is wrong, because valid batches follow within it."""
        if wanted <= _LARGE:
            return False
        later = find_batch(data, at + 1, self.due_offset)
        return later is not None and later[1]

    def _likely(self, data: Bytes, at: int) -> int | None:
        # The base offset is an int64.
        offset = int.from_bytes(data[at : at + 8].tobytes(), "big", signed=True)
        return offset if offset == self.due_offset else None

    def _checked(self, data: Bytes, positions: Positions, origin: int, pieces: list[Piece]) -> int | None:
        """Add the batches at these positions, up to one that is damaged.

        Returns:
            The position to continue at, if a batch's length was so wrong that valid batches are within it; else None.
        """
        if not len(positions):
            return None
        headers = _headers(data, positions)
        wrong = self._wrong_bytes(data, positions, headers)
        for index in sorted(wrong):
            start, stop = (
                int(positions[index]) + 1,
                int(positions[index]) + LOG_OVERHEAD + int(headers[index]["length"]),
            )
            inside = find_batch(data, start, self.due_offset, stop)
            if inside is not None and inside[1]:
                self._add(positions[:index], headers[:index], wrong, origin, pieces)
                pieces.append(Damage(origin + start - 1, inside[0] - start + 1, wrong[index]))
                return inside[0]
        self._add(positions, headers, wrong, origin, pieces)
        return None

    def _add(
        self, positions: Positions, headers: Headers, wrong: dict[int, str], origin: int, pieces: list[Piece]
    ) -> None:
        """Add valid batches and damage in order of position."""
        wrong = {index: reason for index, reason in wrong.items() if index < len(positions)}
        self._out_of_order(headers, wrong)
        start = 0
        for index in sorted(wrong):
            if index > start:
                pieces.append(Framed(positions[start:index], headers[start:index]))
            head = headers[index]
            offset = None if wrong[index].startswith("offset") else int(head["base_offset"])
            size = LOG_OVERHEAD + int(head["length"])
            pieces.append(Damage(origin + int(positions[index]), size, wrong[index], offset))
            start = index + 1
        if start < len(positions):
            pieces.append(Framed(positions[start:], headers[start:]))
        last = max(set(range(len(positions))) - wrong.keys(), default=-1) if wrong else len(positions) - 1
        if last >= 0:
            head = headers[last]
            self.due_offset = int(head["base_offset"]) + int(head["last_offset_delta"]) + 1
            self.due_epoch = int(head["leader_epoch"])

    def _wrong_bytes(self, data: Bytes, positions: Positions, headers: Headers) -> dict[int, str]:
        """Return index -> fault, for batches that are invalid by themselves."""
        wrong: dict[int, str] = {}
        if self.crc:
            view = data.data
            ends = (positions + LOG_OVERHEAD + headers["length"]).tolist()
            starts = (positions + ATTRIBUTES_POSITION).tolist()
            sums = [crc32c(view[start:end]) for start, end in zip(starts, ends, strict=True)]
            for index in np.flatnonzero(np.array(sums, np.uint32) != headers["crc"]).tolist():
                wrong[index] = "checksum mismatch"
        spans = headers["last_offset_delta"]
        counts = headers["count"]
        tests = {
            "an undefined compression code": headers["attributes"] & CODEC_MASK > max(Codec),
            "a last offset before the first": spans < 0,
            "a negative number of records": counts < 0,
            "more records than offsets": counts > spans.astype(np.int64) + 1,
        }
        for reason, failing in tests.items():
            for index in np.flatnonzero(failing).tolist():
                wrong.setdefault(index, reason)
        return wrong

    def _out_of_order(self, headers: Headers, wrong: dict[int, str]) -> None:
        """Add the batches whose offsets or epochs do not increase along the log."""
        names = [index for index in range(len(headers)) if index not in wrong]
        good = headers[names] if wrong else headers
        bases = good["base_offset"].astype(np.int64)
        lasts = bases + good["last_offset_delta"]
        # Without a next segment the highest int64.
        limit = 2**63 - 1 if self.next_base_offset is None else self.next_base_offset
        for index in disordered(bases, lasts, self.due_offset, limit):
            due = f"from {self.due_offset}" + ("" if self.next_base_offset is None else f" to below {limit}")
            wrong[names[index]] = f"offsets {bases[index]}-{lasts[index]}, out of order in what goes {due}"
        epochs = good["leader_epoch"].astype(np.int64)
        for index in disordered(epochs, epochs - 1, self.due_epoch, 2**31):  # above every int32
            wrong.setdefault(names[index], f"leader epoch {epochs[index]}, out of order")


def _headers(data: Bytes, positions: Positions) -> Headers:
    """Return the bytes at these positions as headers."""
    return np.lib.stride_tricks.sliding_window_view(data, BATCH_HEADER_SIZE)[positions].view(HEADER).reshape(-1)


def hop(data: Bytes, at: int) -> tuple[Positions, int, int]:
    """Follow the length fields from `at`, as long as there are complete batches of magic 2.

    Returns:
        Their positions; the position after the last one; the size in the length field there (0: there is none).
    """
    view = data.data
    end = len(view)
    begins: list[int] = []
    add, fields_at = begins.append, _LENGTH_AND_MAGIC.unpack_from
    while at + MAGIC_POSITION < end:
        length, magic = fields_at(view, at + 8)  # after the base offset
        behind = at + LOG_OVERHEAD + length
        if magic != MAGIC_V2 or length < BATCH_HEADER_SIZE - LOG_OVERHEAD or behind > end:
            break
        add(at)
        at = behind
    wanted = _size(data, at) if at + LOG_OVERHEAD <= end else 0
    return np.array(begins, np.int64), at, max(wanted, 0)


def _size(data: Bytes, at: int) -> int:
    return LOG_OVERHEAD + int(_LENGTH.unpack_from(data.data, at + 8)[0])  # after the base offset


def _is_whole(data: Bytes, at: int) -> bool:
    """Return whether the bytes from `at` to the end are one batch, regardless of its length field."""
    if len(data) - at < BATCH_HEADER_SIZE:
        return False
    stored = int.from_bytes(data[at + CRC_POSITION : at + CRC_POSITION + 4].tobytes(), "big")
    return crc32c(data.data[at + ATTRIBUTES_POSITION :]) == stored


def _reason(data: Bytes, at: int) -> str:
    """Return why there is no batch at `at`."""
    left = len(data) - at
    if left < LOG_OVERHEAD:
        return f"{left} bytes are fewer than a header"
    size = _size(data, at)
    if size < SMALLEST_MESSAGE:
        return f"a length field of {size - LOG_OVERHEAD}"
    if left > MAGIC_POSITION and data[at + MAGIC_POSITION] > MAGIC_V2:
        return f"magic {int(data[at + MAGIC_POSITION].view(np.int8))}"
    if size > left:
        return f"{left} of {size} bytes are there"
    return "no whole batch" if data[at + MAGIC_POSITION] == MAGIC_V2 else "a damaged message of the old formats"


def _messages(data: Bytes, at: int) -> int:
    """Return the end of the complete messages of magic 0 and 1 that start at `at`."""
    view = data.data
    end = len(view)
    while at + MAGIC_POSITION < end:
        size = _size(data, at)
        if size < SMALLEST_MESSAGE or at + size > end or view[at + MAGIC_POSITION] >= MAGIC_V2:
            break
        at += size
    return at


def find_batch(data: Bytes, at: int, due_offset: int, before: int | None = None) -> tuple[int, bool] | None:
    """Return where the next batch of magic 2 starts, from `at` on, and whether it is complete and valid.

    It starts before `before`, and its offsets are not below `due_offset`. A batch that continues after the given bytes
    counts if no valid one precedes it. None: there is neither.
    """
    stop = len(data) - BATCH_HEADER_SIZE + 1
    stop = stop if before is None else min(stop, before)
    if at >= stop:
        return None
    begun: int | None = None
    candidates = at + np.flatnonzero(data[at + MAGIC_POSITION : stop + MAGIC_POSITION] == MAGIC_V2)
    for start in range(0, len(candidates), 65536):  # 4 MB of headers at a time
        some = candidates[start : start + 65536]
        headers = _headers(data, some)
        likely = (
            (headers["length"] >= BATCH_HEADER_SIZE - LOG_OVERHEAD)
            & (headers["base_offset"] >= due_offset)
            & (headers["base_offset"] < due_offset + 2**31)  # a segment's offsets differ by an int32
            & (headers["last_offset_delta"] >= 0)
            & (headers["count"] >= 0)
        )
        for position, head in zip(some[likely].tolist(), headers[likely], strict=True):
            end = position + LOG_OVERHEAD + int(head["length"])
            if end > len(data):
                begun = position if begun is None else begun
            elif crc32c(data.data[position + ATTRIBUTES_POSITION : end]) == int(head["crc"]):
                return position, True
    return None if begun is None else (begun, False)
