"""States of the whole cluster to go back to: copies of its brokers' directories, with its chance and its time.

In memory a copy shares its bytes with what goes on. On disk it is a copy beside the data directory, made and put back
while nobody is served; it is gone when the server stops.
"""

import errno
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.anew import put_down, serve_again
from broker.birth import data_root
from broker.node import Node
from storage.disk_files import DiskFiles
from storage.memory_files import MemoryFiles

if TYPE_CHECKING:
    from broker.cluster import Cluster

_LOCK = ".lock"  # whoever opens and closes it loses the lock (POSIX)
_COMING = ".restoring"
_PIECE_BYTES = 1024 * 1024


class CannotKeep(Exception):
    """The cluster is in no state for that; the message is for the user."""


@dataclass(frozen=True)
class Snapshot:
    """A cluster as it was: what its brokers' directories held, its chance and its time."""

    files: dict[int, MemoryFiles | Path]
    chance: Any
    ahead_ms: int
    frozen_at_ms: int | None
    taken_at_ms: int


class Snapshots:
    """The states to go back to, by id. They outlive a reset."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._numbers = count(1)
        self.kept: dict[str, Snapshot] = {}

    def take(self) -> str:
        """Keep the state as it is; its id.

        Raises:
            CannotKeep: a broker is down, the data directory is only read, or there is no room beside it.
        """
        cluster, clock = self._cluster, self._cluster.clock
        for node in cluster.nodes.values():
            if not node.up:
                raise CannotKeep(f"broker {node.id} is down; start it first")
        if cluster.options.read_only:
            raise CannotKeep("the data directory is only read; a reset goes back to what is in it")
        snapshot_id = str(next(self._numbers))
        try:
            if not self.kept and self._place is not None:
                with suppress(FileNotFoundError):  # those of a server that was killed
                    shutil.rmtree(self._place)
            files = {node.id: self._copy(node, snapshot_id) for node in cluster.nodes.values()}
        except OSError as error:
            assert self._place is not None
            shutil.rmtree(self._place / snapshot_id, ignore_errors=True)
            raise CannotKeep(f"the data directory cannot be copied to {self._place}: {error.strerror}") from error
        frozen_at_ms = clock.now_ms() if clock.frozen else None
        at_ms = clock.now_ms()
        self.kept[snapshot_id] = Snapshot(files, cluster.random.getstate(), clock.pushed_ms, frozen_at_ms, at_ms)
        return snapshot_id

    async def restore(self, snapshot: Snapshot) -> None:
        """Back to it, as after a restart of all brokers; faults, journal and versions are as they are now.

        Raises:
            PortTaken: somebody took the port of a broker that was down.
            CannotKeep: there is no room in the data directory; nothing has changed.
        """
        cluster = self._cluster
        await cluster.lifecycle.recall(snapshot.files)
        self._bring(snapshot)
        cluster.journal.era += 1
        waiting = put_down(cluster)
        cluster.lifecycle.dismiss(snapshot.files)
        cluster.timelines.clear()
        cluster.group_timelines.clear()
        cluster.producer_timelines.clear()
        for node in cluster.nodes.values():
            kept = snapshot.files[node.id]
            if isinstance(kept, MemoryFiles):
                node.files = kept.snapshot()
            else:
                _put_in_place(self._root(node))
        cluster.clock.put(snapshot.ahead_ms, snapshot.frozen_at_ms)
        cluster.open_state()
        cluster.random.setstate(snapshot.chance)
        cluster.begin(restored=True)
        for partition in waiting:
            partition.wake()
        await serve_again(cluster)

    def discard(self) -> None:
        """Forget them all, and what they take on disk."""
        if self.kept and self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)
        self.kept.clear()

    # --- on disk -----------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> Path | None:
        """Where copies of a data directory lie: beside it, since what lies in it is taken for logs."""
        directory = self._cluster.options.data_dir
        return None if directory is None else directory.absolute().parent / f".{directory.absolute().name}.snapshots"

    def _root(self, node: Node) -> Path:
        return data_root(self._cluster.options, node.id)

    def _copy(self, node: Node, snapshot_id: str) -> MemoryFiles | Path:
        if isinstance(node.files, MemoryFiles):
            return node.files.snapshot()
        assert isinstance(node.files, DiskFiles)
        assert self._place is not None
        return _copied(node.files.root, self._place / snapshot_id / str(node.id))

    def _bring(self, snapshot: Snapshot) -> None:
        """Have the copies in the brokers' own directories, under another name, before anything is thrown away."""
        brought: list[Path] = []
        try:
            for broker_id, kept in snapshot.files.items():
                if isinstance(kept, Path):
                    brought.append(self._root(self._cluster.nodes[broker_id]) / _COMING)
                    shutil.rmtree(brought[-1], ignore_errors=True)
                    _copied(kept, brought[-1])
        except OSError as error:
            for path in brought:
                shutil.rmtree(path, ignore_errors=True)
            raise CannotKeep(f"the snapshot cannot be copied to {brought[-1].parent}: {error.strerror}") from error


def _copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(_LOCK, _COMING), copy_function=_copy_file)
    return target


def _copy_file(source: str, target: str) -> None:
    """Copy what is written in a file, and leave out its holes: indexes are reserved at their full size."""
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
                    break  # nothing but a hole is left
                raise
            at = os.lseek(begin.fileno(), data, os.SEEK_HOLE)
            while data < at:
                data += os.pwrite(end.fileno(), os.pread(begin.fileno(), min(at - data, _PIECE_BYTES), data), data)
    shutil.copystat(source, target)


def _put_in_place(root: Path) -> None:
    """What was brought takes the place of everything else in a directory. Renames only: they need no room."""
    for path in root.iterdir():
        if path.name == _COMING:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for path in (root / _COMING).iterdir():
        path.rename(root / path.name)
    (root / _COMING).rmdir()
