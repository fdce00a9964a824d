"""A client of each language through the proxy, by day; all of them at night (`make through-proxy`)."""

from collections.abc import Iterator

import pytest

from tests.clients.clients import GO, JAVA, JAVASCRIPT, PYTHON, RUST
from tests.clients.drivers import IN_CI, Driver, UnavailableError, play
from tests.clients.known import KNOWN
from tests.clients.passed import running
from tests.clients.targets import Target

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
NAMES = ("aiokafka", "kafka-clients-4.3.1", "sarama", "kafkajs", "rust-rdkafka")
DRIVERS = [each for each in (*PYTHON, *JAVA, *GO, *JAVASCRIPT, *RUST) if each.name in NAMES]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Target]:
    """Three brokers behind a proxy that knows one of them; at the end, no request has gone past it."""
    with running(3, "proxy") as started:
        yield started


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_client_plays_every_step(cluster: Target, driver: Driver) -> None:
    """What it cannot do directly either is in `known.py`, and all else passes."""
    try:
        played = play(driver, cluster)
    except UnavailableError as reason:
        if IN_CI:
            raise
        pytest.skip(str(reason))
    failed = {step: played.lines.get(step) for step in driver.steps if not played.lines.get(step, {}).get("ok")}
    assert set(failed) == {step for client, step in KNOWN if client == driver.name}, (failed, played.stderr[-1500:])
