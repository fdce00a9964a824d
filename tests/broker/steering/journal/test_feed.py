"""Requests on their way to the writer: in batches, and never more of them than the buffer holds."""

import asyncio
import marshal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.request.connection import Connection
from broker.request.context import Exchange
from broker.steering.journal import writer
from broker.steering.journal.feed import Feed, _writer_command
from understudy import cli

SIZE = 1000


class Pipe(asyncio.Transport):
    """A transport whose other end takes nothing until ``take`` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[bytes] = []
        self.written = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        """What was not taken yet."""
        return sum(map(len, self.waiting))

    def write(self, data: Any) -> None:
        """One message."""
        self.waiting.append(bytes(data))
        self.written.set()

    def take(self) -> list[tuple[int, int]]:
        """What was lost before each batch, and how many requests it has."""
        messages = [
            marshal.loads(data[8:])  # noqa: S302 - ours
            for data in self.waiting
        ]
        self.waiting.clear()
        return [(lost, len(requests)) for kind, *rest in messages if kind == "requests" for _, lost, requests in [rest]]


def feed_of(max_waiting_bytes: int) -> tuple[Feed, Pipe]:
    """A feed, and what it writes into."""
    cluster: Any = SimpleNamespace(cluster_id="C", topics_state=1, topic_names=list)
    feed, pipe = Feed(Path(), cluster, max_waiting_bytes, cast("subprocess.Popen[bytes]", None)), Pipe()
    feed.connection_made(pipe)
    return feed, pipe


def hand(feed: Feed, count: int) -> None:
    """So many requests of a size."""
    for number in range(count):
        served = Exchange(bytearray(SIZE), Connection("c", "PLAINTEXT", "::1", 1), 1, 0)
        feed.record((number, 0, 1, 1, 1, served.frame, None, SIZE, 0, None, "answered"), served)


async def test_requests_are_handed_over_in_batches() -> None:
    """By their number, by their size, and what is left when it is asked for."""
    feed, pipe = feed_of(1 << 30)
    hand(feed, 63)
    assert pipe.take() == []
    hand(feed, 1)
    assert pipe.take() == [(0, 64)]
    hand(feed, 3)
    feed.flush()
    assert pipe.take() == [(0, 3)]
    feed.flush()
    assert pipe.take() == []


async def test_a_few_requests_do_not_wait_for_more() -> None:
    """They are handed over after a moment, by the machine's time."""
    feed, pipe = feed_of(1 << 30)
    hand(feed, 1)
    await pipe.written.wait()
    assert pipe.take() == [(0, 1)]


async def test_requests_beyond_the_buffer_are_counted() -> None:
    """The number is sent with the next batch."""
    feed, pipe = feed_of(100 * SIZE)
    hand(feed, 64 * 4)
    assert pipe.get_write_buffer_size() <= 100 * SIZE
    assert pipe.take() == [(0, 64)]
    hand(feed, 64)
    hand(feed, 64)
    assert pipe.take() == [(3 * 64, 64)]
    feed.connection_lost(None)
    hand(feed, 64)
    with pytest.raises(ConnectionError, match="writer is gone"):
        await feed.rotate()


def test_the_self_contained_binary_is_its_own_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no interpreter that could run a program; the command is known to it alone."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/understudy/understudy")
    begun: list[bool] = []
    monkeypatch.setattr(writer, "main", lambda: begun.append(True))
    program, *arguments = _writer_command()
    assert (program, cli.main(arguments), begun) == ("/opt/understudy/understudy", 0, [True])
    monkeypatch.setattr(sys, "frozen", False)
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert _writer_command()[1] == "-P"
