"""A blocking connection to a broker, with pipelined requests."""

import select
import socket
import struct
from collections import deque
from typing import Any

from comparison.login import Login, Refused, log_in
from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request

TIMEOUT_S = 8.0


class Closed(Exception):
    """The peer has closed or reset the connection."""


class Connection:
    """One connection to ``HOST:PORT``. A request may be sent before the response to the previous one is read."""

    def __init__(
        self, address: str, client_id: str = "compare", timeout_s: float = TIMEOUT_S, login: Login | None = None
    ) -> None:
        """Connect, and log in.

        Raises:
            ConnectionError: no broker responds at the address.
            Refused: the broker rejects the login.
        """
        host, _, port = address.rpartition(":")
        self._client_id = client_id
        try:
            self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
        except (OSError, ValueError) as error:  # ValueError: a name that no host can have
            reason = getattr(error, "strerror", None) or error
            raise ConnectionError(f"no broker answers at {address}: {reason}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pending: deque[tuple[int, ApiKey, int]] = deque()
        self._read_ahead: deque[Any] = deque()
        self._count = 0
        if login is not None:
            try:
                log_in(self.call, login)
            except (Refused, Closed):
                self.close()
                raise

    def send(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> None:
        """Send a request; :meth:`answer` reads its response, if it has one. Raises Closed."""
        self._count += 1
        if answered:
            self._pending.append((self._count, key, version))
        try:
            self._socket.sendall(encode_request(key, version, self._count, self._client_id, request))
        except ConnectionError as error:
            raise Closed from error

    def answer(self) -> Any:
        """Read the response to the oldest pending request, in the API's newest shape. Raises Closed, TimeoutError."""
        if self._read_ahead:
            return self._read_ahead.popleft()
        (size,) = struct.unpack(">i", self._receive(4))
        frame = self._receive(size)
        expected, key, version = self._pending.popleft()
        correlation_id, response = decode_response(key, version, frame)
        if correlation_id != expected:
            raise Closed(f"the answer to request {correlation_id} came where {expected} was due")
        return response

    def peek(self, within_s: float) -> Any:
        """Return the response that :meth:`answer` reads next; None if it is not there in time, or the peer closes."""
        if not self._read_ahead and self.has_answer(within_s):
            try:
                self._read_ahead.append(self.answer())
            except (Closed, TimeoutError):
                return None
        return self._read_ahead[0] if self._read_ahead else None

    def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request and read its response."""
        self.send(key, version, request)
        return self.answer()

    @property
    def waits(self) -> bool:
        """Whether a request is pending."""
        return bool(self._pending)

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether bytes arrive (or the peer closes) within that time."""
        return bool(self._read_ahead) or bool(select.select([self._socket], [], [], within_s)[0])

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
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
