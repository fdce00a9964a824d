"""Measures how much one broker can hold: memory, processor time per operation, and how long a bystander waits.

    python -m benchmarks.capacity [--targets understudy,kafka] [--only connections,partitions,...] [--scale 1.0]

For each case a client makes so many connections, partitions, transactional ids, groups, or members of one group, in one
broker that does nothing else. The bystander (`benchmarks.bystander`) asks for the API versions meanwhile. Needs an idle
machine, and about 20,000 file descriptors. `--scale 0.1` makes a tenth of everything.
"""

import argparse
import resource
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.bystander import bystander
from benchmarks.targets import KINDS, Server, running
from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

_IN_FLIGHT = 64
_PATIENCE_S = 120
Request = tuple[ApiKey, int, object]


@dataclass(frozen=True, slots=True)
class Row:
    """What one case took."""

    case: str
    target: str
    count: int
    took_s: float
    rss_mb: float
    cpu_us: float
    p99_ms: float

    def line(self) -> str:
        """Return the row of a Markdown table."""
        return (
            f"| {self.count:,} {self.case} | {self.target} | {self.took_s:.0f} s | {self.rss_mb:.0f} MB | "
            f"{self.cpu_us:.0f} us | {self.p99_ms:.0f} ms |"
        )


class Client:
    """One connection, several requests in flight."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def ask(self, requests: Iterable[Request]) -> Iterator[object]:
        """Send the requests, and yield the responses in order."""
        asked: list[tuple[ApiKey, int]] = []
        for key, version, request in requests:
            self._socket.sendall(encode_request(key, version, 1, "capacity", request))
            asked.append((key, version))
            if len(asked) == _IN_FLIGHT:
                yield self._answer(*asked.pop(0))
        for key, version in asked:
            yield self._answer(key, version)

    def _answer(self, key: ApiKey, version: int) -> object:
        (size,) = struct.unpack(">i", self._file.read(4))
        return decode_response(key, version, self._file.read(size))[1]

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()


def _until_coordinator(client: Client, kind: int) -> None:
    """Wait until the coordinators' topic is there."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"])
        (found,) = client.ask([(ApiKey.FIND_COORDINATOR, 4, request)])
        if found.coordinators[0].error_code is ErrorCode.NONE:  # type: ignore[attr-defined]
            return
        time.sleep(0.2)
    raise TimeoutError("no coordinator")


def _topic(client: Client, name: str, partitions: int) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)], timeout_ms=60_000)
    (found,) = client.ask([(ApiKey.CREATE_TOPICS, 7, request)])
    assert found.topics[0].error_code is ErrorCode.NONE, found  # type: ignore[attr-defined]


def _repeat(client: Client, request: Callable[[int], Request], count: int) -> None:
    """Ask once for each number; what is refused as not ready yet is asked again."""
    left = list(range(count))
    while left:
        answers = client.ask([request(number) for number in left])
        left = [number for number, answer in zip(left, answers, strict=True) if _code(answer) is not ErrorCode.NONE]


def _code(answer: object) -> ErrorCode:
    topics = getattr(answer, "topics", None)
    code = answer.error_code if topics is None else topics[0].partitions[0].error_code  # type: ignore[attr-defined]
    ready = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)
    assert code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, *ready), code
    return ErrorCode(code)


# --- cases -----------------------------------------------------------------------------------------------------------


def connections(server: Server, stack: ExitStack, count: int) -> None:
    """Open connections, each of which asks one question and stays."""
    for _ in range(count):
        client = Client(server)
        stack.callback(client.close)
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["any"])
        list(client.ask([(ApiKey.FIND_COORDINATOR, 4, request)]))


def partitions(server: Server, stack: ExitStack, count: int) -> None:
    """Create topics of a thousand partitions."""
    client = Client(server)
    stack.callback(client.close)
    for first in range(0, count, 1000):
        _topic(client, f"t{first}", min(1000, count - first))


def transactional_ids(server: Server, stack: ExitStack, count: int) -> None:
    """Initialise transactional producers."""
    client = Client(server)
    stack.callback(client.close)
    _until_coordinator(client, 1)
    _repeat(client, lambda n: (ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(f"id-{n}", 60_000)), count)


def groups(server: Server, stack: ExitStack, count: int) -> None:
    """Commit an offset in each of many groups."""
    client = Client(server)
    stack.callback(client.close)
    _topic(client, "t", 1)
    _until_coordinator(client, 0)
    place = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, 7, "")])]
    _repeat(client, lambda n: (ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(f"g{n}", topics=place)), count)


def members(server: Server, stack: ExitStack, count: int) -> None:
    """Join one group of the consumer protocol, and heartbeat once."""
    client = Client(server)
    stack.callback(client.close)
    _topic(client, "t", 100)
    _until_coordinator(client, 0)

    def join(number: int) -> Request:
        return ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=f"member-{number}", member_epoch=0, rebalance_timeout_ms=300_000,
            subscribed_topic_names=["t"], topic_partitions=[],
        )  # fmt: skip

    _repeat(client, join, count)


CASES: dict[str, tuple[Callable[[Server, ExitStack, int], None], int]] = {
    "connections": (connections, 10_000),
    "partitions": (partitions, 100_000),
    "transactional ids": (transactional_ids, 100_000),
    "groups": (groups, 50_000),
    "members": (members, 2_000),
}


def measure(target: str, case: str, scale: float) -> Row:
    """Run one case against a target of its own."""
    make, most = CASES[case]
    count = max(int(most * scale), 1)
    with running(KINDS[target]) as server, ExitStack() as stack:
        before_s = server.cpu_s()
        with bystander(server.bootstrap) as samples:
            begun = time.time()
            make(server, stack, count)
            took_s = time.time() - begun
        cpu_us = (server.cpu_s() - before_s) * 1e6 / count
        waits = sorted(waited * 1e3 for _, waited in samples)
        return Row(case, target, count, took_s, server.rss_bytes() / 1e6, cpu_us, waits[int(len(waits) * 0.99)])


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="understudy,kafka")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for case in given.only.split(","):
        for target in given.targets.split(","):
            print(measure(target, case, given.scale).line(), flush=True)


if __name__ == "__main__":
    main()
