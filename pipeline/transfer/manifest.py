"""`_manifest.json`: the contents of an export, for verification and for continuing it without duplicates.

```
{"version": 1, "source": "...", "producers": false, "isolation": "read_committed", "selection": {},
 "topics": {"orders": {"id": "...", "configs": {"cleanup.policy": "compact"}, "partitions": {"0": {
     "log_start": 0, "log_end": 120, "records": 117, "first_offset": 0, "last_offset": 118}}}},
 "files": [{"path": "part-orders-1f0c2a9b-00000-0000.parquet",
            "records": 117, "bytes": 4711, "sha256": "...",
            "parts": [{"partition": 0, "first_offset": 0, "last_offset": 118, "records": 117}]}]}
``` `selection` (which records) and `id` (of the topic) are compared before an export is continued. Paths are relative
to the manifest. Within a file records are sorted by partition and offset.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pyarrow import fs

from pipeline.locations import file_system

NAME: Final = "_manifest.json"
VERSION: Final = 1
_PIECE: Final = 1 << 20  # of a file whose checksum is computed; ours, few calls and little memory
_LEFT_BY_SYSTEMS: Final = {"lost+found", ".DS_Store", "Thumbs.db", "desktop.ini"}


class ManifestError(ValueError):
    """An invalid export; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Part:
    """The records of one partition in one file, or in the whole export."""

    partition: int
    first_offset: int
    last_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A Parquet file; `path` is relative to the manifest."""

    path: str
    topic: str
    records: int
    bytes: int
    sha256: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a partition's log at the time of the export, and the exported range."""

    log_start: int
    log_end: int
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """Contents of an export. `topics`: name -> partition -> bounds; `configs`: the topics' own settings."""

    source: str
    producers: bool
    isolation: str
    topics: Mapping[str, Mapping[int, Bounds]]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: tuple[ExportedFile, ...] = ()
    selection: Mapping[str, Any] = field(default_factory=dict)
    """Selection of records in the topics; empty: all of them."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Topic -> id, where known."""
    values: tuple[str, ...] = ()
    """Columns with the schemas of keys and values."""

    @property
    def records(self) -> int:
        """Return the number of records."""
        return sum(each.records for each in self.files)

    def encode(self) -> str:
        """Return the manifest as JSON."""
        topics = {
            name: {
                **({"id": self.ids[name]} if name in self.ids else {}),
                "configs": dict(self.configs.get(name, {})),
                "partitions": {str(number): asdict(bounds) for number, bounds in sorted(partitions.items())},
            }
            for name, partitions in sorted(self.topics.items())
        }
        document: dict[str, Any] = {"version": VERSION}
        document |= {"source": self.source, "producers": self.producers, "isolation": self.isolation}
        document["selection"] = dict(self.selection)
        document |= {"values": list(self.values)} if self.values else {}
        return (
            json.dumps(document | {"topics": topics, "files": [asdict(each) for each in self.files]}, indent=1) + "\n"
        )


def decode(text: str) -> Manifest:
    """Parse a manifest.

    Raises:
        ManifestError: it is not a manifest, or of a later version.
    """
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise ManifestError(f"the export is of version {document['version']}; this is version {VERSION}")
        return Manifest(
            document["source"],
            document["producers"],
            document["isolation"],
            {
                name: {int(number): Bounds(**bounds) for number, bounds in topic["partitions"].items()}
                for name, topic in document["topics"].items()
            },
            {name: topic["configs"] for name, topic in document["topics"].items()},
            tuple(file_of(each) for each in document["files"]),
            document.get("selection", {}),
            {name: topic["id"] for name, topic in document["topics"].items() if "id" in topic},
            tuple(document.get("values", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{NAME} is not one of an export: {error!r}") from None
    except json.JSONDecodeError as error:
        raise ManifestError(f"{NAME} is not JSON: {error}") from None


def file_of(document: Mapping[str, Any]) -> ExportedFile:
    """Parse a file's entry. Raises ManifestError: its path is outside the export's folder."""
    file = ExportedFile(**{**document, "parts": tuple(Part(**part) for part in document["parts"])})
    file_name(file.path)
    return file


def file_name(path: str) -> str:
    """Return a path within the folder of an export. Raises ManifestError: it is outside."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or path in {"", "."}:
        raise ManifestError(f"{NAME} contains a path outside its folder: {path}")
    return path


class Store:
    """A folder, local or behind a URI that `pyarrow.fs` knows, as exports and loads use it."""

    def __init__(self, path: str) -> None:
        """Open the folder, which need not exist. Raises FileNotFoundError for an unknown URI."""
        self.path = path.rstrip("/")
        self.files, self.root = file_system(self.path)

    @property
    def absolute(self) -> str:
        """Return the folder's absolute path; local folders only."""
        return str(Path(self.root).resolve())

    def full(self, name: str) -> str:
        """Return the path of a file in the folder, as the file system needs it."""
        return f"{self.root}/{name}"

    def exists(self, name: str = "") -> bool:
        """Return whether a file or folder with this name exists."""
        return bool(self.files.get_file_info(self.full(name).rstrip("/")).type != fs.FileType.NotFound)

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the folder or a subfolder, except files that file systems and file managers create."""
        selector = fs.FileSelector(self.full(folder).rstrip("/"), allow_not_found=True)
        return sorted({info.base_name for info in self.files.get_file_info(selector)} - _LEFT_BY_SYSTEMS)

    def read_manifest(self) -> Manifest:
        """Return the export's manifest. Raises ManifestError: there is none, or it cannot be read."""
        if not self.exists(NAME):
            raise ManifestError(f"{self.path} holds no {NAME}: is it an export?")
        return decode(self.read(NAME).decode("utf-8", "replace"))

    def read(self, name: str) -> bytes:
        """Return the contents of a file. Raises OSError."""
        with self.files.open_input_stream(self.full(name)) as stream:
            content: bytes = stream.read()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and create the folders for it."""
        with self.create(name) as stream:
            stream.write(content)

    def create(self, name: str) -> Any:
        """Return a new file, open for writing. Folders are created on a local file system; object stores have none."""
        if isinstance(self.files, fs.LocalFileSystem):
            self.files.create_dir(self.full(name).rpartition("/")[0], recursive=True)
        return self.files.open_output_stream(self.full(name))

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        if self.exists(name):
            self.files.delete_file(self.full(name))

    def move(self, name: str, to: str) -> None:
        """Rename a file within the folder, replacing one with that name. Atomic on a local file system."""
        if isinstance(self.files, fs.LocalFileSystem):
            self.files.create_dir(self.full(to).rpartition("/")[0], recursive=True)
        self.files.move(self.full(name), self.full(to))

    def remove_folder(self, name: str) -> None:
        """Remove one of our folders with everything in it."""
        self.files.delete_dir(self.full(name))

    def sha256(self, name: str) -> str:
        """Return the checksum of a file."""
        total = hashlib.sha256()
        with self.files.open_input_stream(self.full(name)) as stream:
            while piece := stream.read(_PIECE):
                total.update(piece)
        return total.hexdigest()
