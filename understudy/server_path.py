"""Import path of the server's packages (broker, pipeline, storage, protocol).

The server's own process puts them on `sys.path` (`enter`). A process of the user, such as a notebook or a Spark worker,
imports them only temporarily (`entered`), so that the user's own `pipeline` or `storage` package remains importable.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any

SERVER_PACKAGES = ("broker", "comparison", "pipeline", "protocol", "proxy", "registry", "simulator", "storage")
"""The packages beside `understudy`: at the top of a checkout, in `understudy/_server` of a wheel."""

ALL_PACKAGES = (*SERVER_PACKAGES, "control_api", "understudy")
"""All of a checkout; in a wheel, `control_api` is in `understudy`, because a user's process imports it too."""

COMPILED = "understudy_compiled"
"""Name of the group of compiled modules: the library with all of them is next to the server's packages."""

SHIPPED = "_shipped"
"""Folder on a cluster's executors with packages that the server's packages need (`understudy.spark.shipping`)."""

_borrowed: dict[str, ModuleType] = {}
_inside: set[str] = set()
"""The folder of the server's packages, within `entered`."""


def folder() -> Path:
    """Return the folder of the server's packages: `understudy/_server` of a wheel, the root of a checkout."""
    here = Path(__file__).resolve().parent
    packed = here / "_server"
    return packed if (packed / "protocol").is_dir() else here.parent


def is_compiled() -> bool:
    """Return whether this Python finds compiled modules of the server: in a wheel built for it (`hatch_build.py`)."""
    return any((folder() / f"{COMPILED}__mypyc{suffix}").exists() for suffix in EXTENSION_SUFFIXES)


def enter() -> None:
    """Put the server's packages first on `sys.path`, before a user's own `broker` or `storage` package."""
    path = str(folder())
    if path in sys.path:
        sys.path.remove(path)
    sys.path.insert(0, path)


@contextmanager
def entered() -> Iterator[None]:
    """Make the server's packages importable within the block, and restore `sys.modules` after it. Not thread-safe."""
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
    """Import a module of the server without leaving it in `sys.modules`."""
    with entered():
        return importlib.import_module(module)


def _is_home() -> bool:
    """Return whether the loaded modules of these names are the server's."""
    home = str(folder())
    loaded = [os.path.realpath(str(sys.modules[name].__file__)) for name in SERVER_PACKAGES if name in sys.modules]
    return bool(loaded) and all(path.startswith(home) for path in loaded)


def _take() -> dict[str, ModuleType]:
    """Remove all modules with the names of the server's packages from `sys.modules`, and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] in SERVER_PACKAGES]
    return {name: sys.modules.pop(name) for name in names}
