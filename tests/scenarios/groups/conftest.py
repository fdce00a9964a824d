"""What all rows of groups begin with."""

import pytest

from tests.conftest import BrokerWith
from tests.scenarios.groups.consumers import CONSUMER_SETTINGS
from tests.scenarios.groups.members import SETTINGS
from tests.serving import Server


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A broker whose groups begin at once; its clock moves only when it is pushed."""
    server = broker_with(settings=SETTINGS)
    server.freeze()
    return server


@pytest.fixture
def consumers(broker_with: BrokerWith) -> Server:
    """A broker whose consumer groups (KIP-848) have short sessions; its clock moves only when it is pushed."""
    server = broker_with(settings=CONSUMER_SETTINGS)
    server.freeze()
    return server
