"""The brokers' log directories: which may be opened, and which a reset may empty.

A directory is opened only if it is empty, or has a `meta.properties` and no foreign entries. A reset empties it only if
Understudy formatted it and no other broker has served it since, or with `--allow-reset`. Files that neither Kafka nor
Understudy writes are never removed (storage.ownership).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from broker.cluster.base import ClusterBase
from broker.cluster.directory_checks import check_formats, check_metadata, check_owners
from broker.logs import Logger
from broker.options import ServeOptions
from broker.options.broker_ids import controllers_in_directory, directories, ids_in_directory, is_directory_name
from broker.options.copies import broker_ids
from broker.request.node import Node
from broker.settings import BrokerSettings
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

_log = Logger(__name__)


class ResetRefused(Exception):
    """A reset would remove data that Understudy did not write; the message is for the user."""


def with_ids_of_directory(options: ServeOptions) -> ServeOptions:
    """Return the options with the ids found in the data directory: of added controllers; of brokers, unless given."""
    if not options.data_dirs:
        return options
    options = replace(options, controller_ids=controllers_in_directory(options.data_dirs[0], options.controller_ids))
    if options.ids_given:
        return options
    broker_ids = ids_in_directory(options.data_dirs[0], options.broker_ids, several=options.has_several_nodes)
    return replace(options, broker_ids=broker_ids)


def data_roots(options: ServeOptions, node_id: int, *, controller: bool = False) -> list[Path]:
    """Return a node's log directories on disk: those of `--data-dir`, or with several nodes one for each in each.

    They are `broker-ID`, and for a controller that is a node of its own `controller-ID`, in the first one; of copies
    that are only read, wherever they are.
    """
    if copied := options.copied_dirs.get(node_id):
        return list(copied[: 1 if controller else None])
    if controller:
        return [each / f"controller-{node_id}" for each in options.data_dirs[:1]]
    return [each / f"broker-{node_id}" if options.has_several_nodes else each for each in options.data_dirs]


def log_dir_paths(
    options: ServeOptions, node_id: int, settings: BrokerSettings, *, controller: bool = False
) -> tuple[str, ...]:
    """Return the absolute paths of a node's log directories; in memory they are those of `log.dirs` or `log.dir`."""
    roots = data_roots(options, node_id, controller=controller)
    names = map(str, roots) if options.data_dirs else _configured(settings)[: 1 if controller else None]
    return tuple(dict.fromkeys(map(os.path.abspath, names)))  # strings: in memory the paths need not exist


def _configured(settings: BrokerSettings) -> tuple[str, ...]:
    return settings.list("log.dirs") or settings.list("log.dir")


def check_data_directories(options: ServeOptions) -> None:
    """Check all directories before anything is written into one of them, except to complete an interrupted replacement.

    Raises:
        WrongDirectoryError: one is not a data directory, holds foreign entries or records that only Kafka can read, or
            belongs to another node or cluster; nothing was changed.
        DirectoryLockedError: another process uses one in which a replacement has to be completed.
    """
    if not options.data_dirs:
        return
    _check_copies(options)
    for data_dir in () if options.copied_dirs else options.data_dirs:
        _check_layout(data_dir, options)
    roots = {each: data_roots(options, each, controller=True) for each in options.controller_ids}
    roots.update((broker_id, data_roots(options, broker_id)) for broker_id in options.broker_ids)
    for root in chain.from_iterable(roots.values()):
        _check_entries(root, read_only=options.read_only)
    trees = {
        node_id: [DiskFiles(root, read_only=options.read_only) for root in own if root.is_dir()]
        for node_id, own in roots.items()
    }
    replacement.recover(chain.from_iterable(trees.values()), read_only=options.read_only)
    check_owners(roots, options.controller_ids or options.broker_ids[:1])
    if not options.controller_ids:
        check_metadata(trees[options.broker_ids[0]])
    for files in chain.from_iterable(trees.values()):
        check_formats(files)


def files_of(options: ServeOptions, node: Node, descriptors: Descriptors) -> tuple[Files, ...]:
    """Return the trees of a broker's log directories: in memory, on disk, or in memory over read-only directories.

    ``descriptors`` are shared by all brokers of the process.

    Raises:
        WrongDirectoryError: one is not a data directory, or holds foreign entries.
    """
    if not options.data_dirs:
        return tuple(MemoryFiles() for _ in node.log_dir_paths)
    roots = data_roots(options, node.id, controller=node.is_controller)
    for root in roots:
        _check_entries(root, read_only=options.read_only)
    if options.read_only:
        return tuple(OverlayFiles(DiskFiles(root, read_only=True, descriptors=descriptors)) for root in roots)
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)
    files = tuple(DiskFiles(root, descriptors=descriptors) for root in roots)
    replacement.recover(files, read_only=False)  # for an added broker; those of the start are complete
    return files


