"""Builds the archives of packages/ for other languages, in the formats of their registries.

Usage: python tools/build_packages.py [FOLDER] [go|java|node|rust ...]. By default all of them, into dist/packages:
understudy-kafka-VERSION.tgz for npm, a folder in the Go module proxy's format (`go/`), a Maven repository (`maven/`),
and understudy-kafka-test-VERSION.crate for Cargo. Nothing is published.
"""

import json
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
        made = Path(folder) / "made"
        command = ["cargo", "package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir", str(made)]
        subprocess.run(command, cwd=stage, check=True)
        name = f"understudy-kafka-test-{__version__}.crate"
        shutil.copy(made / "package" / name, target)
    return target / name


BUILDERS: Mapping[str, Callable[[Path], Path]] = {"go": go, "java": java, "node": node, "rust": rust}


def main(argv: list[str]) -> int:
    """Build the archives, and print their locations."""
    names = [name for name in argv if name in BUILDERS]
    folders = [name for name in argv if name not in BUILDERS]
    target = (Path(folders[0]) if folders else ROOT / "dist" / "packages").resolve()
    target.mkdir(parents=True, exist_ok=True)
    for name in names or BUILDERS:
        print(f"{name}: {BUILDERS[name](target)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
