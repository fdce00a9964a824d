"""A client that is configured for a release sends that release's versions, also where the cluster offers newer ones."""

import pytest

from tests.clients.compatibility.matrix import SETTINGS
from tests.clients.compatibility.players import GOOD, Player
from tests.serving import Servers

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("client", "fetch", "end_txn"),
    [("Sarama as 0.11", 5, 0), ("Sarama as 2.4", 11, 1), ("franz-go as 0.11", 5, 0), ("franz-go as 2.4", 11, 1)],
)
def test_a_pin_holds(servers: Servers, client: str, fetch: int, end_txn: int) -> None:
    """The highest versions of 0.11 and of 2.4, asked of 4.3."""
    server = servers.fresh(settings=SETTINGS)
    player = Player(client)
    try:
        assert player.play(server.addresses[0]) == GOOD
    finally:
        player.close()
    requests = server.control("GET", "/v1/journal?limit=1000")["entries"]
    versions = {name: {each["version"] for each in requests if each["api"] == name} for name in ("Fetch", "EndTxn")}
    assert versions == {"Fetch": {fetch}, "EndTxn": {end_txn}}
