"""Snapshots of the whole cluster: copies of the brokers' directories, with random state and clock.

In memory a copy shares its bytes with the running cluster. On disk it is a folder beside the data directory, made and
restored while no request is served; it is removed when the server stops.
"""

import errno
import os
import shutil
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path
from typing import Any

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import (
    data_roots,
    files_of,
    hold_directories,
    on_disk,
    release_directories,
    report_left,
)
from broker.request.node import Node
from protocol.deferred import dataclass
from protocol.pauses import pause
from storage import replacement
from storage.files import Files
from storage.files.disk import DirectoryLockedError, DiskFiles
from storage.files.memory import MemoryFiles
from storage.log_dir import WrongDirectoryError
from storage.ownership import LOCK, RESTORING, SYSTEM_ENTRIES, foreign_entries

_MARKER = "understudy-snapshots"
"""A file that marks the folder of snapshots as Understudy's."""
_PIECE_BYTES = 1024 * 1024
"""What is in memory of a file at once while it is copied: ours, few calls and little memory."""


class CannotKeep(Exception):
    """No snapshot can be taken or restored now; the message is for the user."""


@dataclass(frozen=True)
class Snapshot:
    """One snapshot: the contents of the brokers' directories, the state of the random generator, and the clock."""

    files: dict[int, list[MemoryFiles | Path]]
    """Node id -> a copy of each of its log directories."""
    chance: Any
    ahead_ms: int
    frozen_at_ms: int | None
    taken_at_ms: int
    partitions: int
    controllers: tuple[int, ...] = ()
    """Those of the nodes that are controllers of their own."""

    @property
    def brokers(self) -> list[int]:
        """Those of the nodes that are brokers."""
        return [each for each in self.files if each not in self.controllers]


