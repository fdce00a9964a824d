"""Clients of the time, older and newer ones, against the releases that Understudy plays: what real brokers let them do.

In CI some releases, on the two sides of borders; every night all of them, and the page docs/clients.md.
"""

from collections.abc import Iterator, Sequence

import pytest

from broker.settings.releases import NAMES
from tests.clients.compatibility.matrix import SETTINGS, load, play_all, spans
from tests.clients.compatibility.page import PAGE, drawn
from tests.clients.compatibility.players import CLIENTS, IN_CI, Player
from tests.serving import Server, Servers

SLICE = ("1.0", "2.4", "3.9", "4.0")
RECORDED = load()


def playing(clients: Sequence[str]) -> Iterator[list[Player]]:
    """The clients, each one process for all releases."""
    players = [Player(client) for client in clients]
    yield players
    for player in players:
        player.close()


@pytest.fixture(scope="module")
def some() -> Iterator[list[Player]]:
    """Those of CI."""
    yield from playing(IN_CI)


@pytest.fixture(scope="module")
def everyone() -> Iterator[list[Player]]:
    """All of them."""
    yield from playing(CLIENTS)


def server(servers: Servers, name: str) -> Server:
    """A cluster that plays the release."""
    emulated = servers.fresh(settings=SETTINGS)
    emulated.control("PUT", "/v1/versions", {"as_version": name})
    return emulated


def test_every_cell_was_played_against_a_real_broker() -> None:
    """So that nothing is compared with nothing."""
    assert {client: set(row) for client, row in RECORDED.items()} == {client: set(NAMES) for client in CLIENTS}


def test_releases_that_follow_each_other_are_one_entry() -> None:
    """Such as 0.11-3.9; a release in between that came to something else begins another one."""
    row = dict.fromkeys(NAMES, "all ok") | {NAMES[2]: "produce KafkaException"}
    assert dict(spans(row)) == {
        f"{NAMES[0]}-{NAMES[1]}": "all ok",
        NAMES[2]: "produce KafkaException",
        f"{NAMES[3]}-{NAMES[-1]}": "all ok",
    }


@pytest.mark.interop
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SLICE)
def test_clients_come_as_far_as_with_a_real_broker(servers: Servers, some: list[Player], name: str) -> None:
    """Produce, consume in a group, transactions with offsets; or the same error.

    Four clients at a time can be too many for a busy machine: one that came less far is played once more, by itself.
    """
    address = server(servers, name).addresses[0]
    expected = {client: RECORDED[client][name] for client in IN_CI}
    results = play_all(some, address)
    results |= {
        player.client: player.play(address) for player in some if results[player.client] != expected[player.client]
    }
    assert results == expected


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_the_whole_matrix(servers: Servers, everyone: list[Player]) -> None:
    """Play every client with every release; the page lists the results beside those of real brokers."""
    results: dict[str, dict[str, str]] = {client: {} for client in CLIENTS}
    for name in NAMES:
        address = server(servers, name).addresses[0]
        for client, result in play_all(everyone, address).items():
            results[client][name] = result
    PAGE.write_text(drawn(results, RECORDED), encoding="utf-8")
    assert results == RECORDED
