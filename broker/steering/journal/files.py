"""Rotating files of whole lines. The current one ends in ``.open``; finished files never change again.

A disk error raises ``OSError``; the file then still has whole lines only, and the next call tries again.
"""

import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

from broker.time.clock import stopwatch_ns

OPEN = ".open"
SUFFIX = ".jsonl"
_NAME = re.compile(rf"wire-.+-\d{{6}}{re.escape(SUFFIX + OPEN)}")
_BEGIN = b'{"v":'
"""The beginning of every line of a journal; a torn line may be shorter."""


class LineFiles:
    """The files of one run in a directory. ``max_bytes`` and ``max_ms`` (real time) bound each file."""

    def __init__(self, directory: Path, run: str, max_bytes: int, max_ms: int) -> None:
        self._directory, self._run, self._max_bytes, self._max_ms = directory, run, max_bytes, max_ms
        self._number = 0
        self._file = -1
        self._path = directory
        self._size = 0
        self._opened_ns = 0
        self.lines = 0
        """The number of lines in the open file."""

    def append(self, lines: bytes) -> None:
        """Write whole lines, all of them or none.

        Raises:
            OSError: none was written; the file is as before.
        """
        if self._file < 0:
            self._open()
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._file, memoryview(lines)[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
                os.lseek(self._file, self._size, os.SEEK_SET)
            raise
        self._size += len(lines)
        self.lines += lines.count(b"\n")

    @property
    def is_full(self) -> bool:
        """Return whether the open file has reached its maximum size."""
        return self._file >= 0 and self._size >= self._max_bytes

    def finish(self) -> str | None:
        """Close the file and remove ``.open`` from its name; return the name, or ``None`` if no file is open.

        Raises:
            OSError: the file keeps its ``.open``, or was removed; either way the next line starts a new file.
        """
        if self._file < 0:
            return None
        file, self._file, self.lines = self._file, -1, 0
        finished = self._path.with_suffix("")
        try:
            os.fsync(file)
            if finished.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(finished))
            self._path.rename(finished)
        finally:
            os.close(file)
        return finished.name

    def left_s(self) -> float | None:
        """Return the seconds until the file reaches its maximum age; ``None`` if no file is open."""
        if self._file < 0:
            return None
        return max(0.0, self._max_ms / 1000 - (stopwatch_ns() - self._opened_ns) / 1e9)

    def _open(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"wire-{self._run}-{self._number + 1:06}{SUFFIX}{OPEN}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until the process ends: see finish_left
        self._number += 1
        self._file, self._path, self._size, self._opened_ns = file, path, 0, stopwatch_ns()


def probe(directory: Path, run: str) -> None:
    """Create the directory, and check that files can be written there.

    Raises:
        OSError: they cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f".wire-{run}.probe"
    try:
        path.write_bytes(b"\n")
    finally:
        path.unlink(missing_ok=True)


def finish_left(directory: Path) -> list[str]:
    """Finish the open files of dead writers, truncated after the last whole line; return their names.

    A file that is still being written is locked, and skipped. Files that cannot be finished stay unchanged, and so do
    files with such a name that no writer made.
    """
    done = []
    for path in sorted(directory.glob(f"wire-*{SUFFIX}{OPEN}")):
        with suppress(OSError), path.open("r+b") as file:
            if path.with_suffix("").exists() or not (
                _NAME.fullmatch(path.name) and _BEGIN.startswith(file.read(len(_BEGIN)))
            ):
                continue
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(_whole(file.fileno()))
            path.rename(finished := path.with_suffix(""))
            done.append(finished.name)
    return done


def _whole(file: int) -> int:
    """Return the size of a file up to and including its last newline."""
    end = os.fstat(file).st_size
    while end > 0:
        begin = max(0, end - 64 * 1024)  # read backwards in pieces: an entry may be megabytes long
        newline = os.pread(file, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0
