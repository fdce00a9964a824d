"""Clients of many releases against clusters of many releases: real brokers, and Understudy that plays them.

    python -m tests.clients.compatibility.matrix [--clients NAME,...] [RELEASE ...]

puts all clients, or those, to real brokers of all releases, or those, and records what they come to: `recorded.json`
has a line for each client, what it came to with releases that follow each other.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from broker.settings.releases import NAMES
from tests.clients.compatibility.players import CLIENTS, Player
from tools.compact_json import dumps
from tools.old_kafka import running

RECORDED = Path(__file__).with_name("recorded.json")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""Of the clusters that play: as those of the real brokers."""
Matrix = dict[str, dict[str, str]]
"""Client -> release -> what it came to."""


def play_all(players: Iterable[Player], address: str) -> dict[str, str]:
    """What becomes of each client; some at a time, since most of it is waiting."""
    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(lambda player: (player.client, player.play(address)), players))


def spans(row: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Releases that follow each other, such as ``1.1-4.4``, and what a client came to with all of them."""
    for result, group in groupby((name for name in NAMES if name in row), key=row.__getitem__):
        first, *others = group
        yield (f"{first}-{others[-1]}" if others else first), result


def load() -> Matrix:
    """What was recorded from real brokers."""
    matrix: Matrix = {}
    for client, row in json.loads(RECORDED.read_text()).items():
        matrix[client] = {}
        for span, result in row.items():
            first, _, last = span.partition("-")
            covered = NAMES[NAMES.index(first) : NAMES.index(last or first) + 1]
            matrix[client].update(dict.fromkeys(covered, result))
    return matrix


def save(matrix: Matrix) -> None:
    """Write it down: clients in the page's order, the oldest release first."""
    rows = {client: dict(spans(matrix[client])) for client in CLIENTS if client in matrix}
    RECORDED.write_text(dumps(rows))


def record(clients: Sequence[str], releases: Iterable[str]) -> None:
    """Put the clients to real brokers, one broker at a time."""
    matrix = load()
    players = [Player(client) for client in clients]
    try:
        for name in releases:
            with running(name) as address:
                for client, results in play_all(players, address).items():
                    matrix.setdefault(client, {})[name] = results
            sys.stderr.write(f"{name}: {[matrix[client][name] for client in clients]}\n")
            save(matrix)
    finally:
        for player in players:
            player.close()


def main() -> None:
    """Record the clients and releases that the command line names."""
    parser = argparse.ArgumentParser(description="Records what real brokers let clients do.")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("releases", nargs="*", default=NAMES)
    options = parser.parse_args()
    record(options.clients.split(","), options.releases)


if __name__ == "__main__":
    main()
