"""A data directory gets other contents, or none, and the process is killed at any step of it."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from storage import replacement
from storage.files import DiskFiles
from storage.log_dir import WrongDirectoryError
from storage.ownership import LOCK, RESTORING

LOG = f"{0:020}.log"
OLD = {
    "meta.properties": b"old",
    "understudy.properties": b"old",
    "recovery-point-offset-checkpoint": b"old",
    f"A-0/{LOG}": b"old",
    f"t-0/{LOG}": b"old",
    "t-0/notes.txt": b"mine",
}
NEW = {"meta.properties": b"new", f"t-0/{LOG}": b"new", "t-0/partition.metadata": b"new", f"z-0/{LOG}": b"new"}
KEPT = {"t-0/notes.txt": b"mine"}
"""What neither Kafka nor Understudy has written."""


class Killed(BaseException):
    """As if the process had been killed: nothing catches it."""


def put(root: Path, contents: dict[str, bytes]) -> None:
    """Write files below a folder."""
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def files_of(root: Path) -> dict[str, bytes]:
    """Every file below a folder, without the lock; a directory of ours that is left has a name of its own."""
    contents = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    contents.pop(LOCK, None)
    return contents | {path.name: b"left" for path in root.glob(".understudy-*")}


def kill_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Kill the process at the n-th change of a directory."""
    real, numbers = DiskFiles._changed, count(1)

    def changed(files: DiskFiles, path: str) -> Path:
        if next(numbers) == step:
            raise Killed
        return real(files, path)

    patch.setattr(DiskFiles, "_changed", changed)


def emptied(roots: list[Path]) -> None:
    """As a reset does."""
    trees = [DiskFiles(root) for root in roots]
    for step in (replacement.begin, replacement.commit, replacement.finish):
        for files in trees:
            step(files)


def restored(roots: list[Path]) -> None:
    """As a restored snapshot is."""
    trees = [DiskFiles(root) for root in roots]
    for root in roots:
        put(root / RESTORING, NEW)
    for step in (replacement.commit, replacement.finish):
        for files in trees:
            step(files)


@pytest.mark.parametrize(("change", "expected"), [(emptied, KEPT), (restored, NEW | KEPT)], ids=["emptied", "restored"])
def test_a_kill_at_any_step_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, change: Callable[[list[Path]], None], expected: dict[str, bytes]
) -> None:
    """On all brokers the same, after the next start; a file of the user's stays, and nothing else is left."""
    outcomes = set()
    for step in count(1):
        roots = [tmp_path / str(step) / f"broker-{number}" for number in (1, 2)]
        for root in roots:
            put(root, OLD)
        killed = False
        with pytest.MonkeyPatch.context() as patch:
            kill_at(step, patch)
            try:
                change(roots)
            except Killed:
                killed = True
        replacement.recover(map(DiskFiles, roots), read_only=False)
        first, second = map(files_of, roots)
        assert first == second
        assert first in (OLD, expected)
        outcomes.add(len(first))
        if not killed:
            assert first == expected
            break
    assert outcomes == {len(OLD), len(expected)}


def test_a_copy_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    """An unfinished copy is removed, and the old state is untouched."""
    put(tmp_path, OLD)
    put(tmp_path / RESTORING, {"meta.properties": b"half"})
    replacement.recover([DiskFiles(tmp_path, read_only=True)], read_only=True)
    assert RESTORING in files_of(tmp_path)
    replacement.recover([DiskFiles(tmp_path)], read_only=False)
    assert files_of(tmp_path) == OLD


def test_a_directory_in_between_is_not_read(tmp_path: Path) -> None:
    """A read-only start refuses a directory with parts of two states, and changes nothing."""
    put(tmp_path, OLD)
    put(tmp_path / RESTORING, NEW)
    replacement.commit(DiskFiles(tmp_path))
    before = files_of(tmp_path)
    with pytest.raises(WrongDirectoryError, match="serve it once without --read-only, which finishes that"):
        replacement.recover([DiskFiles(tmp_path, read_only=True)], read_only=True)
    assert files_of(tmp_path) == before


def test_what_an_earlier_copy_has_left_is_not_taken_for_the_new_state(tmp_path: Path) -> None:
    """A directory that is to be emptied is empty afterwards."""
    put(tmp_path, OLD)
    put(tmp_path / RESTORING, NEW)
    emptied([tmp_path])
    assert files_of(tmp_path) == KEPT


def test_the_lock_outlives_the_contents(tmp_path: Path) -> None:
    """Another process could take a new one while the first still has the old one; a held one outlives a close, too."""
    files = DiskFiles(tmp_path)
    files.hold()
    before = (tmp_path / LOCK).stat().st_ino
    put(tmp_path, OLD)
    emptied([tmp_path])
    files.close()
    descriptor = files._lock
    files.lock()
    assert (files._lock, (tmp_path / LOCK).stat().st_ino) == (descriptor, before)
    files.close()
    assert files._lock < 0


def test_a_second_kill_does_not_mix_two_states(tmp_path: Path) -> None:
    """The first one came between the commits of two brokers; the second one while the next start finishes them."""
    for step in count(1):
        roots = [tmp_path / str(step) / f"broker-{number}" for number in (1, 2)]
        for root in roots:
            put(root, OLD)
            put(root / RESTORING, NEW)
        replacement.commit(DiskFiles(roots[0]))
        killed = False
        with pytest.MonkeyPatch.context() as patch:
            kill_at(step, patch)
            try:
                replacement.recover(map(DiskFiles, roots), read_only=False)
            except Killed:
                killed = True
        replacement.recover(map(DiskFiles, roots), read_only=False)
        assert [files_of(root) for root in roots] == [NEW | KEPT] * 2
        if not killed:
            assert step > 10
            break
