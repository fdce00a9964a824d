"""Where the server's rooms (broker, storage, protocol) lie, and how its process, and no other, gets to see them."""

import sys
from pathlib import Path


def folder() -> Path:
    """The folder that holds the rooms: `understudy/_server` of a wheel, the repository's root of a checkout."""
    here = Path(__file__).resolve().parent
    packed = here / "_server"
    return packed if (packed / "broker").is_dir() else here.parent


def enter() -> None:
    """Put the rooms first on `sys.path`, so that a user's own `broker` or `storage` package cannot stand in front."""
    path = str(folder())
    if path in sys.path:
        sys.path.remove(path)
    sys.path.insert(0, path)
