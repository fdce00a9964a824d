"""Returns freed memory to the operating system, where the C library would keep it.

glibc returns only the end of its heap by itself: one small block that was allocated late, such as a journal entry,
keeps everything below it. So a server would stay as large as the largest topic that it ever held.
"""

import asyncio
from collections.abc import Callable

_TRIM_BYTES = 64 * 1024 * 1024
"""Less than this is kept for the next batches: memory that is returned has to be mapped again, page by page."""


class Heap:
    """Counts the bytes that removed files have freed, and trims the process's heap after every 64 MiB."""

    def __init__(self, trim: Callable[[], object] | None = None) -> None:
        self._trim = trim or _malloc_trim
        self._freed_bytes = 0

    def freed(self, size_bytes: int) -> None:
        """Note that a file in memory was removed. The heap is trimmed in a later turn of the loop."""
        self._freed_bytes += size_bytes
        if self._freed_bytes >= _TRIM_BYTES:
            self._freed_bytes = 0
            asyncio.get_running_loop().call_soon(self._trim)


def _malloc_trim() -> None:
    """Call glibc's `malloc_trim`; do nothing with other C libraries."""
    import ctypes  # noqa: PLC0415 - rarely needed, and slow to import

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
