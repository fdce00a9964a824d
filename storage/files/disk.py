"""A directory tree on a disk.

Descriptors are few and partitions are many: a file opens its descriptor on first use and closes it when other files
need one. Written bytes survive the end of the process, synced or not; `sync` makes them survive a power cut.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from storage.files.descriptors import Descriptors

Buffer = bytes | bytearray | memoryview

_NO_DESCRIPTOR = -1
_LOCKED = frozenset({errno.EACCES, errno.EAGAIN})
_CANNOT_BE_SYNCED = frozenset({errno.EINVAL, errno.ENOTSUP})


class DirectoryLockedError(RuntimeError):
    """Another process uses this data directory."""


class DiskFile:
    """A file on disk, created by `DiskFiles.open`."""

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
        """Read up to `size` bytes from `position` in one piece; fewer at the end of the file."""
        view = self.view(position, size)
        return [view] if view else []

    def view(self, position: int, size: int) -> memoryview:
        """Read as `read` does, in one piece."""
        size = min(size, self.size - position)
        if size <= 0:
            return memoryview(b"")
        return memoryview(os.pread(self._open(), size, position))

    contiguous = view

    def truncate(self, size: int) -> None:
        """Truncate to `size` bytes, or extend with a hole that takes no space."""
        os.ftruncate(self._open(), size)
        self.size = size
        self._reserved = False

    def reserve(self, size: int) -> None:
        """Preallocate `size` bytes (a hole, as Java's setLength makes it); `self.size` stays the same."""
        if size > self.size:
            os.ftruncate(self._open(), size)
            self._reserved = True

    def trim(self) -> None:
        """Truncate the file to `size` bytes, if more were reserved."""
        if self._reserved:
            self.truncate(self.size)

    def sync(self) -> None:
        """Make everything written survive a power cut (fsync).

        Raises:
            OSError: the disk failed; it is unknown which bytes are durable.
        """
        os.fsync(self._open())

    def close(self) -> None:
        """Close the descriptor; the next use opens the file again."""
        if self._descriptor != _NO_DESCRIPTOR:
            descriptor, self._descriptor = self._descriptor, _NO_DESCRIPTOR
            self._owner.forget(self)
            os.close(descriptor)


class DiskFiles:
    """The tree below `root`. Paths are relative, their parts joined by "/".

    Args:
        root: an existing directory.
        read_only: nothing is created, changed, removed or locked; attempts raise PermissionError.
        descriptors: the open files, which several trees may share.
    """

    lazy = False

    def __init__(self, root: Path | str, *, read_only: bool = False, descriptors: Descriptors | None = None) -> None:
        self.root = Path(root)
        self.read_only = read_only
        self.descriptors = Descriptors() if descriptors is None else descriptors
        self._open_files: dict[DiskFile, None] = {}
        self._lock = _NO_DESCRIPTOR
        self._held = False

    def _full(self, path: str) -> Path:
        return self.root / path

    def _changed(self, path: str) -> Path:
        """Return the full path of an entry that is about to be changed."""
        if self.read_only:
            raise PermissionError(1, "the data directory is read-only", path)
        return self._full(path)

    # ------------------------------------------------------------------ descriptors

    def descriptor_for(self, file: DiskFile) -> int:
        """Open a file's descriptor; closes the least used file if too many are open."""
        descriptor = self.descriptors.open(file, self._full(file.path), os.O_RDONLY if self.read_only else os.O_RDWR)
        self._open_files[file] = None
        return descriptor

    def forget(self, file: DiskFile) -> None:
        """Remove a file that has closed its descriptor."""
        self._open_files.pop(file, None)
        self.descriptors.forget(file)

    def _opened(self, path: Path, flags: int) -> int:
        """Open a descriptor for a short time."""
        return self.descriptors.with_retry(lambda: os.open(path, flags | os.O_CLOEXEC, 0o644))

    # ------------------------------------------------------------------ files

    def open(self, path: str, *, create: bool = True) -> DiskFile:
        """Open the file at `path`, creating it if it does not exist and `create` is set.

        Each call returns a new object that tracks the size on its own: one owner per file.

        Raises:
            FileNotFoundError: no such file and `create` is not set, or no such directory.
        """
        try:
            size = self._full(path).stat().st_size
        except FileNotFoundError:
            if not create:
                raise
            os.close(self._opened(self._changed(path), os.O_RDWR | os.O_CREAT))
            size = 0
        return DiskFile(self, path, size)

    def read_file(self, path: str) -> bytes:
        """Read the whole contents of a file.

        Raises:
            FileNotFoundError: no such file.
        """
        return self.descriptors.with_retry(self._full(path).read_bytes)

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:
        """Write a whole file in one step: a crash leaves the old contents or the new, never a part.

        Writes a `.tmp` file, syncs and renames it, and syncs its new name, as Kafka's CheckpointFile does.
        """
        temporary = self._changed(path + ".tmp")
        with self.descriptors.with_retry(lambda: temporary.open("wb")) as file:
            file.write(contents)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(self._full(path))
        if durable:
            self.sync_directory(path.rpartition("/")[0])

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists at `path`."""
        return self._full(path).exists()

    def size(self, path: str) -> int:
        """Return the size of the file at `path` in bytes."""
        return self._full(path).stat().st_size

    def mtime_ms(self, path: str) -> int:
        """Return the time of the last change of the file (ms since the epoch)."""
        return self._full(path).stat().st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change (ms since the epoch)."""
        os.utime(self._changed(path), ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or a directory with its contents, replacing a file that has the new name.

        Open `DiskFile`s keep their descriptors; the caller has to update their `path`.
        """
        self._changed(path).replace(self._full(to))

    def remove(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        self._changed(path).unlink(missing_ok=True)

    def make_directory(self, path: str) -> None:
        """Create a directory; an existing one is no error."""
        self._changed(path).mkdir(parents=True, exist_ok=True)

    def remove_directory(self, path: str) -> None:
        """Remove a directory if it is empty; one that holds something stays."""
        directory = self._changed(path)
        with suppress(OSError):
            directory.rmdir()

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its contents; a missing one is no error."""
        shutil.rmtree(self._changed(path), ignore_errors=True)

    def list(self, path: str = "") -> Sequence[str]:
        """List the names of files and directories in a directory, sorted; "" is the root."""
        return self.descriptors.with_retry(lambda: sorted(entry.name for entry in self._full(path).iterdir()))

    def is_directory(self, path: str) -> bool:
        """Whether a directory exists at `path`."""
        return self._full(path).is_dir()

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names of a directory durable."""
        _sync(self._opened(self._full(path), os.O_RDONLY))

    def sync_files(self, paths: Sequence[str]) -> None:
        """Sync files, and the names in directories. Uses no state of this object, so any thread may call it.

        Raises:
            FileNotFoundError: one is gone; the others are synced. OSError: the disk failed.
        """
        gone: FileNotFoundError | None = None
        for path in paths:
            try:
                descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError as error:
                gone = error
                continue
            _sync(descriptor)
        if gone is not None:
            raise gone

    def lock(self) -> None:
        """Take the lock of `.lock`, which keeps other processes out. A read-only tree takes none.

        Raises:
            DirectoryLockedError: another process has it; the message is for the user.
            OSError: the file system has no locks, or cannot be written.
        """
        self._held = False
        if self.read_only or self._lock != _NO_DESCRIPTOR:
            return
        descriptor = self._opened(self._full(".lock"), os.O_RDWR | os.O_CREAT)
        try:
            # lockf, not flock: Java's FileChannel.lock takes POSIX locks, and a real broker must see ours.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _LOCKED:
                raise
            raise DirectoryLockedError(
                f"the data directory {self.root} is in use by another process (its .lock is taken)"
            ) from None
        self._lock = descriptor

    def hold(self) -> None:
        """Lock like :meth:`lock`, but keep the lock when the tree is closed, until :meth:`lock` or :meth:`unlock`."""
        self.lock()
        self._held = True

    def unlock(self) -> None:
        """Release the lock."""
        self._held = False
        if self._lock != _NO_DESCRIPTOR:
            os.close(self._lock)
            self._lock = _NO_DESCRIPTOR

    def close(self) -> None:
        """Close every descriptor, and release the lock, unless it is held."""
        for file in list(self._open_files):
            file.close()
        if not self._held:
            self.unlock()


def _sync(descriptor: int) -> None:
    """Sync and close a descriptor. A file system that cannot sync directories is no error."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_BE_SYNCED:
            raise
    finally:
        os.close(descriptor)
