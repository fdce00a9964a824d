"""Peers of an encrypted listener that never finish their handshake, and callers of the control plane that stall."""

import socket
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


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_unfinished_handshakes_and_requests_leave_nothing(tmp_path: Path) -> None:
    """2,000 peers that send a part of a handshake, or nothing, and 200 callers: later all descriptors are free."""
    left: list[int] = []

    def are_closed() -> bool:
        left.append(descriptors(server) - before)
        return left[-1] <= 5

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
        before, size = descriptors(server), server.resident_bytes()
        url = urlsplit(str(server.process.ready.control_url))
        with ExitStack() as stack:
            for number in range(COUNT + FROM):
                there = port if number < COUNT else int(url.port or 0)
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", there), PATIENCE_S))
                with suppress(OSError):
                    peer.sendall(STARTS[number % len(STARTS)])
            with suppress(AssertionError):
                until(are_closed, "all are closed", PATIENCE_S)
            assert left[-1] <= 5, f"{left[-1]} descriptors more than before, of {max(left)} more at most"
        grown = (server.resident_bytes() - size) >> 20
        assert grown < 64, f"{grown} MiB more than before, and {max(left)} descriptors more at most"
        lines = server.log_lines()
        assert len(lines) < COUNT, (len(lines), lines[-1])
        assert not [line for line in lines if line["level"] in ("error", "critical")], lines[-3:]
    finally:
        server.process.stop()
