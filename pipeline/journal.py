"""Reads wire journals, the JSON lines of `understudy serve --journal`, as rows of `schemas.JOURNAL`.

The bodies of requests and responses stay text: they are cut out of the line without parsing, and Spark's `parse_json`
makes a VARIANT of them. Format: docs/debugging.md.
"""

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import pyarrow as pa
from pyarrow import json as arrow_json

from pipeline.decoding.damage import Damage, DamagedError
from pipeline.directory import Paths
from pipeline.locations import Location, files_below, is_file, locate, open_file
from pipeline.schemas import JOURNAL

CHUNK_BYTES: Final = 8 * 1024 * 1024  # parsed at once: memory stays bounded, calls of the parser few

_NAME: Final = re.compile(r"wire-(.+)-(\d{6,})\.jsonl(\.open)?$")
_HEAD: Final = pa.schema([field for field in JOURNAL if field.name not in {"request", "response", "file", "damage"}])
_OPTIONS: Final = arrow_json.ParseOptions(explicit_schema=_HEAD, unexpected_field_behavior="ignore")
_REQUEST: Final = ',"request":'
_RESPONSE: Final = ',"response":'
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JournalFile:
    """A journal file as it was listed."""

    location: Location
    run: str
    number: int
    size: int
    is_open: bool
    """Whether a server may still be writing it."""


@dataclass(frozen=True, slots=True)
class JournalRange:
    """The lines of a file that start within a range of its bytes."""

    file: JournalFile
    start: int = 0
    stop: int | None = None
    """None: to the last complete line."""


def find_files(paths: Paths) -> list[JournalFile]:
    """Return the journal files below some paths, those of a run in order.

    Raises:
        FileNotFoundError: a path does not exist, or contains no journal.
    """
    folders = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files_by_number: dict[tuple[str, int], JournalFile] = {}
    for path in folders:
        location = locate(path)
        folder = Location(location.root, location.path.rpartition("/")[0]) if is_file(location) else location
        for entry in files_below(folder):
            name = _NAME.search(entry.location.path)
            if name is None or (folder is not location and entry.location.path != location.path):
                continue
            each = JournalFile(entry.location, name[1], int(name[2]), entry.size, name[3] is not None)
            # A file is listed under both names while the server finishes it; the finished one is complete.
            if (each.run, each.number) not in files_by_number or not each.is_open:
                files_by_number[each.run, each.number] = each
    if not files_by_number:
        raise FileNotFoundError(f"{', '.join(map(str, folders))}: no journal there (wire-*.jsonl)")
    return [files_by_number[key] for key in sorted(files_by_number)]


