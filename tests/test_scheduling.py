"""How `make test` distributes the tests to its workers."""

from pathlib import Path

import pytest

from tests.conftest import longest_first
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
