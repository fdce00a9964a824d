"""Deadlines for requests to the control plane: a connection without a complete request in time is closed.

uvicorn closes connections that are idle after a response. One that never sends a request, or only a part of one, would
occupy one of the limited connections for ever.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from broker.time.clock import soon


def with_deadlines(limit_ms: Callable[[], int]) -> type[H11Protocol]:
    """Build a protocol class that closes connections unless each request, body included, arrives within the limit."""

    class Deadlined(H11Protocol):
        """An HTTP connection with a deadline for each request."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Start the deadline of the first request."""
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            """Process a part of a request; the deadline ends when the request is complete."""
            super().data_received(data)
            cycle: RequestResponseCycle | None = self.cycle
            if cycle is None or cycle.response_complete or cycle.more_body:
                self._expect()
            else:
                self._forget()

        def connection_lost(self, exc: Exception | None) -> None:
            """Cancel the deadline."""
            self._forget()
            super().connection_lost(exc)

        def _expect(self) -> None:
            if self._deadline is None:
                self._deadline = soon(limit_ms(), self._close)

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _close(self) -> None:
            self.transport.close()

    return Deadlined
