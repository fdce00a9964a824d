"""Kafka's wire protocol as a test speaks it: one blocking connection, requests typed, frames raw where wanted.

Every wait ends: a test that waits longer than ``patience_s`` for an answer fails with ``TimeoutError``.
"""

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from comparison.connection import Closed, Connection
from protocol.apis import ApiKey
from protocol.codec import is_flexible

__all__ = ["PATIENCE_S", "Closed", "Wire", "framed", "header"]

PATIENCE_S = 120.0
"""Until what a test waits for must be there. Nothing waits so long but a test that fails, or a busy machine."""


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


class Wire(Connection):
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
        own = None if source is None else (source, 0)
        super().__init__(
            socket.create_connection((host.strip("[]"), int(port)), timeout=patience_s, source_address=own), client_id
        )

    @property
    def client_id(self) -> str | None:
        """The name that its requests carry."""
        return self.requests.client_id

    @client_id.setter
    def client_id(self, name: str | None) -> None:
        self.requests.client_id = name

    def send_together(self, requests: Sequence[tuple[ApiKey, int, Any]]) -> None:
        """Send requests so that nothing comes between them, and leave their answers for :meth:`answer`."""
        self.send_bytes(b"".join(self.requests.encode(*each) for each in requests))

    def send_frame(self, payload: bytes) -> None:
        """Send a payload with its size before it."""
        self.send_bytes(framed(payload))

    def check_closed(self) -> None:
        """Fail unless the peer closes without sending anything more."""
        try:
            frame = self.receive_frame()
        except Closed:
            return
        except TimeoutError:
            raise AssertionError("the connection was left open") from None
        raise AssertionError(f"answered instead of closed: {frame.hex()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
