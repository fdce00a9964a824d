"""Peers of an encrypted listener that never finish their handshake, and callers of the control plane that stall."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from tests.ports import free_ports
from tests.serving import Server, start, until

COUNT = 2_000
FROM = 200
"""Connections of each address."""
PATIENCE_S = 240
"""Ends what hangs, and judges nothing: on a busy machine (load 30 on two cores) it all takes a minute and a half."""
STARTS = [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n"]


def descriptors(server: Server) -> int:
    """The open file descriptors of a server."""
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def stall(server: Server, addresses: Sequence[int]) -> None:
    """Connect to each port, send the beginning of something, and wait until the server has closed all connections."""
    before = descriptors(server)
    left: list[int] = []

    def are_closed() -> bool:
        left.append(descriptors(server) - before)
        return left[-1] <= 5

    with ExitStack() as stack:
        for number, port in enumerate(addresses):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            with suppress(OSError):
                peer.sendall(STARTS[number % len(STARTS)])
        with suppress(AssertionError):
            until(are_closed, "all are closed", PATIENCE_S)
        assert left[-1] <= 5, f"{left[-1]} descriptors more than before, of {max(left)} more at most"


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_unfinished_handshakes_and_requests_leave_nothing(tmp_path: Path) -> None:
    """2,000 peers that send a part of a handshake, or nothing, and 200 callers: later all descriptors are free.

    Their memory is too: the same again needs no more. (How much it is depends on how many there are at once.)
    """
    issued = trustme.CA().issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    (port,) = free_ports(1)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": tmp_path / "own.pem",
        "understudy.partial.frame.timeout.ms": 2_000,
    }
    server = Server(start(settings=settings, listeners=[f"SSL://127.0.0.1:{port}"]))
    try:
        server.control("GET", "/v1/health")
        addresses = [port] * COUNT + [int(urlsplit(str(server.process.ready.control_url)).port or 0)] * FROM
        stall(server, addresses)
        size = server.resident_bytes()
        stall(server, addresses)
        grown = (server.resident_bytes() - size) >> 20
        assert grown < 24, f"{grown} MiB more than before"
    finally:
        server.process.stop()
