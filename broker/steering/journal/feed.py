"""The server's side of ``--journal DIR``: hands finished requests, in batches, to the process that writes the files.

Nothing here waits for a disk or decodes messages. The backlog to the writer is bounded; beyond the bound, requests are
dropped and counted.
"""

import asyncio
import json
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, cast
from uuid import UUID

from broker.logs import Logger
from broker.request.context import Exchange
from broker.settings import BrokerSettings
from broker.steering.journal.files import probe
from broker.steering.journal.kept import weight_of
from broker.steering.journal.lines import Handed, Peer
from broker.steering.journal.ring import Raw
from broker.steering.journal.writer import SIZE_BYTES, Begin
from broker.time.clock import since_1970_ns, soon, utc_stamp
from protocol.types import uuid_text

_log = Logger(__name__)
_BATCH = 64  # entries that are sent together: ours, so that each message costs little beside them
_BATCH_BYTES = 256 * 1024  # or so many bytes: ours, as they are held in memory until then
_FLUSH_MS = 50  # how late the newest entry is in its file, at most: ours, before a developer looks
_ENTRY_BYTES = 300  # of an entry without its messages; an estimate
_PATIENCE_S = 1.5
"""For the writer to end; it reads its pipe to the end without us, too: ours, as a stop has to end soon."""
_PROGRAM = (  # for an interpreter; the self-contained binary has a command instead
    "import sys; sys.path.insert(0, {root!r}); sys.modules['hypothesis'] = sys.modules['rich'] = None; "
    "from broker.steering.journal.writer import main; main()"
)


class Source(Protocol):
    """The cluster whose requests are written: the server's own, or the one behind a proxy."""

    @property
    def cluster_id(self) -> str:
        """Return the cluster id; empty while it is unknown."""
        ...

    @property
    def topics_state(self) -> object:
        """Return a value that changes whenever topics may have been created or deleted."""
        ...

    def topic_names(self) -> Iterable[tuple[UUID, str]]:
        """Return the ids and names of all topics."""
        ...


class CannotWrite(Exception):
    """The journal's directory cannot be written; the message is one sentence."""


def _writer_command() -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, "journal-writer"]
    root = str(Path(__file__).resolve().parents[2])
    return [sys.executable, "-P", "-c", _PROGRAM.format(root=root)]


def _start_writer() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the writer; return its process and our end of the socket that it reads."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
            _writer_command(),
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach the server only
        )
    return process, ours


