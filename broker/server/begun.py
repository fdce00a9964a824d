"""Runs a coroutine immediately, up to its first wait; only one that has to wait needs a task.

Python has eager tasks from 3.12 on; before that, this saves the cost of a task: two turns of the event loop and a
future.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any


def begin(work: Coroutine[Any, Any, None]) -> "Begun | None":
    """Run a coroutine up to its first wait; return ``None`` if it has already completed.

    An exception of the coroutine is raised where the result is awaited.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    except Exception as error:  # noqa: BLE001 - it is raised again
        return Begun(work, None, error)
    return Begun(work, waits_for)


class Begun:
    """A coroutine at its first wait, which a task awaits once."""

    __slots__ = ("_error", "_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any, error: Exception | None = None) -> None:
        self._work, self._waits_for, self._error = work, waits_for, error

    def __await__(self) -> Generator[Any, Any, None]:
        """Continue the coroutine, as ``yield from`` would: the task waits for what the coroutine waits for."""
        if self._error is not None:
            raise self._error
        waits_for = self._waits_for
        while True:
            try:
                try:
                    value = yield waits_for
                except BaseException as error:  # noqa: BLE001 - the coroutine handles its own cancellation
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(value)
            except StopIteration:
                return

    def cancel(self) -> None:
        """End the coroutine without a task."""
        with suppress(asyncio.CancelledError):
            self._work.throw(asyncio.CancelledError())
