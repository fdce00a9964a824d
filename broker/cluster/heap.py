"""Keeps freed memory for the next batches for some seconds, then returns it to the operating system.

By default, glibc does neither. It maps each large block separately and unmaps it when it is freed, so that the next
block gets new pages, whose first touch costs more than all other work on a batch. And it returns only the end of its
heap: one small block that was allocated late, such as a journal entry, keeps everything below it, so a server would
stay as large as the largest topic that it ever held. A test suite resets the server, or deletes its topics, and
produces again immediately: it gets memory that was used before.
"""

import sys
from collections.abc import Callable

from broker.time.clock import soon

_TRIM_BYTES = 32 * 1024 * 1024
"""Less than this is never returned, because returned memory has to be mapped again, page by page."""
_KEPT_MS = 5000
"""How long freed memory beyond that is kept for the next batches, by the machine's time.

Arbitrary, longer than a reset between two tests.
"""
_KEPT_BYTES = 128 * 1024 * 1024
"""The most that glibc keeps free at the end of its heap.

Ours, what a test of large records writes, and no more than a small machine can spare.
"""
_MMAP_BYTES = 32 * 1024 * 1024
"""The maximum of M_MMAP_THRESHOLD on 64-bit systems: smaller blocks come from the heap."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


class Heap:
    """Counts the bytes freed by removed files and closed connections; trims the process's heap some seconds later."""

    def __init__(
        self,
        trim: Callable[[], object] | None = None,
        later: Callable[[int, Callable[[], None]], object] = soon,
    ) -> None:
        """`later` calls a function after a delay in ms."""
        self._trim, self._later = trim or _malloc_trim, later
        self._freed_bytes = 0
        self._planned = False

    def freed(self, size_bytes: int) -> None:
        """Add the size of a removed file in memory, or of a closed connection."""
        self._freed_bytes += size_bytes
        if self._freed_bytes >= _TRIM_BYTES and not self._planned:
            self._planned = True
            self._later(_KEPT_MS, self._return)

    def _return(self) -> None:
        self._freed_bytes, self._planned = 0, False
        self._trim()


def keep_freed_memory() -> bool:
    """Let glibc keep up to 128 MiB of free memory at the end of its heap; return false with other C libraries."""
    import ctypes  # noqa: PLC0415 - slow to import

    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES) and library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))


def _malloc_trim() -> None:
    """Call glibc's `malloc_trim`; do nothing with other C libraries."""
    import ctypes  # noqa: PLC0415 - slow to import

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