class Feed(asyncio.Protocol):
    """Collects the finished requests of a cluster and sends them to the writer."""

    def __init__(
        self,
        directory: Path,
        cluster: Source,
        max_waiting_bytes: int,
        process: subprocess.Popen[bytes],
    ) -> None:
        self.directory, self._cluster, self._max_waiting_bytes = directory, cluster, max_waiting_bytes
        self._known: object = None
        self._transport: asyncio.Transport | None = None
        self._process = process
        self._batch: list[Handed] = []
        self._bytes = 0
        self._lost = 0
        self._closing = False
        self._full = False
        self._flushing: asyncio.TimerHandle | None = None
        self._heard = b""
        self._rotations: dict[int, asyncio.Future[str | None]] = {}
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # --- life --------------------------------------------------------------------------------------------------------

    @classmethod
    async def open(cls, directory: Path, settings: BrokerSettings, cluster: Source) -> "Feed":
        """Start the writer.

        Raises:
            CannotWrite: the directory, or a file in it, cannot be created.
        """
        run = f"{utc_stamp()}-{os.getpid()}"
        try:
            probe(directory, run)
        except FileExistsError as error:
            raise CannotWrite(f"--journal needs a directory, and {directory} is a file") from error
        except OSError as error:
            raise CannotWrite(f"--journal {directory} cannot be written: {error.strerror}") from error
        process, ours = _start_writer()
        feed = cls(directory, cluster, settings.long("understudy.journal.buffer.bytes"), process)
        await asyncio.get_running_loop().create_unix_connection(lambda: feed, sock=ours)
        begin = Begin(
            str(directory),
            run,
            settings.long("understudy.journal.file.max.bytes"),
            settings.long("understudy.journal.file.max.ms"),
            since_1970_ns(),
        )
        feed._send(("begin", tuple(begin)))
        return feed

    async def close(self) -> None:
        """Send what is left and wait 1.5 s for the writer to finish; after that it continues alone."""
        self._closing = True
        self.flush()
        transport, process = self._transport, self._process
        if transport is None:
            return
        transport.write_eof()
        try:
            await asyncio.wait_for(asyncio.shield(self._gone), _PATIENCE_S)
            await asyncio.to_thread(process.wait, _PATIENCE_S)
        except (TimeoutError, subprocess.TimeoutExpired):
            _log.warning("journal is still being written by a separate process", pid=process.pid)

    # --- the transport's side ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport to the writer."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Process the writer's reports, one JSON object per line."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for each in lines:
            self._hear(json.loads(each))

    def _hear(self, report: dict[str, Any]) -> None:
        if "rotated" in report:
            waiting = self._rotations.pop(report["rotated"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(report["file"])
        elif "problem" in report:
            _log.warning(
                f"journal cannot be written: {report['problem']}; requests are not recorded until it can",
                directory=str(self.directory),
            )
        elif "lost" in report:
            _log.warning("journal is written again", lost=report["lost"])

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Fail pending rotations: the writer has ended, on request or not."""
        self._transport = None
        if not self._gone.done():
            self._gone.set_result(None)
        for waiting in self._rotations.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the journal's writer is gone"))
        self._rotations.clear()
        if not self._closing:
            _log.error(
                "journal's writer is gone; requests are not recorded from here on", directory=str(self.directory)
            )

    # --- what the journal asks ---------------------------------------------------------------------------------------

    def record(self, entry: Raw, exchange: Exchange) -> None:
        """Queue a request; it is sent with the next batch, within 50 ms."""
        connection = exchange.connection
        known = connection.software_name != "unknown"
        peer = Peer(
            connection.listener,
            connection.client_host,
            connection.client_port,
            connection.principal,
            connection.software_name if known else None,
            connection.software_version if known else None,
        )
        self._batch.append(Handed(entry, exchange.began_ns, peer, exchange.era))
        # Of the frame and the answer (Entry).
        self._bytes += _ENTRY_BYTES + weight_of(entry[5]) + (0 if entry[6] is None else weight_of(entry[6]))
        if len(self._batch) >= _BATCH or self._bytes >= _BATCH_BYTES:
            self.flush()
        elif self._flushing is None:
            self._flushing = soon(_FLUSH_MS, self.flush)

    def flush(self) -> None:
        """Send the batch, or count its requests as lost if the backlog is too large."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        batch, size = self._batch, self._bytes
        if not batch:
            return
        self._batch, self._bytes = [], 0
        transport = self._transport
        full = transport is None or transport.get_write_buffer_size() + size > self._max_waiting_bytes
        if full and not self._full and transport is not None:
            _log.warning("journal's writer is behind; requests are not recorded until it has caught up")
        self._full = full
        if full:
            self._lost += len(batch)
            return
        lost, self._lost = self._lost, 0
        handed = [(tuple(each.entry), each.began_ns, tuple(each.peer), each.era) for each in batch]
        self._name_topics()
        self._send(("requests", self._cluster.cluster_id, lost, handed))

    def _name_topics(self) -> None:
        """Send the topics' names to the writer if the metadata has changed."""
        known = self._cluster.topics_state
        if known != self._known:
            self._known = known
            self._send(("topics", {uuid_text(topic_id): name for topic_id, name in self._cluster.topic_names()}))

    async def rotate(self) -> str | None:
        """Finish the file with all requests finished by now; return its name, or ``None`` if there was no file.

        Raises:
            ConnectionError: the writer is gone.
        """
        self.flush()
        if self._transport is None:
            raise ConnectionError("the journal's writer is gone")
        number = len(self._rotations) + 1 + max(self._rotations, default=0)
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._rotations[number] = future
        self._send(("rotate", number))
        return await future

    def _send(self, message: tuple[Any, ...]) -> None:
        assert self._transport is not None
        body = marshal.dumps(message)
        self._transport.write(len(body).to_bytes(SIZE_BYTES, "big") + body)
