"""The house rules: what can be checked about the source is checked here."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from operator import attrgetter
from pathlib import Path

import pytest

from broker.coordination.group.events import DEPARTURES, OFFSETS_GONE, UNLOADED
from broker.handlers import APIS
from protocol.apis import ApiKey
from tests.control.group_table import rows
from tools import module_map
from understudy.server_path import ALL_PACKAGES

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 60
GENERATED = ("understudy/aio/verbs.py", "understudy/client/verbs.py", "protocol/messages/")
"""As long as the tables of verbs and the schemas that they are made from."""
FOLDERS = ALL_PACKAGES

OF_CONTROLLERS = {
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
}
"""On no broker's listener (core A.7)."""

# Written in two parts, so that this file does not break its own rules.
REGISTRIES = tuple(
    name + rest
    for name, rest in (
        ("pypi", ".org"),
        ("pythonhosted", ".org"),
        ("npmjs", ".org"),
        ("npmjs", ".com"),
        ("yarnpkg", ".com"),
        ("repo.maven", ".apache"),
        ("repo1", ".maven"),
        ("maven", ".org"),
        ("proxy.golang", ".org"),
        ("sum.golang", ".org"),
        ("crates", ".io"),
        ("docker", ".io"),
        ("ghcr", ".io"),
        ("quay", ".io"),
        ("deb.debian", ".org"),
    )
)
MACHINE_PATHS = re.compile(r"(?<![\w.$}/])/(?:wor" + r"k|roo" + r"t|home/\w+)/")
VERBS_AS_NAMES = {"asked", "found", "given", "made"}
IN_FILES_OF_USERS = {"control_api/answers/scenario.py": "made", "control_api/scenario.py": "made"}
"""A field of recorded scripts."""
VAGUE_NAMES = re.compile(r"(?:Manager|Helper|Helpers|Util|Utils|Service)$", re.IGNORECASE)


