"""Writes output files at user-given paths: an earlier output is replaced, any other file is not.

Our outputs are identified by a mark at their beginning, which each format has: the generator of a page or of JSON, the
name of a JUnit suite, the software of a picture, the first line of a table.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_HEAD_BYTES: Final = 4096  # in which every report names its program
_OWN: Final = re.compile(
    rb"\A(?:<!doctype html>.{0,200}<meta name=generator content='understudy"
    rb"|\{\s*\"generator\": \"understudy "
    rb"|(?:<\?xml [^>]*\?>\s*)?<testsuite name=\"understudy "
    rb"|<!-- understudy exam -->"
    rb"|\x89PNG\r\n.{0,200}tEXtSoftware\0understudy"
    rb"|understudy (?:audit|conformance|exam|report): )",
    re.DOTALL,
)


class OutputFileError(Exception):
    """A file cannot be written; the message is one sentence that names it and suggests what to do."""


def check(path: str | Path, option: str) -> None:
    """Check, before any work is done, that an output may be written to `path`.

    The path may not exist, or be an empty file, an earlier output, `/dev/stdout` or a pipe.

    Raises:
        OutputFileError: the folder does not exist, the path is a folder, or the file contains something else.
    """
    file = Path(path)
    try:
        if file.is_dir():
            raise OutputFileError(f"{option} {path} is a folder; name a file")
        if not file.parent.is_dir():
            raise OutputFileError(f"{option} {path}: no such folder: {file.parent}; create it first")
        if not file.is_file():
            return
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise OutputFileError(f"{option} {path} cannot be read: {error.strerror}") from error
    if head and not _OWN.match(head):
        raise OutputFileError(
            f"{option} {path} exists and was not written by understudy; choose another name, or remove the file first"
        )


def make_folder(path: str | Path, option: str) -> None:
    """Create a folder for outputs, unless it exists. Raises OutputFileError if it cannot be created."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OutputFileError(f"{option} {path} is a file; name a folder") from None
    except OSError as error:
        raise OutputFileError(f"{option} {path} cannot be created: {error.strerror}; name another folder") from error


def write_new(path: str | Path, content: bytes, option: str) -> None:
    """Write a file of a format without a mark: only an empty file is replaced.

    Raises:
        OutputFileError: the file exists, or cannot be written.
    """
    file = Path(path)
    try:
        exists = file.is_file() and file.stat().st_size > 0
    except OSError as error:
        raise OutputFileError(f"{option} {path} cannot be written: {error.strerror}") from error
    if exists:
        raise OutputFileError(f"{option} {path} exists; choose another name, or remove the file first")
    write(path, content, option)


def write(path: str | Path, content: bytes, option: str) -> None:
    """Write a file, replacing an earlier output.

    Raises:
        OutputFileError: as `check` does, or the file cannot be written.
    """
    check(path, option)
    try:
        _write(Path(path), content)
    except OSError as error:
        raise OutputFileError(f"{option} {path} cannot be written: {error.strerror}") from error


def _write(file: Path, content: bytes) -> None:
    """Write a file. If the disk is full, an existing file stays unchanged."""
    replaceable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    if file.is_symlink() or not file.is_file() or not replaceable:  # or a pipe, or /dev/stdout
        file.write_bytes(content)
        return
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        with suppress(OSError):  # a file that is a mount point cannot be replaced
            partial.chmod(file.stat().st_mode)
            partial.replace(file)
            return
        file.write_bytes(content)
    finally:
        partial.unlink(missing_ok=True)
