"""The brokers' data directories: which may be opened, and which a reset may empty.

A directory is opened only if it is empty, or has a `meta.properties` and no foreign entries. A reset empties it only if
Understudy formatted it and no other broker has served it since, or with `--allow-reset`. Files that neither Kafka nor
Understudy writes are never removed (storage.ownership).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import structlog

from broker.cluster.base import ClusterBase
from broker.cluster.directory_checks import check_formats, check_metadata, check_owners
from broker.options import ServeOptions
from broker.options.broker_ids import directories, found_ids, is_directory_name
from broker.request.node import Node
from storage import replacement
from storage.checkpoints import META_PROPERTIES
from storage.files import DirectoryLockedError, DiskFiles, Files, MemoryFiles
from storage.files.descriptors import Descriptors
from storage.files.overlay import OverlayFiles
from storage.log.context import Cut
from storage.log_dir import WrongDirectoryError
from storage.ownership import (
    LOADING,
    SYSTEM_ENTRIES,
    foreign_entries,
    is_unused,
    last_incarnation,
    named,
    write_owner,
)

_log = structlog.get_logger(__name__)


class ResetRefused(Exception):
    """A reset would remove data that Understudy did not write; the message is for the user."""


def with_found_ids(options: ServeOptions) -> ServeOptions:
    """Return the options with the broker ids found in the data directory, unless the user gave ids."""
    if options.data_dir is None or options.ids_given:
        return options
    return replace(options, broker_ids=found_ids(options.data_dir, options.broker_ids))


def data_root(options: ServeOptions, broker_id: int) -> Path:
    """Return a broker's directory: `--data-dir` itself, or `broker-ID` in it with several brokers (contract 2)."""
    assert options.data_dir is not None
    return options.data_dir if options.brokers == 1 else options.data_dir / f"broker-{broker_id}"


def check_data_directories(options: ServeOptions) -> None:
    """Check all directories before anything is written into one of them, except to complete an interrupted replacement.

    Raises:
        WrongDirectoryError: one is not a data directory, holds foreign entries or records that only Kafka can read, or
            belongs to another node or cluster; nothing was changed.
        DirectoryLockedError: another process uses one in which a replacement has to be completed.
    """
    if options.data_dir is None:
        return
    _check_layout(options.data_dir, options.brokers)
    roots = [data_root(options, broker_id) for broker_id in options.broker_ids]
    for root in roots:
        _check_entries(root, read_only=options.read_only)
    trees = [DiskFiles(root, read_only=options.read_only) for root in roots if root.is_dir()]
    replacement.recover(trees, read_only=options.read_only)
    check_owners(dict(zip(options.broker_ids, roots, strict=True)))
    if roots[0].is_dir():
        check_metadata(trees[0])
    for files in trees:
        check_formats(files)


def files_of(options: ServeOptions, broker_id: int, descriptors: Descriptors) -> Files:
    """Return a broker's files: in memory, on disk, or in memory over a read-only directory.

    ``descriptors`` are shared by all brokers of the process.

    Raises:
        WrongDirectoryError: the directory is not a data directory, or holds foreign entries.
    """
    if options.data_dir is None:
        return MemoryFiles()
    root = data_root(options, broker_id)
    _check_entries(root, read_only=options.read_only)
    if options.read_only:
        return OverlayFiles(DiskFiles(root, read_only=True, descriptors=descriptors))
    root.mkdir(parents=True, exist_ok=True)
    files = DiskFiles(root, descriptors=descriptors)
    replacement.recover((files,), read_only=False)  # for an added broker; those of the start are complete
    return files


def note_owner(cluster: ClusterBase, node: Node) -> None:
    """Write the broker's incarnation id into its directory, if Understudy formatted it and was the last to serve it.

    Called when the broker has drawn its incarnation id and the metadata still has the previous one.
    """
    files, logs = node.files, node.logs
    if not isinstance(files, DiskFiles) or logs is None or logs.directory_id is None or node.incarnation_id is None:
        return
    if node.owns_directory is None:
        registration = cluster.image.brokers.get(node.id)
        last = last_incarnation(files, logs.directory_id)
        node.owns_directory = logs.formatted or (registration is not None and registration.incarnation_id == last)
    if node.owns_directory:
        write_owner(files, logs.directory_id, node.incarnation_id)


