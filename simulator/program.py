"""Instances of a user's processes: which tasks, connections and timers belong to which, and their end.

A task, timer or callback belongs to the instance in whose context it was created. A killed instance runs no further
line of code: what is scheduled for it is dropped, and what is scheduled later is not accepted.
"""

import asyncio
import sys
import sysconfig
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import Any, Protocol

LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib")})
"""Folders of Python's own modules and of installed ones."""
_INSIDE = (str(Path(__file__).parent), sysconfig.get_paths()["stdlib"], "<frozen")


class Unsimulated(RuntimeError):
    """The program does what cannot run on virtual time; the message has its line, and what to do instead."""


class Severable(Protocol):
    """A connection of a program."""

    def sever(self, how: str) -> None:
        """End the connection without a further call of its protocol; ``how``: one of :data:`SEVERED`."""
        ...

    def read_on(self) -> None:
        """Pass on what arrived while the program was paused."""
        ...


SEVERED = ("closed", "closed", "reset", "silent")
"""How a broker may learn of a killed client, with the usual one more often: its system closes the connection after all
that was sent; it resets it; or nothing arrives any more, as after a power cut of the machine."""


class Program:
    """One instance of a process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.kept_calls: list[asyncio.Handle] = []
        self.kept_timers: list[Any] = []
        """What a paused instance will do when it goes on."""
        self.context = copy_context()
        self.context.run(CURRENT.set, self)
        self.connections: dict[Severable, None] = {}
        self.tasks: dict[asyncio.Task[Any], None] = {}
        """Its tasks, in the order of their creation; those that are done only if their exception was not retrieved."""
        self.exchanges_left = 0
        """After how many pieces that it sends or receives :attr:`last_exchange` is called; 0: it is not."""
        self.last_exchange: Callable[[], None] = lambda: None
        self.on_signal: dict[int, Callable[[], object]] = {}
        self.buried: list[asyncio.Task[Any]] = []
        """Tasks of a killed instance: kept, so that no garbage collection runs their ``finally`` blocks."""

    def exchange(self) -> None:
        """Count a piece that it sends or receives."""
        if self.exchanges_left:
            self.exchanges_left -= 1
            if not self.exchanges_left:
                self.last_exchange()


CURRENT: ContextVar[Program | None] = ContextVar("program", default=None)


def owner(context: Context | None) -> Program | None:
    """Return the instance to which a context belongs; None for the current one's."""
    return CURRENT.get() if context is None else context.get(CURRENT)


def line_of_program() -> str:
    """Return ``FILE:LINE`` of the innermost frame of the program, or else of a library that it uses."""
    frame, library = sys._getframe(1), ""  # noqa: SLF001 - the documented way to walk the stack without its sources
    while frame is not None:
        name = frame.f_code.co_filename
        if "site-packages" in name:
            library = library or f"{name}:{frame.f_lineno}"
        elif not name.startswith(_INSIDE):
            return f"{short_path(name)}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return library or "the program"


def short_path(filename: str) -> str:
    """Return a file's path from the folder of installed modules or from the current one, or its name."""
    if "site-packages" in filename:
        return filename.rpartition("site-packages")[2][1:]
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def refuse(what: str, instead: str) -> Unsimulated:
    """Return the error for something that cannot be simulated."""
    return Unsimulated(f"{line_of_program()}: {what} cannot be simulated; {instead}")
