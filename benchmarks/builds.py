"""Compares builds of the server over sockets: processor time of an operation, start, memory.

    python -m benchmarks.builds .venv/bin/understudy build/compiled/environment/bin/understudy

Each argument is the `understudy` command of one build. One server of each runs; in each round every operation is sent
to one after the other, in rotating order, one request in flight. The figures are the server's processor time for one
operation (user and system, from `/proc/PID/task/*/schedstat`) and the client's own view of one round trip: medians of
the rounds, with the smallest and the largest. Start and memory are measured on further servers.
"""

import argparse
import itertools
import os
import socket
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import frames
from benchmarks.targets import SETTINGS, answers, free_port
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.wire import Wire

Operation = Callable[[], object]


class Build:
    """A running server of one build, and a connection to it."""

    def __init__(self, command: str) -> None:
        port = free_port()
        arguments = ["serve", "--port", str(port), "--control-port", "off", "--log-level", "error"]
        arguments += ["--topic", "t:1", "--topic", "read:1"]
        for name, value in SETTINGS.items():
            arguments += ["--set", f"{name}={value}"]
        begun = time.perf_counter()
        self.process = subprocess.Popen([command, *arguments], cwd="/", env=_bare(), stdout=subprocess.DEVNULL)
        while not answers(port):
            if self.process.poll() is not None:
                raise RuntimeError(f"{command} did not start")
            time.sleep(0.001)
        self.started_ms = (time.perf_counter() - begun) * 1000
        self.wire = Wire(f"127.0.0.1:{port}")

    def cpu_us(self) -> float:
        """Return the processor time of all threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1000

    def rss_mb(self) -> float:
        """Return the current resident memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def close(self) -> None:
        """End the server."""
        self.wire.socket.close()
        self.process.terminate()
        self.process.wait()

    def ask(self, frame: bytes) -> None:
        """Send a request and read its whole response, without decoding either."""
        raw: socket.socket = self.wire.socket
        raw.sendall(frame)
        left = int.from_bytes(raw.recv(4, socket.MSG_WAITALL), "big")
        while left:
            left -= len(raw.recv(left))

    def operations(self) -> dict[str, Operation]:
        """Return the operations; each has run once."""
        wire = self.wire
        one, large = frames.produce("t", records=1, size=100), frames.produce("t", records=1000, size=990)
        self.ask(frames.produce("read", records=1000, size=990))
        self.ask(frames.produce("read", records=1, size=100))
        (topic,) = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name="read")])).topics
        tail = frames.fetch(topic.topic_id, offset=1000)
        heartbeat = encode_request(ApiKey.HEARTBEAT, 4, 1, "bench", self._member())
        by_title: dict[str, Operation] = {
            "produce, 1 record of 100 B": lambda: self.ask(one),
            "produce, 1,000 records of 990 B": lambda: self.ask(large),
            "fetch, the newest record": lambda: self.ask(tail),
            "heartbeat of a member": lambda: self.ask(heartbeat),
            "transaction: add a partition, commit": self._transactions(),
        }
        for each in by_title.values():
            each()
        return by_title

    def _member(self) -> HeartbeatRequest:
        """Let one member join a group of the classic protocol."""
        wire = self.wire
        join = JoinGroupRequest("g", 300_000, "", "consumer", [JoinGroupRequestProtocol("range", b"")], 300_000)
        while (joined := wire.call(ApiKey.JOIN_GROUP, 3, join)).error_code:
            self.ask(frames.find_coordinator("g"))
        given = [SyncGroupRequestAssignment(joined.member_id, b"")]
        request = SyncGroupRequest("g", joined.generation_id, joined.member_id, given)
        assert wire.call(ApiKey.SYNC_GROUP, 3, request).error_code is ErrorCode.NONE
        return HeartbeatRequest("g", joined.generation_id, joined.member_id)

    def _transactions(self) -> Operation:
        wire, name = self.wire, "mine"
        while (begun := wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))).error_code:
            self.ask(frames.find_transactions(name))
        producer = (begun.producer_id, begun.producer_epoch)
        add = AddPartitionsToTxnRequest(name, *producer, [AddPartitionsToTxnTopic("t", [0])])

        def commit() -> None:
            while True:
                response = wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, add)
                code = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    break
            ended = wire.call(ApiKey.END_TXN, 3, EndTxnRequest(name, *producer, committed=True))
            assert code is ErrorCode.NONE
            assert ended.error_code is ErrorCode.NONE

        return commit


def _bare() -> dict[str, str]:
    """Return the environment without PYTHONPATH, which could put a checkout before the installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def measure(builds: list[Build], rounds: int, count: int) -> dict[str, list[tuple[list[float], list[float]]]]:
    """Return operation -> for each build its processor times and its round trips, in microseconds, round by round."""
    operations = [build.operations() for build in builds]
    results: dict[str, list[tuple[list[float], list[float]]]] = {
        title: [([], []) for _ in builds] for title in operations[0]
    }
    for number, (title, of_builds) in itertools.product(range(rounds), results.items()):
        times = max(count // 20, 5) if "1,000" in title else count
        for index in range(len(builds)):
            which = (index + number) % len(builds)
            operation, samples = operations[which][title], []
            cpu_us = builds[which].cpu_us()
            for _ in range(times):
                begun = time.perf_counter()
                operation()
                samples.append((time.perf_counter() - begun) * 1e6)
            of_builds[which][0].append((builds[which].cpu_us() - cpu_us) / times)
            of_builds[which][1].append(statistics.median(samples))
    return results


def _cell(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}<br><small>{min(values):.1f} to {max(values):.1f}</small>"


def main() -> None:
    """Measure and print a table."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("commands", nargs="+", help="the command `understudy` of each build")
    asked.add_argument("--rounds", type=int, default=9)
    asked.add_argument("--count", type=int, default=1000, help="operations in a round")
    options = asked.parse_args()
    print(f"load average at the start: {os.getloadavg()[0]:.1f}")
    commands = [str(Path(each).absolute()) for each in options.commands]
    names = [subprocess.check_output([each, "--version"], env=_bare(), text=True).strip() for each in commands]
    print("", "", *names, "first to last", "", sep=" | ")
    print("", "---", *["---:"] * (len(names) + 1), "", sep="|")
    started: list[tuple[list[float], list[float]]] = [([], []) for _ in names]
    for _ in range(options.rounds):
        for command, (starts, memory) in zip(commands, started, strict=True):
            build = Build(command)
            starts.append(build.started_ms)
            memory.append(build.rss_mb())
            build.close()
    builds = [Build(command) for command in commands]
    try:
        results = measure(builds, options.rounds, options.count)
    finally:
        for build in builds:
            build.close()
    rows = [(title, ("server's CPU, us", "round trip, us"), cells) for title, cells in results.items()]
    for title, parts, cells in [*rows, ("start", ("to first answer, ms", "idle RSS, MB"), started)]:
        for index, part in enumerate(parts):
            columns = [cell[index] for cell in cells]
            ratio = statistics.median(columns[0]) / statistics.median(columns[-1])
            print("", f"{title}: {part}", *map(_cell, columns), f"{ratio:.2f}", "", sep=" | ")


if __name__ == "__main__":
    main()
