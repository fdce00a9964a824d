"""Prints progress and error messages of a command to stderr."""

import errno
import sys
import time
from collections.abc import Callable
from typing import Final, NoReturn

LINE_EVERY_S: Final = 10.0
"""Seconds between progress lines if stderr is not a terminal.

Ours, a log that stays short and shows that it goes on.
"""


class Progress:
    """One line on stderr that is overwritten; if stderr is not a terminal, a new line every ten seconds."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:  # noqa: TID251
        self._shown = not quiet and sys.stderr.isatty()
        self._logged = not quiet and not self._shown
        self._clock = clock
        self._last_s = clock()
        self._width = 0

    def show(self, text: str) -> None:
        """Replace the line by this text."""
        if self._logged and self._clock() - self._last_s >= LINE_EVERY_S:
            self._last_s = self._clock()
            print(text, file=sys.stderr, flush=True)  # noqa: T201
        if self._shown:
            print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._width = len(text)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self.done()
        if self._shown or self._logged:
            print(text, file=sys.stderr, flush=True)  # noqa: T201

    def done(self) -> None:
        """Clear the line."""
        if self._shown and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._width = 0


def refuse(program: str, sentence: object, code: int = 2) -> NoReturn:
    """Print the sentence on stderr and exit with the code."""
    print(f"{program}: {sentence}", file=sys.stderr)  # noqa: T201
    sys.exit(code)


def code_of(error: OSError) -> int:
    """Return the exit code for an OSError: 2 for an impossible path, which the user gave wrongly; else 1."""
    wrong = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
    return 2 if isinstance(error, wrong) or error.errno == errno.ENAMETOOLONG else 1
