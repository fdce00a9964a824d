"""Which wrong error codes and comparisons the quick tests see: ``python -m tests.mutants.run [--sample N] [--seed S]``.

Each mutant is one changed expression (``sites``) in a fork of a process that has collected the quick tests, and runs
only those tests that pass there; a first fork, in which every site counts, has found out which. A survivor gets a test,
or a line with the reason in ``survivors.txt``.
"""

import argparse
import ast
import builtins
import contextlib
import gc
import importlib
import json
import operator
import os
import random
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutants.sites import CODES, COMPARISONS, EFFECTS, ROOT, Site, counted, mutated, sites

FOLDERS = ("tests/handlers", "tests/coordination", "tests/scenarios", "tests/storage", "tests/broker")
QUICK = "not interop and not nightly and not processes and not slow"
HIT = "__site_reached__"
OPERATORS = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
PATIENCE_S = 60.0
MOST_TESTS, MOST_OF_A_TABLE = 60, 400
"""Of the tests that pass a site, or enter a function of its file, so many of the shortest are run."""
SURVIVORS = Path(__file__).with_name("survivors.txt")
NOTICED, SURVIVED, UNREACHED, LATE = "noticed", "survived", "reached by no quick test", "noticed (it hangs)"


# --- a changed file in a running process -----------------------------------------------------------------------------


def put_in(path: str, tree: ast.Module) -> None:
    """Give the functions of a module the code of a changed tree; tables at its top level are made again."""
    name = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    module = importlib.import_module(name)
    file = str(module.__file__)
    before = _codes_of(compile((ROOT / path).read_text(encoding="utf-8"), file, "exec"))
    after = _codes_of(compile(tree, file, "exec"))
    gc.unfreeze()  # what is frozen is not listed
    for function in [each for each in gc.get_objects() if type(each) is FunctionType]:
        code = function.__code__
        new = after.get(_key(code, before)) if code.co_filename == file else None
        if new is not None and new.co_freevars == code.co_freevars:
            function.__code__ = new


def tables_made_again(path: str, tree: ast.Module, line: int) -> None:
    """Run the assignment at a module's top level that has this line; dictionaries keep their identity."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.lineno <= line <= (
            statement.end_lineno or 0
        ):
            old = dict(vars(module))
            exec(compile(ast.Module([statement], []), str(module.__file__), "exec"), vars(module))  # noqa: S102
            for name, value in list(vars(module).items()):
                was = old.get(name)
                if was is not value and isinstance(was, dict) and isinstance(value, dict):
                    was.clear()
                    was.update(value)
                elif was is not value and was is not None:
                    _replace_everywhere(name, was, value)


def _replace_everywhere(name: str, was: object, value: object) -> None:
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is was:
            setattr(module, name, value)


def _codes_of(code: CodeType) -> dict[tuple[Any, ...], CodeType]:
    """All code objects of a file, by name, line, and place among those of the same name and line."""
    codes: dict[tuple[Any, ...], CodeType] = {}
    counts: Counter[tuple[str, int]] = Counter()

    def walk(code: CodeType) -> None:
        named = code.co_qualname, code.co_firstlineno
        codes[*named, counts[named]] = code
        counts[named] += 1
        for each in code.co_consts:
            if isinstance(each, CodeType):
                walk(each)

    walk(code)
    return codes


def _key(code: CodeType, among: dict[tuple[Any, ...], CodeType]) -> tuple[Any, ...]:
    for number in range(9):
        key = code.co_qualname, code.co_firstlineno, number
        if key not in among or among[key] == code:
            return key
    return ()


# --- forks ------------------------------------------------------------------------------------------------------------


def forked(work: Callable[[], object], patience_s: float) -> Any:
    """What a fork of this process returns, as JSON; None if it does not end in time."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with contextlib.suppress(BaseException), os.fdopen(writing, "w") as out:
            out.write(json.dumps(work()))
        os._exit(0)
    os.close(writing)
    text, end_s = b"", time.monotonic() + patience_s
    with os.fdopen(reading, "rb", buffering=0) as answer:
        while time.monotonic() < end_s and select.select([answer], [], [], max(0, end_s - time.monotonic()))[0]:
            if not (piece := answer.read(1 << 20)):
                break
            text += piece
        else:
            os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


