"""Sends a broker millions of hostile frames, next to a well-behaved client.

    python -m tests.hostile.attack --frames 1000000 --seed 1

starts a server, sends the frames of ``frames`` for the seed over many connections, and keeps a well-behaved
client working all the time. It fails if the server ends, if any request of that client fails or gets a wrong response,
or if the server's memory has grown by more than 64 MiB afterwards.
"""

import argparse
import asyncio
import json
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from protocol.apis import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.records.batch import BATCH_HEADER_SIZE, RecordBatch
from tests.hostile.bystander import Bystander, Client
from tests.hostile.frames import COMPACTED, TOPIC, Attack, Corpus, Hostility
from understudy.launcher import ServerProcess, command_line

MOST_GROWTH = 64 * 1024 * 1024
PIPELINE = 48
PATIENCE_S = 0.3
HALF_OPEN = 40
SENTINEL_ID = 0x5E47
SENTINEL = struct.pack(">ihhih", 10, 18, 0, SENTINEL_ID, -1)
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "understudy.journal.max.entries": 10_000,  # the journal has its own bounds
    "understudy.journal.max.bytes": 4 * 1024 * 1024,
}


@dataclass
class Report:
    """Frames sent, their outcomes, and the state of the server and of the well-behaved client."""

    frames: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    closed: int = 0
    left_waiting: int = 0
    connections: int = 0
    seconds: float = 0.0
    bystander_requests: int = 0
    bystander_slowest_ms: float = 0.0
    bystander_failures: list[str] = field(default_factory=list)
    alive: bool = False
    resident_before: int = 0
    resident_at_once: int = 0
    resident_after: int = 0
    log_lines: int = 0
    tracebacks: list[str] = field(default_factory=list)

    @property
    def grown(self) -> int:
        """Return the bytes of memory that the server has gained, once unused members and groups have expired."""
        return self.resident_after - self.resident_before

    @property
    def complaints(self) -> list[str]:
        """Return why the run failed; empty if it succeeded."""
        reasons = [] if self.alive else ["the server has ended"]
        reasons += self.bystander_failures[:5]
        if self.grown > MOST_GROWTH:
            reasons.append(f"the server has grown by {self.grown / 2**20:.1f} MiB")
        return reasons

    def text(self) -> str:
        """Render the report, one figure per line."""
        figures = vars(self) | {"grown_mib": round(self.grown / 2**20, 1)}
        figures["frames_per_second"] = round(self.frames / max(self.seconds, 0.001))
        return "\n".join(f"{name}: {json.dumps(value)}" for name, value in figures.items())


class Attacker:
    """A worker that pipelines attacks over short-lived connections. Blocking: runs in a thread."""

    def __init__(self, address: str, attacks: Sequence[Attack], report: Report) -> None:
        host, _, port = address.rpartition(":")
        self._address = host, int(port)
        self._attacks, self._report = attacks, report
        self._half_open: list[socket.socket] = []

    def run(self) -> None:
        """Send all attacks, in order."""
        at = 0
        while at < len(self._attacks):
            self._report.connections += 1
            connection = socket.create_connection(self._address, timeout=PATIENCE_S)
            attack = self._attacks[at]
            if attack.kind == "half a frame":
                at += 1
                self._leave_half_open(connection, attack)
                continue
            with connection:
                if attack.framed:
                    at = self._pipelines(connection, at)
                else:
                    at += 1
                    self._check_end(connection, attack)
        for each in self._half_open:
            each.close()

    def _leave_half_open(self, connection: socket.socket, attack: Attack) -> None:
        """Begin a request, and leave the connection open."""
        connection.sendall(attack.data)
        self._half_open.append(connection)
        if len(self._half_open) > HALF_OPEN:
            self._half_open.pop(0).close()

    def _check_end(self, connection: socket.socket, attack: Attack) -> None:
        """Send bytes that are not a frame, and wait for the connection to close."""
        try:
            connection.sendall(attack.data)
            while connection.recv(65_536):
                pass
            self._report.closed += 1
        except TimeoutError:
            self._report.left_waiting += 1
        except OSError:
            self._report.closed += 1

    def _pipelines(self, connection: socket.socket, at: int) -> int:
        """Send on one connection until it closes; return the first attack that was not processed."""
        while at < len(self._attacks) and self._attacks[at].framed:
            batch = self._attacks[at : at + PIPELINE]
            batch = batch[: next((i for i, each in enumerate(batch) if not each.framed), len(batch))]
            numbered = [_numbered(each.data, index) for index, each in enumerate(batch)]
            done, alive = self._exchange(connection, b"".join(numbered) + SENTINEL, len(batch))
            at += done
            if not alive:
                return at
        return at

    def _exchange(self, connection: socket.socket, data: bytes, count: int) -> tuple[int, bool]:
        """Return how many attacks were processed, and whether the connection is still usable.

        The attack after the last response is assumed to have closed the connection, or to be delayed.
        """
        last, received = -1, bytearray()
        try:
            connection.sendall(data)
            while True:
                for number in _answered(received):
                    if number == SENTINEL_ID:
                        return count, True
                    self._report.answered += 1
                    if last < number < count:
                        last = number
                part = connection.recv(1 << 20)
                if not part:
                    break
                received += part
            self._report.closed += 1
        except TimeoutError:
            self._report.left_waiting += 1
        except OSError:
            self._report.closed += 1
        return min(last + 2, count), False


def _answered(received: bytearray) -> Iterator[int]:
    """Yield the correlation ids of the complete frames at the front, and remove these."""
    at = 0
    while len(received) - at >= 8:
        size, number = struct.unpack_from(">ii", received, at)
        if len(received) - at < 4 + size:
            break
        yield number
        at += 4 + size
    del received[:at]


