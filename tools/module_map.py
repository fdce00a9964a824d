"""Prints the first line of each module's docstring: `make map`, `make map FOLDER=storage`."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring; empty without one."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def main(folders: list[str]) -> None:
    """Print the modules below these folders, or all."""
    paths = [folder.rstrip("/") + "/*.py" for folder in folders] or ["*.py"]
    listed = subprocess.run(["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if line := first_line(ROOT / name):
            sys.stdout.write(f"{name:<60} {line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
