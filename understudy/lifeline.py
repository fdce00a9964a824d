"""`--lifeline`: the server ends when its parent process does, even if that was killed with SIGKILL."""

import os
import signal
import sys
import threading


def hold() -> None:
    """Watch standard input in a separate thread; when it closes, send SIGTERM to this process."""
    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def watch() -> None:
    """Block until standard input closes."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