class Snapshots:
    """The snapshots of a cluster, by id. A reset keeps them."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self._numbers = count(1)
        self.kept: dict[str, Snapshot] = {}

    @property
    def on_disk(self) -> bool:
        """Whether files are copied on disk, which may take long."""
        return self._place is not None

    def take(self) -> str:
        """Copy the cluster's state, and return the snapshot's id.

        Raises:
            CannotKeep: there is no space beside the data directory.
        """
        cluster, clock = self._cluster, self._cluster.clock
        snapshot_id = str(next(self._numbers))
        try:
            if not self.kept:
                self._make_place()
            for log_dir in chain.from_iterable(node.log_dirs for node in cluster.all_nodes):
                log_dir.checkpoint_log_starts()  # log start offsets are in no other file
            files = {node.id: self._copies(node, snapshot_id) for node in cluster.all_nodes}
        except OSError as error:
            assert self._place is not None
            if (self._place / _MARKER).exists():
                shutil.rmtree(self._place / snapshot_id, ignore_errors=True)
                if not self.kept:
                    _remove_place(self._place)
            raise CannotKeep(f"the data directory cannot be copied to {self._place}: {_reason(error)}") from error
        frozen_at_ms = clock.now_ms() if clock.frozen else None
        at_ms = clock.now_ms()
        self.kept[snapshot_id] = Snapshot(
            files,
            cluster.random.getstate(),
            clock.pushed_ms,
            frozen_at_ms,
            at_ms,
            len(cluster.partitions),
            tuple(cluster.controllers),
        )
        return snapshot_id

    def put_back(self, snapshot: Snapshot) -> None:
        """Give each broker the files of the snapshot, which :meth:`bring` has copied."""
        for node in self._cluster.all_nodes:
            kept = [each.snapshot() for each in snapshot.files[node.id] if isinstance(each, MemoryFiles)]
            if kept:
                for files in node.files:
                    if isinstance(files, MemoryFiles):
                        files.discard()
                node.files = tuple(kept)
        trees = [files for _, files in on_disk(self._cluster.all_nodes)]
        for tree in trees:
            replacement.commit(tree)
        for tree in trees:
            report_left(tree, replacement.finish(tree))

    def discard_left(self) -> None:
        """Remove the snapshots of a server that was killed, once this server owns the data directories."""
        if self._place is not None and not self._cluster.options.read_only and (self._place / _MARKER).exists():
            _remove_place(self._place)

    def discard(self) -> None:
        """Remove all snapshots, in memory and on disk."""
        if self.kept and self._place is not None:
            _remove_place(self._place)
        self.kept.clear()

    # --- on disk -----------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> Path | None:
        """The folder of snapshots: beside the data directory, because folders inside it are taken for logs."""
        directory = next(iter(self._cluster.options.data_dirs), None)
        if directory is None:
            return None
        return directory.absolute().parent / f".{directory.absolute().name}.understudy-snapshots"

    def _make_place(self) -> None:
        """Create the folder of snapshots, removing what a killed server left in it.

        Raises:
            CannotKeep: a folder of that name exists that Understudy did not create.
        """
        place = self._place
        if place is None:
            return
        if place.exists():
            if not (place / _MARKER).exists():
                raise CannotKeep(f"snapshots are kept in {place}, which exists and is not Understudy's; move it away")
            _remove_place(place)
        place.mkdir()
        (place / _MARKER).touch()

    def _copies(self, node: Node, snapshot_id: str) -> list[MemoryFiles | Path]:
        return [self._copy(files, f"{snapshot_id}/{node.id}-{index}") for index, files in enumerate(node.files)]

    def _copy(self, files: Files, name: str) -> MemoryFiles | Path:
        if isinstance(files, MemoryFiles):
            return files.snapshot()
        assert isinstance(files, DiskFiles)
        assert self._place is not None
        return _copied(files.root, self._place / name)

    def bring(self, snapshot: Snapshot) -> None:
        """Copy the snapshot into the brokers' directories under another name, before anything is removed there.

        Raises:
            CannotKeep: there is no space in the data directory, or another process uses that of a broker that is down;
                nothing has changed.
        """
        cluster, root = self._cluster, Path()
        brought: list[Path] = []
        try:
            for node_id, copies in snapshot.files.items() if self.on_disk else ():
                node = cluster.controllers.get(node_id) or cluster.nodes[node_id]
                if not node.files:  # the broker was added, and a reset removed it
                    node.files = files_of(cluster.options, node, cluster.descriptors)
                hold_directories((node,))
                for root, kept in zip(
                    data_roots(cluster.options, node_id, controller=node.is_controller), copies, strict=True
                ):
                    assert isinstance(kept, Path)
                    brought.append(root / RESTORING)
                    shutil.rmtree(brought[-1], ignore_errors=True)
                    _copied(kept, brought[-1])
        except (DirectoryLockedError, WrongDirectoryError) as error:
            self._give_up(brought)
            raise CannotKeep(str(error)) from error
        except OSError as error:
            self._give_up(brought)
            raise CannotKeep(f"the snapshot cannot be copied to {root}: {_reason(error)}") from error

    def _give_up(self, brought: Iterable[Path]) -> None:
        for path in brought:
            shutil.rmtree(path, ignore_errors=True)
        release_directories(self._cluster)


def _copied(source: Path, target: Path) -> Path:
    """Copy a data directory without its lock and without foreign files, which a restore leaves in place."""
    # A process that opens and closes the lock file loses its lock (POSIX).
    left_out = {LOCK, RESTORING, *SYSTEM_ENTRIES, *foreign_entries(DiskFiles(source))}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if (Path(folder) / name).relative_to(source).as_posix() in left_out}

    shutil.copytree(source, target, ignore=ignored, copy_function=_copy_file)
    return target


def _copy_file(source: str, target: str) -> None:
    """Copy the data of a file without its holes: index files are preallocated."""
    pause()
    if not hasattr(os, "SEEK_DATA"):
        shutil.copy2(source, target)
        return
    with Path(source).open("rb", buffering=0) as begin, Path(target).open("wb", buffering=0) as end:
        size = os.fstat(begin.fileno()).st_size
        end.truncate(size)
        at = 0
        while at < size:
            try:
                data = os.lseek(begin.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break  # only a hole is left
                raise
            at = os.lseek(begin.fileno(), data, os.SEEK_HOLE)
            while data < at:
                pause()
                data += os.pwrite(end.fileno(), os.pread(begin.fileno(), min(at - data, _PIECE_BYTES), data), data)
    shutil.copystat(source, target)


def _reason(error: OSError) -> str:
    """Return the reason of the first file that could not be copied; `shutil.Error` itself has none."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        return str(error.args[0][0][-1])
    return error.strerror or str(error)


def _remove_place(place: Path) -> None:
    """Remove the folder of snapshots, unless it holds anything else."""
    for path in place.iterdir():
        if path.name.isdecimal():
            shutil.rmtree(path, ignore_errors=True)
    if [path.name for path in place.iterdir()] == [_MARKER]:
        shutil.rmtree(place, ignore_errors=True)
