"""Kafka's wire protocol as a test speaks it: one blocking connection, requests typed, frames raw where wanted.

Every wait ends: a test that waits longer than ``patience_s`` for an answer fails with ``TimeoutError``.
"""

import select
import socket
import struct
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request, is_flexible

PATIENCE_S = 30.0
"""Until what a test waits for must be there. Nothing waits so long but a test that fails, or a busy machine."""


class Closed(Exception):
    """The peer closed the connection, orderly or with a reset."""


def framed(payload: bytes) -> bytes:
    """The payload with its size before it."""
    return struct.pack(">i", len(payload)) + payload


def header(
    key: int, version: int, *, correlation_id: int = 7, client_id: bytes | None = b"test", tags: bytes | None = None
) -> bytes:
    """A request header; with a tag section where the version has one, or as given."""
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    if tags is None:
        tags = b"\0" if is_flexible(key, version) else b""
    return struct.pack(">hhi", key, version, correlation_id) + name + tags


class Wire:
    """One connection to ``HOST:PORT``. Requests may be sent without waiting for the answers before them."""

    def __init__(
        self,
        address: str,
        client_id: str | None = "test",
        patience_s: float = PATIENCE_S,
        source: str | None = None,
    ) -> None:
        """``source``: the address that it comes from, such as another one of the loopback network."""
        host, _, port = address.rpartition(":")
        self.client_id = client_id
        own = None if source is None else (source, 0)
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout=patience_s, source_address=own)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: deque[tuple[int, ApiKey, int]] = deque()
        self._count = 0

    # --- typed -------------------------------------------------------------------------------------------------------

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request and return its response, both in the API's newest shape."""
        self.send(key, version, request)
        return self.answer()

    def send(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> None:
        """Send a request and leave its answer, if there is to be one, for :meth:`answer`."""
        self.send_bytes(self._numbered(key, version, request, answered=answered))

    def send_together(self, requests: Sequence[tuple[ApiKey, int, Any]]) -> None:
        """Send requests so that nothing comes between them, and leave their answers for :meth:`answer`."""
        self.send_bytes(b"".join(self._numbered(*each) for each in requests))

    def _numbered(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> bytes:
        self._count += 1
        if answered:
            self._asked.append((self._count, key, version))
        return bytes(encode_request(key, version, self._count, self.client_id, request))

    def answer(self) -> Any:
        """The response to the oldest request that has none yet."""
        frame = self.receive_frame()
        expected, key, version = self._asked.popleft()
        correlation_id, response = decode_response(key, version, frame)
        assert correlation_id == expected, f"the answer to request {correlation_id} came where {expected} was due"
        return response

    # --- raw ---------------------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are. Raises Closed."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionError) as error:
            raise Closed from error

    def send_frame(self, payload: bytes) -> None:
        """Send a payload with its size before it."""
        self.send_bytes(framed(payload))

    def receive_frame(self) -> bytes:
        """The payload of the next frame. Raises Closed, TimeoutError."""
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(size - len(parts))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)

    # --- what became of it -------------------------------------------------------------------------------------------

    def has_answer(self) -> bool:
        """Whether bytes have arrived, or the peer has closed."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def check_closed(self) -> None:
        """Fail unless the peer closes without sending anything more."""
        try:
            frame = self.receive_frame()
        except Closed:
            return
        except TimeoutError:
            raise AssertionError("the connection was left open") from None
        raise AssertionError(f"answered instead of closed: {frame.hex()}")

    def close(self) -> None:
        """Hang up; twice is harmless."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
