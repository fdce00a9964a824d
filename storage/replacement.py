"""Replacement of a data directory's contents, by another state or by nothing; a kill at any point loses one at most.

The new state is copied to `.understudy-restoring` while the old one is untouched; to empty a directory that folder is
empty. Then it is renamed to `.understudy-replacing`, and the old state is removed, `meta.properties` first: without it
no broker regards the directory as complete. Then it is renamed to `.understudy-restored`, and its contents are moved
into place, `meta.properties` last.

After a kill :func:`recover` finishes the replacement, or undoes it if the first rename has not happened. The
directories of several brokers are replaced together: all have their copies before the first one is committed.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from storage.checkpoints import META_PROPERTIES
from storage.files import DiskFiles, Files
from storage.log_dir import WrongDirectoryError
from storage.ownership import REPLACING, RESTORED, RESTORING, remove_contents


def begin(files: Files) -> None:
    """Prepare to empty the directory. Works on a full disk too, but then a kill may leave a part of the old state."""
    files.remove_tree(RESTORING)
    with suppress(OSError):
        files.make_directory(RESTORING)


def commit(files: Files) -> None:
    """Commit the replacement: from now on the old state is not recovered."""
    if files.is_directory(RESTORING):
        files.rename(RESTORING, REPLACING)
    files.remove(META_PROPERTIES)


def finish(files: Files) -> list[str]:
    """Remove the old state, and move the new one into place. Renames only: that needs no space.

    Returns:
        The paths of the entries that were left because neither Kafka nor Understudy writes such files.
    """
    left: list[str] = []
    if not files.is_directory(RESTORED):
        left = remove_contents(files)
        stage = next((name for name in (REPLACING, RESTORING) if files.is_directory(name)), None)
        if stage is None:
            return left
        files.rename(stage, RESTORED)
    for name in sorted(files.list(RESTORED), key=lambda name: name == META_PROPERTIES):
        source = f"{RESTORED}/{name}"
        if files.is_directory(name):  # a foreign file keeps the partition's directory
            for each in files.list(source):
                files.rename(f"{source}/{each}", f"{name}/{each}")
            files.remove_directory(source)
        else:
            files.rename(source, name)
    files.remove_directory(RESTORED)
    return left


def is_under_way(files: Files) -> bool:
    """Whether a part of the old state is removed, so that the directory has neither the old nor the new state."""
    return files.is_directory(REPLACING) or files.is_directory(RESTORED)


def recover(trees: Iterable[DiskFiles], *, read_only: bool) -> None:
    """Finish an interrupted replacement of a cluster's directories, or undo it if nothing was removed yet.

    Raises:
        WrongDirectoryError: a replacement has to be finished, and the directories are read-only.
        DirectoryLockedError: another process uses one.
    """
    interrupted = [files for files in trees if files.is_directory(RESTORING) or is_under_way(files)]
    begun = any(map(is_under_way, interrupted))
    if read_only:
        if begun:
            raise WrongDirectoryError(
                f"{interrupted[0].root} was being reset, or restored from a snapshot, when its server was killed; "
                "serve it once without --read-only, which finishes that"
            )
        return
    if begun:  # all of them before any is finished: after a second kill, none may look untouched
        _each_locked([files for files in interrupted if files.is_directory(RESTORING)], commit)
    _each_locked(interrupted, finish if begun else lambda files: files.remove_tree(RESTORING))


def _each_locked(trees: Iterable[DiskFiles], step: Callable[[DiskFiles], object]) -> None:
    for files in trees:
        files.lock()
        try:
            step(files)
        finally:
            files.close()
