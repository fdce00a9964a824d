"""The few operations that storage needs of a file system, and the two places that offer them.

`MemoryFiles` is the default and can be broken on purpose; `DiskFiles` is `--data-dir`. The log above them writes the
same bytes to either. Paths are relative to the tree's root, their parts joined by "/".
"""

from collections.abc import Sequence
from typing import Protocol

from storage.disk_files import DirectoryLockedError, DiskFiles
from storage.memory_files import Buffer, MemoryFiles

__all__ = ["Buffer", "DirectoryLockedError", "DiskFiles", "File", "Files", "MemoryFiles"]


class File(Protocol):
    """One file: appended to, read in slices, cut, synced."""

    path: str

    @property
    def size(self) -> int:
        """Bytes in the file."""

    def append(self, buffer: Buffer) -> int:
        """Add bytes at the end; the position where they start. The buffer may be kept: do not change it after."""

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite from a position on."""

    def read(self, position: int, size: int) -> list[memoryview]:
        """Up to `size` bytes as slices, in order."""

    def view(self, position: int, size: int) -> memoryview:
        """Up to `size` bytes in one piece."""

    def contiguous(self, position: int, size: int) -> memoryview:
        """As many of `size` bytes as come in one piece without a copy."""

    def truncate(self, size: int) -> None:
        """Cut, or extend with zeros."""

    def reserve(self, size: int) -> None:
        """Let the file be that long on a disk; what it holds ends at `size` as before."""

    def trim(self) -> None:
        """Give back what was reserved and not used."""

    def sync(self) -> None:
        """Make what was written survive a power cut."""

    def close(self) -> None:
        """Give back what the file holds of the operating system; it may be used again."""


class Files(Protocol):
    """A directory tree. All operations raise OSError when the system refuses them."""

    lazy: bool

    def open(self, path: str, *, create: bool = True) -> File:
        """The file at a path, made empty if need be."""

    def read_file(self, path: str) -> bytes:
        """The whole contents of a file."""

    def replace(self, path: str, contents: bytes, *, durable: bool = True) -> None:
        """Write a whole file in one step; synced if `durable`."""

    def exists(self, path: str) -> bool:
        """Whether something stands there."""

    def size(self, path: str) -> int:
        """Bytes in a file."""

    def mtime_ms(self, path: str) -> int:
        """Time of the last change."""

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file or a directory."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def make_directory(self, path: str) -> None:
        """Make a directory, if it is not there."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all in it, if it is there."""

    def list(self, path: str = "") -> Sequence[str]:
        """Names in a directory, sorted."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory stands there."""

    def sync_directory(self, path: str) -> None:
        """Make names durable."""

    def lock(self) -> None:
        """Keep a second process out.

        Raises:
            DirectoryLockedError: it is already in.
        """

    def close(self) -> None:
        """Give back descriptors and the lock."""