def check_resettable(cluster: ClusterBase, *, empties: bool) -> None:
    """Check that a reset removes only what Understudy wrote, and lock the directories against other processes.

    The reset opens the directories of all brokers, and empties them first if ``empties``.

    Raises:
        ResetRefused: it would remove other data, and `--allow-reset` was not given; or another process uses a
            directory.
    """
    back = [cluster.removed[broker_id] for broker_id in cluster.options.broker_ids if broker_id in cluster.removed]
    nodes = [*cluster.nodes.values(), *back]
    for node in nodes:
        if isinstance(node.files, DiskFiles) and node.owns_directory is False and not cluster.options.allow_reset:
            raise ResetRefused(
                f"{node.files.root} has data that Understudy did not write, and a reset would remove it; serve it with "
                "--read-only, so that resets return to these data, or with --allow-reset to permit their removal"
            )
    try:
        hold_directories(nodes if empties else [node for node in nodes if not node.up])
    except DirectoryLockedError as error:
        release_directories(cluster)
        raise ResetRefused(f"{error}, and cannot be {'emptied' if empties else 'opened'}") from None


def hold_directories(nodes: Iterable[Node]) -> None:
    """Lock the directories, including those of brokers that are down, until they are opened again.

    Raises:
        DirectoryLockedError: another process uses one; nothing has changed.
    """
    for node in nodes:
        if isinstance(node.files, DiskFiles):
            node.files.hold()


def release_directories(cluster: ClusterBase) -> None:
    """Unlock directories that are not open, after a reset or restore that failed."""
    for node in (*cluster.nodes.values(), *cluster.removed.values()):
        if isinstance(node.files, DiskFiles) and node.logs is None and node.id != cluster.controller_id:
            node.files.unlock()


def clear_directories(nodes: Iterable[Node]) -> None:
    """Remove everything that Kafka and Understudy write from the brokers' directories, except from read-only ones."""
    on_disk = []
    for node in nodes:
        if isinstance(node.files, DiskFiles):
            on_disk.append((node, node.files))
            continue
        if isinstance(node.files, MemoryFiles):
            node.files.discard()
        node.files = None  # of an overlay only the memory is dropped
    for step in (replacement.begin, replacement.commit):
        for _, files in on_disk:
            step(files)
    for node, files in on_disk:
        report_left(node, replacement.finish(files))
        node.owns_directory = None


def report_left(node: Node, left: list[str]) -> None:
    """Log the foreign files that were left in place, if there are any."""
    if not left:
        return
    assert isinstance(node.files, DiskFiles)
    _log.warning("foreign files were left in the data directory", directory=str(node.files.root), left=named(left))


def report_cut(node: Node, cut: Cut) -> None:
    """Log what recovery cut off a damaged log (Kafka: LogLoader, "Corruption found in segment")."""
    _log.warning(
        "a damaged log was truncated",
        broker=node.id,
        partition=f"{cut.topic}-{cut.partition}",
        offset=cut.offset,
        bytes=cut.size_bytes,
        segments=cut.segments,
    )


def _check_layout(directory: Path, brokers: int) -> None:
    """Refuse one broker's directory for several brokers, and the reverse: it would seem to be empty."""
    of_one, of_many = (directory / META_PROPERTIES).exists(), bool(directories(directory))
    if of_one and brokers > 1:
        raise WrongDirectoryError(f"{directory} is the data directory of one broker, not of {brokers}")
    if of_many and not of_one and brokers == 1:
        raise WrongDirectoryError(
            f"{directory} is the data directory of several brokers; pass the same --brokers as before"
        )
    if brokers > 1 and directory.exists():
        _check_is_directory(directory)
        foreign = [name for name in _names(directory) if not is_directory_name(name)]
        if foreign:
            raise WrongDirectoryError(
                f"{directory} has entries that are not data directories of brokers ({named(foreign)}); choose an empty "
                "directory, or one that does not exist yet"
            )


def _check_entries(root: Path, *, read_only: bool) -> None:
    if (root / LOADING).exists():
        raise WrongDirectoryError(
            f"{root} is not complete, because an `understudy load` was interrupted; run the same command again, which "
            "continues where it stopped"
        )
    if read_only:
        if not (root / META_PROPERTIES).exists() and not replacement.is_under_way(DiskFiles(root)):
            raise WrongDirectoryError(f"{root} is not a data directory: it has no {META_PROPERTIES}")
        return
    if not root.exists():
        return
    _check_is_directory(root)
    files = DiskFiles(root)
    if not files.exists(META_PROPERTIES):
        if not is_unused(files) and not replacement.is_under_way(files):
            raise WrongDirectoryError(
                f"{root} is not empty and not a data directory: it has no {META_PROPERTIES}, but "
                f"{named(_names(root))}; choose an empty directory, or one that does not exist yet"
            )
    elif foreign := foreign_entries(files):
        raise WrongDirectoryError(
            f"{root} has entries that are neither partitions nor Kafka's own files ({named(foreign)}); move them "
            "elsewhere, or serve with --read-only, which changes nothing"
        )


def _check_is_directory(path: Path) -> None:
    if not path.is_dir():
        raise WrongDirectoryError(f"--data-dir needs a directory, and {path} is a file")


def _names(directory: Path) -> Iterator[str]:
    return (path.name for path in sorted(directory.iterdir()) if path.name not in SYSTEM_ENTRIES)
