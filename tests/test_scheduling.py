"""How `make test` distributes the tests to its workers."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import longest_first, pytest_ignore_collect, required_marker
from tests.scheduling import FileScheduling

SCHEDULING = object.__new__(FileScheduling)


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/a/test_b.py::test_c", "tests/a/test_b.py"),
        ("tests/a/test_b.py::Case::test_c[an @ and a :: in it]", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_c[1]@spark", "spark"),
    ],
)
def test_tests_of_a_file_stay_together_unless_they_are_in_a_group(test: str, group: str) -> None:
    """The group that a mark names may have tests of several files."""
    assert SCHEDULING._split_scope(test) == group


def test_what_takes_longest_begins_first(request: pytest.FixtureRequest) -> None:
    """By the time limit of a file's tests, then by whether they start processes; the rest in the order of before."""
    files: dict[str, list[pytest.MarkDecorator]] = {
        "plain": [],
        "with a server": [pytest.mark.processes],
        "long": [pytest.mark.timeout(600)],
        "plain too": [],
    }
    items: list[pytest.Item] = []
    for name, marks in files.items():
        for number in range(2):
            item = pytest.Function.from_parent(request.node.parent, name=f"{name} {number}", callobj=lambda: None)
            item.path = Path(name)
            for mark in marks[: 1 - number]:  # one of the two is enough
                item.add_marker(mark)
            items.append(item)
    longest_first(items)
    order = ["long", "with a server", "plain", "plain too"]
    assert [item.name for item in items] == [f"{name} {number}" for name in order for number in range(2)]


@pytest.mark.parametrize(
    ("expression", "marker"),
    [
        ("nightly", "nightly"),
        ("interop and not nightly", "interop"),
        ("interop and not nightly and not intermediate", "interop"),
        ("interop or nightly", None),
        ("interop and not nightly or slow", None),
        ("not interop and not nightly", None),
        ("", None),
    ],
)
def test_a_run_needs_a_marker_if_all_of_its_tests_have_it(expression: str, marker: str | None) -> None:
    """What an `or` lets in may have another one."""
    assert required_marker(expression) == marker


def test_files_without_the_marker_of_a_run_are_not_imported(tmp_path: Path) -> None:
    """The marker is in the text of each file whose tests have it; a run that needs none imports them all."""
    marked, plain = tmp_path / "test_marked.py", tmp_path / "test_plain.py"
    marked.write_text("pytestmark = pytest.mark.interop\n")
    plain.write_text("interoperable = True\n")
    expected = {"interop and not nightly": [None, True], "not interop": [None, None]}
    for expression, ignored in expected.items():
        config = SimpleNamespace(getoption={"markexpr": expression}.__getitem__)
        assert [pytest_ignore_collect(each, cast("pytest.Config", config)) for each in (marked, plain)] == ignored