def note_owner(cluster: ClusterBase, node: Node) -> None:
    """Write the broker's incarnation id into its directories, if Understudy formatted them and was the last to serve.

    Called when the broker has drawn its incarnation id and the metadata still has the previous one.
    """
    if cluster.options.read_only or node.incarnation_id is None or not cluster.options.data_dirs:
        return
    if node.owns_directories is None:
        image = cluster.image
        registration = image.controllers.get(node.id) if node.is_controller else image.brokers.get(node.id)
        node.owns_directories = all(
            log_dir.formatted
            or (
                registration is not None
                and registration.incarnation_id == last_incarnation(log_dir.context.files, log_dir.directory_id)
            )
            for log_dir in node.log_dirs
        )
    for log_dir in node.log_dirs if node.owns_directories else ():
        if log_dir.directory_id is not None and not log_dir.is_offline:
            write_owner(log_dir.context.files, log_dir.directory_id, node.incarnation_id)


def on_disk(nodes: Iterable[Node]) -> list[tuple[Node, DiskFiles]]:
    """List the log directories of brokers that are on disk and may be written."""
    return [(node, files) for node in nodes for files in node.files if isinstance(files, DiskFiles)]


def check_resettable(cluster: ClusterBase, *, empties: bool) -> None:
    """Check that a reset removes only what Understudy wrote, and lock the directories against other processes.

    The reset opens the directories of all brokers, and empties them first if ``empties``.

    Raises:
        ResetRefused: it would remove other data, and `--allow-reset` was not given; or another process uses a
            directory.
    """
    back = [cluster.removed[broker_id] for broker_id in cluster.options.broker_ids if broker_id in cluster.removed]
    nodes = [*cluster.all_nodes, *back]
    for node, files in on_disk(nodes):
        if node.owns_directories is False and not cluster.options.allow_reset:
            raise ResetRefused(
                f"{files.root} has data that Understudy did not write, and a reset would remove it; serve it with "
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
    for _, files in on_disk(nodes):
        files.hold()


def release_directories(cluster: ClusterBase) -> None:
    """Unlock directories that are not open, after a reset or restore that failed."""
    for node, files in on_disk((*cluster.all_nodes, *cluster.removed.values())):
        if not node.log_dirs and not cluster.has_metadata(node):
            files.unlock()


def clear_directories(nodes: Iterable[Node]) -> None:
    """Remove everything that Kafka and Understudy write from the brokers' directories, except from read-only ones."""
    emptied = list(nodes)
    trees = [files for _, files in on_disk(emptied)]
    for node in emptied:
        for memory in node.files:
            if isinstance(memory, MemoryFiles):
                memory.discard()
        if not any(isinstance(files, DiskFiles) for files in node.files):
            node.files = ()  # of an overlay only the memory is dropped
        node.owns_directories = None
    for step in (replacement.begin, replacement.commit):
        for files in trees:
            step(files)
    for files in trees:
        report_left(files, replacement.finish(files))


def report_left(files: Files, left: Sequence[str]) -> None:
    """Log the foreign files that were left in place, if there are any."""
    if left and isinstance(files, DiskFiles):
        _log.warning("foreign files were left in the data directory", directory=str(files.root), left=named(left))


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


def _check_copies(options: ServeOptions) -> None:
    """Refuse another number of brokers than the copies have: their partitions would have no leader, or no log."""
    present = [each for each in broker_ids(options.copied_dirs) if each not in options.controller_ids]
    if present and not options.ids_given and len(present) != options.brokers:
        of = f"of one broker, {present[0]}" if len(present) == 1 else f"of the brokers {', '.join(map(str, present))}"
        directories = ", ".join(map(str, options.data_dirs))
        raise WrongDirectoryError(f"{directories} has the log directories {of}; leave out --brokers {options.brokers}")


def _check_layout(directory: Path, options: ServeOptions) -> None:
    """Refuse one broker's directory for several nodes, and the reverse: it would seem to be empty."""
    of_one, of_many = (directory / META_PROPERTIES).exists(), bool(directories(directory))
    of_controllers = any(directory.glob(f"controller-*/{META_PROPERTIES}"))
    if of_one and options.has_several_nodes:
        several = f"of {options.brokers}" if options.brokers > 1 else "of a cluster with controllers of its own"
        raise WrongDirectoryError(f"{directory} is the data directory of one broker, not {several}")
    if of_many and not of_one and not options.has_several_nodes and not of_controllers:
        raise WrongDirectoryError(
            f"{directory} is the data directory of several brokers; pass the same --brokers as before"
        )
    if of_controllers != bool(options.controller_ids) and (of_controllers or of_many):
        has = "has the metadata in controller-N" if of_controllers else "has no controller-N with its metadata"
        raise WrongDirectoryError(f"{directory} {has}; pass the same --controllers as before")
    if options.has_several_nodes and directory.exists():
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
