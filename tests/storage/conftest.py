"""Fixtures: a data directory in memory and on disk; most tests run on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.logs import Tree


@pytest.fixture(params=["memory", "disk"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tree]:
    """A data directory of either kind."""
    directory = Tree(tmp_path if request.param == "disk" else None)
    yield directory
    if directory.dir is not None:
        directory.stop(clean=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Tree]:
    """A data directory on disk, where names and delays of files can be seen."""
    directory = Tree(tmp_path)
    yield directory
    if directory.dir is not None:
        directory.stop(clean=False)
