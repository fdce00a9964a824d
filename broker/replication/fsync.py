"""fsync in a thread, since that of a closed segment may take long, and the event loop must serve requests meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from storage.files import DiskFiles
from storage.files.descriptors import none_left


class SyncThread:
    """A single thread, started when first needed; it syncs in the order of the calls."""

    def __init__(self, files: DiskFiles) -> None:
        self._files = files
        self._thread = ThreadPoolExecutor(1, "sync")

    def __call__(self, paths: Sequence[str], done: Callable[[OSError | None], None]) -> None:
        """Sync files, as ``LogContext.sync_later``; ``done(error)`` is called in a later turn of the event loop."""

        def report(future: "asyncio.Future[None]") -> None:
            if not future.cancelled():
                error = future.exception()
                if none_left(error):
                    error = self._sync_again(paths)
                assert error is None or isinstance(error, OSError)
                done(error)

        asyncio.get_running_loop().run_in_executor(self._thread, self._files.sync_files, paths).add_done_callback(
            report
        )

    def _sync_again(self, paths: Sequence[str]) -> OSError | None:
        """Sync in the event loop, which can close other files first: the thread ran out of file descriptors."""
        try:
            self._files.descriptors.with_retry(lambda: self._files.sync_files(paths))
        except OSError as error:
            return error
        return None
