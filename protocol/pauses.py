"""Points at which long work may be interrupted, for code that does not use asyncio (``broker.time.long_work`` does)."""

from collections.abc import Callable

interrupt: Callable[[], None] | None = None
"""Called at each pause while the running work may be interrupted; ``None``: it may not."""


def pause() -> None:
    """Let other tasks run if the running code is long work whose time slice is over; else do nothing."""
    if interrupt is not None:
        interrupt()
