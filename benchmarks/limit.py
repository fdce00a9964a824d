"""The upper limit for a broker in Python: reads the same bytes on uvloop and sends canned responses.

    python -m benchmarks.limit --port 9092

One partition a topic, every topic exists, nothing is checked, transactions and producer ids are canned. Records of
topics whose name begins with "keep-" are kept (as the frames that they came in) and served; those of all others are
only counted. A row near this limit cannot get much faster in this language on this loop.
"""

import argparse
import asyncio
import struct
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import uvloop

_SCRATCH = 1 << 16
_HEADER = struct.Struct(">ihhih")  # size, api key, version, correlation id, length of the client id
_PRODUCE_TAIL = struct.Struct(">ihqqqi")  # index, error, base offset, append time, log start offset; throttle
_VERSIONS = {0: (3, 7), 1: (4, 4), 2: (1, 1), 3: (1, 4), 10: (0, 1), 18: (0, 2), 22: (0, 1), 24: (0, 1), 26: (0, 1)}
_KEEP = b"keep-"


def _string(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


@dataclass(slots=True)
class Log:
    """One partition: its end offset, kept batches with their base offsets, and delayed fetches."""

    keep: bool
    end: int = 0
    starts: list[int] = field(default_factory=list)
    batches: list[memoryview] = field(default_factory=list)
    waiting: dict[tuple[int, int], Callable[[], None]] = field(default_factory=dict)

    def append(self, batch: memoryview) -> int:
        """Assign the batch its offset, keep it if configured, complete delayed fetches; return the base offset."""
        base = self.end
        (last_delta,) = struct.unpack_from(">i", batch, 23)
        self.end += last_delta + 1
        if self.keep:
            struct.pack_into(">q", batch, 0, base)
            self.starts.append(base)
            self.batches.append(batch)
            while self.waiting:
                self.waiting.popitem()[1]()
        return base

    def read(self, offset: int, max_bytes: int) -> list[memoryview]:
        """Return whole batches from the one that contains the offset on, at least one."""
        batches: list[memoryview] = []
        size = 0
        for batch in self.batches[max(bisect_right(self.starts, offset) - 1, 0) :]:
            size += len(batch)
            if batches and size > max_bytes:
                break
            batches.append(batch)
        return batches


LOGS: dict[bytes, Log] = {}


def log(topic: bytes) -> Log:
    """Return the log of a topic; every topic exists."""
    known = LOGS.get(topic)
    if known is None:
        known = LOGS[topic] = Log(topic.startswith(_KEEP))
    return known


class Connection(asyncio.BufferedProtocol):
    """Connection that reads frames and sends canned responses."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.scratch = memoryview(bytearray(_SCRATCH))
        self.held = 0  # bytes of an unfinished frame at the front of the scratch buffer
        self.frame: memoryview | None = None  # a large one, read into its own memory
        self.filled = 0
        self.answers = {0: self.produce, 1: self.fetch, 2: self.offsets, 3: self.metadata, 18: self.versions}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer of the incomplete frame, else the scratch buffer."""
        return self.scratch[self.held :] if self.frame is None else self.frame[self.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Respond to each complete frame."""
        if self.frame is not None:
            self.filled += nbytes
            if self.filled == len(self.frame):
                frame, self.frame = self.frame, None
                self.answer(frame)
            return
        end, at = self.held + nbytes, 0
        self.held = 0
        while end - at >= 4:
            size = int.from_bytes(self.scratch[at : at + 4]) + 4
            if end - at < size:
                break
            self.answer(memoryview(bytearray(self.scratch[at : at + size])))
            at += size
        if end == at:
            return
        if end - at >= 4 and (size := int.from_bytes(self.scratch[at : at + 4]) + 4) > _SCRATCH // 2:
            self.frame = memoryview(bytearray(size))
            self.filled = end - at
            self.frame[: self.filled] = self.scratch[at:end]
        else:
            self.held = end - at
            self.scratch[: self.held] = bytes(self.scratch[at:end])

    def answer(self, frame: memoryview) -> None:
        """Respond to a frame by its API key."""
        _, key, version, correlation, client = _HEADER.unpack_from(frame)
        at = 14 + max(client, 0)
        handle = self.answers.get(key)
        if handle is not None:
            handle(frame, at, version, correlation)
            return
        canned = {
            10: struct.pack(">ihhi", 0, 0, -1, 1)[0 if version else 4 : None if version else 6]
            + (b"" if version else struct.pack(">i", 1))
            + _string(b"127.0.0.1")
            + struct.pack(">i", self.port),
            22: struct.pack(">ihqh", 0, 0, 1, 0),
            26: struct.pack(">ih", 0, 0),
        }
        self.reply(correlation, self.added(frame, at) if key == 24 else canned[key])

    def reply(self, correlation: int, body: bytes) -> None:
        """Write one response frame."""
        self.transport.write(struct.pack(">ii", len(body) + 4, correlation) + body)

    def produce(self, frame: memoryview, at: int, version: int, correlation: int) -> None:
        """Handle Produce of one topic and partition, as librdkafka sends it."""
        (transactional,) = struct.unpack_from(">h", frame, at)
        at += 2 + max(transactional, 0) + 2 + 4 + 4
        (length,) = struct.unpack_from(">h", frame, at)
        topic = bytes(frame[at + 2 : at + 2 + length])
        at += 2 + length + 4
        index, size = struct.unpack_from(">ii", frame, at)
        base = log(topic).append(frame[at + 8 : at + 8 + size])
        tail = (index, 0, base, -1)
        tail_bytes = _PRODUCE_TAIL.pack(*tail, 0, 0) if version >= 5 else struct.pack(">ihqqi", *tail, 0)
        one = b"\0\0\0\1"
        self.reply(correlation, one + _string(topic) + one + tail_bytes)

    def fetch(self, frame: memoryview, at: int, _version: int, correlation: int) -> None:
        """Handle Fetch of one topic and partition; waits for the first record if there is none yet."""
        (max_wait_ms,) = struct.unpack_from(">i", frame, at + 4)
        at += 17
        (topics,) = struct.unpack_from(">i", frame, at)
        if topics == 0:
            self.reply(correlation, bytes(8))
            return
        (length,) = struct.unpack_from(">h", frame, at + 4)
        topic = bytes(frame[at + 6 : at + 6 + length])
        index, offset, max_bytes = struct.unpack_from(">iqi", frame, at + 6 + length + 4)
        partition = log(topic)

        def done() -> None:
            timer.cancel()
            partition.waiting.pop((id(self), correlation), None)
            if self.transport.is_closing():
                return
            batches = partition.read(offset, max_bytes) if offset < partition.end else []
            size = sum(map(len, batches))
            body = (
                b"\0\0\0\0\0\0\0\1"
                + _string(topic)
                + struct.pack(">iihqqii", 1, index, 0, partition.end, partition.end, -1, size)
            )
            head = struct.pack(">ii", len(body) + size + 4, correlation) + body
            if size < _SCRATCH:
                self.transport.write(b"".join((head, *batches)))
            else:
                self.transport.writelines([head, *batches])

        timer = asyncio.get_running_loop().call_later(max_wait_ms / 1000, done)
        if offset < partition.end:
            done()
        else:
            partition.waiting[id(self), correlation] = done

    def offsets(self, frame: memoryview, at: int, _version: int, correlation: int) -> None:
        """Handle ListOffsets: the end or the beginning of one partition."""
        (length,) = struct.unpack_from(">h", frame, at + 8)
        topic = bytes(frame[at + 10 : at + 10 + length])
        index, timestamp = struct.unpack_from(">iq", frame, at + 10 + length + 4)
        offset = log(topic).end if timestamp == -1 else 0
        one = b"\0\0\0\1"
        self.reply(correlation, one + _string(topic) + one + struct.pack(">ihqq", index, 0, -1, offset))

    def metadata(self, frame: memoryview, at: int, version: int, correlation: int) -> None:
        """Handle Metadata: this broker, and each requested topic with one partition."""
        (count,) = struct.unpack_from(">i", frame, at)
        at += 4
        topics = b""
        for _ in range(max(count, 0)):
            (length,) = struct.unpack_from(">h", frame, at)
            name = bytes(frame[at + 2 : at + 2 + length])
            at += 2 + length
            topics += b"\0\0" + _string(name) + b"\0" + struct.pack(">ihiiiiii", 1, 0, 0, 1, 1, 1, 1, 1)
        body = b"\0\0\0\0" if version >= 3 else b""
        body += struct.pack(">ii", 1, 1) + _string(b"127.0.0.1") + struct.pack(">ih", self.port, -1)
        body += (_string(b"limit") if version >= 2 else b"") + struct.pack(">ii", 1, max(count, 0)) + topics
        self.reply(correlation, body)

    def versions(self, _frame: memoryview, _at: int, version: int, correlation: int) -> None:
        """Handle ApiVersions: the supported versions, or UNSUPPORTED_VERSION for newer requests (KIP-511)."""
        error, version = (35, 0) if version > 2 else (0, version)
        body = struct.pack(">hi", error, len(_VERSIONS))
        body += b"".join(struct.pack(">hhh", key, *span) for key, span in _VERSIONS.items())
        self.reply(correlation, body + (b"\0\0\0\0" if version else b""))

    @staticmethod
    def added(frame: memoryview, at: int) -> bytes:
        """Build the response to AddPartitionsToTxn of one partition."""
        (length,) = struct.unpack_from(">h", frame, at)
        at += 2 + length + 10 + 4
        (length,) = struct.unpack_from(">h", frame, at)
        topic = bytes(frame[at : at + 2 + length])
        return b"\0\0\0\0\0\0\0\1" + topic + struct.pack(">iih", 1, 0, 0)


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(port), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
