"""Hatchling's build hook: puts the server's packages into the wheel, below the one name that it installs.

With `UNDERSTUDY_COMPILE=1` in the environment, mypyc compiles the modules on the path of a request (the list `compiled`
in `pyproject.toml`). Their sources are in the wheel too; a Python of another version, or one without the compiled
files, runs those. Without the variable nothing is compiled and no compiler is needed.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "UNDERSTUDY_COMPILE"
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
    """Copies each of `understudy.server_path.SERVER_PACKAGES` to `understudy/_server/`."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build environment needs to compile: mypy, and the imports of the sources, for their types."""
        return ["mypy[mypyc]>=2.4", "setuptools>=75", *self.metadata.core.dependencies] if _compiles() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packages to a wheel; an editable install finds them in the checkout."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from understudy.server_path import COMPILED, SERVER_PACKAGES  # noqa: PLC0415 - its path was just added
        finally:
            sys.path.remove(self.root)
        included = build_data["force_include"]
        included.update({name: f"understudy/_server/{name}" for name in SERVER_PACKAGES})
        if _compiles():
            self._build = tempfile.TemporaryDirectory(prefix="understudy-compiled-")
            for file in _compile(Path(self.root), Path(self._build.name), COMPILED, self.config["compiled"]):
                included[str(file)] = f"understudy/_server/{file.relative_to(Path(self._build.name) / 'lib')}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the compiler's output."""
        if hasattr(self, "_build"):
            self._build.cleanup()


def _compiles() -> bool:
    return os.environ.get(VARIABLE, "") not in {"", "0"}


def _compile(root: Path, build: Path, group: str, patterns: list[str]) -> list[Path]:
    """Compile modules, and return the extension modules in the folder `lib`; the checkout is not modified."""
    sources = [str(path.relative_to(root)) for pattern in patterns for path in sorted(root.glob(pattern))]
    command = [sys.executable, "-c", _MYPYC, group, str(build), *sources]
    subprocess.run(command, cwd=root, check=True)  # noqa: S603 - our own sources
    return [path for path in (build / "lib").rglob("*") if path.is_file()]
