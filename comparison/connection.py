"""A blocking connection to a broker: requests out, answers in, in the order of the requests."""

import select
import socket
import struct
from collections import deque
from typing import Any

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request

PATIENCE_S = 8.0


class Closed(Exception):
    """The peer closed the connection, orderly or with a reset."""


class Connection:
    """One connection to ``HOST:PORT``. A request may be sent before the answer to the one before it is read."""

    def __init__(self, address: str, client_id: str = "compare", patience_s: float = PATIENCE_S) -> None:
        host, _, port = address.rpartition(":")
        self._client_id = client_id
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked: deque[tuple[int, ApiKey, int]] = deque()
        self._count = 0

    def send(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> None:
        """Send a request; its answer, if there is to be one, is for :meth:`answer`. Raises Closed."""
        self._count += 1
        if answered:
            self._asked.append((self._count, key, version))
        try:
            self._socket.sendall(encode_request(key, version, self._count, self._client_id, request))
        except ConnectionError as error:
            raise Closed from error

    def answer(self) -> Any:
        """The answer to the oldest request that has none, in the API's newest shape. Raises Closed, TimeoutError."""
        (size,) = struct.unpack(">i", self._receive(4))
        frame = self._receive(size)
        expected, key, version = self._asked.popleft()
        correlation_id, response = decode_response(key, version, frame)
        if correlation_id != expected:
            raise Closed(f"the answer to request {correlation_id} came where {expected} was due")
        return response

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send and wait."""
        self.send(key, version, request)
        return self.answer()

    @property
    def waits(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._asked)

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether bytes have arrived (or the peer has closed) in that time."""
        return bool(select.select([self._socket], [], [], within_s)[0])

    def close(self) -> None:
        """Hang up; twice is harmless."""
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(size - len(parts))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)
