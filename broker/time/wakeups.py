"""The future of a wait that may go on within the turn of the loop that ends it.

Not compiled: mypyc would give instances the layout of a class of its own, and asyncio's futures have another.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Wakeup(asyncio.Future[T]):
    """A future; who completes it calls ``on_done`` in the same step, where ``add_done_callback`` takes a turn."""

    on_done: Callable[[], None] | None = None
