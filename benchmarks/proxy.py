"""Measures the overhead of `understudy proxy` per request, against a direct connection and toxiproxy.

Run it by `python -m benchmarks.proxy`. TOXIPROXY names toxiproxy's server, if there is one; it forwards bytes and
decodes nothing. The rounds of all routes alternate, so other activity on the machine slows each of them alike. Prints
medians of all rounds, and ratios.
"""

import json
import os
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.ports import free_ports
from tests.wire import Wire
from understudy.launcher import ServerProcess, command_line

ROUNDS, CALLS = 30, 100
Call = Callable[[Wire], Any]


def produce(wire: Wire, value: bytes) -> Any:
    """Produce one batch of one record."""
    data = PartitionProduceData(0, build_batch([Record(0, 1, b"k", value)]))
    return wire.call(
        ApiKey.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData("t", [data])])
    )


def fetch(wire: Wire) -> Any:
    """Fetch up to 100 kB from the start of the log."""
    wanted = FetchPartition(0, partition_max_bytes=100_000)
    return wire.call(ApiKey.FETCH, 11, FetchRequest(max_bytes=100_000, topics=[FetchTopic("t", [wanted])]))


CASES: dict[str, Call] = {
    "Heartbeat": lambda wire: wire.call(ApiKey.HEARTBEAT, 3, HeartbeatRequest("g", 1, "m")),
    "Metadata": lambda wire: wire.call(ApiKey.METADATA, 9, MetadataRequest(topics=None)),
    "Produce, 100 bytes": lambda wire: produce(wire, b"v" * 100),
    "Produce, 100 kB": lambda wire: produce(wire, b"v" * 100_000),
    "Fetch, 100 kB": fetch,
}


@contextmanager
def toxiproxy(binary: str, upstream: str) -> Iterator[str]:
    """Yield the address of a toxiproxy without toxics."""
    control, port = free_ports(2)
    process = subprocess.Popen([binary, "-port", str(control)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"127.0.0.1:{port}"
    body = json.dumps({"name": "kafka", "listen": address, "upstream": upstream}).encode()
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{control}/proxies", body, timeout=5).close()
                break
            except OSError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def measure(wire: Wire, call: Call) -> float:
    """Return the microseconds of one call in a round."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call(wire)
    return (time.perf_counter() - begin) / CALLS * 1e6


def main() -> None:
    """Print a table."""
    with ExitStack() as stack:
        server = ServerProcess(command_line(port=0, control_port="off", topics=["t:1"]))
        stack.callback(server.stop)
        upstream = server.ready.bootstrap_servers[0]
        ways = {"direct": upstream}
        binary = os.environ.get("TOXIPROXY")
        if binary:
            ways["toxiproxy"] = stack.enter_context(toxiproxy(binary, upstream))
        for name, settings in (("proxy", {}), ("proxy, no journal", {"understudy.journal.max.entries": 0})):
            options = command_line(upstream=upstream, port=0, control_port="off", settings=settings)
            process = ServerProcess(options, "proxy")
            stack.callback(process.stop)
            ways[name] = process.ready.bootstrap_servers[0]
        wires = {name: stack.enter_context(Wire(address)) for name, address in ways.items()}
        print(f"| us per request | {' | '.join(ways)} |\n|---|{'---|' * len(ways)}")
        for case, call in CASES.items():
            times_by_way: dict[str, list[float]] = {name: [] for name in ways}
            for wire in wires.values():
                measure(wire, call)
            for _ in range(ROUNDS):
                for name, wire in wires.items():
                    times_by_way[name].append(measure(wire, call))
            medians = {name: statistics.median(values) for name, values in times_by_way.items()}
            cells = [f"{each:.0f} ({each / medians['direct']:.1f}x)" for each in medians.values()]
            print(f"| {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
