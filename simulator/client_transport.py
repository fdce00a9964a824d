"""The client's end of a connection, as asyncio gives it to the protocol of a user's program."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Protocol

from simulator.program import CURRENT

_HIGH_WATER = 64 * 1024  # asyncio's own default


class ClientLink(Protocol):
    """A connection as :class:`simulator.network.Link` has it."""

    received: Callable[[bytes], None]
    lost: Callable[[], None]

    @property
    def addresses(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the addresses of the client's and of the broker's end."""
        ...

    def send(self, frame: bytes) -> None:
        """Send to the broker."""
        ...

    def close(self) -> None:
        """Close the client's end after all that was sent."""
        ...

    def break_(self) -> None:
        """Reset the connection."""
        ...

    def fall_silent(self) -> None:
        """Let nothing arrive any more in either direction."""
        ...


class ClientTransport(asyncio.Transport):
    """Transport over a link. Its protocol is called in the context in which the connection was opened."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        link: ClientLink,
        protocol: asyncio.BaseProtocol,
        observe: Callable[[str, bytes], None],
    ) -> None:
        super().__init__()
        self._loop, self._link, self._protocol, self._observe = loop, link, protocol, observe
        self._context = copy_context()
        self._unread: deque[bytes | None] = deque()
        self._paused = self._closing = self._ended = False
        link.received, link.lost = self._received, self._lost
        self._program = CURRENT.get()
        if self._program is not None:
            self._program.connections[self] = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the addresses of both ends; there is no socket."""
        own, peer = self._link.addresses
        return {"sockname": own, "peername": peer}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether this end is closed, or the connection is lost."""
        return self._closing

    def is_reading(self) -> bool:
        """Whether arriving bytes are passed on."""
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        """Leave arriving bytes unread."""
        self._paused = True

    def resume_reading(self) -> None:
        """Read again."""
        if self._paused:
            self._paused = False
            self._loop.call_soon(self._read, context=self._context)

    def write(self, data: Any) -> None:
        """Send to the broker."""
        if not self._closing and data:
            self._observe("sends", bytes(data))
            self._link.send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Send to the broker in one piece."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Return False: Kafka's clients close both directions at once."""
        return False

    def get_write_buffer_size(self) -> int:
        """Return 0: written bytes are in transit already."""
        return 0

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return asyncio's usual limits; the buffer is always empty."""
        return _HIGH_WATER // 4, _HIGH_WATER

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the buffer is always empty."""

    def close(self) -> None:
        """Close this end after everything that was written."""
        if not self._closing:
            self._link.close()
            self._end(None)

    def abort(self) -> None:
        """Close this end immediately; bytes in transit are lost."""
        if not self._closing:
            self._closing = True  # so that the link's end is not taken for a loss
            self._link.break_()
            self._end(None)

    def sever(self, how: str) -> None:
        """End the connection of a killed process without a further call of its protocol."""
        self._closing = self._ended = True
        if how == "silent":
            self._link.fall_silent()
        elif how == "reset":
            self._link.break_()
        else:
            self._link.close()

    def read_on(self) -> None:
        """Pass on what arrived while the program was paused."""
        self._loop.call_soon(self._read, context=self._context)

    def _received(self, data: bytes) -> None:
        if not self._closing:
            self._observe("receives", data)
            self._arrive(data)

    def _lost(self) -> None:
        if not self._closing:
            self._arrive(None)

    def _arrive(self, data: bytes | None) -> None:
        self._unread.append(data)
        if self._program is None or not self._program.paused:
            self._context.run(self._read)

    def _read(self) -> None:
        protocol = self._protocol
        while self._unread and not self._paused and not self._closing:
            data = self._unread.popleft()
            if data is None:
                self._end(ConnectionResetError("the connection was reset"))
            elif isinstance(protocol, asyncio.BufferedProtocol):
                fill(protocol, data)
            else:
                protocol.data_received(data)  # type: ignore[attr-defined]  # of asyncio.Protocol

    def _end(self, error: Exception | None) -> None:
        self._closing = True
        if self._program is not None:
            self._program.connections.pop(self, None)
        if not self._ended:
            self._ended = True
            self._loop.call_soon(self._protocol.connection_lost, error, context=self._context)


def fill(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    """Pass bytes to a protocol through its own buffer."""
    view = memoryview(data)
    while view:
        buffer = memoryview(protocol.get_buffer(-1))
        size = min(len(buffer), len(view))
        buffer[:size] = view[:size]
        view = view[size:]
        protocol.buffer_updated(size)
