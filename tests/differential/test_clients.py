"""Every client observes the same on Understudy as on a real Kafka: calls, exceptions, records and their order."""

from collections.abc import Iterator

import pytest

from tests.clients.drivers import IN_CI, Driver, UnavailableError
from tests.clients.targets import Target
from tests.differential import clients
from tests.differential.clients import ALL, OUTCOMES_ONLY
from tests.storage.kafka_tools import need_kafka

AIOKAFKA = [driver for driver in ALL if driver.name == "aiokafka"]
FEWEST_CALLS = 30
"""A client that prints fewer calls has not printed them at all: its two runs would be equal for nothing."""


@pytest.fixture(scope="module")
def targets() -> Iterator[tuple[Target, Target]]:
    """A real Kafka and Understudy."""
    need_kafka()
    with clients.both() as both:
        yield both


def check(driver: Driver, targets: tuple[Target, Target]) -> None:
    """Play the client's script on both targets, and compare the calls that it prints."""
    try:
        count, differences = clients.compared(driver, *targets)
    except UnavailableError as reason:
        if IN_CI:
            raise
        pytest.skip(str(reason))
    assert driver.name in OUTCOMES_ONLY or count > FEWEST_CALLS
    assert not differences, "\n".join(map(str, differences))


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("driver", ALL, ids=lambda driver: driver.name)
def test_a_client_observes_the_same_on_both(targets: tuple[Target, Target], driver: Driver) -> None:
    """Each call, what it returned or raised, and the records in their order."""
    check(driver, targets)


@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.parametrize("driver", AIOKAFKA, ids=lambda driver: driver.name)
def test_one_client_observes_the_same_with_every_change(targets: tuple[Target, Target], driver: Driver) -> None:
    """One client only: to compare them all takes a night."""
    check(driver, targets)
