"""File descriptors of the open log files, and a few spare ones for when the process runs out.

A process with many clients can run out of descriptors (EMFILE), and so can the machine (ENFILE). Nothing is wrong with
the disk then: open log files are closed, the failed operation is retried, and later uses open the files again.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

DEFAULT_MOST: Final = 512
"""Default limit of open log files: ours, half of the 1,024 descriptors that many systems give to a process."""
_NONE_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE})


def none_left(error: BaseException | None) -> bool:
    """Whether an operation failed because the process or the machine has no file descriptors left."""
    return isinstance(error, OSError) and error.errno in _NONE_LEFT


class _Open(Protocol):
    used: bool

    def close(self) -> None:
        """Close the descriptor."""


class Descriptors:
    """The open files of one or several data directories.

    Args:
        most: how many files may be open at once; beyond that the least used one is closed.
        spare: how many descriptors are held in reserve. They are released for as long as :meth:`with_retry` needs them.
        on_shortage: called when an operation failed because no descriptor was left and is about to be retried.
    """

    def __init__(
        self, most: int = DEFAULT_MOST, *, spare: int = 0, on_shortage: Callable[[], None] = lambda: None
    ) -> None:
        self.most, self.on_shortage = most, on_shortage
        self._wanted_spare = spare
        self._spare: list[int] = []
        self._open: dict[_Open, None] = {}
        self._keep_spare()

    def __len__(self) -> int:
        """Return the number of open files."""
        return len(self._open)

    def open(self, file: _Open, path: Path, flags: int) -> int:
        """Open a file's descriptor, after closing others where `most` are open (second chance).

        Raises:
            OSError: there is no such file, or no descriptor even after others were closed.
        """
        while len(self._open) >= self.most:
            victim = next(iter(self._open))
            if victim.used:
                victim.used = False
                del self._open[victim]
                self._open[victim] = None
            else:
                victim.close()
        descriptor = self.with_retry(lambda: os.open(path, flags | os.O_CLOEXEC))
        self._open[file] = None
        return descriptor

    def forget(self, file: _Open) -> None:
        """Remove a file that has closed its descriptor."""
        self._open.pop(file, None)

    def with_retry(self, operation: Callable[[], T]) -> T:
        """Run an operation that opens files; if no descriptor is left, close some files and retry once.

        Not for operations that have side effects when they fail. Only for the thread of the event loop.

        Raises:
            OSError: from the operation, or from its retry.
        """
        try:
            return operation()
        except OSError as error:
            if not none_left(error):
                raise
        self._release_some()
        try:
            return operation()
        finally:
            self._keep_spare()

    def _release_some(self) -> None:
        """Close half of the open files, and the spare descriptors."""
        self.on_shortage()
        for file in list(self._open)[: (len(self._open) + 1) // 2]:
            file.close()
        self._release_spare()

    def _release_spare(self) -> None:
        while self._spare:
            os.close(self._spare.pop())

    def _keep_spare(self) -> None:
        while len(self._spare) < self._wanted_spare:
            try:
                self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    def close(self) -> None:
        """Close every file and the spare descriptors."""
        for file in list(self._open):
            file.close()
        self._wanted_spare = 0
        self._release_spare()
