"""The event loop of a server's process: uvloop where installed, and the signals that end the process."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

_SECOND_SIGNAL_EXIT = 130
"""The exit code of a shell for a process that SIGINT ended (128 + 2)."""


def backend_options() -> dict[str, Any]:
    """Return the options of `anyio.run` for uvloop, if it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return {}
    return {"loop_factory": uvloop.new_event_loop}


def on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Stop in order at the first SIGTERM, SIGINT or SIGHUP; exit immediately at the second.

    A SIGHUP that is ignored, as under nohup, stays ignored.
    """
    signals = 0

    def received() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(_SECOND_SIGNAL_EXIT)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, received)
