"""Measures a producer's latency while the journal, with a million entries, is queried continuously.

The journal is filled over sockets by requests of clients: Produce, Metadata, FindCoordinator. Then one record at a time
is produced, first without queries, then next to each kind of query, which a separate process sends without pauses, so
that neither client takes the other's time.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from socket import create_connection
from urllib.parse import urlsplit

import understudy
from benchmarks import frames, payloads
from benchmarks.librdkafka import Producer
from benchmarks.targets import ROOT, SETTINGS

QUERIES = {
    "the newest hundred of a topic": "/v1/journal?topic=t&limit=100",
    "an error that never occurred": "/v1/journal?error=PRODUCER_FENCED",
    "a client that never connected": "/v1/journal?client_id=unknown",
    "all requests of an API": "/v1/journal?api=FindCoordinator",
    "everything, as a capture": "/v1/journal.pcap",
}
_WINDOW = 200


def queries(entries: int, seconds: float) -> Iterator[tuple[str, list[float]]]:
    """Yield the query that ran meanwhile, and the latency of each record in seconds, sorted."""
    limits = {"understudy.journal.max.entries": entries, "understudy.journal.max.bytes": 8 * 2**30}
    with understudy.start(topics=["t:1"], settings={**SETTINGS, **limits}) as kafka:
        yield "an empty journal", latencies(kafka.bootstrap_servers, seconds)
        fill(kafka.bootstrap_servers, entries)
        kept = kept_in(kafka)
        if kept < entries * 0.9:
            raise AssertionError(f"the journal has {kept} entries, not {entries}")
        yield f"{kept:,} entries, no queries", latencies(kafka.bootstrap_servers, seconds)
        for name, path in QUERIES.items():
            asking = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.journal_queries", kafka.control_url, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            assert asking.stdin is not None
            assert asking.stdout is not None
            asking.stdout.readline()  # it has begun
            samples = latencies(kafka.bootstrap_servers, seconds)
            asking.stdin.close()
            answers, megabytes = asking.stdout.readline().split()
            asking.wait()
            yield f"asked for {name} ({answers} times, {megabytes} MB)", samples


def kept_in(kafka: understudy.Cluster) -> int:
    """Return the number of requests in the journal."""
    place = urlsplit(kafka.control_url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request("GET", "/v1/journal?limit=1")
    kept = int(json.loads(connection.getresponse().read())["kept"])
    connection.close()
    return kept


def latencies(bootstrap: str, seconds: float) -> list[float]:
    """Produce one record after the other for `seconds`; return the sorted latencies."""
    with Producer(bootstrap, "t", payloads.lines(100), linger_ms=0) as producer:
        for _ in range(200):
            producer.send_one()
        samples, until = [], time.perf_counter() + seconds
        while time.perf_counter() < until:
            samples.append(producer.send_one())
    return sorted(samples)


def fill(bootstrap: str, entries: int) -> None:
    """Send `entries` requests on one connection, some hundreds of them in flight."""
    host, _, port = bootstrap.partition(":")
    requests = [frames.produce("t", records=1, size=100), frames.metadata("t"), frames.find_coordinator("g")]
    window = b"".join((requests * _WINDOW)[:_WINDOW])
    with create_connection((host, int(port))) as connection, connection.makefile("rb") as answers:
        connection.sendall(window)
        for _ in range(entries // _WINDOW):
            connection.sendall(window)
            for _ in range(_WINDOW):
                answers.read(int.from_bytes(answers.read(4), "big"))
        for _ in range(_WINDOW):
            answers.read(int.from_bytes(answers.read(4), "big"))


def main(url: str, path: str) -> None:
    """Repeat a query until standard input ends; print the number of responses and their megabytes."""
    place = urlsplit(url)
    answers = size = 0
    print("begun", flush=True)
    while True:
        connection = HTTPConnection(str(place.hostname), place.port, timeout=120)
        connection.request("GET", path)
        response = connection.getresponse()
        while piece := response.read1(1 << 20):
            size += len(piece)
            if select.select([sys.stdin], [], [], 0)[0] and not os.read(0, 1):
                print(answers, round(size / 1e6), flush=True)
                return
        answers += 1
        connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
