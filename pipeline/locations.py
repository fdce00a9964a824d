"""Locations of files: on this machine, or a URI that `pyarrow.fs` supports. Read only.

A location is plain text, so that it travels to workers, and each process opens it for itself.
"""

from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pyarrow import fs


class Location(NamedTuple):
    """A file or a folder."""

    root: str
    """The URI or path that was given; it determines the file system."""
    path: str
    """In that file system."""

    def __str__(self) -> str:
        """Name in messages."""
        scheme = self.root.partition("://")[0] if "://" in self.root else ""
        return f"{scheme}://{self.path}" if scheme and scheme != "file" else self.path

    def child(self, name: str) -> "Location":
        """A file of this folder."""
        return Location(self.root, f"{self.path}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name


class Entry(NamedTuple):
    """A file below a folder."""

    location: Location
    size: int


@lru_cache(maxsize=64)
def file_system(root: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path in it. Raises FileNotFoundError for an unknown URI."""
    local = fs.LocalFileSystem()
    try:
        return fs.FileSystem.from_uri(root) if "://" in root else (local, local.normalize_path(root))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"{root}: {error}") from None


def locate(path: str | PathLike[str]) -> Location:
    """The location of a path or URI. Raises FileNotFoundError for an unknown URI."""
    root = fspath(path)
    if "://" not in root:
        root = str(Path(root).absolute())
    return Location(root, file_system(root)[1].rstrip("/"))


def is_file(location: Location) -> bool:
    """Whether it is a file. Raises FileNotFoundError where there is nothing."""
    (info,) = file_system(location.root)[0].get_file_info([location.path])
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(f"{location}: there is nothing")
    return bool(info.type == fs.FileType.File)


def files_below(location: Location) -> list[Entry]:
    """All files below a folder, with their sizes, in one listing."""
    selector = fs.FileSelector(location.path, recursive=True, allow_not_found=True)
    infos = file_system(location.root)[0].get_file_info(selector)
    return [Entry(Location(location.root, info.path), info.size) for info in infos if info.type == fs.FileType.File]


def size_of(location: Location) -> int:
    """Bytes of a file as it is now; -1 where there is none."""
    (info,) = file_system(location.root)[0].get_file_info([location.path])
    return info.size if info.type == fs.FileType.File else -1


def open_file(location: Location) -> Any:
    """A `pyarrow.NativeFile` for reading at any place. Raises OSError."""
    return file_system(location.root)[0].open_input_file(location.path)


def read_file(location: Location) -> bytes:
    """The contents of a small file. Raises OSError."""
    with open_file(location) as file:
        return bytes(file.read())


def reachable(path: str, master: str) -> str:
    """The path as the tasks understand it: on a cluster they work in folders of their own. URIs stay as they are."""
    return path if "://" in path or master.startswith("local") else str(Path(path).absolute())
