"""Ships code to the executors: this package, the server's packages, and the compiled packages that they need.

It is one archive that Spark unpacks in each executor's folder under the name `understudy`, where Python finds it as the
package of that name.
"""

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from understudy import server_path
from understudy.version import __version__

_NAME = re.compile(r"[A-Za-z0-9._-]+")
SHIPPED = ("cramjam", "crc32c", "xxhash")
"""Dependencies that executors do not have; their own dependencies are shipped too."""


_SENT: Final[set[str]] = set()
"""Applications and remote sessions that have the archive."""


def ship(name: str, add: Callable[[str], object]) -> None:
    """Ship what tasks need to the executors of the application or remote session of this name, once.

    `add` adds an archive, `PATH#FOLDER`, to it.
    """
    if name in _SENT:
        return
    folder = Path(tempfile.mkdtemp(prefix="understudy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that join later fetch it from here
    add(f"{build(folder)}#understudy")
    _SENT.add(name)


def build(folder: Path) -> Path:
    """Write the archive. Its root is the contents of the package `understudy`."""
    path = folder / f"understudy-{__version__}.zip"
    package = Path(__file__).resolve().parent.parent
    home = server_path.folder()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.rglob("*")):
            if _is_code(file) and "_server" not in file.relative_to(package).parts:
                archive.write(file, file.relative_to(package).as_posix())
        for package_name in ("control_api", "pipeline", "protocol", "storage"):  # the first: in a checkout
            for file in sorted((home / package_name).rglob("*")):
                if _is_code(file):
                    archive.write(file, f"_server/{file.relative_to(home).as_posix()}")
        for name in _with_needs(SHIPPED):
            for part in metadata.files(name) or ():
                if ".." not in part.parts and "__pycache__" not in part.parts:
                    archive.write(str(part.locate()), f"{server_path.SHIPPED}/{part.as_posix()}")
    return path


def _is_code(file: Path) -> bool:
    """Return whether a file is shipped: sources, without the bytecode for this machine's Python."""
    return file.is_file() and "__pycache__" not in file.parts and not file.name.endswith(tuple(EXTENSION_SUFFIXES))


def _with_needs(names: tuple[str, ...]) -> list[str]:
    """Return these distributions and their dependencies, if they are installed."""
    distributions: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in distributions:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        distributions.append(name)
        waiting += [match[0] for need in needs if "extra ==" not in need and (match := _NAME.match(need))]
    return sorted(distributions)
