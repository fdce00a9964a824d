"""How many files a request passes: a ratchet, so that a reader can follow one request through the broker."""

import pytest

from benchmarks.inside import run
from tools.request_path import WALKS

MOST_FILES = {"produce": 31, "end-txn": 45, "clock-advance": 5}


@pytest.mark.parametrize("walk", WALKS)
def test_a_request_passes_few_files(walk: str) -> None:
    """A new file on the way of every request has to be worth a reader's look at it."""
    assert run(WALKS[walk]).files <= MOST_FILES[walk]
