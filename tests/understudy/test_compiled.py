"""The compiled build: the list of its modules, and the wheel that `make compiled` makes and tests."""

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
import yaml

from tests.docker_rehearsal import read
from tools.compiled import check, listed
from understudy import server_path
from understudy.spark import shipping

ROOT = Path(__file__).resolve().parents[2]


def test_each_compiled_module_exists_once() -> None:
    """A module that was renamed would silently run from its source again; the front end is never compiled."""
    matched_files = {pattern: sorted(ROOT.glob(pattern)) for pattern in listed()}
    assert [pattern for pattern, files in matched_files.items() if not files] == []
    files = [file.relative_to(ROOT) for matched in matched_files.values() for file in matched]
    assert len(files) == len(set(files)) > 20
    assert {file.parts[0] for file in files} <= set(server_path.SERVER_PACKAGES)


def test_no_compiled_module_imports_the_control_api() -> None:
    """A wheel has it by another name, to which the build changes sources only: the server would not start."""
    files = [file for pattern in listed() for file in ROOT.glob(pattern)]
    assert imports_control_api("def f():\n    from control_api.times import local_time")
    assert imports_control_api("import control_api")
    assert [file for file in files if imports_control_api(file.read_text(encoding="utf-8"))] == []


def imports_control_api(source: str) -> bool:
    """Whether a module imports it, anywhere."""
    return re.search(r"^\s*(from|import) control_api\b", source, re.MULTILINE) is not None


def test_no_compiled_function_awaits_in_finally() -> None:
    """Mypyc keeps the exception that such a block saves beyond its call: each later call raises it again."""
    assert awaits_in_finally("async def f():\n    try: g()\n    finally: await h()")
    assert not awaits_in_finally("async def f():\n    try: await g()\n    finally: h()")
    files = [file for pattern in listed() for file in ROOT.glob(pattern)]
    assert [file for file in files if awaits_in_finally(file.read_text(encoding="utf-8"))] == []


def awaits_in_finally(source: str) -> bool:
    """Whether a `finally` of a module gives up the loop."""
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom)
    blocks = [each.finalbody for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Try)]
    return any(isinstance(node, waits) for block in blocks for each in block for node in ast.walk(each))


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """Each of its objects would be a TypeError: compiled methods take objects of their own class, and no other."""
    compiled = {file.relative_to(ROOT).as_posix() for pattern in listed() for file in ROOT.glob(pattern)}
    assert inherits("protocol/compiled.py", "from protocol.codec import A\nclass B(A): ...", {"protocol/codec.py"})
    assert not inherits("protocol/compiled.py", "from protocol.errors import A\nclass B(A): ...", {"protocol/codec.py"})
    assert open_classes("broker/request/context.py") >= {"Exchange"}
    subclasses = []
    for package in server_path.SERVER_PACKAGES:
        for file in ROOT.glob(f"{package}/**/*.py"):
            name = file.relative_to(ROOT).as_posix()
            subclasses += [] if name in compiled else inherits(name, file.read_text(encoding="utf-8"), compiled)
    assert subclasses == []


def test_no_handler_takes_the_variable_of_another_one() -> None:
    """With its first exception, mypyc gives the variable a type; another kind of exception would be a TypeError there.

    As that of `except (Unreadable, IndexError) as error` behind `except Unreadable as error` was.
    """
    again = "def read():\n try: ...\n except A as error: ...\n try: ...\n except {} as error: ..."
    assert retyped(again.format("(A, IndexError)")) == ["read: error is A, (A, IndexError)"]
    assert retyped(again.format("A")) == []
    rebound = []
    for file in sorted(file for pattern in listed() for file in ROOT.glob(pattern)):
        name = file.relative_to(ROOT).as_posix()
        rebound += [f"{name}: {each}" for each in retyped(file.read_text(encoding="utf-8"))]
    assert rebound == []


def retyped(source: str) -> list[str]:
    """The functions in which handlers of different exceptions bind the same variable."""
    functions = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            kinds: dict[str, dict[str, None]] = {}
            for node in within(function):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    kinds.setdefault(node.name, {})[ast.unparse(node.type)] = None
            functions += [f"{function.name}: {name} is {', '.join(own)}" for name, own in kinds.items() if len(own) > 1]
    return functions


def within(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from within(node)


def test_no_api_is_inferred() -> None:
    """What other modules read at import has a declared type: mypyc on Python 3.13 meets them before it is inferred."""
    files = sorted((ROOT / "broker" / "handlers").glob("*.py"))
    declared = {file.name: declares(file.read_text(encoding="utf-8"), "API") for file in files}
    assert sum(each is not None for each in declared.values()) > 70
    assert [name for name, each in declared.items() if each is False] == []
    assert declares("API = Api(1)", "API") is False


def declares(source: str, name: str) -> bool | None:
    """Whether a module gives a name a type with its value; None where it has no such name."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return True
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            return False
    return None


def inherits(name: str, source: str, compiled: set[str]) -> list[str]:
    """The classes of a module that inherit from a class of a compiled module, unless that one allows it."""
    tree = ast.parse(source)
    imported = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (file := f"{(node.module or '').replace('.', '/')}.py") in compiled
        for each in node.names
        if each.name not in open_classes(file)
    }
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [f"{name}: {each.name}" for each in classes if imported & {ast.unparse(base) for base in each.bases}]


@cache
def open_classes(file: str) -> set[str]:
    """The classes of a compiled module from which interpreted ones may inherit."""
    classes = (
        node for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)
    )
    allowed = "mypyc_attr(allow_interpreted_subclasses=True)"
    return {each.name for each in classes if allowed in map(ast.unparse, each.decorator_list)}


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


def test_a_wheel_that_lacks_a_compiled_module_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its files: a source alone would run as well, only slower."""
    modules = [file.relative_to(ROOT).with_suffix("") for each in listed() for file in sorted(ROOT.glob(each))]
    compiled = [f"understudy/_server/{module}.cpython-313-x86_64-linux-gnu.so" for module in modules]
    whole, thin, pure = (tmp_path / f"{name}.whl" for name in ("whole", "thin", "pure"))
    for wheel, names in ((whole, compiled), (thin, compiled[1:]), (pure, [])):
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in [*names, *(f"understudy/_server/{module}.py" for module in modules)]:
                archive.writestr(name, "")
    assert check([whole]) == 0
    assert check([whole, thin]) == 1
    assert f"thin.whl: not compiled: {modules[0]}\n" in capsys.readouterr().out
    assert check([pure]) == 1


def test_the_image_and_the_release_are_compiled() -> None:
    """The image in its build stage alone; the wheels of a release are looked into, and asked for their version."""
    installs = [step.rest for step in read(ROOT / "Dockerfile") if step.keyword == "RUN" and "pip install" in step.rest]
    assert [step for step in installs if "UNDERSTUDY_COMPILE=1" in step] == installs != []
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    steps = release["jobs"]["compiled"]["steps"]
    (variables,) = [step["env"] for step in steps if "cibuildwheel" in step.get("run", "")]
    assert "UNDERSTUDY_COMPILE=1" in variables["CIBW_ENVIRONMENT"]
    assert "(compiled)" in variables["CIBW_TEST_COMMAND"]
    assert any("tools.compiled --check" in step.get("run", "") for step in steps)
    assert "compiled" in release["jobs"]["index"]["needs"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_compiled_wheel_passes_the_quick_tests(tmp_path: Path) -> None:
    """Built, installed into an environment of its own, and tested from the codecs to the handlers."""
    command = [sys.executable, "-m", "tools.compiled", "--build", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "(compiled)" in done.stdout
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert check([wheel]) == 0
