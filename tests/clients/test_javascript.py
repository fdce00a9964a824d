"""The JavaScript clients, step by step."""

import pytest

from tests.clients.clients import JAVASCRIPT
from tests.clients.drivers import Driver, Runs, each_step

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@each_step(JAVASCRIPT)
def test_client_plays_the_step(runs: Runs, driver: Driver, step: str) -> None:
    """The step passes, or fails for a reason of this client that `known.py` lists."""
    runs.check(driver, step)
