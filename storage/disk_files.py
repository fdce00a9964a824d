"""A directory tree on a disk.

Descriptors are few and partitions are many: a file opens its descriptor when it is first needed and gives it back when
others need it more. Everything a process wrote outlives the process, synced or not; `sync` is for the machine.
"""

import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

Buffer = bytes | bytearray | memoryview

_NO_DESCRIPTOR = -1


class DirectoryLockedError(RuntimeError):
    """Another process works in this data directory."""


class DiskFile:
    """One file. Not to be made directly: `DiskFiles.open` does."""

    __slots__ = ("_descriptor", "_owner", "_reserved", "path", "size", "used")

    def __init__(self, owner: "DiskFiles", path: str, size: int) -> None:
        self._owner = owner
        self.path = path
        self.size = size
        self.used = False
        self._reserved = False
        self._descriptor = _NO_DESCRIPTOR

    def _open(self) -> int:
        self.used = True
        if self._descriptor == _NO_DESCRIPTOR:
            self._descriptor = self._owner.descriptor_for(self)
        return self._descriptor

    def append(self, buffer: Buffer) -> int:
        """Add bytes at the end and return the position where they start.

        Raises:
            OSError: the disk is full or broken; a part of the bytes may have been written, beyond `size`.
        """
        position = self.size
        self._write(position, buffer)
        self.size = position + len(buffer)
        return position

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from `position` on, extending the file where needed."""
        self._write(position, buffer)
        self.size = max(self.size, position + len(buffer))

    def _write(self, position: int, buffer: Buffer) -> None:
        descriptor = self._open()
        written = os.pwrite(descriptor, buffer, position)
        while written < len(buffer):
            written += os.pwrite(descriptor, memoryview(buffer)[written:], position + written)

    def read(self, position: int, size: int) -> list[memoryview]:
        """Up to `size` bytes from `position`; fewer at the end of the file. One read, one piece."""
        view = self.view(position, size)
        return [view] if view else []

    def view(self, position: int, size: int) -> memoryview:
        """As `read`, in one piece."""
        size = min(size, self.size - position)
        if size <= 0:
            return memoryview(b"")
        return memoryview(os.pread(self._open(), size, position))

    contiguous = view

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes, or extend with a hole that takes no space."""
        os.ftruncate(self._open(), size)
        self.size = size
        self._reserved = False

    def reserve(self, size: int) -> None:
        """Let the file be that long from the start (a hole, as Java's setLength makes it); `size` stays what it is."""
        if size > self.size:
            os.ftruncate(self._open(), size)
            self._reserved = True

    def trim(self) -> None:
        """Cut the file to `size` bytes, if it was reserved longer."""
        if self._reserved:
            self.truncate(self.size)

    def sync(self) -> None:
        """Make everything written survive a power cut (fsync).

        Raises:
            OSError: the disk is broken; what of it is durable, nobody knows.
        """
        os.fsync(self._open())

    def close(self) -> None:
        """Give the descriptor back; the next use opens the file again."""
        if self._descriptor != _NO_DESCRIPTOR:
            descriptor, self._descriptor = self._descriptor, _NO_DESCRIPTOR
            self._owner.forget(self)
            os.close(descriptor)


