"""The process that writes the journal: what it counts as lost, and what it does not."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.steering.journal import writer
from broker.steering.journal.writer import Begin, Writer

FOR_EVER_MS = 10**12


def a_line(_request: Any, _about: Any, lost: int) -> bytes:
    """A line with nothing but what was lost before it."""
    return json.dumps({"v": 1, "lost": lost}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The server's end and the writer's; requests are written as `a_line`."""
    monkeypatch.setattr(writer, "_line", a_line)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def write(writer: Writer, count: int) -> None:
    """So many requests."""
    writer.write("cluster", 0, [((), 0, (), 0)] * count)


def lost(folder: Path) -> list[int]:
    """What each line counts, over all files."""
    return [
        json.loads(line)["lost"]
        for path in sorted(folder.iterdir())
        for line in path.read_text().splitlines()
        if line.startswith('{"v"')
    ]


def test_lines_whose_file_cannot_be_finished_are_not_lost(
    peers: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    """They are in it, under its name of an open file."""
    writer = Writer(peers[1], Begin(str(tmp_path), "R", 1, FOR_EVER_MS, 0))
    (tmp_path / "wire-R-000001.jsonl").write_text("mine\n")
    write(writer, 2)
    write(writer, 1)
    assert lost(tmp_path) == [0, 0, 0]
    assert (tmp_path / "wire-R-000001.jsonl").read_text() == "mine\n"


def test_lines_whose_file_was_removed_are_counted(peers: tuple[socket.socket, socket.socket], tmp_path: Path) -> None:
    """In the next line, and in the server's log."""
    writer = Writer(peers[1], Begin(str(tmp_path), "R", 10**6, FOR_EVER_MS, 0))
    write(writer, 3)
    (tmp_path / "wire-R-000001.jsonl.open").unlink()
    writer._finish()
    write(writer, 2)
    assert lost(tmp_path) == [3, 0]
    reports = [json.loads(line) for line in peers[0].recv(10_000).splitlines()]
    assert reports == [{"problem": "No such file or directory"}, {"lost": 3}]
