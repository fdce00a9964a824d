"""Locations of files: on this machine, or a URI that `pyarrow.fs` supports. Read only.

A location is plain text, so that it can be sent to workers, each of which opens it itself.
"""

from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pyarrow import fs


class Location(NamedTuple):
    """A file or a folder."""

    root: str
    """The given URI or path, which determines the file system."""
    path: str
    """The path in that file system."""

    def __str__(self) -> str:
        """Return the name for messages."""
        scheme = self.root.partition("://")[0] if "://" in self.root else ""
        return f"{scheme}://{self.path}" if scheme and scheme != "file" else self.path

    def child(self, name: str) -> "Location":
        """Return a file of this folder."""
        return Location(self.root, f"{self.path}/{name}")

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return PurePosixPath(self.path).name


class Entry(NamedTuple):
    """A file below a folder."""

    location: Location
    size: int


@lru_cache(maxsize=64)  # ours: more than a command has; each has a connection
def file_system(root: str) -> tuple[Any, str]:
    """Return the file system of a path or URI, and the path in it. Raises FileNotFoundError for an unknown URI."""
    local = fs.LocalFileSystem()
    try:
        return fs.FileSystem.from_uri(root) if "://" in root else (local, local.normalize_path(root))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"{root}: {error}") from None


def locate(path: str | PathLike[str]) -> Location:
    """Return the location of a path or URI. Raises FileNotFoundError for an unknown URI."""
    root = fspath(path)
    if "://" not in root:
        root = str(Path(root).absolute())
    return Location(root, file_system(root)[1].rstrip("/"))


def is_file(location: Location) -> bool:
    """Return whether it is a file. Raises FileNotFoundError if nothing exists there."""
    (info,) = file_system(location.root)[0].get_file_info([location.path])
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"{location}: there is nothing")
    return bool(info.type == fs.FileType.File)


def files_below(location: Location) -> list[Entry]:
    """Return all files below a folder, with their sizes, from one listing."""
    selector = fs.FileSelector(location.path, recursive=True, allow_not_found=True)
    infos = file_system(location.root)[0].get_file_info(selector)
    return [Entry(Location(location.root, info.path), info.size) for info in infos if info.type == fs.FileType.File]


def size_of(location: Location) -> int:
    """Return the current size of a file in bytes; -1 if it does not exist."""
    (info,) = file_system(location.root)[0].get_file_info([location.path])
    return info.size if info.type == fs.FileType.File else -1


def open_file(location: Location) -> Any:
    """Return a `pyarrow.NativeFile` with random access. Raises OSError."""
    return file_system(location.root)[0].open_input_file(location.path)


def read_file(location: Location) -> bytes:
    """Return the contents of a small file. Raises OSError."""
    with open_file(location) as file:
        return bytes(file.read())


def reachable(path: str, master: str) -> str:
    """Return the path for tasks: absolute on a cluster, where tasks run in folders of their own.

    URIs stay unchanged.
    """
    return path if "://" in path or master.startswith("local") else str(Path(path).absolute())
