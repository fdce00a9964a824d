"""Hatchling's build hook: puts all packages into the wheel, below the one name that it installs.

The server's packages go to `understudy/_server`, which is on the import path of the server's own process alone. Also a
user's process imports `control_api`; so that it adds no second name there, it goes to `understudy/control_api`, and the
imports of it are rewritten.

With `UNDERSTUDY_COMPILE=1` in the environment, mypyc compiles the modules on the path of a request (the list `compiled`
in `pyproject.toml`). Their sources are in the wheel too; a Python of another version, or one without the compiled
files, runs those. Without the variable nothing is compiled and no compiler is needed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 - pip 22 and 23 try all versions of dependencies before they look at this
    raise SystemExit(
        f"Understudy needs Python 3.11 or newer, and this is {sys.version.split()[0]} ({sys.executable}); "
        "make an environment with a newer one, such as: python3.11 -m venv .venv"
    )

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "UNDERSTUDY_COMPILE"
_CONTROL_API = re.compile(r"^( *(?:from |import |\"))(?=control_api\b)", re.MULTILINE)
"""Its name in an import, or as the key of the table of lazy imports."""
_MYPYC = """
import os, sys
from mypyc.build import mypycify
from setuptools import setup

group, build, *sources = sys.argv[1:]
options = ["--config-file", "pyproject.toml", "--cache-dir", os.path.join(build, "types"), "--ignore-missing-imports"]
options += ["--no-warn-return-any", "--no-warn-unused-ignores", *sources]
modules = mypycify(options, opt_level="1", debug_level="0", multi_file=True, group_name=group, target_dir=build)
os.chdir(build)  # setuptools would read this project's description
command = ["--quiet", "build_ext", "--build-lib", os.path.join(build, "lib"), "--build-temp", build]
setup(name=group, packages=[], py_modules=[], ext_modules=modules, script_args=command)
"""


class ServerPackages(BuildHookInterface[Any]):
    """Lays out the wheel; an editable install finds the packages in the checkout."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build environment needs to compile: mypy, and the imports of the sources, for their types."""
        return ["mypy[mypyc]>=2.4", "setuptools>=75", *self.metadata.core.dependencies] if _compiles() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packages to a wheel."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from understudy.server_path import COMPILED, SERVER_PACKAGES  # noqa: PLC0415 - its path was just added
        finally:
            sys.path.remove(self.root)
        self._build = tempfile.TemporaryDirectory(prefix="understudy-wheel-")
        build, included = Path(self._build.name), build_data["force_include"]
        homes = {name: f"understudy/_server/{name}" for name in SERVER_PACKAGES}
        for name, home in {"understudy": "understudy", "control_api": "understudy/control_api", **homes}.items():
            included[str(_rewritten(Path(self.root) / name, build / "sources" / name))] = home
        included[str(Path(self.root) / "docs" / "specification")] = "understudy/_server/docs/specification"
        if _compiles():
            for file in _compile(Path(self.root), build, COMPILED, self.config["compiled"]):
                included[str(file)] = f"understudy/_server/{file.relative_to(build / 'lib')}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the copies and the compiler's output."""
        if hasattr(self, "_build"):
            self._build.cleanup()


def _rewritten(package: Path, target: Path) -> Path:
    """Copy a package with its imports of `control_api` as they are in a wheel; return the copy."""
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "*.so", ".*"))
    for file in target.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        file.write_text(_CONTROL_API.sub(r"\1understudy.", source), encoding="utf-8")
    return target


def _compiles() -> bool:
    return os.environ.get(VARIABLE, "") not in {"", "0"}


def _compile(root: Path, build: Path, group: str, patterns: list[str]) -> list[Path]:
    """Compile modules, and return the extension modules in the folder `lib`; the checkout is not modified."""
    sources = [str(path.relative_to(root)) for pattern in patterns for path in sorted(root.glob(pattern))]
    command = [sys.executable, "-c", _MYPYC, group, str(build), *sources]
    subprocess.run(command, cwd=root, check=True)  # noqa: S603 - our own sources
    return [path for path in (build / "lib").rglob("*") if path.is_file()]
