"""The ready file (`--ready-file`): JSON that appears once every listener accepts, and is removed at an orderly stop.

The file of an earlier server is removed first, so that no reader takes it for the new one; any other file is kept.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_HEAD_BYTES = 1 << 20
"""A ready file has some hundred bytes; of any other file no more than this is read to see that it is none."""


class NotAReadyFile(Exception):
    """The path holds something else, or cannot be written; the message is one sentence with the remedy."""


class ReadyFile:
    """The file at one path; it belongs to this process from `write` to `remove`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """Remove the file of an earlier server, before this one starts.

        Raises:
            NotAReadyFile: the folder does not exist, or the path holds something that no server wrote.
        """
        try:
            self._prepare()
        except OSError as error:
            raise NotAReadyFile(f"--ready-file {self._path} cannot be written: {error.strerror}") from error

    def _prepare(self) -> None:
        if not self._path.parent.is_dir():
            raise NotAReadyFile(f"--ready-file {self._path}: there is no folder {self._path.parent}; create it first")
        if not self._path.exists():
            return
        if self._path.is_file() and (not self._path.stat().st_size or self._pid() is not None):
            self._path.unlink()  # an empty file was made by mktemp or the like, for us to fill
            return
        raise NotAReadyFile(
            f"--ready-file {self._path} exists and was not written by understudy; "
            "choose another name, or remove it first"
        )

    def write(self, contents: Mapping[str, Any]) -> None:
        """Write the file atomically. `contents` has this process's id as `pid`.

        Raises:
            NotAReadyFile: the disk is full, or the folder no longer exists.
        """
        partial = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            partial.write_text(json.dumps(contents) + "\n", encoding="utf-8")
            partial.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise NotAReadyFile(f"--ready-file {self._path} cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file, unless another server has written its own there meanwhile."""
        if self._pid() == os.getpid():
            with suppress(OSError):
                self._path.unlink()

    def _pid(self) -> int | None:
        """Return the process id in the file; None: there is no file, or it is not a ready file."""
        try:
            with self._path.open("rb") as file:
                contents = json.loads(file.read(_HEAD_BYTES))
        except (OSError, ValueError):
            return None
        is_ready_file = isinstance(contents, dict) and {"bootstrap_servers", "cluster_id", "pid"} <= contents.keys()
        return contents["pid"] if is_ready_file and isinstance(contents["pid"], int) else None
