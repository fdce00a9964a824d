"""`--lifeline`: the server ends when its parent process does, even if that was killed with SIGKILL."""

import os
import signal
import sys
import threading
import time

PATIENCE_S = 30.0
"""Time for an orderly stop; then the server is killed, because nothing else would end it."""


def hold() -> None:
    """Watch standard input in a separate thread; when it closes, send SIGTERM to this process."""
    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def watch() -> None:
    """Block until standard input closes, then end this process: by SIGTERM, and if that fails, immediately."""
    if sys.stdin is not None:  # None: it was closed before this process started
        wait_for_end(sys.stdin.fileno())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_S)
    os._exit(1)


def wait_for_end(descriptor: int) -> None:
    """Block until end of file; a read error counts as the end."""
    try:
        while os.read(descriptor, 1024):  # any size: nothing is sent
            pass
    except OSError:
        return
