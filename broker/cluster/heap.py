"""What becomes of freed memory: little of it is kept for the next batches, much of it is returned to the system.

By itself, glibc does neither. It maps each large block separately and unmaps it when it is freed, so that the next one
begins with new pages, whose first touch costs more than anything else that is done to a batch. Of its heap it returns
only the end: one small block that was allocated late, such as a journal entry, keeps everything below it, so a
server would stay as large as the largest topic that it ever held.
"""

import asyncio
import sys
from collections.abc import Callable

_TRIM_BYTES = 32 * 1024 * 1024
"""Less than this is kept for the next batches: memory that is returned has to be mapped again, page by page."""
_MMAP_BYTES = 32 * 1024 * 1024
"""The most that glibc takes as M_MMAP_THRESHOLD on 64-bit systems: smaller blocks come from the heap."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


class Heap:
    """Counts the bytes that removed files and connections have freed; trims the process's heap after every 32 MiB."""

    def __init__(self, trim: Callable[[], object] | None = None) -> None:
        self._trim = trim or _malloc_trim
        self._freed_bytes = 0

    def freed(self, size_bytes: int) -> None:
        """Note that a file in memory was removed, or a connection closed. A later turn of the loop trims the heap."""
        self._freed_bytes += size_bytes
        if self._freed_bytes >= _TRIM_BYTES:
            self._freed_bytes = 0
            asyncio.get_running_loop().call_soon(self._trim)


def keep_freed_memory() -> bool:
    """Let glibc keep up to 32 MiB that were freed at the end of its heap; False with other C libraries."""
    import ctypes  # noqa: PLC0415 - slow to import

    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES) and library.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES))


def _malloc_trim() -> None:
    """Call glibc's `malloc_trim`; do nothing with other C libraries."""
    import ctypes  # noqa: PLC0415 - slow to import

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
