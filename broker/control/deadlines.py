"""Deadlines of the control plane: a request that has begun is complete in time, or its connection is closed.

uvicorn closes connections that are idle after a response. One that never sends a request, or stops in the middle of
one, would take the place of another caller for ever.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from broker.clock import soon


def with_deadlines(limit_ms: Callable[[], int]) -> type[H11Protocol]:
    """The protocol of connections whose requests, bodies included, have to arrive within so many milliseconds."""

    class Deadlined(H11Protocol):
        """One connection."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Expect a request."""
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            """Take a part of a request. Once it is whole, it has all the time that it needs."""
            super().data_received(data)
            cycle: RequestResponseCycle | None = self.cycle
            if cycle is None or cycle.response_complete or cycle.more_body:
                self._expect()
            else:
                self._forget()

        def connection_lost(self, exc: Exception | None) -> None:
            """Expect nothing more."""
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
