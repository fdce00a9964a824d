"""Where the rooms (broker, pipeline, storage, protocol) lie, and how a process gets to see them.

The server's own process enters them. A process that belongs to the user borrows: a notebook, or a worker of Spark,
which may run the user's code next. There, the user's own `pipeline` or `storage` package stays what it is.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

NAMES = frozenset({"broker", "conformance", "pipeline", "protocol", "storage"})

SHIPPED = "_shipped"
"""Beside the rooms on a cluster's executors: packages that the rooms need (`understudy.spark.shipping`)."""

_borrowed: dict[str, ModuleType] = {}
_inside: set[str] = set()
"""The folder of the rooms, within `entered`."""


def folder() -> Path:
    """The folder that holds the rooms: `understudy/_server` of a wheel, the repository's root of a checkout."""
    here = Path(__file__).resolve().parent
    packed = here / "_server"
    return packed if (packed / "protocol").is_dir() else here.parent


def enter() -> None:
    """Put the rooms first on `sys.path`, so that a user's own `broker` or `storage` package cannot stand in front."""
    path = str(folder())
    if path in sys.path:
        sys.path.remove(path)
    sys.path.insert(0, path)


@contextmanager
def entered() -> Iterator[None]:
    """Within, the names of the rooms are ours; after it, whose they were. Not for several threads at a time."""
    path = str(folder())
    shipped = Path(__file__).resolve().parent / SHIPPED
    if shipped.is_dir() and str(shipped) not in sys.path:
        sys.path.append(str(shipped))
    if path in _inside or _is_home():
        yield
        return
    theirs = _take()
    sys.modules.update(_borrowed)
    sys.path.insert(0, path)
    _inside.add(path)
    try:
        yield
    finally:
        _inside.remove(path)
        sys.path.remove(path)
        _borrowed.update(_take())
        sys.modules.update(theirs)


def borrow(module: str) -> Any:
    """A module of a room, without leaving its name behind."""
    with entered():
        return importlib.import_module(module)


def _is_home() -> bool:
    """Whether the names of the rooms are ours in this process anyway."""
    home = str(folder())
    loaded = [os.path.realpath(str(sys.modules[name].__file__)) for name in NAMES if name in sys.modules]
    return bool(loaded) and all(path.startswith(home) for path in loaded)


def _take() -> dict[str, ModuleType]:
    """Take all modules away that bear the name of a room."""
    names = [name for name in sys.modules if name.partition(".")[0] in NAMES]
    return {name: sys.modules.pop(name) for name in names}
