"""Reads the files of a journal line by line: one run, one era, and the selected time."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

Line = dict[str, Any]
"""A request with its outcome, as described in docs/debugging.md."""
VERSION: Final = 1
_NEEDED: Final = frozenset({
    "id", "era", "ts_us", "lost", "broker", "client_id", "api", "api_key", "outcome", "error", "duration_us",
    "request", "response",
})  # fmt: skip
_NAME: Final = re.compile(r"wire-(?P<run>.+)-\d{6}\.jsonl(\.open)?")


class JournalError(Exception):
    """An unusable journal; the message is one sentence with the remedy."""


def files_of(path: str, run: str | None = None) -> list[Path]:
    """Return the files of the last run, or of the named one, in order. Raises JournalError."""
    folder = Path(path)
    try:
        if folder.is_file():
            return [folder]
        if not folder.is_dir():
            raise JournalError(f"{path} does not exist; give the folder that --journal named")
        files = sorted(folder.iterdir())
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None
    runs: dict[str, list[Path]] = {}
    for file in files:
        match = _NAME.fullmatch(file.name)
        if match:
            runs.setdefault(match["run"], []).append(file)
    if not runs:
        raise JournalError(f"{path} has no file wire-*.jsonl; record with `understudy proxy --journal {path}`")
    if run is not None and run not in runs:
        raise JournalError(f"{path} has no run {run}; it has {', '.join(sorted(runs))}")
    return runs[max(runs) if run is None else run]


def last_era(files: list[Path]) -> int:
    """Return the number of server resets before its last request. Raises JournalError."""
    era = 0
    for line in _lines(files):
        era = max(era, line["era"])
    return era


def read(files: list[Path], era: int, since_us: int | None, until_us: int | None) -> Iterator[Line]:
    """Yield the requests of one era, in the order of their responses. Raises JournalError."""
    for line in _lines(files):
        at = line["ts_us"]
        if line["era"] == era and (since_us is None or at >= since_us) and (until_us is None or at < until_us):
            yield line


def _lines(files: list[Path]) -> Iterator[Line]:
    for file in files:
        try:
            with file.open(encoding="utf-8") as stream:
                for number, text in enumerate(stream, 1):
                    if not text.endswith("\n"):
                        break  # it is still being written
                    yield _checked(file, number, text)
        except (OSError, UnicodeDecodeError) as error:
            raise JournalError(f"{file} cannot be read: {error}") from None


def _checked(file: Path, number: int, text: str) -> Line:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{file}, line {number}: not JSON ({error}); give the folder of --journal") from None
    numbers = ("id", "era", "ts_us")
    if (
        not isinstance(line, dict)
        or line.get("v") != VERSION
        or not line.keys() >= _NEEDED
        or not all(isinstance(line[name], int) for name in numbers)
    ):
        raise JournalError(f"{file}, line {number}: not a line of format {VERSION}; give the folder of --journal")
    return line


def microseconds(text: str) -> int:
    """Parse a time in ISO 8601 (local if it has no zone) or milliseconds since 1970. Raises JournalError."""
    try:
        if text.isdecimal():
            return int(text) * 1000
        return round(datetime.fromisoformat(text).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        raise JournalError(f"{text} is not a time; use a form such as 2026-11-22T10:00:00") from None
