"""Builds the compiled wheel, installs it into its own environment, and tests the compiled modules.

    python -m tools.compiled [--build FOLDER] [--no-tests] [pytest arguments]
    python -m tools.compiled --check WHEEL...

FOLDER (build/compiled) gets `dist`, the wheel; `environment`, where it is installed as a user installs it; and `tree`,
a copy of the checkout with the compiled modules beside their sources, in which the tests run. Without arguments for
pytest these are the quick tests. `--check` builds nothing: it fails if a wheel is missing a module that
`pyproject.toml` lists as compiled.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_QUICK = ["-n", "auto", "-m", "not interop and not nightly and not processes"]
_FOLDERS = ("protocol", "storage", "broker", "coordination", "handlers", "scenarios", "releases")
"""Folders of tests that run the server's own code in the test process."""
_ONLY_UNCOMPILED = (
    "tests/storage/test_cost.py::test_a_read_looks_at_one_index_interval",
    "tests/storage/test_log_dir.py::test_an_append_that_is_half_done_takes_the_directory_offline",
    "tests/broker/test_counts.py",
    "tests/broker/partitions/share_partition/test_loading.py",
    "tests/broker/partitions/transactions/test_markers.py",
    "tests/broker/partitions/transactions/test_verification.py",
    "tests/handlers/test_end_txn.py::test_the_answer_goes_out_before_any_marker",
    "tests/handlers/test_transaction_admin.py",
)
"""Tests that count Python's calls, or replace functions or objects that compiled code takes for its own."""


def listed() -> list[str]:
    """Return the patterns of the modules that `pyproject.toml` lists as compiled."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["compiled"]
    return patterns


def missing(names: Iterable[str]) -> list[str]:
    """Return the listed modules that are not compiled in a wheel with files of these names."""
    compiled = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    modules = sorted(file.relative_to(ROOT).with_suffix("").as_posix() for each in listed() for file in ROOT.glob(each))
    return [module for module in modules if f"understudy/_server/{module}" not in compiled]


def check(wheels: Iterable[Path]) -> int:
    """Print the modules that each wheel has only as sources; return 1 if there are any."""
    misses = 0
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            interpreted = missing(archive.namelist())
        print(f"{wheel.name}: " + (f"not compiled: {', '.join(interpreted)}" if interpreted else "compiled"))
        misses += len(interpreted)
    return int(misses > 0)


def build_wheel(folder: Path) -> Path:
    """Build the wheel with the compiler and the build backend of this environment."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code = "import hatchling.build, sys; hatchling.build.build_wheel(sys.argv[1])"  # pip would run the build hook twice
    environment = os.environ | {"UNDERSTUDY_COMPILE": "1"}
    subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, env=environment, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, home: Path) -> Path:
    """Install the wheel with its dependencies, and return the folder of its server packages."""
    venv.create(home, symlinks=True, with_pip=True, clear=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", wheel], check=True)
    (server,) = home.glob("lib/python*/site-packages/understudy/_server")
    return server


def copy_tree(server: Path, tree: Path) -> None:
    """Copy the files tracked by git, and put the compiled modules beside their sources."""
    shutil.rmtree(tree, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for file in server.rglob("*"):
        if file.name.endswith(tuple(EXTENSION_SUFFIXES)):
            shutil.copy2(file, tree / file.relative_to(server))


def run_tests(tree: Path, arguments: list[str]) -> int:
    """Run pytest in the tree; return its exit code."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def main() -> int:
    """Build, install, test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "compiled", help="where to build")
    parser.add_argument("--no-tests", action="store_true", help="build and install only")
    parser.add_argument("--check", type=Path, nargs="+", metavar="WHEEL", help="look into these wheels only")
    options, tests = parser.parse_known_args()
    if options.check:
        return check(options.check)
    folder = options.build.resolve()
    if folder.is_dir() and not {each.name for each in folder.iterdir()} <= {"dist", "environment", "tree"}:
        parser.error(f"--build {folder} holds other files; name a folder of its own, in which all is replaced")
    wheel = build_wheel(folder / "dist")
    if check([wheel]):
        return 1
    server = install(wheel, folder / "environment")
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([folder / "environment" / "bin" / "understudy", "--version"], env=bare, check=True)
    copy_tree(server, folder / "tree")
    quick = [*_QUICK, *(f"--deselect={test}" for test in _ONLY_UNCOMPILED), *(f"tests/{name}" for name in _FOLDERS)]
    return 0 if options.no_tests else run_tests(folder / "tree", tests or quick)


if __name__ == "__main__":
    sys.exit(main())
