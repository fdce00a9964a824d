"""Measures how long a client waits while the largest operations of the control plane run.

    python -m benchmarks.bystander [--only write,restore,list,create,delete] [--json FILE]

A bystander in its own process sends ApiVersions every three milliseconds. Each figure is the 99th percentile of its
waiting times while one verb runs. Requests that could not be sent, because an earlier one was not answered, count as
well: as if another client had sent each when it was due. The goal is 20 ms; a missed goal is reported, and the exit
code is 1. Needs an idle machine, or its priority (Linux, as root):

    setsid -w sh -c 'echo -20 > /proc/self/autogroup; exec nice -n -20 python -m benchmarks.bystander'
"""

import argparse
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import understudy
from benchmarks.targets import ROOT
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

INTERVAL_S = 0.003
MOST_MS = 20.0
RECORDS, PARTITIONS, TOPICS = 100_000, 40_000, 40_000
_VERSIONS = struct.pack(">ihhih4s", 14, 18, 0, 1, 4, b"side")


# --- the bystander's own process -------------------------------------------------------------------------------------


def ask(address: str) -> None:
    """Send requests at intervals until standard input ends, then print when each was due and how long it waited (s)."""
    host, _, port = address.rpartition(":")
    samples: list[tuple[float, float]] = []
    with socket.create_connection((host, int(port))) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        os.set_blocking(0, False)
        due = time.time()
        while not _ended():
            due = max(due + INTERVAL_S, time.time())
            time.sleep(max(0.0, due - time.time()))
            peer.sendall(_VERSIONS)
            _read(peer, struct.unpack(">i", _read(peer, 4))[0])
            waited = time.time() - due
            while waited > 0:
                samples.append((due, waited))
                due, waited = due + INTERVAL_S, waited - INTERVAL_S
    json.dump(samples, sys.stdout)


def _call(address: str, frame: bytes) -> None:
    """Send one request on its own connection, and discard the response."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as peer:
        peer.sendall(frame)
        _read(peer, struct.unpack(">i", _read(peer, 4))[0])


def _ended() -> bool:
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


def _read(peer: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        more = peer.recv(size - len(content))
        if not more:
            raise ConnectionError("the broker closed the connection")
        content += more
    return content


# --- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """How long the bystander waited during one verb, in ms."""

    verb: str
    took_ms: float
    p99_ms: float
    worst_ms: float

    @property
    def missed(self) -> bool:
        """Return whether the figure is above its goal."""
        return self.p99_ms > MOST_MS

    def line(self) -> str:
        """Return the row of a Markdown table."""
        goal = " MISSED" if self.missed else ""
        return f"| {self.verb} | {self.took_ms:.0f} ms | {self.p99_ms:.1f} ms | {self.worst_ms:.1f} ms |{goal}"


@contextmanager
def bystander(address: str) -> Iterator[list[tuple[float, float]]]:
    """Run a bystander during the block; its samples are in the list afterwards."""
    samples: list[tuple[float, float]] = []
    command = [sys.executable, "-m", "benchmarks.bystander", "--ask", address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield samples
        finally:
            process.stdin.close()
            samples += json.load(process.stdout)


def measure(kafka: understudy.Cluster, verb: str, do: Callable[[], object]) -> Wait:
    """Run a verb while a bystander measures."""
    with bystander(kafka.bootstrap_servers.split(",")[0]) as samples:
        time.sleep(0.1)
        begun = time.time()
        do()
        ended = time.time()
        time.sleep(0.05)
    waits = sorted(waited * 1e3 for due, waited in samples if due + waited >= begun and due <= ended)
    waits = waits or [0.0]  # it was over before the next request was due
    return Wait(verb, (ended - begun) * 1e3, waits[int(len(waits) * 0.99)], waits[-1])


def write(kafka: understudy.Cluster) -> Iterator[Wait]:
    """Write 100,000 records by one request, and read 10,000 of them."""
    kafka.topics.create("records", partitions=4)
    records = [f"value {number}" for number in range(RECORDS)]
    yield measure(kafka, f"write {RECORDS:,} records", lambda: kafka.topics["records"].write(*records))
    partition = kafka.topics["records"].partitions[0]
    yield measure(kafka, "read 10,000 records", lambda: partition.records(limit=10_000))


def list_(kafka: understudy.Cluster) -> Iterator[Wait]:
    """List 40,000 topics."""
    for first in range(0, TOPICS, 1000):
        names = [f"topic-{number:05}" for number in range(first, first + 1000)]
        _call(
            kafka.bootstrap_servers.split(",")[0],
            encode_request(
                ApiKey.CREATE_TOPICS,
                7,
                1,
                "setup",
                CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1) for name in names], timeout_ms=60_000),
            ),
        )
    yield measure(kafka, f"list {TOPICS:,} topics", kafka.topics.list)


def create(kafka: understudy.Cluster) -> Iterator[Wait]:
    """Create and delete topics of 10,000 partitions, the largest that one request may create."""
    for number in range(PARTITIONS // 10_000):
        name = f"large-{number}"
        yield measure(kafka, "create 10,000 partitions", partial(kafka.topics.create, name, partitions=10_000))
    yield measure(kafka, "delete 10,000 partitions", kafka.topics["large-0"].delete)
    kafka.topics.create("large-0", partitions=10_000)


def restore(kafka: understudy.Cluster) -> Iterator[Wait]:
    """Snapshot, restore and reset of 40,000 partitions."""
    snapshots = []
    yield measure(kafka, "take a snapshot", lambda: snapshots.append(kafka.snapshots.take()))
    yield measure(kafka, f"restore {PARTITIONS:,} partitions", snapshots[0].restore)
    yield measure(kafka, "show metrics", kafka.metrics)
    yield measure(kafka, f"reset {PARTITIONS:,} partitions", kafka.reset)


PARTS: dict[str, tuple[Callable[[understudy.Cluster], Iterator[Wait]], ...]] = {
    "write": (write,),
    "list": (list_,),
    "create": (create, restore),
}


def main() -> int:
    """Measure, print a table, return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to measure")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask(options.ask)
        return 0
    waits: list[Wait] = []
    for part in options.only.split(","):
        with understudy.start() as kafka:
            for each in PARTS[part]:
                for wait in each(kafka):
                    print(wait.line(), flush=True)
                    waits.append(wait)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in waits]))
    return int(any(each.missed for each in waits))


if __name__ == "__main__":
    sys.exit(main())
