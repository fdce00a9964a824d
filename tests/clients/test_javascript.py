"""The JavaScript clients, step by step."""

import pytest

from tests.clients.clients import JAVASCRIPT
from tests.clients.drivers import Driver, Runs, each_step

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@each_step(JAVASCRIPT)
def test_client_plays_the_step(runs: Runs, driver: Driver, step: str) -> None:
    """The step goes well, or cannot with this client and `known.py` says why."""
    runs.check(driver, step)
