"""File system operations that storage needs, and their implementations.

`MemoryFiles` is the default and can fail on purpose; `DiskFiles` is for `--data-dir`. Logs write the same bytes to
both. `OverlayFiles` keeps writes in memory, over a tree that it only reads. Paths are relative to the tree's root,
their parts joined by "/".
"""

from collections.abc import Sequence
from typing import Protocol

from storage.files.disk import DirectoryLockedError, DiskFiles
from storage.files.memory import Buffer, MemoryFiles

__all__ = ["Buffer", "DirectoryLockedError", "DiskFiles", "File", "Files", "MemoryFiles", "sync_file"]


class File(Protocol):
    """A file that is appended to, read in slices, truncated and synced."""

    path: str

    @property
    def size(self) -> int:
        """Bytes in the file."""

    def append(self, buffer: Buffer) -> int:
        """Append bytes; return the position where they start. The buffer may be kept: do not change it afterwards."""

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from a position on."""

    def read(self, position: int, size: int) -> list[memoryview]:
        """Read up to `size` bytes as slices, in order."""

    def view(self, position: int, size: int) -> memoryview:
        """Read up to `size` bytes in one piece."""

    def contiguous(self, position: int, size: int) -> memoryview:
        """Read as many of `size` bytes as are available in one piece without a copy."""

    def truncate(self, size: int) -> None:
        """Truncate, or extend with zeros."""

    def reserve(self, size: int) -> None:
        """Preallocate `size` bytes on disk; the file's own `size` stays the same."""

    def trim(self) -> None:
        """Release preallocated space that is not used."""

    def sync(self) -> None:
        """Make written bytes survive a power cut."""

    def close(self) -> None:
        """Release the file's descriptor; the file may be used again."""


class Files(Protocol):
    """A directory tree. All operations raise OSError when the system refuses them."""

    lazy: bool

    def open(self, path: str, *, create: bool = True) -> File:
        """Open the file at a path, creating it if need be."""

    def read_file(self, path: str) -> bytes:
        """Read the whole contents of a file."""

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:
        """Write a whole file in one step; synced if `durable`."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists at the path."""

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    def mtime_ms(self, path: str) -> int:
        """Return the time of the last change."""

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file or a directory."""

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def make_directory(self, path: str) -> None:
        """Create a directory, if it does not exist."""

    def remove_directory(self, path: str) -> None:
        """Remove a directory if it is empty; one that holds something stays."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its contents, if it exists."""

    def list(self, path: str = "") -> Sequence[str]:
        """Return names in a directory, sorted."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory exists at the path."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""

    def lock(self) -> None:
        """Lock the directory against other processes.

        Raises:
            DirectoryLockedError: another process has the lock.
        """

    def close(self) -> None:
        """Release descriptors and the lock."""


def sync_file(files: Files, path: str) -> None:
    """Make the contents of an existing file durable."""
    file = files.open(path, create=False)
    file.sync()
    file.close()
