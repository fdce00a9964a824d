"""A directory tree in memory: the default home of the logs, and the one that can be broken on purpose.

What a process writes outlives the process; what it did not sync does not outlive the machine. `crash` plays the
second: it returns the tree as a disk would show it after the power came back. Names are durable at once.
"""

import errno
from collections.abc import Callable, Sequence

from storage.memory_file import Buffer, MemoryFile

__all__ = ["Buffer", "MemoryFile", "MemoryFiles"]


class MemoryFiles:
    """A tree of memory files. Paths are relative, their parts joined by "/".

    `lazy` tells the log that files of an empty partition need not exist: nobody can look at them.
    """

    lazy = True

    def __init__(self) -> None:
        self._directories: dict[str, dict[str, MemoryFile]] = {"": {}}
        self.faults_planned = 0
        self._write_faults: list[tuple[OSError, int | None]] = []
        self._sync_faults: list[OSError] = []

    # ------------------------------------------------------------------ files

    def open(self, path: str, *, create: bool = True) -> MemoryFile:
        """The file at `path`, made empty if it is not there and `create` is set.

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
        """The whole contents.

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
        """Whether a file or a directory stands at `path`."""
        directory, _, name = path.rpartition("/")
        return path in self._directories or name in self._directories.get(directory, ())

    def size(self, path: str) -> int:
        """Bytes in the file at `path`."""
        return self.open(path, create=False).size

    def mtime_ms(self, path: str) -> int:
        """When the file was last changed, as `set_mtime_ms` told: a memory file reads no clock of its own."""
        return self.open(path, create=False).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change (ms since the epoch)."""
        self.open(path, create=False).mtime_ms = mtime_ms

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or a directory with all that is in it, replacing a file that has the new name.

        Raises:
            FileNotFoundError: nothing stands at `path`.
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
        """Remove a file; one that is not there is no error."""
        directory, _, name = path.rpartition("/")
        self._directories.get(directory, {}).pop(name, None)

    def make_directory(self, path: str) -> None:
        """Make a directory; one that is there is no error."""
        self._directories.setdefault(path, {})

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; one that is not there is no error."""
        for name in [name for name in self._directories if name == path or name.startswith(path + "/")]:
            del self._directories[name]

    def list(self, path: str = "") -> Sequence[str]:
        """Names of the files and directories in a directory, sorted; "" is the root."""
        prefix = path + "/" if path else ""
        below = {name[len(prefix) :].partition("/")[0] for name in self._directories if name.startswith(prefix)}
        return sorted((below | set(self._directories.get(path, ()))) - {""})

    def is_directory(self, path: str) -> bool:
        """Whether a directory stands at `path`."""
        return path in self._directories

    def sync_directory(self, path: str) -> None:
        """Make created, renamed and removed names of a directory durable: here they are at once."""

    def lock(self) -> None:
        """Nobody else can see this tree."""

    def close(self) -> None:
        """Nothing to give back."""

    # ------------------------------------------------------------------ faults

    def fail_next_write(self, error: OSError | None = None, *, keep: int | None = None) -> None:
        """The next append or overwrite of any file fails with `error` (default: no space left).

        Args:
            error: what is raised.
            keep: how many of the bytes get written first (a torn write); None: none.
        """
        self._write_faults.append((error or OSError(errno.ENOSPC, "No space left on device"), keep))
        self.faults_planned += 1

    def fail_next_sync(self, error: OSError | None = None) -> None:
        """The next sync of a file fails with `error` (default: input/output error), and nothing becomes durable."""
        self._sync_faults.append(error or OSError(errno.EIO, "Input/output error"))
        self.faults_planned += 1

    def meet_write(self, path: str) -> tuple[OSError, int | None] | None:
        """The planned failure that a write to `path` meets, and how many bytes it lets through; it is used up."""
        if not self._write_faults:
            return None
        self.faults_planned -= 1
        error, keep = self._write_faults.pop(0)
        error.filename = path
        return error, keep

    def meet_sync(self, path: str) -> None:
        """Raise the planned failure of a sync, if there is one; it is used up."""
        if self._sync_faults:
            self.faults_planned -= 1
            error = self._sync_faults.pop(0)
            error.filename = path
            raise error

    def snapshot(self) -> "MemoryFiles":
        """The tree as it is now, as another tree; chunks are shared, so this copies no records."""
        return self._twin(synced_only=False, keep_unsynced=lambda unsynced: unsynced)

    def crash(self, keep_unsynced: Callable[[int], int] = lambda _: 0) -> "MemoryFiles":
        """The tree after the power failed: bytes that were not synced are gone.

        Args:
            keep_unsynced: asked for each file with its number of unsynced bytes; answers how many made it to the
                disk all the same (they are the first ones, so a batch may be torn).
        """
        return self._twin(synced_only=True, keep_unsynced=keep_unsynced)

    def _twin(self, *, synced_only: bool, keep_unsynced: Callable[[int], int]) -> "MemoryFiles":
        twin = MemoryFiles()
        for directory, files in self._directories.items():
            twin._directories[directory] = {
                name: file.copy(twin, synced_only=synced_only, keep_unsynced=keep_unsynced)
                for name, file in files.items()
            }
        return twin
