"""A directory tree in memory: the default storage of the logs, which can also fail on purpose.

Written bytes survive the end of a process; bytes that were not synced do not survive a power cut. `crash` simulates
the latter: it returns the tree as a disk would have it after a restart. Names are durable immediately.
"""

import errno
from collections.abc import Callable, Sequence

from protocol.pauses import pause
from storage.files.memory_file import Buffer, MemoryFile

__all__ = ["Buffer", "MemoryFile", "MemoryFiles"]


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
