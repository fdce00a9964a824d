"""Split a byte stream into frames, sans I/O: the transport asks for a buffer and reports how many bytes it wrote.

Small frames are cut out of a scratch buffer, so that many pipelined requests cost one read; all connections of a loop
share it, because a transport fills it and reports in one step. A large frame gets a buffer of its own into which the
transport reads directly: joining small reads would cost a megabyte batch three copies. The size that a peer announces
is not trusted: a frame's buffer grows with the bytes that have really arrived.
"""

import struct

_SIZE = struct.Struct(">i")
SCRATCH_BYTES = 256 * 1024
_LARGE_BYTES = 16 * 1024  # a frame under way gets its own buffer from this size on
_FIRST_BYTES = 2 * 1024 * 1024  # a frame announced larger starts with this and doubles
_HTTP = frozenset((b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI "))
_TLS_HANDSHAKE = b"\x16\x03"


class BadFrameSize(Exception):
    """Frame size that is negative or above the limit (core A.1.2).

    The reader cannot be used any more. ``frames`` are the complete frames that the same read brought before it.
    """

    def __init__(self, size: int, limit: int, frames: list[bytearray]) -> None:
        super().__init__(_reason(size, limit))
        self.frames = frames


class FrameReader:
    """Cuts a stream into frames.

    ``limit`` may be changed at any time (SASL listeners start with a smaller one), and so may ``first_bytes``, the most
    that a large frame gets before it has arrived. ``scratch`` may be shared by readers whose transports call
    :meth:`buffer` and :meth:`received` in one step.
    """

    def __init__(self, limit: int, scratch: bytearray | None = None) -> None:
        self.limit = limit
        self.first_bytes = _FIRST_BYTES
        self._scratch = bytearray(SCRATCH_BYTES) if scratch is None else scratch
        self._rest = bytearray()  # the beginning of a small frame, or of a length
        self._frame: bytearray | None = None  # a large frame under way
        self._frame_size = 0
        self._filled = 0
        self.pending_bytes = 0
        """Bytes received of an incomplete frame, including its length."""

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return memoryview(self._scratch)

    def received(self, count: int) -> list[bytearray]:
        """Accept ``count`` bytes written to :meth:`buffer`; return the frames that are now complete, in order.

        Raises:
            BadFrameSize: the next frame's size is not allowed.
        """
        if self._frame is not None:
            self._filled += count
            return self._grow()
        if self._rest:
            rest, self._rest = self._rest, bytearray()
            rest += memoryview(self._scratch)[:count]
            return self._cut(rest, len(rest))
        return self._cut(self._scratch, count)

    def _grow(self) -> list[bytearray]:
        frame = self._frame
        assert frame is not None
        self.pending_bytes = self._filled + 4
        if self._filled < len(frame):
            return []
        if self._filled < self._frame_size:  # the peer really sends what it announced: double the buffer
            larger = bytearray(min(self._frame_size, 2 * len(frame)))
            larger[: self._filled] = frame
            self._frame = larger
            return []
        self._frame, self._filled = None, 0
        self.pending_bytes = 0
        return [frame]

    def _cut(self, source: bytearray, end: int) -> list[bytearray]:
        frames: list[bytearray] = []
        at = 0
        while end - at >= 4:
            (size,) = _SIZE.unpack_from(source, at)
            if size < 0 or size > self.limit:
                self.pending_bytes = 0
                raise BadFrameSize(size, self.limit, frames)
            start = at + 4
            if end - start < size:
                if size >= _LARGE_BYTES:
                    self._frame = bytearray(min(size, max(self.first_bytes, 2 * (end - start))))
                    with memoryview(self._frame) as target, memoryview(source) as read:
                        target[: end - start] = read[start:end]
                    self._frame_size, self._filled = size, end - start
                    self.pending_bytes = self._filled + 4
                    return frames
                break
            frames.append(source[start : start + size])
            at = start + size
        if at < end:
            self._rest = source[at:end]
        self.pending_bytes = end - at
        return frames

    @property
    def held_bytes(self) -> int:
        """Memory used by an incomplete frame, in bytes."""
        return len(self._rest) if self._frame is None else len(self._frame)


def _reason(size: int, limit: int) -> str:
    """Explain a bad frame size; name the protocol that the bytes look like, if any."""
    first = _SIZE.pack(size)
    if first in _HTTP:
        return "HTTP on a Kafka port"
    if first[:2] == _TLS_HANDSHAKE:
        return "TLS on a plaintext listener"
    return f"a frame of {size} bytes; at most {limit} are allowed"
