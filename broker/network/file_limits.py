"""File descriptors: how many this process may have, and how many are for clients, log files and the control plane.

The parts add up to the limit. What the process holds already, what it opens for a moment (a checkpoint that is
replaced, a module that is imported) and connections that are accepted only to be closed are taken off first.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from broker.clock import Clock

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_log = structlog.get_logger(__name__)
_UNLIMITED = 1 << 20
_TRIED = (1 << 20, 65_536, 10_240, 4096)
"""Limits to ask for where the system names none and refuses to grant what it names: macOS grants 10,240."""
SPARE = 8
"""Kept open, to be closed when nothing else is left."""
_MOMENTARY = 24
"""For what is open for a moment."""
_MOST_FILES = 512
"""Open log files of a broker."""
_MOST_CONTROL = 256
_FEW = 4096
_WARNED_EVERY_MS = 10_000


@dataclass(frozen=True, slots=True)
class Shares:
    """Limits of file descriptors by purpose: ``connections`` of each broker, ``files`` of all brokers."""

    connections: int
    files: int
    control: int
    few: bool = False
    """So few that an import could fail for want of one while many clients connect."""


def raise_limit() -> None:
    """Ask for as many descriptors as the system allows, as the JVM does."""
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
    """Divide what the process may open and does not hold already; ``listeners`` are those that will be bound."""
    limit = _UNLIMITED
    if resource is not None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _UNLIMITED if soft in {resource.RLIM_INFINITY, -1} else soft
    return divided(limit, _held() + listeners + brokers, brokers, on_disk=on_disk)


def divided(limit: int, held: int, brokers: int, *, on_disk: bool) -> Shares:
    """Divide a limit of which ``held`` are gone for good."""
    free = max(limit - held - SPARE - _MOMENTARY, 0)
    control = max(min(_MOST_CONTROL, free // 8), 4)
    files = max(min(_MOST_FILES * brokers, free // 4), 4) if on_disk else 0
    return Shares(max((free - control - files) // brokers, 1), files, control, limit < _FEW)


def _held() -> int:
    """The number of descriptors that are open now."""
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        return 32


class ShortageLog:
    """Logs that descriptors were missing: once for as long as it lasts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count, self._next_ms = 0, 0

    def warn(self) -> None:
        """Count a shortage, and log it unless one was logged a moment ago."""
        self._count += 1
        now_ms = self._clock.machine_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + _WARNED_EVERY_MS
            _log.warning("no file descriptor was left, so open log files were closed", count=self._count)
            self._count = 0
