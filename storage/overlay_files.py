"""A directory tree that shows another one and never changes it: what is written stays in memory.

So a data directory can be opened read-only with everything that opening does (cutting torn tails, rebuilding indexes,
even appending), and not a byte of it changes.
"""

import errno
from collections.abc import Sequence

from storage.files import Buffer, File, Files
from storage.memory_files import MemoryFiles


class OverlayFile:
    """A file of the tree below up to `_shown` bytes, then what was appended here."""

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
        """Add bytes at the end; the position where they start."""
        return self._shown + self._tail.append(buffer)

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from a position on; a file below is copied first if it is touched (indexes only)."""
        if self._base is not None and position < self._shown:
            contents = bytes(self._base.view(0, self._shown)) + bytes(self._tail.view(0, self._tail.size))
            self._tail.truncate(0)
            self._tail.append(contents)
            self._base, self._shown = None, 0
        self._tail.write_at(position - self._shown, buffer)

    def read(self, position: int, size: int) -> list[memoryview]:
        """Up to `size` bytes as slices."""
        buffers: list[memoryview] = []
        if self._base is not None and position < self._shown:
            buffers = self._base.read(position, min(size, self._shown - position))
        end = position + size
        if end > self._shown:
            begin = max(position, self._shown)
            buffers += self._tail.read(begin - self._shown, end - begin)
        return buffers

    def view(self, position: int, size: int) -> memoryview:
        """Up to `size` bytes in one piece."""
        buffers = self.read(position, size)
        return buffers[0] if len(buffers) == 1 else memoryview(b"".join(buffers))

    def contiguous(self, position: int, size: int) -> memoryview:
        """As many of `size` bytes as come in one piece."""
        if self._base is not None and position < self._shown:
            return self._base.contiguous(position, min(size, self._shown - position))
        return self._tail.contiguous(position - self._shown, size)

    def truncate(self, size: int) -> None:
        """Cut, or extend with zeros; the file below keeps its bytes."""
        self._tail.truncate(max(size - self._shown, 0))
        self._shown = min(self._shown, size)

    def reserve(self, size: int) -> None:
        """What is new lies in memory, which is taken when it is needed."""

    def trim(self) -> None:
        """Nothing was reserved."""

    def sync(self) -> None:
        """Nothing here is to last."""

    def close(self) -> None:
        """Give back the descriptor of the file below."""
        if self._base is not None:
            self._base.close()


class OverlayFiles:
    """A tree over `base`, which is only read."""

    lazy = True

    def __init__(self, base: Files) -> None:
        self._base = base
        self._tails = MemoryFiles()
        self._made = 0
        # Name -> an open file, or the path in the base of one that nobody has asked for yet.
        self._directories: dict[str, dict[str, OverlayFile | str]] = {}
        self._times: dict[str, int] = {}
        for name in base.list():
            if base.is_directory(name):
                self._directories[name] = {inner: f"{name}/{inner}" for inner in base.list(name)}
        self._directories[""] = {name: name for name in base.list() if name not in self._directories}

    @property
    def base(self) -> Files:
        """The tree below."""
        return self._base

    def _files(self, directory: str) -> dict[str, OverlayFile | str]:
        files = self._directories.get(directory)
        if files is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        return files

    def _tail(self) -> File:
        self._made += 1
        return self._tails.open(str(self._made))

    def open(self, path: str, *, create: bool = True) -> OverlayFile:
        """The file at a path, made empty if need be. Raises FileNotFoundError as every tree."""
        directory, _, name = path.rpartition("/")
        files = self._files(directory)
        found = files.get(name)
        if found is None and not create:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if not isinstance(found, OverlayFile):
            base = None if found is None else self._base.open(found, create=False)
            found = files[name] = OverlayFile(path, self._tail(), base, found)
        return found

    def read_file(self, path: str) -> bytes:
        """The whole contents."""
        file = self.open(path, create=False)
        return b"".join(file.read(0, file.size))

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:  # noqa: ARG002 - of every tree
        """Write a whole file, here only."""
        directory, _, name = path.rpartition("/")
        file = OverlayFile(path, self._tail())
        file.append(contents)
        self._files(directory)[name] = file

    def exists(self, path: str) -> bool:
        """Whether something stands there."""
        directory, _, name = path.rpartition("/")
        return path in self._directories or name in self._directories.get(directory, ())

    def size(self, path: str) -> int:
        """Bytes in a file."""
        return self.open(path, create=False).size

    def mtime_ms(self, path: str) -> int:
        """Time of the last change: as told here, else as below."""
        directory, _, name = path.rpartition("/")
        found = self._files(directory).get(name)
        source = found.source if isinstance(found, OverlayFile) else found
        told = self._times.get(path)
        return told if told is not None else 0 if source is None else self._base.mtime_ms(source)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change, here only."""
        self._times[path] = mtime_ms

    def rename(self, path: str, to: str) -> None:
        """Rename a file or a directory, here only. Raises FileNotFoundError as every tree."""
        if path in self._directories:
            self._directories[to] = self._directories.pop(path)
            for name, file in self._directories[to].items():
                if isinstance(file, OverlayFile):
                    file.path = f"{to}/{name}"
            return
        directory, _, name = path.rpartition("/")
        found = self._files(directory).pop(name, None)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        if isinstance(found, OverlayFile):
            found.path = to
        target, _, new_name = to.rpartition("/")
        self._files(target)[new_name] = found

    def remove(self, path: str) -> None:
        """Remove a file, here only."""
        directory, _, name = path.rpartition("/")
        self._directories.get(directory, {}).pop(name, None)

    def make_directory(self, path: str) -> None:
        """Make a directory, here only."""
        self._directories.setdefault(path, {})

    def remove_tree(self, path: str) -> None:
        """Remove a directory, here only."""
        self._directories.pop(path, None)

    def list(self, path: str = "") -> Sequence[str]:
        """Names in a directory, sorted."""
        names = set(self._directories.get(path, ()))
        if not path:
            names |= set(self._directories) - {""}
        return sorted(names)

    def is_directory(self, path: str) -> bool:
        """Whether a directory stands there."""
        return path in self._directories

    def sync_directory(self, path: str) -> None:
        """Nothing here is to last."""

    def lock(self) -> None:
        """A reader takes no lock: that would be a change."""

    def close(self) -> None:
        """Give back the descriptors of the tree below."""
        self._base.close()
