"""A push of the clock over centuries ends early: by a reset, by a freeze, or when its caller hangs up."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest

from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created, produced
from tests.scenarios.core.batches import batch
from tests.serving import Server, until

CENTURIES_MS = 10**13
LAGGING = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(10**15), "segment.bytes": str(2**20)}
"""A log that the cleaner has to look at in each of its rounds: every second of these centuries."""


def ahead_ms(server: Server) -> int:
    """How far the cluster's clock is ahead."""
    return int(server.control("GET", "/v1/clock")["ahead_ms"])


@contextmanager
def pushing(server: Server) -> Iterator[socket.socket]:
    """The connection of a caller who waits for the push."""
    url = urlsplit(str(server.process.ready.control_url))
    body = json.dumps({"ms": CENTURIES_MS})
    with socket.create_connection((str(url.hostname), url.port), timeout=60) as caller:
        head = f"POST /v1/clock/advance HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall((head + body).encode())
        until(lambda: ahead_ms(server) > 0, "time that moves")
        yield caller


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """One that would take years for it."""
    server = broker_with(settings={"log.cleaner.backoff.ms": 1000})
    with closing(server.wire()) as wire:
        created(wire, "lagging", 1, 1, **LAGGING)
        for _ in range(3):
            produced(wire, "lagging", batch(b"x" * 700_000))
    return server


def freeze(server: Server) -> None:
    """Stop the clock."""
    server.control("POST", "/v1/clock/freeze")


@pytest.mark.parametrize("stop", [Server.reset, freeze])
def test_a_push_is_stopped(server: Server, stop: Callable[[Server], None]) -> None:
    """Its caller gets the time that was reached; the server is as usable as before."""
    with pushing(server) as caller:
        stop(server)
        assert caller.recv(4096).startswith(b"HTTP/1.1 200 ")
    if stop is freeze:
        assert 0 < ahead_ms(server) < CENTURIES_MS
    else:
        assert ahead_ms(server) < 60_000
        assert server.control("GET", "/v1/scenario")["steps"] == []  # nothing of it has steered what there is now
    server.reset()
    before = ahead_ms(server)
    server.advance(5000)
    assert 4000 <= ahead_ms(server) - before < 60_000


def test_a_push_ends_when_its_caller_hangs_up(server: Server) -> None:
    """The clock goes on from where it was by then."""
    with pushing(server):
        pass

    def is_steady() -> bool:
        first = ahead_ms(server)
        return all(abs(ahead_ms(server) - first) < 1000 for _ in range(5))

    until(is_steady, "a clock that nothing pushes")
    assert ahead_ms(server) < CENTURIES_MS
