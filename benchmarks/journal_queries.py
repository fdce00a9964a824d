"""How long a producer waits while the journal, with a million entries, is asked again and again.

The journal is filled over sockets by requests that clients send: produce, metadata, who coordinates a group. Then one
record at a time is produced, first in peace, then beside each kind of question, asked without a pause by a process of
its own, so that neither client takes the other's time.
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

QUESTIONS = {
    "the newest hundred of a topic": "/v1/journal?topic=t&limit=100",
    "an error that nobody heard": "/v1/journal?error=PRODUCER_FENCED",
    "a client that never came": "/v1/journal?client_id=nobody",
    "all requests of an API": "/v1/journal?api=FindCoordinator",
    "everything, as a capture": "/v1/journal.pcap",
}
_WINDOW = 200


def queries(entries: int, seconds: float) -> Iterator[tuple[str, list[float]]]:
    """What was asked meanwhile, and how long each record took in seconds, sorted."""
    room = {"understudy.journal.max.entries": entries, "understudy.journal.max.bytes": 8 * 2**30}
    with understudy.start(topics=["t:1"], settings={**SETTINGS, **room}) as kafka:
        yield "an empty journal", latencies(kafka.bootstrap_servers, seconds)
        fill(kafka.bootstrap_servers, entries)
        kept = kept_in(kafka)
        if kept < entries * 0.9:
            raise AssertionError(f"the journal has {kept} entries, not {entries}")
        yield f"{kept:,} entries, nobody asks", latencies(kafka.bootstrap_servers, seconds)
        for name, path in QUESTIONS.items():
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
    """How many requests the journal has."""
    place = urlsplit(kafka.control_url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request("GET", "/v1/journal?limit=1")
    kept = int(json.loads(connection.getresponse().read())["kept"])
    connection.close()
    return kept


def latencies(bootstrap: str, seconds: float) -> list[float]:
    """One record after the other for so long; sorted."""
    with Producer(bootstrap, "t", payloads.lines(100), linger_ms=0) as producer:
        for _ in range(200):
            producer.send_one()
        samples, until = [], time.perf_counter() + seconds
        while time.perf_counter() < until:
            samples.append(producer.send_one())
    return sorted(samples)


def fill(bootstrap: str, entries: int) -> None:
    """So many requests on one connection, some hundreds of them under way at any time."""
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
    """Ask until standard input ends; tells how often it was answered, and with how many megabytes."""
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
