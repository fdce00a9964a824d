"""Callers of the control plane that stop in the middle of a request are closed; others have all their time."""

import socket
from urllib.parse import urlsplit

import pytest

from tests.conftest import BrokerWith

HEAD = b"POST /v1/clock/advance HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
STALLS = [b"", b"POST /v1/clock", HEAD, HEAD + b'\r\n{"ms"', b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /"]


@pytest.mark.parametrize("sent", STALLS)
def test_a_request_that_stops_is_closed(broker_with: BrokerWith, sent: bytes) -> None:
    """Before its first byte, within its head, within its body, and behind an earlier request."""
    server = broker_with(settings={"understudy.partial.frame.timeout.ms": 300})
    url = urlsplit(str(server.process.ready.control_url))
    with socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=60) as peer:
        peer.sendall(sent)
        answer = b""
        while part := peer.recv(4096):  # a connection that stays open ends in a TimeoutError
            answer += part
    assert answer.startswith(b"HTTP/1.1 200") == sent.startswith(b"GET")


def test_a_request_that_takes_its_time_is_answered(broker_with: BrokerWith) -> None:
    """A wait of the server's own is not the caller's."""
    server = broker_with(settings={"understudy.partial.frame.timeout.ms": 300})
    fault = server.control("POST", "/v1/faults", {"match": {"api": "Fetch"}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}})
    url = urlsplit(str(server.process.ready.control_url))
    path = f"/v1/faults/{fault['id']}?wait_hits=1&timeout_ms=900"
    with socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=60) as peer:
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := peer.recv(4096):
            answer += part
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 408")), answer


def test_a_caller_who_leaves_within_a_body_is_no_failure(broker_with: BrokerWith) -> None:
    """A caller who leaves while sending a body leaves no line in the log."""
    server = broker_with(settings={"understudy.partial.frame.timeout.ms": 300})
    url, begin = urlsplit(str(server.process.ready.control_url)), server.log_position()
    with socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=60) as peer:
        peer.sendall(HEAD + b'\r\n{"ms"')
        assert peer.recv(4096) == b""
    server.control("GET", "/v1/health")
    assert [line for line in server.log_lines(begin) if line.get("level") == "error"] == []
