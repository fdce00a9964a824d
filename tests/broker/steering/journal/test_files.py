"""Files of whole lines: how they are named, when they are finished, and what is left of them when something breaks."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.steering.journal.files import LineFiles, finish_left, probe

LINE = b'{"v":1}\n'
FOR_EVER_MS = 10**12


def files(directory: Path, max_bytes: int = 1000, max_ms: int = FOR_EVER_MS) -> LineFiles:
    """Those of a run called R."""
    return LineFiles(directory, "R", max_bytes, max_ms)


def names(directory: Path) -> list[str]:
    """What lies there."""
    return sorted(path.name for path in directory.iterdir())


def test_a_file_that_is_written_has_another_name_than_a_finished_one(tmp_path: Path) -> None:
    """And is there for readers all the same."""
    written = files(tmp_path)
    written.append(LINE)
    assert names(tmp_path) == ["wire-R-000001.jsonl.open"]
    assert (tmp_path / "wire-R-000001.jsonl.open").read_bytes() == LINE
    assert written.finish() == "wire-R-000001.jsonl"
    assert names(tmp_path) == ["wire-R-000001.jsonl"]
    assert written.finish() is None


def test_a_file_is_full_when_it_is_large(tmp_path: Path) -> None:
    """With the lines that made it so; no line is cut."""
    written = files(tmp_path, max_bytes=3 * len(LINE))
    for _ in range(7):
        written.append(LINE)
        if written.is_full:
            written.finish()
    assert names(tmp_path) == ["wire-R-000001.jsonl", "wire-R-000002.jsonl", "wire-R-000003.jsonl.open"]
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [LINE * 3, LINE * 3, LINE]


def test_a_file_has_its_time(tmp_path: Path) -> None:
    """A journal file is finished when its time has passed, counted from its first line."""
    written = files(tmp_path, max_ms=60_000)
    assert written.left_s() is None
    written.append(LINE)
    left_s = written.left_s()
    assert left_s is not None
    assert 50 < left_s <= 60
    hurried = LineFiles(tmp_path, "S", 1000, 0)
    hurried.append(LINE)
    assert hurried.left_s() == 0


@contextmanager
def full_disk() -> Iterator[int]:
    """No file of this process may grow beyond 20 bytes: as a full disk, in the middle of a line.

    Not a fixture: between a test's phases pytest itself writes, and its output may be a file.
    """
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        yield 20
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_lines_that_the_disk_refuses_leave_none_of_their_bytes(tmp_path: Path) -> None:
    """What was in the file is kept, and the next lines follow it."""
    written = files(tmp_path)
    written.append(LINE)
    with full_disk() as limit_bytes, pytest.raises(OSError, match="File too large"):
        written.append(LINE * 2)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == LINE
    with full_disk():
        written.append(LINE)
    assert path.read_bytes() == LINE * 2
    assert len(LINE * 2) < limit_bytes < len(LINE * 3)


def test_a_folder_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """A file that cannot be renamed is an error; the next line begins a new file."""
    folder = tmp_path / "journal"
    written = files(folder)
    written.append(LINE)
    (folder / "wire-R-000001.jsonl.open").unlink()
    folder.rmdir()
    with pytest.raises(FileNotFoundError):
        written.finish()
    written.append(LINE)
    assert names(folder) == ["wire-R-000002.jsonl.open"]


def test_what_a_dead_writer_left_is_finished(tmp_path: Path) -> None:
    """Cut after the last whole line, however long the torn one is; files that are still written are left alone."""
    torn = tmp_path / "wire-A-000007.jsonl.open"
    torn.write_bytes(LINE * 3 + b"x" * 200_000)
    (tmp_path / "wire-B-000001.jsonl.open").write_bytes(b'{"v":')
    alive = files(tmp_path)
    alive.append(LINE)
    assert finish_left(tmp_path) == ["wire-A-000007.jsonl", "wire-B-000001.jsonl"]
    assert names(tmp_path) == ["wire-A-000007.jsonl", "wire-B-000001.jsonl", "wire-R-000001.jsonl.open"]
    assert (tmp_path / "wire-A-000007.jsonl").read_bytes() == LINE * 3
    assert (tmp_path / "wire-B-000001.jsonl").read_bytes() == b""


def test_files_that_no_writer_made_are_left_as_they_are(tmp_path: Path) -> None:
    """Because of their name, their contents or a finished file of the same name."""
    foreign = {
        "wire-notes.jsonl.open": LINE + b"torn",
        "wire-A-000001.jsonl.open": b"mine, without a newline",
        "wire-B-000001.jsonl.open": LINE + b"torn",
        "wire-B-000001.jsonl": b"mine",
    }
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "wire-C-000001.jsonl.open").write_bytes(LINE + b"torn")
    assert finish_left(tmp_path) == ["wire-C-000001.jsonl"]
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign


def test_a_finished_file_is_not_overwritten(tmp_path: Path) -> None:
    """If the finished name is taken, the lines stay in the open file."""
    written = files(tmp_path)
    written.append(LINE)
    (tmp_path / "wire-R-000001.jsonl").write_text("mine")
    with pytest.raises(FileExistsError):
        written.finish()
    assert (tmp_path / "wire-R-000001.jsonl").read_text() == "mine"
    assert (tmp_path / "wire-R-000001.jsonl.open").read_bytes() == LINE


def test_a_folder_is_tried_before_anything_is_written(tmp_path: Path) -> None:
    """It is made, and nothing is left in it; where there is a file in the way, that is an error."""
    probe(tmp_path / "a" / "b", "R")
    assert names(tmp_path / "a" / "b") == []
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        probe(tmp_path / "file" / "b", "R")


def test_a_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    """Requests may hold what others must not see, also where the umask allows it."""
    before = os.umask(0o022)
    try:
        files(tmp_path).append(LINE)
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
