"""The end of a connection from our side: behind what is written to it, or with a reset."""

import asyncio
import socket
from contextlib import suppress

from broker.clock import soon

PATIENCE_MS = 10_000
"""For how long a peer may take nothing of what is left for it."""
_LINGER_NOT = b"\1\0\0\0\0\0\0\0"


def close_behind(transport: asyncio.Transport) -> None:
    """Close once the peer has taken what is written; what is left is dropped where it takes nothing for so long.

    A transport that is closed keeps its socket until all is written: for ever, where the peer hangs.
    """
    if not transport.is_closing():  # a second close would take from asyncio's TLS transport what it is asked for below
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
    """Drop what is written and not sent, so that the peer sees a reset."""
    raw = transport.get_extra_info("socket")
    if raw is not None:
        with suppress(OSError):  # the peer was faster
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    transport.abort()
