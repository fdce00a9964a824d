"""Peers that connect and reset before they are accepted, as health checks and port scans do."""

import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import BrokerWith
from tests.scenarios.core.asking import metadata
from tests.serving import Server, until

AT_ONCE = 500
"""Fewer than wait in any system's backlog."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    """Nothing is accepted in the meantime."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def connect_and_reset(server: Server, count: int) -> None:
    """Peers whose connections are complete and reset again before the server looks at them."""
    host, _, port = server.addresses[0].rpartition(":")
    peers = []
    with stopped(server):
        for _ in range(count):
            peer = socket.create_connection((host, int(port)), timeout=60)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peers.append(peer)
        for peer in peers:
            peer.close()


def open_descriptors(server: Server) -> int:
    """How many the server has now."""
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def check_unharmed(server: Server, count: int) -> None:
    """As many peers come and go: descriptors as before, one line in the log, and clients are served."""
    server.freeze()  # the line comes once a minute, however long this takes
    client = server.wire()
    assert metadata(client) == ()
    before, since = open_descriptors(server), server.log_position()
    for _ in range(count // AT_ONCE):
        connect_and_reset(server, AT_ONCE)
        assert metadata(client) == ()
        fresh = server.wire()
        assert metadata(fresh) == ()
        fresh.close()
    until(lambda: open_descriptors(server) == before, "descriptors as before")
    server.advance(60_000)
    (line,) = server.log_lines(since)
    assert line["event"] == "connections were reset before they were accepted"
    assert line["count"] == count


def test_peers_that_reset_before_they_are_accepted_leave_nothing(broker: Server) -> None:
    """They have no address any more, and are counted nowhere."""
    check_unharmed(broker, 2000)


def test_such_peers_count_for_no_limit(broker_with: BrokerWith) -> None:
    """Their connections count for no host, also where hosts have limits of their own."""
    settings = {"max.connections": 4, "max.connections.per.ip": 3, "max.connections.per.ip.overrides": "127.0.0.1:3"}
    check_unharmed(broker_with(settings=settings), 1000)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_hundred_thousand_such_peers(broker: Server) -> None:
    """A hundred thousand peers that reset before they are accepted leave nothing behind."""
    check_unharmed(broker, 100_000)


def test_a_backlog_that_is_full(broker_with: BrokerWith) -> None:
    """A backlog that is given is kept, as on Kafka; the default holds hundreds while the server does nothing."""
    small = broker_with(settings={"socket.listen.backlog.size": 5})
    assert waiting_in_backlog(small, 100) < 10
    assert waiting_in_backlog(broker_with(), 100) == 100


def waiting_in_backlog(server: Server, count: int) -> int:
    """How many of so many connects are complete while the server accepts none."""
    host, _, port = server.addresses[0].rpartition(":")
    peers = [socket.socket() for _ in range(count)]
    with stopped(server):
        for peer in peers:
            peer.setblocking(False)
            peer.connect_ex((host, int(port)))
        done = sum(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1 for peer in peers)
    for peer in peers:
        peer.close()
    return done
