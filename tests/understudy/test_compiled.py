"""The compiled build: the list of its modules, and the wheel that `make compiled` makes and tests."""

import ast
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from understudy import server_path
from understudy.spark import shipping

ROOT = Path(__file__).resolve().parents[2]


def patterns() -> list[str]:
    """What `pyproject.toml` lists as compiled."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["compiled"]
    return listed


def test_each_compiled_module_exists_once() -> None:
    """A module that was renamed would silently run from its source again; the front end is never compiled."""
    found = {pattern: sorted(ROOT.glob(pattern)) for pattern in patterns()}
    assert [pattern for pattern, files in found.items() if not files] == []
    files = [file.relative_to(ROOT) for matched in found.values() for file in matched]
    assert len(files) == len(set(files)) > 20
    assert {file.parts[0] for file in files} <= set(server_path.SERVER_PACKAGES)


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """Each of its objects would be a TypeError: compiled methods take objects of their own class, and no other."""
    compiled = {file.relative_to(ROOT).as_posix() for pattern in patterns() for file in ROOT.glob(pattern)}
    assert inherits("protocol/compiled.py", "from protocol.codec import A\nclass B(A): ...", {"protocol/codec.py"})
    assert not inherits("protocol/compiled.py", "from protocol.errors import A\nclass B(A): ...", {"protocol/codec.py"})
    found = []
    for package in server_path.SERVER_PACKAGES:
        for file in ROOT.glob(f"{package}/**/*.py"):
            name = file.relative_to(ROOT).as_posix()
            found += [] if name in compiled else inherits(name, file.read_text(encoding="utf-8"), compiled)
    assert found == []


def inherits(name: str, source: str, compiled: set[str]) -> list[str]:
    """The classes of a module that inherit from a class of a compiled module."""
    tree = ast.parse(source)
    imported = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and f"{(node.module or '').replace('.', '/')}.py" in compiled
        for each in node.names
    }
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [f"{name}: {each.name}" for each in classes if imported & {ast.unparse(base) for base in each.bases}]


def test_a_compiled_build_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled where this Python finds the library beside the server's packages; another Python's does not count."""
    monkeypatch.setattr(server_path, "folder", lambda: tmp_path)
    assert not server_path.is_compiled()
    (tmp_path / f"{server_path.COMPILED}__mypyc.cpython-27-x86_64-linux-gnu.so").touch()
    assert not server_path.is_compiled()
    (tmp_path / f"{server_path.COMPILED}__mypyc{EXTENSION_SUFFIXES[0]}").touch()
    assert server_path.is_compiled()


def test_executors_get_sources_only(tmp_path: Path) -> None:
    """Spark's executors may run another Python than the one that a wheel was compiled for."""
    names = [f"codec{suffix}" for suffix in EXTENSION_SUFFIXES]
    for name in ("codec.py", *names):
        (tmp_path / name).touch()
    assert [name for name in ("codec.py", *names) if shipping._is_code(tmp_path / name)] == ["codec.py"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_compiled_wheel_passes_the_quick_tests(tmp_path: Path) -> None:
    """Built, installed into an environment of its own, and tested from the codecs to the handlers."""
    command = [sys.executable, "-m", "tools.compiled", "--build", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "(compiled)" in done.stdout
