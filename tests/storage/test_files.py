"""Both trees do the same; the one in memory can be broken (storage.files)."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from storage.files import DiskFiles, Files, MemoryFiles
from storage.files.descriptors import Descriptors


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """A tree of either kind."""
    return MemoryFiles() if request.param == "memory" else DiskFiles(tmp_path)


def test_appends_are_read_back(files: Files) -> None:
    """Positions, slices over many appends, and nothing behind the end."""
    file = files.open("f")
    parts = [bytes([index % 251]) * (index % 700) for index in range(400)]
    assert [file.append(part) for part in parts] == [sum(map(len, parts[:index])) for index in range(400)]
    whole = b"".join(parts)
    assert file.size == len(whole)
    for position, size in ((0, 10**9), (1, 1), (12_345, 70_000), (len(whole) - 3, 10), (len(whole), 5)):
        assert b"".join(file.read(position, size)) == whole[position : position + size]
        assert bytes(file.view(position, size)) == whole[position : position + size]
        assert whole[position : position + size].startswith(bytes(file.contiguous(position, size)))
    assert files.read_file("f") == whole


def test_a_file_is_cut_and_goes_on(files: Files) -> None:
    """The cut may be in the middle of one append."""
    file = files.open("f")
    for _ in range(3):
        file.append(b"0123456789" * 5000)
    file.truncate(70_003)
    assert file.append(b"end") == 70_003
    assert bytes(file.view(70_000, 100)) == b"012end"
    file.truncate(0)
    assert (file.size, file.read(0, 10)) == (0, [])


def test_an_extended_file_reads_zeros(files: Files) -> None:
    """Preallocated indexes are written from their start."""
    file = files.open("f")
    file.truncate(1_000_000)
    file.write_at(0, b"abcd")
    file.write_at(4, b"ef")
    assert (file.size, bytes(file.view(2, 6))) == (1_000_000, b"cdef\0\0")
    file.truncate(6)
    assert files.read_file("f") == b"abcdef"


def test_names_and_directories(files: Files) -> None:
    """Made, listed, renamed with all that is inside, removed."""
    for directory in ("a", "b"):
        files.make_directory(directory)
        files.make_directory(directory)
        files.open(f"{directory}/f").append(b"x")
    assert (files.list(), files.list("a")) == (["a", "b"], ["f"])
    files.rename("a/f", "a/g")
    files.rename("a", "c")
    assert (files.exists("a"), files.is_directory("c"), files.read_file("c/g")) == (False, True, b"x")
    files.remove("c/g")
    files.remove("c/g")
    files.remove_tree("b")
    files.remove_tree("b")
    assert (files.list(), files.list("c")) == (["c"], [])
    files.sync_directory("c")


def test_a_renamed_file_stays_usable(files: Files) -> None:
    """An open file is read and written as before, once it has the new path."""
    file = files.open("f")
    file.append(b"x")
    files.rename("f", "g")
    file.path = "g"
    file.close()
    file.append(b"y")
    file.sync()
    assert files.read_file("g") == b"xy"


def test_missing_files(files: Files) -> None:
    """Are an error only for those who need them."""
    for attempt in (lambda: files.open("f", create=False), lambda: files.read_file("f"), lambda: files.open("d/f")):
        with pytest.raises(FileNotFoundError):
            attempt()
    with pytest.raises(FileNotFoundError):
        files.rename("f", "g")
    assert not files.exists("f")


def test_replace_writes_whole_files(files: Files) -> None:
    """Longer or shorter than before, and nothing is left beside."""
    files.replace("f", b"long contents")
    files.replace("f", b"short", durable=False)
    assert (files.read_file("f"), files.size("f"), files.list()) == (b"short", 5, ["f"])


def test_times_of_change(files: Files) -> None:
    """A file's modification time can be set, to the millisecond."""
    files.open("f").append(b"x")
    files.set_mtime_ms("f", 1_700_000_000_123)
    assert files.mtime_ms("f") == 1_700_000_000_123


def test_few_descriptors_serve_many_files(tmp_path: Path) -> None:
    """Files give theirs back when others need one."""
    files = DiskFiles(tmp_path, descriptors=Descriptors(4))
    opened = [files.open(f"f{index}") for index in range(20)]
    for _ in range(3):
        for index, file in enumerate(opened):
            file.append(b"%d " % index)
    assert [files.read_file(f"f{index}") for index in range(20)] == [b"%d " % index * 3 for index in range(20)]
    assert 0 < _descriptors_below(tmp_path) <= 4
    files.close()
    assert _descriptors_below(tmp_path) == 0


def _descriptors_below(folder: Path) -> int:
    return sum(os.path.realpath(link).startswith(str(folder)) for link in Path("/proc/self/fd").iterdir())


def test_a_write_can_be_torn() -> None:
    """A part of the bytes gets there, then the error."""
    files = MemoryFiles()
    file = files.open("f")
    file.append(b"whole")
    files.fail_next_write(keep=3)
    with pytest.raises(OSError, match="No space left") as caught:
        file.append(b"abcdef")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "f")
    assert files.read_file("f") == b"wholeabc"
    file.append(b"!")
    assert files.read_file("f") == b"wholeabc!"


def test_an_overwrite_can_fail_too() -> None:
    """Index entries are writes like others."""
    files = MemoryFiles()
    file = files.open("f")
    file.write_at(0, b"1234")
    files.fail_next_write(OSError(errno.EIO, "Input/output error"))
    with pytest.raises(OSError, match="Input/output"):
        file.write_at(4, b"5678")
    assert files.read_file("f") == b"1234"


def test_a_crash_takes_what_was_not_synced() -> None:
    """Or a part of it; synced bytes stay."""
    files = MemoryFiles()
    file = files.open("f")
    file.append(b"synced")
    file.sync()
    file.append(b"lost")
    files.open("g").append(b"lost")
    assert [files.crash().read_file(name) for name in "fg"] == [b"synced", b""]
    assert files.crash(lambda unsynced: unsynced // 2).read_file("f") == b"syncedlo"
    files.fail_next_sync()
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    assert files.crash().read_file("f") == b"synced"


def test_small_appends_share_memory() -> None:
    """Blocks, not an object for each append."""
    file = MemoryFiles().open("f")
    for _ in range(10_000):
        file.append(b"x" * 100)
    assert len(file.read(0, 10**9)) < 40


def test_a_directory_is_removed_only_if_it_is_empty(files: Files) -> None:
    """A file that has come meanwhile keeps it."""
    files.make_directory("d")
    files.open("d/f").append(b"x")
    files.remove_directory("d")
    assert files.read_file("d/f") == b"x"
    files.remove("d/f")
    files.remove_directory("d")
    files.remove_directory("d")
    assert not files.exists("d")


def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is synced from now on."""
    names: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return names


def test_a_durable_file_has_a_durable_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut may take the name of a synced file: its directory is synced after the rename."""
    files = DiskFiles(tmp_path)
    names = synced(monkeypatch)
    files.replace("f", b"x", durable=False)
    assert names == []
    files.replace("f", b"y")
    assert names == ["f.tmp", tmp_path.name]


def test_a_file_that_is_gone_does_not_keep_others_from_being_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments are deleted while they wait."""
    files = DiskFiles(tmp_path)
    files.open("f").append(b"x")
    names = synced(monkeypatch)
    with pytest.raises(FileNotFoundError):
        files.sync_files(["gone", "f", ""])
    assert names == ["f", tmp_path.name]


def test_a_file_system_without_locks_is_not_called_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process has the directory: the system's reason is reported."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with pytest.raises(OSError, match="No locks available"):
        DiskFiles(tmp_path).lock()
