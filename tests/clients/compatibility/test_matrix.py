"""Clients of the time, older and newer ones, against the releases that Understudy plays: what real brokers let them do.

In CI some releases, on the two sides of borders; every night all of them, and the page docs/compatibility.md.
"""

from collections.abc import Iterator

import pytest

from tests.clients.compatibility.matrix import CLIENTS, SETTINGS, Player, load, play_all, prepare
from tests.clients.compatibility.page import PAGE, drawn, played_releases
from tests.serving import Server, Servers

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
SLICE = ("1.0", "2.4", "3.9", "4.0")
RECORDED = load()


@pytest.fixture(scope="module")
def players() -> Iterator[dict[str, Player]]:
    """The clients, each one process for all releases."""
    prepare()
    made = {client: Player.of(client) for client in CLIENTS}
    yield made
    for player in made.values():
        player.close()


def server(servers: Servers, name: str) -> Server:
    """A cluster that plays the release."""
    made = servers.fresh(settings=SETTINGS)
    made.control("PUT", "/v1/versions", {"as_version": name})
    return made


@pytest.mark.parametrize("name", SLICE)
def test_clients_come_as_far_as_with_a_real_broker(servers: Servers, players: dict[str, Player], name: str) -> None:
    """Produce, consume in a group, transactions with offsets; or the same error."""
    address = server(servers, name).addresses[0]
    found = play_all(players.values(), address)
    assert found == {client: RECORDED[client][name] for client in CLIENTS}


@pytest.mark.nightly
def test_the_whole_matrix(servers: Servers, players: dict[str, Player]) -> None:
    """Every client with every release; the page says what came out, beside what real brokers gave."""
    found: dict[str, dict[str, str]] = {client: {} for client in CLIENTS}
    for name in played_releases():
        address = server(servers, name).addresses[0]
        for client, result in play_all(players.values(), address).items():
            found[client][name] = result
    PAGE.write_text(drawn(found, RECORDED), encoding="utf-8")
    differing = {
        (client, name): (found[client][name], real)
        for client, row in RECORDED.items()
        for name, real in row.items()
        if found[client][name] != real
    }
    assert differing == {}
