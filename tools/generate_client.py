"""Generates the Python clients from the table of verbs.

Usage: python tools/generate_client.py [--check]. Methods that only pass on the parameters of their row go to
understudy/aio/verbs.py; the others are written by hand beside it, in classes that inherit from these. The blocking
client is understudy/aio without `async` and `await` (unasync), apart from a few files with a handwritten twin.
"""

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import unasync

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.client_methods import module

SOURCE, TARGET = ROOT / "understudy" / "aio", ROOT / "understudy" / "client"
OWN_TWINS = ("__init__.py", "bridge.py", "waiting.py")
HEADER = "# Made from understudy/aio/{name} by tools/generate_client.py: change it there.\n"


def by_hand() -> dict[str, set[str]]:
    """Return the handwritten methods, by the class of understudy/aio/verbs.py that they are added to."""
    paths = (path for path in SOURCE.glob("*.py") if path.name != "verbs.py")
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    methods_by_class: dict[str, set[str]] = {}
    for node in classes.values():
        methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        waiting = [ast.unparse(base) for base in node.bases]
        while waiting:
            base = waiting.pop()
            methods_by_class.setdefault(base, set()).update(methods)
            waiting += [ast.unparse(each) for each in classes[base].bases] if base in classes else []
    return methods_by_class


def blocking(sources: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the blocking twins of modules: names without Async, and the two entry functions without their a."""
    names = {name for path in sources for name in re.findall(r"\bAsync[A-Z]\w*", path.read_text(encoding="utf-8"))}
    replaced = {name: name.removeprefix("Async") for name in names}
    with tempfile.TemporaryDirectory() as folder:
        rule = unasync.Rule(
            str(SOURCE), folder, {**replaced, "astart": "start", "aconnect": "connect", "aio": "client"}
        )
        unasync.unasync_files([str(path) for path in sources], [rule])
        for path in sources:
            text = (Path(folder) / path.name).read_text(encoding="utf-8")
            yield TARGET / path.name, formatted(HEADER.format(name=path.name) + text)


def formatted(text: str) -> str:
    """Format a module with ruff: remove unused imports, sort the others, join lines that fit without await."""
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    for options in (["check", "--quiet", "--select", "I,F401", "--fix"], ["format"]):
        done = subprocess.run(
            [*ruff, *options, "--stdin-filename", str(TARGET / "made.py"), "-"],
            input=text, capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        text = done.stdout
    return text


def written(path: Path, text: str, *, check: bool) -> bool:
    """Return whether a file differs; write it unless `check`."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    if not check:
        path.write_text(text, encoding="utf-8")
    return True


def main(argv: list[str]) -> int:
    """Write the clients, or with --check report stale files (exit code 1)."""
    check = "--check" in argv
    verbs_path = SOURCE / "verbs.py"
    stale = [verbs_path] if written(verbs_path, formatted(module(by_hand())), check=check) else []
    sources = [path for path in sorted(SOURCE.glob("*.py")) if path.name not in OWN_TWINS]
    stale += [path for path, text in blocking(sources) if written(path, text, check=check)]
    names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
    print("stale:" if stale and check else "written:", names or "nothing")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
