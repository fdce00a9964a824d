"""Making files durable while the loop serves on: fsync of a closed segment may take as long as the disk likes."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from storage.files import DiskFiles
from storage.files.descriptors import none_left


class SyncThread:
    """One thread, which is started when it is first needed: what is asked first is durable first."""

    def __init__(self, files: DiskFiles) -> None:
        self._files = files
        self._thread = ThreadPoolExecutor(1, "sync")

    def __call__(self, paths: Sequence[str], done: Callable[[OSError | None], None]) -> None:
        """As ``LogContext.sync_later`` is to be: ``done(error)`` is called in the loop, in a later turn."""

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
        """Sync in the loop, which can close other files first: the thread found no descriptor left."""
        try:
            self._files.descriptors.with_retry(lambda: self._files.sync_files(paths))
        except OSError as error:
            return error
        return None
