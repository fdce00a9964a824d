"""A server as people start it, with its banner; it ends with the test."""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.launcher import environment

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-P", str(ROOT / "understudy" / "__main__.py")]
FREE = ("--port", "0", "--control-port", "0")


@contextmanager
def serve(
    *options: str,
    command: Sequence[str] = COMMAND,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    last: str = "control=",
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A server and its banner up to the line that begins with `last`; it ends with the test, passed or failed."""
    arguments = [*command, "serve", *options]
    streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(arguments, text=True, cwd=cwd, env={**environment(), **(env or {})}, **streams) as process:
        try:
            lines: list[str] = []
            for line in process.stdout or ():
                lines.append(line.rstrip("\n"))
                if line.startswith(last):
                    break
            yield process, lines
        finally:
            process.kill()


def value(lines: Iterable[str], name: str) -> str:
    """The value of a line of the banner."""
    return next(line for line in lines if line.startswith(f"{name}=")).partition("=")[2]
