"""The future of a wait, which calls back within the step that completes it.

Not compiled: mypyc would give instances the layout of a class of its own, and asyncio's futures have another.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Wakeup(asyncio.Future[T]):
    """A future that also calls back within the step that completes it, where ``add_done_callback`` takes a turn."""

    on_done: Callable[[], None] | None = None

    def set_result(self, result: T) -> None:
        """Complete it."""
        super().set_result(result)
        if self.on_done is not None:
            self.on_done()

    def set_exception(self, exception: type[BaseException] | BaseException) -> None:
        """Complete it with an exception."""
        super().set_exception(exception)
        if self.on_done is not None:
            self.on_done()