class Plugin:
    """Takes the place of pytest's loop over the collected tests."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.failed = False
        self.results: list[tuple[Site, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails in any phase has noticed something."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out what passes where, then try mutant by mutant."""
        every = sites(self.arguments.kind)
        random.Random(self.arguments.seed).shuffle(every)
        chosen = [each for each in every if any(part in each.path for part in self.arguments.only)]
        chosen = sorted(chosen[: self.arguments.sample or None])
        paths = sorted({each.path for each in chosen})
        reached = forked(partial(self._reached, session, paths), 3600)
        for number, site in enumerate(chosen, 1):
            tests = self._tests(reached, site)
            began_s = time.monotonic()
            result = forked(partial(self._tried, session, site, tests), PATIENCE_S) if tests else UNREACHED
            self.results.append((site, result or LATE))
            if result in {SURVIVED, UNREACHED}:
                took_s = time.monotonic() - began_s
                print(f"{number}/{len(chosen)} {result}: {site}", flush=True)
                print(f"    {site.text}    ({len(tests)} tests, {took_s:.1f} s)", flush=True)
        return True

    def _quiet(self, session: pytest.Session) -> None:
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        session.config.pluginmanager.unregister(reporter)

    def _run(self, items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, bool]]:
        """Run tests; whether each failed."""
        for number, item in enumerate(items):
            self.failed = False
            following = items[number + 1] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item, self.failed

    def _reached(self, session: pytest.Session, paths: list[str]) -> dict[str, Any]:
        """Site -> the numbers of the tests that pass there; the times of all tests; files -> tests that enter them."""
        self._quiet(session)
        seen: set[str] = set()

        def reached(key: str, value: Any, other: Any = None, comparison: str = "") -> object:
            if not comparison or value == other:
                seen.add(key)
            return OPERATORS[comparison](value, other) if comparison else value

        setattr(builtins, HIT, reached)
        for path in paths:
            put_in(path, counted(self.arguments.kind, path, HIT))
        tests_of, files, times = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list), []
        began_s = time.monotonic()
        for number, (_, failed) in enumerate(self._run(session.items)):
            times.append(time.monotonic() - began_s)
            began_s = time.monotonic()
            if not failed:
                for key in seen:
                    tests_of[key].append(number)
                for path in {key.rpartition(":")[0] for key in seen}:
                    files[path].append(number)
            seen.clear()
        return {"sites": tests_of, "files": files, "times": times}

    def _tests(self, reached: dict[str, Any], site: Site) -> list[int]:
        """The shortest of the tests that pass a site; of a table at the top level, of those that pass its file."""
        tests = reached["sites"].get(f"{site.path}:{site.index}", [])
        if not tests and site.at_import:
            tests = reached["files"].get(site.path, [])
        most = MOST_OF_A_TABLE if site.at_import else MOST_TESTS
        return sorted(tests, key=lambda number: float(reached["times"][number]))[:most]

    def _tried(self, session: pytest.Session, site: Site, tests: list[int]) -> str:
        self._quiet(session)
        tree = mutated(self.arguments.kind, site.path, site.index)
        put_in(site.path, tree)
        if site.at_import:
            tables_made_again(site.path, tree, site.line)
        noticed = any(failed for _, failed in self._run([session.items[number] for number in tests]))
        return NOTICED if noticed else SURVIVED


def known() -> dict[str, str]:
    """Survivors that stay, with the reason: ``path was -> becomes | text of the line | reason``."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines() if SURVIVORS.exists() else []
    parts = [line.rpartition(" | ") for line in lines if line and not line.startswith("#")]
    return {before: reason for before, _, reason in parts}


def main() -> int:
    """Print the survivors and the sums; 1 if there is a survivor without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=(CODES, COMPARISONS, EFFECTS), default=CODES)
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn by the seed; all without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[""], help="only files whose path has one of these in it")
    parser.add_argument("--tests", nargs="+", default=FOLDERS, help="only these files and folders of tests")
    plugin = Plugin(parser.parse_args())
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "-m", QUICK]
    pytest.main([*options, *plugin.arguments.tests], plugins=[plugin])
    print(Counter(result for _, result in plugin.results))
    reasons = known()
    left = [site for site, result in plugin.results if result in {SURVIVED, UNREACHED} and site.name not in reasons]
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
