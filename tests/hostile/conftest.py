"""Bad input goes to a broker that another client uses at the same time: that client must not notice."""

from collections.abc import Iterator

import pytest

from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest
from tests.hostile.victims import Victim
from tests.serving import Server

MOST_GROWTH = 64 * 1024 * 1024


@pytest.fixture
def victim(broker: Server) -> Iterator[Victim]:
    """A broker with a bystander; afterwards both are as well as before, and the broker is no larger."""
    bystander = broker.wire()
    assert bystander.call(ApiKey.METADATA, 12, MetadataRequest()).brokers
    victim = Victim(broker, broker.resident_bytes())
    yield victim
    assert bystander.call(ApiKey.METADATA, 12, MetadataRequest()).brokers
    assert broker.process.alive
    grown = broker.resident_bytes() - victim.resident_bytes_before
    assert grown < MOST_GROWTH, f"the broker has grown by {grown} bytes"
