"""Closes connections from the broker's side: after pending data is written, or with a TCP reset."""

import asyncio
import socket
from contextlib import suppress

from broker.time.clock import soon

PATIENCE_MS = 10_000
"""How long a peer may read nothing of the pending data, in ms: longer than a loaded machine pauses a client."""
_NO_LINGER = b"\1\0\0\0\0\0\0\0"


def close_behind(transport: asyncio.Transport) -> None:
    """Close once the peer has read all pending data; abort if it reads nothing for :data:`PATIENCE_MS`.

    A transport that is closed keeps its socket until everything is written: forever, if the peer hangs.
    """
    if not transport.is_closing():  # after a second close asyncio's TLS transport has no buffer to ask
        transport.close()
    _watch(transport, transport.get_write_buffer_size())


def _watch(transport: asyncio.Transport, left: int) -> None:
    if left:
        soon(PATIENCE_MS, lambda: _look(transport, left))


def _look(transport: asyncio.Transport, before: int) -> None:
    left = transport.get_write_buffer_size()
    if left < before:
        _watch(transport, left)
    else:
        transport.abort()


def close_with_reset(transport: asyncio.Transport) -> None:
    """Drop pending data and close, so that the peer sees a TCP reset."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with suppress(OSError):  # the peer has closed it already
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()
