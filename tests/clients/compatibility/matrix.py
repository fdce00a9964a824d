"""Clients of many releases against clusters of many releases: real brokers, and Understudy that plays them.

    python -m tests.clients.compatibility.matrix [RELEASE ...]     records what real brokers let the clients do

`recorded.json` has a row for each client: what it came to with each release that it was played with.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from broker.releases import NAMES
from tests.clients.drivers import HERE, command
from tests.clients.targets import CACHE, JVM, ROOT
from tools.old_kafka import running

RECORDED = Path(__file__).with_name("recorded.json")
JAVA = ("0.11.0.3", "1.1.1", "2.4.1", "2.8.2", "3.9.1", "4.3.1")
LIBRDKAFKA = {"librdkafka 2.3": CACHE / "python" / "confluent-2.3" / "bin" / "python", "librdkafka": sys.executable}
CLIENTS = (*(f"kafka-clients {version}" for version in JAVA), *LIBRDKAFKA)
GOOD = "all ok"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
"""Of the clusters that play: as those of the real brokers."""
Matrix = dict[str, dict[str, str]]
"""Client -> release -> what it came to."""


@cache
def prepare() -> Path:
    """Fetch the clients and compile the one source of the Java ones; the folder with its classes."""
    command([HERE / "setup.sh", "java", "old_java", "python"])
    classes = CACHE / "build" / "java" / "compatibility"
    classes.mkdir(parents=True, exist_ok=True)
    source = HERE / "java" / "compatibility" / "Compatibility.java"
    oldest = CACHE / "java" / f"clients-{JAVA[0]}"
    command(["javac", "-nowarn", "-d", classes, "-cp", f"{oldest}/*", source])
    return classes


def words(client: str) -> Sequence[str]:
    """The command that plays it."""
    kind, _, version = client.partition(" ")
    if kind == "kafka-clients":
        jars = CACHE / "java" / f"clients-{version}"
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        return ["java", *JVM[:4], quiet, "-cp", f"{prepare()}:{jars}/*", "compatibility.Compatibility"]
    return [str(LIBRDKAFKA[client]), "-m", "tests.clients.compatibility.librdkafka"]


@dataclass
class Player:
    """A client's process, asked again and again."""

    client: str
    process: "subprocess.Popen[str]"

    @classmethod
    def of(cls, client: str) -> "Player":
        """Start it."""
        with (CACHE / "compatibility.log").open("a") as log:
            process = subprocess.Popen(
                words(client), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )
        return cls(client, process)

    def play(self, bootstrap: str, name: str = "") -> str:
        """What became of the steps, on a topic of that name or of its own: all well, or each with its error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        name = name or f"{self.client.replace(' ', '-')}-{time.time_ns()}"
        print(bootstrap, name, file=self.process.stdin, flush=True)
        results = []
        while (line := self.process.stdout.readline()) != "end\n":
            if not line:
                raise RuntimeError(f"{self.client} ended by itself; see {CACHE / 'compatibility.log'}")
            results.append(line.strip())
        failed = [result for result in results if not result.endswith(" ok")]
        return ", ".join(failed) or GOOD

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


def play_all(players: Iterable[Player], address: str) -> dict[str, str]:
    """What becomes of each client; some at a time, since most of it is waiting."""
    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(lambda player: (player.client, player.play(address)), players))


def load() -> Matrix:
    """What was recorded from real brokers."""
    found: Matrix = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return found


def save(matrix: Matrix) -> None:
    """Write it down, oldest release first."""
    rows = {client: {name: row[name] for name in NAMES if name in row} for client, row in matrix.items()}
    RECORDED.write_text(json.dumps(rows, indent=1) + "\n")


def record(releases: Iterable[str]) -> None:
    """Put all clients to real brokers, one at a time."""
    matrix = load()
    players = [Player.of(client) for client in CLIENTS]
    try:
        for name in releases:
            with running(name) as address:
                for client, found in play_all(players, address).items():
                    matrix.setdefault(client, {})[name] = found
            sys.stderr.write(f"{name}: {[matrix[client][name] for client in CLIENTS]}\n")
            save(matrix)
    finally:
        for player in players:
            player.close()


if __name__ == "__main__":
    record(sys.argv[1:] or NAMES)
