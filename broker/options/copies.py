"""Copies of brokers' log directories, served by `--read-only`: whose each is, wherever it is.

A copy may have any layout: `broker-1/disk-1`, `host-b/lib`. Each log directory names its node in its
`meta.properties`, so that the names of folders mean nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from storage.checkpoints import META_PROPERTIES, decode_properties, node_id_of
from storage.ownership import OFFSET_CHECKPOINTS
from storage.quorum_files import METADATA_DIRECTORY

_DEPTH = 2
"""Folders between a directory of the command line and a log directory: a broker's, and one of its disks."""


def log_directories(data_dirs: Iterable[Path]) -> dict[int, tuple[Path, ...]]:
    """Return node id -> its log directories below some folders, or these folders; that with the metadata log is first.

    A `meta.properties` that cannot be read, or that names no node, is left out.
    """
    directories: dict[int, list[Path]] = {}
    for each in data_dirs:
        for log_dir in _log_directories(each, _DEPTH):
            owner = _owner(log_dir)
            if owner is not None and log_dir not in directories.setdefault(owner, []):
                directories[owner].append(log_dir)
    return {
        node_id: tuple(sorted(directories[node_id], key=lambda log_dir: not (log_dir / METADATA_DIRECTORY).is_dir()))
        for node_id in sorted(directories)
    }


def broker_ids(directories: Mapping[int, Sequence[Path]]) -> tuple[int, ...]:
    """Return the ids of the nodes that are brokers.

    A controller that is no broker has the metadata log, and none of the checkpoints of a broker's logs (LogManager).
    """

    def is_broker(log_dirs: Sequence[Path]) -> bool:
        has_metadata = any((each / METADATA_DIRECTORY).is_dir() for each in log_dirs)
        return not has_metadata or any((each / name).exists() for each in log_dirs for name in OFFSET_CHECKPOINTS)

    return tuple(node_id for node_id, log_dirs in directories.items() if is_broker(log_dirs))


def _log_directories(folder: Path, depth: int) -> list[Path]:
    if (folder / META_PROPERTIES).is_file():
        return [folder]
    if not depth or not folder.is_dir():
        return []
    below = (each for each in sorted(folder.iterdir()) if each.is_dir() and not each.name.startswith("."))
    return [log_dir for each in below for log_dir in _log_directories(each, depth - 1)]


def _owner(log_dir: Path) -> int | None:
    try:
        owner = node_id_of(decode_properties((log_dir / META_PROPERTIES).read_bytes())) or ""
    except OSError:
        return None
    return int(owner) if owner.isascii() and owner.isdigit() else None
