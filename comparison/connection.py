"""A blocking connection to a broker, with pipelined requests."""

import secrets
import select
import socket
from collections import deque
from typing import Any

from protocol.apis import ApiKey
from protocol.client.in_flight import InFlightRequests
from protocol.client.sasl import AuthenticationError, Credentials, authenticate
from protocol.client.steps import run

TIMEOUT_S = 8.0
"""How long a response is waited for: ours, more than Kafka takes for any step on a busy machine."""


class Closed(Exception):
    """The peer has closed or reset the connection."""


class Connection:
    """A connected socket. A request may be sent before the response to the previous one is read."""

    def __init__(self, connected: socket.socket, client_id: str | None) -> None:
        self.socket = connected
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests = InFlightRequests(client_id)
        self._read_ahead: deque[Any] = deque()

    def send(self, key: ApiKey, version: int, request: Any, *, answered: bool = True) -> None:
        """Send a request; :meth:`answer` reads its response, if it has one. Raises Closed."""
        self.send_bytes(self.requests.encode(key, version, request, answered=answered))

    def answer(self) -> Any:
        """Read the response to the oldest pending request, in the API's newest shape.

        Raises:
            Closed, TimeoutError: there is none. BadResponse: the bytes are no response to it.
        """
        return self._read_ahead.popleft() if self._read_ahead else self.requests.decode(self.receive_frame())

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
        return bool(self.requests.pending)

    def has_answer(self, within_s: float = 0.0) -> bool:
        """Whether bytes arrive (or the peer closes) within that time."""
        return bool(self._read_ahead) or bool(select.select([self.socket], [], [], within_s)[0])

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self.socket.close()

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are. Raises Closed."""
        try:
            self.socket.sendall(data)
        except ConnectionError as error:
            raise Closed from error

    def receive_frame(self) -> bytes:
        """Read the next frame, without its size. Raises Closed, TimeoutError."""
        while (frame := self.requests.frame()) is None:
            try:
                data = self.socket.recv(self.requests.missing_bytes)
            except ConnectionError as error:
                raise Closed from error
            if not data:
                raise Closed
            self.requests.receive(data)
        return frame


def connect(
    address: str, client_id: str = "compare", timeout_s: float = TIMEOUT_S, login: Credentials | None = None
) -> Connection:
    """Connect to ``HOST:PORT``, and authenticate.

    Raises:
        ConnectionError: no broker responds at the address.
        AuthenticationError: the broker rejects the credentials.
    """
    host, _, port = address.rpartition(":")
    try:
        connected = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
    except (OSError, ValueError) as error:  # ValueError: a name that no host can have
        reason = getattr(error, "strerror", None) or error
        raise ConnectionError(f"no broker answers at {address}: {reason}") from error
    connection = Connection(connected, client_id)
    if login is not None:
        try:
            # A nonce of 144 bits.
            run(authenticate(login, secrets.token_urlsafe(18)), connection.call)
        except (AuthenticationError, Closed):
            connection.close()
            raise
    return connection
