"""A copy-on-write directory tree over another one, which is never changed: writes stay in memory.

So a data directory can be opened without changing a byte of it, even though opening a log may truncate torn tails,
rebuild indexes and append.
"""

import errno
from collections.abc import Sequence

from storage.files import Buffer, File, Files
from storage.files.memory import MemoryFiles


class OverlayFile:
    """The first `_shown` bytes of a file of the base tree, then the bytes appended here."""

    __slots__ = ("_base", "_shown", "_tail", "path", "source")

    def __init__(self, path: str, tail: File, base: File | None = None, source: str | None = None) -> None:
        self.path = path
        self.source = source
        self._base = base
        self._shown = 0 if base is None else base.size
        self._tail = tail

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._shown + self._tail.size

    def append(self, buffer: Buffer) -> int:
        """Append bytes; return the position where they start."""
        return self._shown + self._tail.append(buffer)

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from a position on; the base file is copied first if it is affected (indexes only)."""
        if self._base is not None and position < self._shown:
            contents = bytes(self._base.view(0, self._shown)) + bytes(self._tail.view(0, self._tail.size))
            self._tail.truncate(0)
            self._tail.append(contents)
            self._base, self._shown = None, 0
        self._tail.write_at(position - self._shown, buffer)

    def read(self, position: int, size: int) -> list[memoryview]:
        """Read up to `size` bytes as slices."""
        buffers: list[memoryview] = []
        if self._base is not None and position < self._shown:
            buffers = self._base.read(position, min(size, self._shown - position))
        end = position + size
        if end > self._shown:
            begin = max(position, self._shown)
            buffers += self._tail.read(begin - self._shown, end - begin)
        return buffers

    def view(self, position: int, size: int) -> memoryview:
        """Read up to `size` bytes in one piece."""
        buffers = self.read(position, size)
        return buffers[0] if len(buffers) == 1 else memoryview(b"".join(buffers))

    def contiguous(self, position: int, size: int) -> memoryview:
        """Read as many of `size` bytes as are available in one piece."""
        if self._base is not None and position < self._shown:
            return self._base.contiguous(position, min(size, self._shown - position))
        return self._tail.contiguous(position - self._shown, size)

    def truncate(self, size: int) -> None:
        """Truncate, or extend with zeros; the base file keeps its bytes."""
        self._tail.truncate(max(size - self._shown, 0))
        self._shown = min(self._shown, size)

    def reserve(self, size: int) -> None:
        """Do nothing: memory is allocated on demand."""

    def trim(self) -> None:
        """Do nothing: nothing was reserved."""

    def sync(self) -> None:
        """Do nothing: writes here need not be durable."""

    def close(self) -> None:
        """Close the descriptor of the base file."""
        if self._base is not None:
            self._base.close()


class OverlayFiles:
    """A tree over `base`, which is only read."""

    lazy = True

    def __init__(self, base: Files) -> None:
        self._base = base
        self._tails = MemoryFiles()
        self._tail_count = 0
        # Name -> an open file, or the path in the base of a file that was not opened yet.
        self._directories: dict[str, dict[str, OverlayFile | str]] = {}
        self._times: dict[str, int] = {}
        for name in base.list():
            if base.is_directory(name):
                self._directories[name] = {inner: f"{name}/{inner}" for inner in base.list(name)}
        self._directories[""] = {name: name for name in base.list() if name not in self._directories}

    @property
    def base(self) -> Files:
        """The base tree."""
        return self._base

    def _files(self, directory: str) -> dict[str, OverlayFile | str]:
        files = self._directories.get(directory)
        if files is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        return files

    def _tail(self) -> File:
        self._tail_count += 1
        return self._tails.open(str(self._tail_count))

    def open(self, path: str, *, create: bool = True) -> OverlayFile:
        """Open the file at a path, creating it if need be. Raises FileNotFoundError as every tree."""
        directory, _, name = path.rpartition("/")
        files = self._files(directory)
        file = files.get(name)
        if file is None and not create:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if not isinstance(file, OverlayFile):
            base = None if file is None else self._base.open(file, create=False)
            file = files[name] = OverlayFile(path, self._tail(), base, file)
        return file

    def read_file(self, path: str) -> bytes:
        """Read the whole contents of a file."""
        file = self.open(path, create=False)
        return b"".join(file.read(0, file.size))

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:  # noqa: ARG002 - of every tree
        """Write a whole file, in the overlay only."""
        directory, _, name = path.rpartition("/")
        file = OverlayFile(path, self._tail())
        file.append(contents)
        self._files(directory)[name] = file

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists at the path."""
        directory, _, name = path.rpartition("/")
        return path in self._directories or name in self._directories.get(directory, ())

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self.open(path, create=False).size

    def mtime_ms(self, path: str) -> int:
        """Return the time of the last change: as set here, else that of the base file."""
        directory, _, name = path.rpartition("/")
        file = self._files(directory).get(name)
        source = file.source if isinstance(file, OverlayFile) else file
        mtime_ms = self._times.get(path)
        return mtime_ms if mtime_ms is not None else 0 if source is None else self._base.mtime_ms(source)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change, in the overlay only."""
        self._times[path] = mtime_ms

    def rename(self, path: str, to: str) -> None:
        """Rename a file or a directory, in the overlay only. Raises FileNotFoundError as every tree."""
        if path in self._directories:
            self._directories[to] = self._directories.pop(path)
            for name, file in self._directories[to].items():
                if isinstance(file, OverlayFile):
                    file.path = f"{to}/{name}"
            return
        directory, _, name = path.rpartition("/")
        moved = self._files(directory).pop(name, None)
        if moved is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        if isinstance(moved, OverlayFile):
            moved.path = to
        target, _, new_name = to.rpartition("/")
        self._files(target)[new_name] = moved

    def remove(self, path: str) -> None:
        """Remove a file, in the overlay only."""
        directory, _, name = path.rpartition("/")
        self._directories.get(directory, {}).pop(name, None)

    def make_directory(self, path: str) -> None:
        """Make a directory, in the overlay only."""
        self._directories.setdefault(path, {})

    def remove_directory(self, path: str) -> None:
        """Remove a directory if it is empty; one that holds something stays."""
        if self._directories.get(path) == {}:
            del self._directories[path]

    def remove_tree(self, path: str) -> None:
        """Remove a directory, in the overlay only."""
        self._directories.pop(path, None)

    def list(self, path: str = "") -> Sequence[str]:
        """Return names in a directory, sorted."""
        names = set(self._directories.get(path, ()))
        if not path:
            names |= set(self._directories) - {""}
        return sorted(names)

    def is_directory(self, path: str) -> bool:
        """Whether a directory exists at the path."""
        return path in self._directories

    def sync_directory(self, path: str) -> None:
        """Do nothing: writes here need not be durable."""

    def lock(self) -> None:
        """Do nothing: a lock would change the data directory."""

    def close(self) -> None:
        """Close the descriptors of the base tree."""
        self._base.close()
