"""Making files durable while the loop serves on: fsync of a closed segment may take as long as the disk likes."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from storage.files import DiskFiles


class Syncing:
    """One thread, which is started when it is first needed: what is asked first is durable first."""

    def __init__(self, files: DiskFiles) -> None:
        self._files = files
        self._thread = ThreadPoolExecutor(1, "sync")

    def __call__(self, paths: Sequence[str], done: Callable[[OSError | None], None]) -> None:
        """As ``LogEnvironment.sync_later`` is to be: ``done(error)`` is called in the loop, in a later turn."""

        def tell(future: "asyncio.Future[None]") -> None:
            if not future.cancelled():
                error = future.exception()
                assert error is None or isinstance(error, OSError)
                done(error)

        asyncio.get_running_loop().run_in_executor(self._thread, self._files.sync_files, paths).add_done_callback(tell)
