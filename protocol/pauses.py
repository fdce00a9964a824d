"""Where long work may be interrupted, for code below the event loop (``broker.long_work`` has the loop)."""

from collections.abc import Callable

interrupt: Callable[[], None] | None = None
"""Called at each pause, while the work that runs may be interrupted; ``None``: it may not."""


def pause() -> None:
    """Let others run, if what runs now is long work and its slice is over; else do nothing."""
    if interrupt is not None:
        interrupt()
