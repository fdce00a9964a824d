"""The tests of the row `readme_pytest`: with the fixture, or against the peer at BENCH_BOOTSTRAP."""

import os

import pytest

from benchmarks.readme import TESTS_IN_PYTEST
from benchmarks.readme.confluent import read_back

BESIDE = os.environ.get("BENCH_BOOTSTRAP")


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Return the address of the peer, or of a freshly started cluster."""
    return BESIDE or str(request.getfixturevalue("kafka").bootstrap_servers)


@pytest.mark.parametrize("number", range(TESTS_IN_PYTEST))
def test_what_was_sent_is_read(bootstrap: str, number: int) -> None:
    """Use a new topic and group, as a peer keeps them."""
    read_back(bootstrap, f"suite-{number}", f"suite-{number}")
