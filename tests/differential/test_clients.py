"""What each client observes is the same on a real Kafka and on ours: calls, exceptions, records and their order."""

from collections.abc import Iterator

import pytest

from tests.clients.drivers import IN_CI, Driver, UnavailableError
from tests.clients.targets import Target
from tests.differential import clients
from tests.differential.clients import ALL, OUTCOMES_ONLY
from tests.storage.kafka_tools import need_kafka

SLICE = [driver for driver in ALL if driver.name == "aiokafka"]
FEWEST_CALLS = 30


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Target, Target]]:
    """A real Kafka and ours."""
    need_kafka()
    with clients.both() as pair:
        yield pair


def check(driver: Driver, both: tuple[Target, Target]) -> None:
    """Play it on both, and compare the calls that the client prints."""
    try:
        count, found = clients.compared(driver, *both)
    except UnavailableError as reason:
        if IN_CI:
            raise
        pytest.skip(str(reason))
    assert driver.name in OUTCOMES_ONLY or count > FEWEST_CALLS
    assert not found, "\n".join(map(str, found))


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("driver", ALL, ids=lambda driver: driver.name)
def test_a_client_observes_the_same_on_both(both: tuple[Target, Target], driver: Driver) -> None:
    """Each call, what it returned or raised, and the records in their order."""
    check(driver, both)


@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.parametrize("driver", SLICE, ids=lambda driver: driver.name)
def test_one_client_observes_the_same_with_every_change(both: tuple[Target, Target], driver: Driver) -> None:
    """The slice of it that CI has the time for."""
    check(driver, both)
