"""A directory tree in memory: the default storage of the logs, which can also fail on purpose.

Written bytes survive the end of a process; bytes that were not synced do not survive a power cut. `crash` simulates
the latter: it returns the tree as a disk would have it after a restart. Names are durable immediately.

A file is a list of chunks. A large append adopts the caller's buffer, a small one is copied into a block, so that a
million small batches do not take a million objects; a read returns slices, found by bisection, and copies nothing.
"""

import errno
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from protocol.pauses import pause

# --- one file ---------------------------------------------------------------------------------------------------------

Buffer = bytes | bytearray | memoryview

_ADOPT_FROM: Final = 16 * 1024
"""Appends of at least this many bytes are kept as they are. Copying fewer takes less than 2 us."""
_ADOPT_SHARE: Final = 2
"""... unless they are less than half of the object whose memory they would keep alive."""
_FIRST_BLOCK: Final = 256  # arbitrary: three small batches
_LAST_BLOCK: Final = 64 * 1024
"""Blocks for smaller appends double between these: thousands of files of a cluster stay almost empty."""
_NO_BLOCK: Final = memoryview(b"")


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


# --- the tree ---------------------------------------------------------------------------------------------------------


class MemoryFiles:
    """A tree of memory files. Paths are relative, their parts joined by "/".

    `lazy`: the files of an empty partition need not exist, because no other process can see them.
    """

    lazy = True

    def __init__(self) -> None:
        self._directories: dict[str, dict[str, MemoryFile]] = {"": {}}
        self.faults_planned = 0
        self.on_freed: Callable[[int], None] = lambda _: None
        """Called with the number of bytes that were freed with each removed file."""
        self._write_faults: list[tuple[OSError, int | None]] = []
        self._sync_faults: list[OSError] = []

    # ------------------------------------------------------------------ files

    def open(self, path: str, *, create: bool = True) -> MemoryFile:
        """Open the file at `path`, creating it if it does not exist and `create` is set.

        Raises:
            FileNotFoundError: no such file and `create` is not set, or no such directory.
        """
        directory, _, name = path.rpartition("/")
        files = self._directories.get(directory)
        if files is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        file = files.get(name)
        if file is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            file = files[name] = MemoryFile(self, path)
        return file

    def read_file(self, path: str) -> bytes:
        """Read the whole contents of a file.

        Raises:
            FileNotFoundError: no such file.
        """
        file = self.open(path, create=False)
        return b"".join(file.read(0, file.size))

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:
        """Write a whole file in one step: a crash leaves the old contents or the new, never a part."""
        directory, _, name = path.rpartition("/")
        file = MemoryFile(self, path)
        file.append(contents)
        if durable:
            file.sync()
        self._directories[directory][name] = file

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists at `path`."""
        directory, _, name = path.rpartition("/")
        return path in self._directories or name in self._directories.get(directory, ())

    def size(self, path: str) -> int:
        """Return the size of the file at `path` in bytes."""
        return self.open(path, create=False).size

    def mtime_ms(self, path: str) -> int:
        """Return the time of the last change, as given to `set_mtime_ms`: a memory file reads no clock."""
        return self.open(path, create=False).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change (ms since the epoch)."""
        self.open(path, create=False).mtime_ms = mtime_ms

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or a directory with its contents, replacing a file that has the new name.

        Raises:
            FileNotFoundError: nothing exists at `path`.
        """
        directory, _, name = path.rpartition("/")
        file = self._directories.get(directory, {}).pop(name, None)
        if file is not None:
            file.path = to
            target, _, new_name = to.rpartition("/")
            self._directories[target][new_name] = file
            return
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        moved = [name for name in self._directories if name == path or name.startswith(path + "/")]
        for old in moved:
            files = self._directories[to + old[len(path) :]] = self._directories.pop(old)
            for file in files.values():
                file.path = to + file.path[len(path) :]

    def remove(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        directory, _, name = path.rpartition("/")
        file = self._directories.get(directory, {}).pop(name, None)
        if file is not None:
            self.on_freed(file.discard())

    def make_directory(self, path: str) -> None:
        """Create a directory; an existing one is no error."""
        self._directories.setdefault(path, {})

    def remove_directory(self, path: str) -> None:
        """Remove a directory if it is empty; one that holds something stays."""
        if self._directories.get(path) == {}:
            del self._directories[path]

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its contents; a missing one is no error."""
        for name in [name for name in self._directories if name == path or name.startswith(path + "/")]:
            for file in self._directories.pop(name).values():
                self.on_freed(file.discard())

    def discard(self) -> None:
        """Remove everything. Slices that were read stay valid as long as they are referenced."""
        for files in list(self._directories.values()):
            pause()
            for file in files.values():
                self.on_freed(file.discard())
        self._directories = {"": {}}

    def list(self, path: str = "") -> Sequence[str]:
        """List the names of files and directories in a directory, sorted; "" is the root."""
        prefix = path + "/" if path else ""
        below = {name[len(prefix) :].partition("/")[0] for name in self._directories if name.startswith(prefix)}
        return sorted((below | set(self._directories.get(path, ()))) - {""})

    def is_directory(self, path: str) -> bool:
        """Whether a directory exists at `path`."""
        return path in self._directories

    def sync_directory(self, path: str) -> None:
        """Do nothing: names are durable immediately."""

    def lock(self) -> None:
        """Do nothing: no other process can see this tree."""

    def close(self) -> None:
        """Do nothing: there are no descriptors."""

    # ------------------------------------------------------------------ faults

    def fail_next_write(self, error: OSError | None = None, *, keep: int | None = None) -> None:
        """Let the next append or overwrite of any file fail with `error` (default: no space left).

        Args:
            error: the error to raise.
            keep: how many bytes are written first (a torn write); None: none.
        """
        self._write_faults.append((error or OSError(errno.ENOSPC, "No space left on device"), keep))
        self.faults_planned += 1

    def fail_next_sync(self, error: OSError | None = None) -> None:
        """Let the next sync of a file fail with `error` (default: input/output error); nothing becomes durable."""
        self._sync_faults.append(error or OSError(errno.EIO, "Input/output error"))
        self.faults_planned += 1

    def take_write_fault(self, path: str) -> tuple[OSError, int | None] | None:
        """Consume the planned fault of a write to `path`: the error, and how many bytes are still written."""
        if not self._write_faults:
            return None
        self.faults_planned -= 1
        error, keep = self._write_faults.pop(0)
        error.filename = path
        return error, keep

    def raise_sync_fault(self, path: str) -> None:
        """Consume and raise the planned fault of a sync, if there is one."""
        if self._sync_faults:
            self.faults_planned -= 1
            error = self._sync_faults.pop(0)
            error.filename = path
            raise error

    def snapshot(self) -> "MemoryFiles":
        """Copy the tree as it is now; chunks are shared, so no records are copied."""
        return self._twin(synced_only=False, keep_unsynced=lambda unsynced: unsynced)

    def crash(self, keep_unsynced: Callable[[int], int] = lambda _: 0) -> "MemoryFiles":
        """Return the tree after a power cut: bytes that were not synced are lost.

        Args:
            keep_unsynced: called for each file with its number of unsynced bytes; returns how many of the first ones
                reached the disk anyway (so a batch may be torn).
        """
        return self._twin(synced_only=True, keep_unsynced=keep_unsynced)

    def _twin(self, *, synced_only: bool, keep_unsynced: Callable[[int], int]) -> "MemoryFiles":
        twin = MemoryFiles()
        for directory, files in list(self._directories.items()):
            pause()
            twin._directories[directory] = {
                name: file.copy(twin, synced_only=synced_only, keep_unsynced=keep_unsynced)
                for name, file in files.items()
            }
        return twin