def cut(file: JournalFile, split_bytes: int) -> list[JournalRange]:
    """Split a file into ranges of about `split_bytes`."""
    parts = max(1, round(file.size / split_bytes))
    edges = [file.size * number // parts for number in range(parts)]
    return [JournalRange(file, start, stop) for start, stop in zip(edges, [*edges[1:], None], strict=True)]


def read_lines(span: JournalRange, schema: pa.Schema, mode: str = "fail") -> Iterator[pa.RecordBatch]:
    """Read the rows of a range.

    Args:
        span: the range.
        schema: columns of `schemas.JOURNAL`.
        mode: handling of unreadable lines: `fail`, `report`, `skip`.

    Raises:
        DamagedError: mode `fail`.
    """
    for position, lines in _chunks(span):
        yield from _rows(lines, position, str(span.file.location), schema, mode)


def _chunks(span: JournalRange) -> Iterator[tuple[int, list[bytes]]]:
    """Yield position and lines, chunk by chunk."""
    with _opened(span.file.location) as file:
        size = file.size()
        stop = size if span.stop is None else min(span.stop, size)
        at = span.start
        if at:  # the line that starts before this range belongs to the previous range
            at = _line_after(file, at - 1, size)
        while at < stop:
            file.seek(at)
            data = file.read(CHUNK_BYTES)
            end = data.rfind(b"\n") + 1
            if not end:
                after = _line_after(file, at + len(data), size)
                if after >= size and not _ends_with_newline(file, size):
                    return  # a line that is still being written
                file.seek(at)
                data = file.read(after - at)
                end = len(data)
            if at + end > stop:
                # Lines that start in this range; the last of them continues after it.
                end = data.find(b"\n", stop - at - 1, end) + 1
            yield at, data[:end].splitlines()
            at += end


def _line_after(file: Any, at: int, size: int) -> int:
    """Return the start of the line after the one that contains byte `at`."""
    while at < size:
        file.seek(at)
        data = file.read(65536)  # an entry is rarely longer
        if not data:
            break
        newline = data.find(b"\n")
        if newline >= 0:
            return int(at + newline + 1)
        at += len(data)
    return size


def _ends_with_newline(file: Any, size: int) -> bool:
    file.seek(max(size - 1, 0))
    return bool(file.read(1) == b"\n")


def _opened(location: Location) -> Any:
    """Open a file, even if its server has just renamed it on finishing."""
    try:
        return open_file(location)
    except FileNotFoundError:
        if not location.path.endswith(".open"):
            raise
        return open_file(Location(location.root, location.path.removesuffix(".open")))


def _rows(lines: Sequence[bytes], position: int, path: str, schema: pa.Schema, mode: str) -> Iterator[pa.RecordBatch]:
    """Return all lines as one batch; with an unreadable line, yield what precedes it, its report, and the rest."""
    if not lines:
        return
    try:
        heads, requests, responses = zip(*map(_take_apart, lines), strict=True)
        options = arrow_json.ReadOptions(use_threads=False, block_size=sum(map(len, heads)) + len(heads) + 1)
        text = io.BytesIO("\n".join(heads).encode())
        table = arrow_json.read_json(text, read_options=options, parse_options=_OPTIONS)
        if table.num_rows != len(lines):
            raise ValueError("a line that is more or less than one object")
    except ValueError as error:  # includes ArrowInvalid and UnicodeDecodeError
        if len(lines) == 1:
            damage = Damage(position, len(lines[0]), f"not a line of a journal: {error}")
            if mode == "fail":
                raise DamagedError(path, damage) from error
            if mode == "report":
                row = {"file": path, "damage": f"byte {position}: {damage.reason}"}
                yield pa.RecordBatch.from_pylist([row], schema=schema)
            return
        middle = len(lines) // 2
        yield from _rows(lines[:middle], position, path, schema, mode)
        behind = position + sum(len(line) + 1 for line in lines[:middle])
        yield from _rows(lines[middle:], behind, path, schema, mode)
        return
    columns = {
        "request": pa.array(requests, pa.string()),
        "response": pa.array(responses, pa.string()),
        "file": pa.repeat(pa.scalar(path), len(lines)),
        "damage": pa.nulls(len(lines), pa.string()),
    }
    arrays = [columns[name] if name in columns else table[name].combine_chunks() for name in schema.names]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _take_apart(line: bytes) -> tuple[str, str | None, str | None]:
    """Split a line into the part before the bodies, as an object, and the bodies (null if missing).

    Raises ValueError.
    """
    text = line.decode()
    at = text.find(_REQUEST)  # no string value contains this: its quotes would be escaped
    if at < 0:
        return _slowly(text)
    start = at + len(_REQUEST)
    _, end = _DECODER.raw_decode(text, start)
    if not text.startswith(_RESPONSE, end):
        return _slowly(text)
    answer = end + len(_RESPONSE)
    _, stop = _DECODER.raw_decode(text, answer)
    if text[stop:] != "}":
        return _slowly(text)
    return text[:at] + "}", _body(text[start:end]), _body(text[answer:stop])


def _body(text: str) -> str | None:
    return None if text == "null" else text


def _slowly(text: str) -> tuple[str, str | None, str | None]:
    """Do the same for a line whose fields are in another order."""
    fields = json.loads(text)
    if not isinstance(fields, dict) or "request" not in fields:
        raise ValueError("no request in it")
    bodies = [fields.pop(name, None) for name in ("request", "response")]
    request, answer = (None if body is None else json.dumps(body, separators=(",", ":")) for body in bodies)
    return json.dumps(fields), request, answer


def whole_lines(file: JournalFile) -> int:
    """Return the bytes of a file up to its last newline."""
    with _opened(file.location) as opened:
        size = int(opened.size())
        at = size
        while at > 0:
            start = max(0, at - 65536)  # one piece usually holds the last line
            opened.seek(start)
            newline = opened.read(at - start).rfind(b"\n")
            if newline >= 0:
                return int(start + newline + 1)
            at = start
    return 0


def some_lines(file: JournalFile, start: int, stop: int, most: int, *, count: bool) -> tuple[int, int]:
    """Return how far `most` lines, or the lines in `most` bytes, extend from `start`; at least one line.

    Args:
        file: the file.
        start: where a line begins.
        stop: where a later one ends.
        most: number of lines or bytes.
        count: whether `most` is a number of lines.

    Returns:
        The number of lines or bytes, and their end.
    """
    with _opened(file.location) as opened:
        if not count:
            end = min(stop, _line_after(opened, min(start + most, stop) - 1, stop))
            return end - start, end
        taken, at = 0, start
        while at < stop:
            opened.seek(at)
            data = opened.read(min(CHUNK_BYTES, stop - at))
            lines = data.count(b"\n")
            if taken + lines >= most:
                place = 0
                for _ in range(most - taken):
                    place = data.index(b"\n", place) + 1
                return most, at + place
            taken += lines
            at += len(data)
        return taken, stop
