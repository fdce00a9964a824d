"""Work that is begun at once, where it is called, and becomes a task's only if it has to wait.

Before Python 3.12 has eager tasks everywhere, this saves what a task costs: two turns of the loop and a future.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> "Begun | None":
    """Run a coroutine up to its first wait; ``None``: it has returned.

    An error of it is raised where the result is awaited.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    except Exception as error:  # noqa: BLE001 - it is raised again
        return Begun(work, None, error)
    return Begun(work, waits_for)


class Begun:
    """A coroutine at its first wait. To be awaited once, by a task."""

    __slots__ = ("_error", "_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any, error: Exception | None = None) -> None:
        self._work, self._waits_for, self._error = work, waits_for, error

    def __await__(self) -> Generator[Any, Any, None]:
        """Go on, as ``yield from`` would: what the coroutine waits for, the task waits for."""
        if self._error is not None:
            raise self._error
        waits_for = self._waits_for
        while True:
            try:
                try:
                    value = yield waits_for
                except BaseException as error:  # noqa: BLE001 - the coroutine decides about its cancellation
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(value)
            except StopIteration:
                return

    def cancel(self) -> None:
        """End it without a task."""
        with suppress(asyncio.CancelledError):
            self._work.throw(asyncio.CancelledError())
