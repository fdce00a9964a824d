"""What a command tells while it works, and how it says that something makes no sense."""

import re
import sys
from typing import NoReturn


class Progress:
    """One line on stderr that is overwritten, where stderr is a terminal and nobody asked for quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._width = 0

    def tell(self, text: str) -> None:
        """Show this in place of what was shown before."""
        if self._shown:
            print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._width = len(text)

    def done(self) -> None:
        """Take the line away."""
        if self._shown and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)  # noqa: T201
            self._width = 0


def reason(error: Exception) -> str:
    """What a worker's exception says, without the way that it took: its last line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith(("  ", "\t"))]
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception)?: ", line)]
    told = (named or lines or [type(error).__name__])[-1]
    return re.sub(r"^(?:\w+\.)+(\w+): ", "", told)


def refuse(program: str, sentence: object, code: int = 2) -> NoReturn:
    """Say the sentence on stderr and leave with the code."""
    print(f"{program}: {sentence}", file=sys.stderr)  # noqa: T201
    sys.exit(code)