@functools.cache
def files() -> tuple[Path, ...]:
    """Every file that git knows or would take, as it lies in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return tuple(ROOT / name for name in sorted(filter(None, listed.split("\0"))) if (ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """The Python files, all of them or those under some folders."""
    paths = [path for path in files() if path.suffix == ".py"]
    return [path for path in paths if not folders or path.relative_to(ROOT).parts[0] in folders]


@functools.cache
def tree(path: Path) -> ast.Module:
    """The file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path, line: int) -> str:
    """As editors jump to it."""
    return f"{path.relative_to(ROOT)}:{line}"


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    yield from (node for node in ast.walk(tree(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_no_file_is_longer_than_600_lines() -> None:
    """A file that grows gets a second one beside it."""
    by_hand = [path for path in python_files() if not str(path.relative_to(ROOT)).startswith(GENERATED)]
    counts = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in by_hand}
    assert [f"{place(path, count)}" for path, count in counts.items() if count > MOST_LINES_OF_A_FILE] == []


@pytest.mark.timeout(300)  # the first that parses most files
def test_no_function_is_longer_than_60_lines() -> None:
    """A function has at most 60 lines, so that it fits on a screen."""
    long_enough = [path for path in python_files() if path.read_bytes().count(b"\n") > MOST_LINES_OF_A_FUNCTION]
    long = [
        f"{place(path, node.lineno)} {node.name}"
        for path in long_enough
        for node in functions(path)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]
    assert long == []


def test_names_are_not_vague() -> None:
    """A Manager, a Helper, a Util or a Service could be anything."""
    classes = [
        f"{place(path, node.lineno)} {node.name}"
        for path in python_files(*FOLDERS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and VAGUE_NAMES.search(node.name)
    ]
    modules = [place(path, 1) for path in python_files(*FOLDERS) if VAGUE_NAMES.search(path.stem)]
    assert classes + modules == []


def bound_names(path: Path) -> Iterator[tuple[str, int]]:
    """Each name that a file binds, of a function or class, a parameter, a variable, an attribute; and its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


@pytest.mark.timeout(300)
def test_values_are_not_named_by_what_was_done_to_them() -> None:
    """A name is a noun of the domain, such as `partition` or `request`."""
    verbs = [
        f"{place(path, line)} {name}"
        for path in python_files()
        for name, line in bound_names(path)
        if name.strip("_").lower() in VERBS_AS_NAMES and IN_FILES_OF_USERS.get(str(path.relative_to(ROOT))) != name
    ]
    assert verbs == []


def handlers() -> list[Path]:
    """The files of broker/handlers that answer an API."""
    return [
        path
        for path in python_files("broker")
        if path.parent.name == "handlers" and re.search(r"^API\b.*= ", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def api_name(path: Path) -> str:
    """Kafka's name of the API that a handler's file answers: end_txn is EndTxn."""
    return "".join(part.capitalize() for part in path.stem.split("_"))


def test_every_api_is_asked_by_a_test() -> None:
    """Its request is made somewhere in tests/handlers or tests/scenarios; the tests' names list what they prove."""
    benches = [path for path in python_files("tests") if path.relative_to(ROOT).parts[1] in {"handlers", "scenarios"}]
    constructed = {
        node.func.id
        for path in benches
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert [path.stem for path in handlers() if f"{api_name(path)}Request" not in constructed] == []


def apis_asked_in_every_version() -> set[ApiKey]:
    """Of the decorators ``@every_version(API)`` without ``since`` and ``until``, each of which a handler's test has."""
    apis = set[ApiKey]()
    for path in python_files("tests"):
        if path.relative_to(ROOT).parts[1] not in {"handlers", "scenarios"}:
            continue
        decorators = [
            each
            for node in functions(path)
            for each in node.decorator_list
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "every_version"
        ]
        if not decorators:
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for each in decorators:
            if {keyword.arg for keyword in each.keywords} <= {"removed"}:
                apis |= {attrgetter(f"{ast.unparse(api)}.key")(module) for api in each.args}
    return apis


def test_every_version_of_every_api_is_asked_at_its_handler() -> None:
    """By a test with ``@every_version(API)``, which knows them from the API; so no version is forgotten."""
    several = {api.key for api in APIS if api.oldest < api.range(unstable=True)[1]}
    assert {key.title for key in several - apis_asked_in_every_version()} == set()


def test_no_test_lists_versions_by_hand() -> None:
    """A ``parametrize`` of all versions ends where the API ended when it was written; those of some are named."""
    lists = re.compile(r'parametrize\("version", range\(')
    places = [
        place(path, number)
        for path in python_files("tests")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if lists.search(line)
    ]
    assert places == []


def short_limits(module: ast.Module) -> list[int]:
    """The lines of waits that end before a minute is over."""
    waits = {"asyncio.timeout", "asyncio.wait_for", "anyio.fail_after"}
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call) and ast.unparse(node.func) in waits]
    limits = [(call.lineno, call.args[-1]) for call in calls if call.args]
    return [line for line, limit in limits if isinstance(limit, ast.Constant) and 1 <= limit.value < 60]  # type: ignore[operator]


def test_no_limit_of_a_wait_is_shorter_than_a_minute() -> None:
    """It ends a test that hangs; on a machine that does other things too, anything else takes long."""
    assert short_limits(ast.parse("asyncio.wait_for(ask(9), 60)\nasyncio.wait_for(ask(90), 5)")) == [2]
    assert [place(path, line) for path in python_files("tests") for line in short_limits(tree(path))] == []


def test_every_api_documents_its_versions_and_what_is_missing() -> None:
    """In its file's docstring, in the form from which GAPS.md is generated."""
    wrong = []
    for api in APIS:
        text = " ".join((sys.modules[api.api.handle.__module__].__doc__ or "").split())
        low, high = api.versions
        answer = rf"Version {low}\b(?!-)" if low == high else rf"Versions {low}-{high}\b"
        if not re.search(answer, text) or not re.search(r"(?:Not done|Differs from Kafka): ", text):
            wrong.append(api.key.title)
    assert wrong == []


def test_every_api_of_kafkas_broker_listener_is_served() -> None:
    """As docs/GAPS.md promises; an API that is not served needs its sentence there."""
    assert sorted(api.key for api in APIS) == [key for key in sorted(ApiKey) if key not in OF_CONTROLLERS]


def test_what_pages_take_from_the_code_is_current() -> None:
    """GAPS.md, docs/debugging.md and others."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "generate_pages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.stdout + done.stderr == "written: nothing\n", "run: python tools/generate_pages.py"


def test_every_api_is_in_the_list() -> None:
    """broker/handlers/__init__.py names every file that answers an API, and nothing else does the registering."""
    listed = (ROOT / "broker" / "handlers" / "__init__.py").read_text(encoding="utf-8")
    missing = [path.stem for path in handlers() if f"ServedVersions(ApiKey.{path.stem.upper()}," not in listed]
    assert missing == []


def mapped_folders() -> list[str]:
    """The folders that ARCHITECTURE.md's map names, with a slash behind each, as they are nested there."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = text.partition("\n## The tree\n")[2].partition("```\n")[2].partition("```")[0]
    named: list[str] = []
    enclosing: list[str] = []
    for line in filter(str.strip, block.splitlines()):
        del enclosing[(len(line) - len(line.lstrip())) // 2 :]
        names = re.split(r"  +", line.strip())[0].split()
        named += ["".join([*enclosing, name]) for name in names]
        enclosing.append(names[-1])
    return named


def test_the_map_shows_the_folders() -> None:
    """Each has its line in ARCHITECTURE.md, or one above it is described as a whole; none is listed that is gone."""
    named = mapped_folders()
    whole = [name for name in named if not any(other != name and other.startswith(name) for other in named)]
    there = {f"{path.relative_to(ROOT).parent}/" for path in files()} - {"./"}
    unmapped = {name for name in there - set(named) if not name.startswith(tuple(whole))}
    gone = {name for name in named if not any(folder.startswith(name) for folder in there)}
    assert (sorted(unmapped), sorted(gone)) == ([], []), "give each folder its line in ARCHITECTURE.md, 'The tree'"


def test_the_map_of_modules_has_their_first_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """As `make map FOLDER=storage/cleaner` prints them."""
    module_map.main(["storage/cleaner/"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        str(path.relative_to(ROOT)) for path in python_files("storage") if path.parent.name == "cleaner"
    ]
    assert "storage/cleaner/__init__.py                                  Log compaction." in lines


def test_the_table_of_kafkas_classes_names_files_that_are_there() -> None:
    """A name without a whole path is in a folder that its row has named before, or beside it."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("\n## From Kafka's classes\n")[2].partition("\n## ")[0]
    gone, count = [], 0
    for row in table.splitlines():
        folders = [ROOT]
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", row):
            existing = next((folder / name for folder in folders if (folder / name).exists()), None)
            count += 1
            if existing is None:
                gone.append(name)
            else:
                folders += [existing.parent, existing]
    assert count > 20
    assert gone == []


def versions_compared(path: Path) -> Iterator[str]:
    """Places where something called a version is compared with a number."""
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        names = [side.attr if isinstance(side, ast.Attribute) else getattr(side, "id", "") for side in sides]
        parts = [inner for side in sides if not isinstance(side, ast.Subscript) for inner in ast.walk(side)]
        numbers = any(isinstance(part, ast.Constant) and type(part.value) is int for part in parts)
        if numbers and any(name in {"version", "api_version", "request_version"} for name in names):
            yield place(path, node.lineno)


def test_the_table_of_groups_explained_and_its_tests_agree() -> None:
    """Each row has its test, each test its row; each reason for which members or offsets are gone has a row."""
    tested: set[str] = set()
    for name in ("test_group_ways", "test_explain_group", "test_fetch_ways"):
        tree = ast.parse((ROOT / "tests" / "control" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in ("WAYS", "REFUSALS"):
                listed = ast.literal_eval(re.sub(r"(?<![\w.])(E\.)?(\w+)", r'"\2"', ast.unparse(node.value or node)))
                tested |= {each if isinstance(each, str) else each[0] for each in listed}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "check":
                tested |= {each.removesuffix(".__name__") for each in map(ast.unparse, node.args[1:2])}
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OF_OTHER_SERVERS":
                tested |= {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
    table = rows()
    assert tested - {"act"} == set(table)
    text = "\n".join(row.sentence for row in table.values())
    assert [each.kind for each in (*DEPARTURES, *OFFSETS_GONE, UNLOADED) if each.sentence not in text] == []


def test_no_handler_compares_a_version_with_a_number() -> None:
    """What a version means has a name, with its KIP, in protocol/features.py."""
    folders = {"handlers", "requests", "faults", "journal", "timelines", "produce", "fetch"}
    watched = [path for path in python_files("broker") if folders & set(path.parts)]
    assert [spot for path in watched for spot in versions_compared(path)] == []


def test_no_test_sleeps() -> None:
    """Tests push the clock, or wait for the event itself."""
    called = re.compile(r"\bsleep" + r"\((?!0\))")  # sleep(0) only lets others run
    places = [
        place(path, number)
        for path in files()
        if path.is_relative_to(ROOT / "tests") and path.suffix == ".py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if called.search(line)
    ]
    assert places == []


ASSERTING = re.compile(r"assert|raises|warns|check|expect|verify|fail|fnmatch_lines", re.IGNORECASE)


def asserts(node: ast.AST) -> bool:
    """Whether a test can fail by itself: an assert, or a call of something that asserts."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if ASSERTING.search(name):
                return True
    return False


def test_every_test_can_fail() -> None:
    """A test that asserts nothing proves nothing."""
    idle = [
        f"{place(path, node.lineno)} {node.name}"
        for path in python_files("tests")
        if path.name.startswith("test_")
        for node in functions(path)
        if node.name.startswith("test_") and not asserts(node)
    ]
    assert idle == []


def test_no_file_is_binary() -> None:
    """What is checked in can be read; what cannot is made by the test that needs it."""
    assert [str(path.relative_to(ROOT)) for path in files() if b"\0" in path.read_bytes()] == []


def lines_of_text() -> Iterator[tuple[Path, int, str]]:
    """Every line that is checked in."""
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            yield path, number, line


def test_no_file_names_the_host_of_a_registry() -> None:
    """Where packages come from is the machine's business: mirrors exist."""
    places = [place(path, n) for path, n, line in lines_of_text() if any(host in line for host in REGISTRIES)]
    assert places == []


def test_no_file_names_a_path_of_the_machine_it_was_written_on() -> None:
    """Paths are relative, or come from the caller."""
    assert [place(path, n) for path, n, line in lines_of_text() if MACHINE_PATHS.search(line)] == []


@pytest.mark.parametrize("path", ["Makefile", ".ci/run", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"])
def test_the_house_has_its_papers(path: str) -> None:
    """What a newcomer looks for first is there."""
    assert (ROOT / path).stat().st_size > 0


def test_every_make_target_is_explained() -> None:
    """`make` without a target lists them all, and none of them is taken for a file."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())  # type: ignore[index]
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert targets == phony == {line.split()[0] for line in shown.splitlines()}


def test_no_modules_import_each_other() -> None:
    """Also where types alone are imported: none of such modules can be understood without the others."""
    assert [", ".join(sorted(circle)) for circle in circles_of(imports())] == []


def test_circles_are_found() -> None:
    """A positive control: two circles that one import connects, and a module in none."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e", "f"}, "e": {"d"}, "f": set[str]()}
    assert sorted(map(sorted, circles_of(graph))) == [["a", "b", "c"], ["d", "e"]]


def imports() -> dict[str, set[str]]:
    """Module -> modules of ours that it imports, anywhere in its text."""
    names = {}
    for path in python_files(*FOLDERS):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[path] = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    known = set(names.values())
    graph: dict[str, set[str]] = {}
    for path, name in names.items():
        wanted: set[str] = set()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                wanted.update(each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                modules = {f"{node.module}.{each.name}" for each in node.names}
                wanted |= modules & known if modules <= known else {node.module, *modules}
        graph[name] = (wanted & known) - {name}
    return graph


def circles_of(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which imports all others of its set, directly or not."""
    left = {name: set(wanted) for name, wanted in graph.items()}
    merged = {name: {name} for name in graph}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            first, *others = set(error.args[1])
        else:
            return [members for members in merged.values() if len(members) > 1]
        for name in others:  # one node of the graph takes the place of the circle that was found
            merged[first] |= merged.pop(name)
            left[first] |= left.pop(name)
        for wanted in left.values():
            if wanted & set(others):
                wanted.difference_update(others)
                wanted.add(first)
        left[first].discard(first)
