"""Builds the archives of packages/ for other languages, in the formats of their registries.

Usage: python tools/build_packages.py [FOLDER/] [go|java|node|rust ...]. By default those that this machine can build,
into dist/packages: understudy-kafka-VERSION.tgz for npm, a folder in the Go module proxy's format (`go/`), a Maven
repository (`maven/`), and understudy-kafka-test-VERSION.crate for Cargo. Nothing is published.

`--link COMMAND` puts a command where the packages look for a server: ~/.cache/understudy/VERSION/understudy.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from understudy.version import __version__

PACKAGES = ROOT / "packages"
GO_MODULE = "understudy.example/go"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of the files in a zip, so that the same sources make the same archive."""


def node(target: Path) -> Path:
    """Build the archive for `npm install FILE`."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "node"
        shutil.copytree(PACKAGES / "node", stage, ignore=shutil.ignore_patterns("node_modules"))
        shutil.copy(ROOT / "LICENSE", stage)
        command = ["npm", "pack", "--silent", "--pack-destination", str(target)]
        subprocess.run(command, cwd=stage, check=True, stdout=subprocess.DEVNULL)
    return target / f"understudy-kafka-{__version__}.tgz"


def go(target: Path) -> Path:
    """Build a folder for GOPROXY=file://..., with the module's zip, its go.mod and its version."""
    version = f"v{__version__}"
    folder = target / "go" / GO_MODULE / "@v"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [path for path in sorted((PACKAGES / "go").rglob("*")) if path.is_file()]
    with zipfile.ZipFile(folder / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (*sources, ROOT / "LICENSE"):
            name = path.relative_to(PACKAGES / "go") if path in sources else path.name
            entry = zipfile.ZipInfo(f"{GO_MODULE}@{version}/{name}", _FIRST_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    shutil.copy(PACKAGES / "go" / "go.mod", folder / f"{version}.mod")
    (folder / f"{version}.info").write_text(json.dumps({"Version": version}), encoding="utf-8")
    (folder / "list").write_text(f"{version}\n", encoding="utf-8")
    return target / "go"


def java(target: Path) -> Path:
    """Build a Maven repository with the jar and its pom."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "java"
        shutil.copytree(PACKAGES / "java", stage, ignore=shutil.ignore_patterns("target"))
        (stage / "src" / "main" / "resources" / "META-INF").mkdir()
        shutil.copy(ROOT / "LICENSE", stage / "src" / "main" / "resources" / "META-INF")
        repository = f"-DaltDeploymentRepository=built::default::file:{target / 'maven'}"
        command = ["mvn", "--batch-mode", "--quiet", "-Dmaven.test.skip", repository, "deploy"]
        subprocess.run(command, cwd=stage, check=True, stdout=subprocess.DEVNULL)
    return target / "maven"


def rust(target: Path) -> Path:
    """Build the archive for `tar xf FILE` and `cargo add --path FOLDER`."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "rust"
        shutil.copytree(PACKAGES / "rust", stage, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
        shutil.copy(ROOT / "LICENSE", stage)
        target_dir = Path(folder) / "made"
        command = ["cargo", "package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir", str(target_dir)]
        subprocess.run(command, cwd=stage, check=True)
        name = f"understudy-kafka-test-{__version__}.crate"
        shutil.copy(target_dir / "package" / name, target)
    return target / name


BUILDERS: Mapping[str, Callable[[Path], Path]] = {"go": go, "java": java, "node": node, "rust": rust}


TOOLS: Mapping[str, str] = {"java": "mvn", "node": "npm", "rust": "cargo"}
"""Package -> the program that builds it."""

_MARK = "# made by `make packages` of Understudy"


def link(command: Path) -> str:
    """Put a command where the packages look for a server, unless something else is there; return what was done."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    file = cache / "understudy" / __version__ / "understudy"
    instead = f"set UNDERSTUDY_COMMAND={command}"
    try:
        if file.exists() and _MARK not in file.read_text(encoding="utf-8", errors="replace"):
            return f"the packages start {file}, which was there before; to use this checkout, {instead}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\n{_MARK}\nexec {shlex.quote(str(command))} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
    except OSError as error:
        return (
            f"{file} cannot be written ({error.strerror}); so that the packages find this checkout's server, {instead}"
        )
    return f"the packages start this checkout's server: {file}, unless an `understudy` is on the PATH"


def main(argv: list[str]) -> int:
    """Build the archives, and print their locations; exit code 1 if one that was named cannot be built."""
    command = argv[argv.index("--link") + 1 :][:1] if "--link" in argv else []
    arguments = [each for each in argv if each not in {"--link", *command}]
    names = [name for name in arguments if name in BUILDERS]
    folders = [name for name in arguments if name not in BUILDERS]
    unknown = [folder for folder in folders if "/" not in folder] or folders[1:]
    if unknown:
        print(f"there is no package {unknown[0]}; there are {', '.join(BUILDERS)}", file=sys.stderr)
        return 2
    target = (Path(folders[0]) if folders else ROOT / "dist" / "packages").resolve()
    target.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in names or BUILDERS:
        tool = TOOLS.get(name)
        if tool is not None and shutil.which(tool) is None:
            print(f"{name}: left out, because {tool} is not installed")
            failed |= name in names
            continue
        try:
            print(f"{name}: {BUILDERS[name](target)}")
        except subprocess.CalledProcessError as error:
            print(f"{name}: left out, because {tool} ended with code {error.returncode}; its output is above")
            failed |= name in names
    if command:
        print(link(Path(command[0]).absolute()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
