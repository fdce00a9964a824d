"""Writes a command's report to standard output or to the file of `--out`."""

import shutil
import sys
from collections.abc import Mapping
from typing import Any


def deliver(program: str, subject: str, arguments: Mapping[str, Any], text: str, summary: str) -> None:
    """Print the report; with `--out` write it to the file, and print the summary.

    Args:
        program: the command, which is the heading of a table in a file.
        subject: path of the data directory or journal that the report describes.
        arguments: the command's, with `out`, `format` and `write`, which only overwrites earlier reports.
        text: the report in its format.
        summary: one line.
    """
    if not arguments["out"]:
        sys.stdout.write(text + "\n")
        return
    head = f"{program}: {subject}\n\n" if arguments["format"] == "table" else ""
    arguments["write"](arguments["out"], f"{head}{text}\n".encode(), "--out")
    print(summary)  # noqa: T201 - a command's answer


def terminal_width(arguments: Mapping[str, Any]) -> int | None:
    """Return the width of the terminal that shows the report; None if it goes to a file or another program."""
    is_shown = not arguments["out"] and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if is_shown else None
