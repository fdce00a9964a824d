"""One file in memory: a list of chunks.

A large append adopts the caller's buffer, a small one is copied into a block, so that a million small batches do not
take a million objects; a read returns slices, found by bisection, and copies nothing.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview

_ADOPT_FROM = 16 * 1024
"""Appends of at least this many bytes are kept as they are. Copying fewer takes less than 2 us."""
_ADOPT_SHARE = 2
"""... unless they are less than half of the object whose memory they would keep alive."""
_FIRST_BLOCK = 256
_LAST_BLOCK = 64 * 1024
_NO_BLOCK = memoryview(b"")


class Faults(Protocol):
    """Planned faults of a tree."""

    faults_planned: int

    def take_write_fault(self, path: str) -> tuple[OSError, int | None] | None:
        """Consume the planned fault of a write: the error, and how many bytes are still written."""

    def raise_sync_fault(self, path: str) -> None:
        """Consume and raise the planned fault of a sync, if there is one."""


class MemoryFile:
    """A file in memory, created by `MemoryFiles.open`."""

    __slots__ = (
        "_block",
        "_block_left",
        "_chunks",
        "_flat",
        "_owner",
        "_starts",
        "_synced",
        "mtime_ms",
        "path",
        "size",
    )

    def __init__(self, owner: Faults, path: str) -> None:
        self._owner = owner
        self.path = path
        self.size = 0
        self.mtime_ms = 0
        self._chunks: list[memoryview] = []
        self._starts: list[int] = []
        self._block = _NO_BLOCK
        self._block_left = 0
        self._flat: bytearray | None = None  # once `write_at` was used; bytes beyond it, up to size, are zeros
        self._synced = 0

    def append(self, buffer: Buffer) -> int:
        """Add bytes at the end and return the position where they start.

        A large buffer is adopted, not copied: the caller must not change it afterwards.

        Raises:
            OSError: a planned fault; a torn write leaves a part of the bytes.
        """
        position = self.size
        if self._owner.faults_planned:
            self._apply_fault(position, buffer)
        if self._flat is None:
            self._append_chunk(buffer)
        else:
            self._overwrite(position, buffer)
        return position

    def _apply_fault(self, position: int, buffer: Buffer) -> None:
        """Raise the planned fault, after writing the bytes that it lets through."""
        fault = self._owner.take_write_fault(self.path)
        if fault is None:
            return
        error, keep = fault
        if keep is not None:
            part = memoryview(buffer)[:keep]
            if self._flat is None and position == self.size:
                self._append_chunk(bytes(part))
            else:
                self._overwrite(position, part)
        raise error

    def _append_chunk(self, buffer: Buffer) -> None:
        n = len(buffer)
        if not n:
            return
        if n >= _ADOPT_FROM:
            view = memoryview(buffer)
            if n * _ADOPT_SHARE >= view.obj.__sizeof__():
                self._starts.append(self.size)
                self._chunks.append(view)
                self._block_left = 0
                self.size += n
                return
        left = self._block_left
        if n > left:
            # Blocks double, so an almost empty partition stays small and a busy one has few objects.
            length = max(n, min(_LAST_BLOCK, max(_FIRST_BLOCK, self.size)))
            self._block = memoryview(bytearray(length))
            self._starts.append(self.size)
            self._chunks.append(self._block)
            left = length
        block = self._block
        begin = len(block) - left
        block[begin : begin + n] = buffer
        self._block_left = left - n
        self.size += n

    def read(self, position: int, size: int) -> list[memoryview]:
        """Read up to `size` bytes from `position` as slices, in order; fewer at the file's end. Copies nothing."""
        end = min(position + size, self.size)
        if position >= end:
            return []
        if self._flat is not None:
            return [memoryview(self._flat_bytes(position, end))]
        starts = self._starts
        index = bisect_right(starts, position) - 1
        buffers = []
        while position < end:
            start = starts[index]
            index += 1
            stop = end if index == len(starts) or starts[index] > end else starts[index]
            buffers.append(self._chunks[index - 1][position - start : stop - start])
            position = stop
        return buffers

    def view(self, position: int, size: int) -> memoryview:
        """Read as `read` does, in one piece. Copies a range only if it crosses chunks; an append never does."""
        buffers = self.read(position, size)
        if len(buffers) == 1:
            return buffers[0]
        return memoryview(b"".join(buffers))

    def contiguous(self, position: int, size: int) -> memoryview:
        """Read as many of `size` bytes as lie in one piece at `position`; empty only at the end of the file."""
        buffers = self.read(position, size)
        return buffers[0] if buffers else memoryview(b"")

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from `position` on, extending the file where needed (indexes only, not logs).

        Raises:
            OSError: as `append`.
        """
        if self._owner.faults_planned:
            self._apply_fault(position, buffer)
        self._overwrite(position, buffer)

    def _overwrite(self, position: int, buffer: Buffer) -> None:
        flat = self._flatten()
        if position > len(flat):
            flat.extend(bytes(position - len(flat)))
        flat[position : position + len(buffer)] = buffer
        self.size = max(self.size, position + len(buffer))

    def truncate(self, size: int) -> None:
        """Truncate to `size` bytes, or extend with zeros that take no memory."""
        if size > self.size:
            self._flatten()
            self.size = size
            return
        self._synced = min(self._synced, size)
        if self._flat is not None:
            if len(self._flat) > size:
                self._flat = self._flat[:size]
            self.size = size
            return
        while self._starts and self._starts[-1] >= size:
            self._starts.pop()
            self._chunks.pop()
        if self._chunks:
            self._chunks[-1] = self._chunks[-1][: size - self._starts[-1]]
        self._block_left = 0
        self.size = size

    def reserve(self, size: int) -> None:
        """Do nothing: memory is allocated on demand."""

    def trim(self) -> None:
        """Do nothing: nothing was reserved."""

    def sync(self) -> None:
        """Make everything written survive `crash`.

        Raises:
            OSError: a planned fault.
        """
        if self._owner.faults_planned:
            self._owner.raise_sync_fault(self.path)
        self._synced = self.size

    def close(self) -> None:
        """Do nothing: memory files have no descriptor."""

    def discard(self) -> int:
        """Free the contents after the file was removed; return how many bytes it had.

        The log of the file may be part of a reference cycle, which the garbage collector finds late, if at all: it
        examines objects that survived a few collections only after as many as a quarter of them have been added.
        """
        size = self.size if self._flat is None else len(self._flat)
        self._chunks, self._starts, self._block, self._block_left, self._flat = [], [], _NO_BLOCK, 0, None
        self.size = self._synced = 0
        return size

    def _flatten(self) -> bytearray:
        if self._flat is None:
            self._flat = bytearray(b"".join(self.read(0, self.size)))
            self._chunks, self._starts, self._block, self._block_left = [], [], _NO_BLOCK, 0
        return self._flat

    def _flat_bytes(self, position: int, end: int) -> bytes:
        flat = self._flat or bytearray()
        contents = bytes(flat[position:end])
        return contents + bytes(end - position - len(contents))

    def copy(self, owner: Faults, *, synced_only: bool, keep_unsynced: Callable[[int], int]) -> "MemoryFile":
        """Copy the file into another tree; later appends do not affect the copy. Used by `snapshot` and `crash`."""
        twin = MemoryFile(owner, self.path)
        twin.size, twin.mtime_ms = self.size, self.mtime_ms
        if self._flat is not None:
            twin._flat = bytearray(self._flat)
        else:
            twin._chunks, twin._starts = list(self._chunks), list(self._starts)
        twin._synced = self._synced
        if synced_only and self._synced < self.size:
            twin.truncate(self._synced + keep_unsynced(self.size - self._synced))
            twin._synced = twin.size
        return twin
