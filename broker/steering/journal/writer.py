"""The journal's writer, a separate process, so that decoding does not block the event loop of the server.

Its standard input is a socket to the server. A message is eight bytes of size and a marshalled tuple:
``("begin", Begin)`` once, then ``("topics", {id: name})``, ``("requests", cluster_id, lost, [Handed, ...])`` and
``("rotate", number)``. It replies with lines of JSON: ``{"problem": ...}``, ``{"lost": n}`` once it can write again,
and ``{"rotated": number, "file": ...}``.
When the server closes its end, or dies, the writer writes what it has and finishes its file.
"""

import json
import marshal
import os
import select
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from broker.steering.journal.files import LineFiles, finish_left
from broker.steering.journal.lines import About, Handed, line

SIZE_BYTES = 8  # of the length before each message in the pipe
_NICE = 5  # a busy broker has priority; the server bounds the backlog; half of the usual 10


class Begin(NamedTuple):
    """The parameters of a writer."""

    directory: str
    run: str
    max_bytes: int
    max_ms: int
    epoch_ns: int


class Writer:
    """Writes requests as lines, and reports failures to the server."""

    def __init__(self, peer: socket.socket, begin: Begin) -> None:
        self._peer, self._begin = peer, begin
        self._files = LineFiles(Path(begin.directory), begin.run, begin.max_bytes, begin.max_ms)
        self._topics: dict[str, str] = {}
        self._lost = 0
        self._failing = False

    def run(self) -> None:
        """Process messages until the server closes its end."""
        while True:
            ready, _, _ = select.select([self._peer], [], [], self._files.left_s())
            if not ready:
                self._finish()
                continue
            message = receive(self._peer)
            if message is None:
                break
            kind, *rest = message
            if kind == "rotate":
                self._report(rotated=rest[0], file=self._finish())
            elif kind == "topics":
                self._topics.update(rest[0])
            else:
                self.write(*rest)
        self._finish()

    def write(self, cluster_id: str, lost: int, requests: Sequence[Sequence[Any]]) -> None:
        """Write a batch of requests. ``lost``: number of requests that the server dropped before it."""
        self._lost += lost
        out, skipped = [], self._lost
        about = About(self._begin.run, cluster_id, self._begin.epoch_ns, self._topics)
        for request in requests:
            out.append(_line(Handed(*request), about, skipped))
            skipped = 0
        try:
            self._files.append(b"".join(out))
        except OSError as error:
            self._lost += len(requests)
            self._fail(error)
            return
        if self._failing:
            self._failing = False
            self._report(lost=self._lost)
        self._lost = 0
        if self._files.is_full:
            self._finish()

    def _finish(self) -> str | None:
        lines = self._files.lines
        try:
            return self._files.finish()
        except OSError as error:
            if isinstance(error, FileNotFoundError):  # the file was removed with its lines
                self._lost += lines
            self._fail(error)
            return None

    def _fail(self, error: OSError) -> None:
        if not self._failing:
            self._failing = True
            self._report(problem=error.strerror or str(error))

    def _report(self, **fields: Any) -> None:
        with suppress(OSError):  # the server is gone
            self._peer.sendall(json.dumps(fields).encode() + b"\n")


def _line(request: Handed, about: About, lost: int) -> bytes:
    try:
        return line(request, about, lost)
    except Exception:  # noqa: BLE001 - a request that cannot be decoded gets a line too
        bare = (*request.entry[:5], b"", None, *request.entry[7:])  # without frame and answer
        return line(request._replace(entry=bare), about, lost)


def receive(peer: socket.socket) -> Any:
    """Return the next message; ``None`` if the connection ends before a whole one."""
    head = _exactly(peer, SIZE_BYTES)
    body = None if head is None else _exactly(peer, int.from_bytes(head, "big"))
    return None if body is None else marshal.loads(body)  # noqa: S302 - from our own server


def _exactly(peer: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        try:
            count = peer.recv_into(left)
        except ConnectionError:
            return None
        if not count:
            return None
        left = left[count:]
    return data


def main() -> None:
    """Write until the server is gone. Ignores signals, since the writer ends when the server ends."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    os.nice(_NICE)
    peer = socket.socket(fileno=os.dup(0))
    message = receive(peer)
    if message is not None:
        begin = Begin(*message[1])
        finish_left(Path(begin.directory))
        Writer(peer, begin).run()
