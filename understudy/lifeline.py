"""`--lifeline`: a server that somebody else started ends when that somebody does, even by SIGKILL."""

import os
import signal
import sys
import threading


def hold() -> None:
    """Watch standard input from a thread of its own; when it closes, tell this process to stop in good order."""
    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def watch() -> None:
    """Block until standard input closes."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
