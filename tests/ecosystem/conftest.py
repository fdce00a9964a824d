"""A cluster of three brokers for each test."""

from collections.abc import Iterator

import pytest

from tests.ecosystem import cluster


@pytest.fixture
def kafka() -> Iterator[cluster.Cluster]:
    """As just started."""
    running = cluster.start({})
    try:
        yield running
        assert running.unmet() == [], "an answer that the test loses was never asked for"
    finally:
        running.close()
