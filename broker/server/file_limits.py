"""Limits of file descriptors: for the process, and its shares for clients, log files and the control plane.

The shares add up to the limit, after subtracting the descriptors already open, those open only for a moment (a
checkpoint being replaced, a module being imported) and connections that are accepted only to be closed.
"""

import os
from contextlib import suppress

from broker.logs import Logger
from broker.time.clock import Clock
from protocol.deferred import dataclass

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_log = Logger(__name__)
_UNLIMITED = 1 << 20  # more than a process of ours can use
_TRIED = (1 << 20, 65_536, 10_240, 4096)
"""Limits to try if the system reports no limit, or refuses the one that it reports: macOS grants 10,240."""
SPARE = 8
"""Descriptors held in reserve, to be closed when no other is left.

Arbitrary, as several clients may connect in one turn.
"""
_MOMENTARY = 24
"""Descriptors for files that are open for a moment: a checkpoint of each directory, an answer of the control plane.

Ours, more than are open at a time.
"""
_MOST_FILES = 512
"""Open log files of a broker: files beyond that are closed, the one used longest ago first, and opened again.

Ours: more would take descriptors from clients, fewer would reopen files that are in use.
"""
_MOST_CONTROL = 256
"""Connections to the control plane: tests that share a process have one or two each.

Ours, for as many test processes as a machine runs.
"""
_WARNED_EVERY_MS = 10_000  # a warning for each refused connection would fill the log; ours, six lines a minute


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits of file descriptors by purpose: ``connections`` per broker, ``files`` of all brokers."""

    connections: int
    files: int
    control: int


def raise_limit() -> None:
    """Raise the limit of descriptors as far as the system allows, as the JVM does."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    for wanted in (hard, *_TRIED):
        if wanted == resource.RLIM_INFINITY or wanted > soft:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return


def shares(brokers: int, *, on_disk: bool, listeners: int) -> Shares:
    """Divide the process's free descriptors; ``listeners`` are those that will be bound."""
    limit = _UNLIMITED
    if resource is not None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _UNLIMITED if soft in {resource.RLIM_INFINITY, -1} else soft
    return divided(limit, _held() + listeners + brokers, brokers, on_disk=on_disk)


def divided(limit: int, held: int, brokers: int, *, on_disk: bool) -> Shares:
    """Divide a limit of which ``held`` descriptors are permanently in use."""
    free = max(limit - held - SPARE - _MOMENTARY, 0)
    # An eighth and a quarter of what is free: clients get most of a small limit. Four work even then.
    control = max(min(_MOST_CONTROL, free // 8), 4)
    files = max(min(_MOST_FILES * brokers, free // 4), 4) if on_disk else 0
    return Shares(max((free - control - files) // brokers, 1), files, control)


def _held() -> int:
    """Return the number of descriptors that are open now."""
    try:
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 - a process of many clusters has thousands
    except OSError:
        return 32  # about as many as a server has open when it starts


class ShortageLog:
    """Logs shortages of file descriptors, at most once in 10 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count, self._next_ms = 0, 0

    def warn(self) -> None:
        """Count a shortage, and log it unless one was logged recently."""
        self._count += 1
        now_ms = self._clock.machine_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + _WARNED_EVERY_MS
            _log.warning("no file descriptor was left, so open log files were closed", count=self._count)
            self._count = 0
