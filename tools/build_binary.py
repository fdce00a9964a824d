"""Builds the self-contained server: a folder with `understudy serve`, `ctl` and `completion` that needs no Python.

Usage: PYTHON tools/build_binary.py [FOLDER], with the Python of an environment that has the wheel and PyInstaller
(`make binary` makes one). Writes FOLDER/understudy/, by default dist/binary, and next to it the archive
understudy-VERSION-SYSTEM-MACHINE.tar.gz. It runs on systems like the one that it was built on: on Linux, with the same
C library or a newer one.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "understudy"
"""The folder that is built, and the program in it."""
ENTRY = "import sys\nfrom understudy.cli import main\nsys.exit(main())\n"
WHOLE = ("broker", "storage", "protocol", "understudy.control_api", "uvicorn", "rich._unicode_data")
"""Packages whose modules are imported by name at run time."""
OPTIONAL = ("cryptography", "jwt")
"""Imported late by parts of `serve`: Java keystores, signed tokens."""
COMMANDS = (
    "understudy.serve",
    "understudy.shared",
    "understudy.ctl",
    "understudy.completion",
    "understudy.lifeline",
    "understudy.config_file",
    "understudy.produce",
    "understudy.consume",
    "pipeline.commands.produce",
    "pipeline.commands.consume",
)
DATA = ("broker", "protocol", "storage", "understudy")
UNWANTED = (
    "pytest",
    "hypothesis",
    "pygments",
    "markdown_it",
    "tkinter",
    "understudy.pytest_plugin",
    "understudy.spark",
)


def build(target: Path) -> Path:
    """Build the folder; return the archive."""
    spec = importlib.util.find_spec("understudy")
    if spec is None or spec.origin is None:
        raise SystemExit("build_binary: install the wheel into this Python first")
    server = Path(spec.origin).parent / "_server"
    if not server.is_dir():
        raise SystemExit("build_binary: this Python has understudy from a checkout; install the wheel: pip install .")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        entry = Path(folder) / "entry.py"  # not the name of a package
        entry.write_text(ENTRY, encoding="utf-8")
        options = [f"--collect-submodules={name}" for name in WHOLE]
        options += [f"--hidden-import={name}" for name in (*COMMANDS, *OPTIONAL)]
        options += [f"--collect-data={name}" for name in DATA]
        options += [f"--exclude-module={name}" for name in UNWANTED]
        places = [f"--distpath={target}", f"--workpath={folder}/work", f"--specpath={folder}", f"--paths={server}"]
        command = [sys.executable, "-m", "PyInstaller", "--name=understudy", "--onedir", "--noconfirm", "--strip"]
        # PyInstaller itself searches for the packages in separate processes.
        environment = os.environ | {"PYTHONPATH": str(server)}
        subprocess.run(
            [*command, "--log-level=WARN", *places, *options, str(entry)], cwd=folder, env=environment, check=True
        )
    # Data files of the server's packages are already collected under their own names.
    shutil.rmtree(target / FOLDER / "_internal" / "understudy" / "_server", ignore_errors=True)
    shutil.copy(ROOT / "LICENSE", target / FOLDER)
    return packed(target)


def packed(target: Path) -> Path:
    """Return the archive of the folder."""
    printed = subprocess.run([target / FOLDER / FOLDER, "--version"], capture_output=True, text=True, check=True).stdout
    version = printed.split()[1]
    system = f"{platform.system().lower()}-{platform.machine().lower()}"
    archive = target / f"understudy-{version}-{system}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed_files:
        packed_files.add(target / FOLDER, arcname=FOLDER)
    return archive


def main(argv: list[str]) -> int:
    """Build, and print the location of the archive and the sizes of folder and archive."""
    target = (Path(argv[0]) if argv else ROOT / "dist" / "binary").resolve()
    archive = build(target)
    files = [path for path in (target / FOLDER).rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