def _numbered(frame: bytes, number: int) -> bytes:
    """Set a frame's correlation id to its index in the pipeline, if the frame is long enough."""
    return frame[:8] + struct.pack(">i", number) + frame[12:] if len(frame) >= 12 else frame


# --- a run -----------------------------------------------------------------------------------------------------------


async def prepare(client: Client) -> Corpus:
    """Create the topics to attack, and build the corpus of valid requests."""
    small = CreatableTopicConfig("internal.segment.bytes", "100000")
    compacted = [small, CreatableTopicConfig("cleanup.policy", "compact,delete")]
    topics = [CreatableTopic(TOPIC, 1, 1, configs=[small]), CreatableTopic(COMPACTED, 1, 1, configs=compacted)]
    created = await client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 10_000))
    return Corpus(created.topics[0].topic_id)


async def attack(address: str, corpus: Corpus, frames: int, seed: int, workers: int, report: Report) -> None:
    """Send all attacks of a seed, spread over the workers; generated in pieces to save memory."""
    hostility = Hostility(corpus, seed)
    piece = workers * 500
    for start in range(0, frames, piece):
        attacks = hostility.attacks(min(piece, frames - start))
        report.kinds.update(each.kind for each in attacks)
        report.frames += len(attacks)
        shares = [attacks[number::workers] for number in range(workers)]
        await asyncio.gather(*(asyncio.to_thread(Attacker(address, share, report).run) for share in shares))


async def run(server: ServerProcess, frames: int, seed: int, workers: int) -> Report:
    """Attack a running server; return the report."""
    report, address = Report(), server.ready.bootstrap_servers[0]
    client = await Client.connect(address)
    corpus = await prepare(client)
    warm_up = [Attack("warm-up", struct.pack(">i", len(body)) + body) for _, _, body in corpus.requests]
    await asyncio.to_thread(Attacker(address, warm_up, Report()).run)
    await attack(address, corpus, 2000, seed + 1, workers, Report())
    bystander = Bystander(address)
    await bystander.begin()
    report.resident_before = resident_bytes(server.ready.pid)
    started = time.monotonic()
    beside = asyncio.create_task(bystander.work())
    try:
        await attack(address, corpus, frames, seed, workers, report)
    finally:
        report.seconds = round(time.monotonic() - started, 1)
        await bystander.end(beside)
        await client.close()
    report.bystander_requests, report.bystander_failures = bystander.requests, bystander.failures
    report.bystander_slowest_ms = round(bystander.slowest_s * 1000, 1)
    report.alive = server.alive
    if server.alive:
        report.resident_at_once = resident_bytes(server.ready.pid)
        await read_everything(address)
        await asyncio.to_thread(let_expire, server)
        await read_everything(address)
        report.resident_after = resident_bytes(server.ready.pid)
    lines = server.log_file.read_text(errors="replace").splitlines()
    report.log_lines = len(lines)
    report.tracebacks = [line[:600] for line in lines if '"level": "error"' in line or "Traceback" in line][:10]
    return report


async def read_everything(address: str) -> None:
    """Read everything that was accepted, by offset and by timestamp: malformed batches must not break reads."""
    client = await Client.connect(address)
    for topic in (TOPIC, COMPACTED):
        for time_ms in (0, 1_700_000_000_002, -3):
            topic_request = ListOffsetsTopic(topic, [ListOffsetsPartition(0, time_ms)])
            await client.call(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, [topic_request]))
        offset, end = 0, 1
        while offset < end:
            partition = FetchPartition(0, offset, 1 << 20)
            request = FetchRequest(topics=[FetchTopic(topic, [partition])], isolation_level=1)
            fetched = (await client.call(ApiKey.FETCH, 12, request)).responses[0].partitions[0]
            end = fetched.last_stable_offset
            offset = max(_last_offset(bytes(fetched.records or b"")) + 1, fetched.log_start_offset, offset + 1)
    await client.close()


def _last_offset(data: bytes) -> int:
    """Return the last offset of the last complete batch; -1 if there is none."""
    at, last = 0, -1
    while len(data) - at >= BATCH_HEADER_SIZE:
        batch = RecordBatch(data, at)
        at += batch.size
        last = batch.last_offset if at <= len(data) else last
    return last


def let_expire(server: ServerProcess) -> None:
    """Run cleanup and advance the clock by an hour, so that thousands of members and groups expire."""
    post(server, "/v1/compaction/run")
    post(server, "/v1/clock/advance", ms=3_600_000)
    post(server, "/v1/retention/run")


def post(server: ServerProcess, verb: str, **body: int) -> None:
    """Call a verb of the control plane; raises RuntimeError if it fails."""
    url = urlsplit(str(server.ready.control_url))
    connection = HTTPConnection(str(url.hostname), url.port, timeout=120)
    connection.request("POST", verb, json.dumps(body))
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{verb}: {response.read().decode()}")
    connection.close()


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def hostile_run(frames: int, seed: int, workers: int = 16, **options: Any) -> Report:
    """Start a server, attack it, stop it."""
    arguments = command_line(port=0, control_port=0, log_format="json", seed=seed, settings=SETTINGS, **options)
    server = ServerProcess(arguments)
    try:
        return asyncio.run(run(server, frames, seed, workers))
    finally:
        server.stop()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args()
    report = hostile_run(options.frames, options.seed, options.workers)
    sys.stdout.write("\n".join([report.text(), *(f"FAILED: {each}" for each in report.complaints)]) + "\n")
    return 1 if report.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