class DiskFiles:
    """The tree below `root`. Paths are relative, their parts joined by "/".

    Args:
        root: an existing directory.
        read_only: nothing is created, changed, removed or locked; whoever tries gets a PermissionError.
        max_descriptors: how many files may be open at once.
    """

    lazy = False

    def __init__(self, root: Path | str, *, read_only: bool = False, max_descriptors: int = 512) -> None:
        self.root = Path(root)
        self.read_only = read_only
        self._max_descriptors = max_descriptors
        self._open_files: dict[DiskFile, None] = {}
        self._lock = _NO_DESCRIPTOR

    def _full(self, path: str) -> Path:
        return self.root / path

    def _changed(self, path: str) -> Path:
        """The full path of something that is about to be changed."""
        if self.read_only:
            raise PermissionError(1, "the data directory is read-only", path)
        return self._full(path)

    # ------------------------------------------------------------------ descriptors

    def descriptor_for(self, file: DiskFile) -> int:
        """Open a file's descriptor; the one that was least needed makes room (second chance)."""
        while len(self._open_files) >= self._max_descriptors:
            victim = next(iter(self._open_files))
            if victim.used:
                victim.used = False
                del self._open_files[victim]
                self._open_files[victim] = None
            else:
                victim.close()
        flags = os.O_RDONLY if self.read_only else os.O_RDWR
        descriptor = os.open(self._full(file.path), flags | os.O_CLOEXEC)
        self._open_files[file] = None
        return descriptor

    def forget(self, file: DiskFile) -> None:
        """A file has given its descriptor back."""
        self._open_files.pop(file, None)

    # ------------------------------------------------------------------ files

    def open(self, path: str, *, create: bool = True) -> DiskFile:
        """The file at `path`, made empty if it is not there and `create` is set.

        Each call makes a new object with its own idea of the size: one owner per file.

        Raises:
            FileNotFoundError: no such file and `create` is not set, or no such directory.
        """
        try:
            size = self._full(path).stat().st_size
        except FileNotFoundError:
            if not create:
                raise
            os.close(os.open(self._changed(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            size = 0
        return DiskFile(self, path, size)

    def read_file(self, path: str) -> bytes:
        """The whole contents.

        Raises:
            FileNotFoundError: no such file.
        """
        return self._full(path).read_bytes()

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:
        """Write a whole file in one step: a crash leaves the old contents or the new, never a part.

        Written beside as `.tmp`, synced and renamed, as Kafka's CheckpointFile does.
        """
        temporary = self._changed(path + ".tmp")
        with temporary.open("wb") as file:
            file.write(contents)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(self._full(path))

    def exists(self, path: str) -> bool:
        """Whether a file or a directory stands at `path`."""
        return self._full(path).exists()

    def size(self, path: str) -> int:
        """Bytes in the file at `path`."""
        return self._full(path).stat().st_size

    def mtime_ms(self, path: str) -> int:
        """When the file was last changed (ms since the epoch)."""
        return self._full(path).stat().st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change (ms since the epoch)."""
        os.utime(self._changed(path), ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or a directory with all that is in it, replacing a file that has the new name.

        Open `DiskFile`s keep working on what they have open; whoever renames tells them their new path.
        """
        self._changed(path).replace(self._full(to))

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        self._changed(path).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        """Make a directory; one that is there is no error."""
        self._changed(path).mkdir(parents=True, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; one that is not there is no error."""
        shutil.rmtree(self._changed(path), ignore_errors=True)

    def list(self, path: str = "") -> Sequence[str]:
        """Names of the files and directories in a directory, sorted; "" is the root."""
        return sorted(entry.name for entry in self._full(path).iterdir())

    def is_directory(self, path: str) -> bool:
        """Whether a directory stands at `path`."""
        return self._full(path).is_dir()

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names of a directory durable."""
        descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_files(self, paths: Sequence[str]) -> None:
        """Make files durable that nobody writes to any more. Touches nothing of this object: any thread may call it.

        Raises:
            FileNotFoundError: one is gone. OSError: the disk is broken.
        """
        for path in paths:
            descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def lock(self) -> None:
        """Take `.lock`, so that no second process works here. A read-only tree takes none.

        Raises:
            DirectoryLockedError: another process has it; the message is for the user.
        """
        if self.read_only or self._lock != _NO_DESCRIPTOR:
            return
        descriptor = os.open(self._full(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # lockf, not flock: Java's FileChannel.lock takes POSIX locks, and a real broker must see ours.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise DirectoryLockedError(
                f"the data directory {self.root} is in use by another process (its .lock is taken)"
            ) from None
        self._lock = descriptor

    def close(self) -> None:
        """Give every descriptor back, and the lock."""
        for file in list(self._open_files):
            file.close()
        if self._lock != _NO_DESCRIPTOR:
            os.close(self._lock)
            self._lock = _NO_DESCRIPTOR
