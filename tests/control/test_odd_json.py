"""Bodies and paths that no program should send: 422 or 404 with the place, never 500, and nothing is kept of them."""

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.control.harness import ControlPlane as Control
from tests.serving import Server

NINES = "9" * 4000
DEEP = "[" * 100_000 + "]" * 100_000
BODIES = [
    ("POST", "clock/advance", "[" * 100_000, ""),
    ("POST", "clock/advance", f'{{"ms": {DEEP}}}', ""),
    ("POST", "clock/advance", f'{{"ms": {"[" * 100}{"]" * 100}}}', "ms"),
    ("POST", "clock/advance", f'{{"ms": {"9" * 5000}}}', ""),
    ("POST", "clock/advance", f'{{"ms": {NINES}}}', "ms"),
    ("POST", "clock/advance", '{"ms": 1e999}', "ms"),
    ("POST", "clock/advance", '{"ms": NaN}', ""),
    ("POST", "clock/advance", '{"\\ud800": 1}', ""),
    ("POST", "clock/advance", b"\xff\xfe", ""),
    ("POST", "topics", '{"name": "\\ud800"}', "name"),
    (
        "POST",
        "topics/t/records",
        f'{{"records": [{{"value": "x", "timestamp_ms": {NINES}}}]}}',
        "records.0.timestamp_ms",
    ),
    ("POST", "faults", '{"match": {"topic": "\\ud800"}, "do": {"drop": true}}', "match.topic"),
    ("POST", "faults", '{"match": {"client_id": "x\\udfff"}, "do": {"drop": true}}', "match.client_id"),
    ("POST", "faults", f'{{"match": {{"api": "EndTxn"}}, "do": {{"alter": {{"throttle_time_ms": {NINES}}}}}}}', None),
    ("PUT", "versions", '{"\\ud800": {"min": 1, "max": 3}}', ""),
    ("PUT", "versions", f'{{"EndTxn": {{"min": {NINES}, "max": 3}}}}', "EndTxn.min"),
]
PATHS = [
    ("POST", "brokers/{}/kill", 404),
    ("GET", "topics/t/partitions/{}", 404),
    ("GET", "producers/{}", 422),
    ("DELETE", "topics/t/partitions/0/producers/{}", 404),
    ("GET", "journal?since={}", 422),
    ("GET", "journal?limit={}", 422),
]


def status_and_document(server: Server, method: str, path: str, body: str | bytes | None = None) -> tuple[int, Any]:
    """Status and document of the answer."""
    url = urlsplit(str(server.process.ready.control_url))
    connection = HTTPConnection(str(url.hostname), url.port, timeout=60)
    try:
        connection.request(method, f"/v1/{path}", body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture
def server(plane: Control) -> Server:
    """A server with a topic."""
    return plane.server


@pytest.mark.parametrize(("method", "path", "body", "field"), BODIES, ids=lambda value: str(value)[:30])
def test_an_odd_body_is_refused(server: Server, method: str, path: str, body: str | bytes, field: str | None) -> None:
    """With the field where there is one; no fault is kept that cannot be listed."""
    status, problem = status_and_document(server, method, path, body)
    assert status == 422, problem
    if field is not None:
        assert problem.get("field", "") == field
    assert len(json.dumps(problem)) < 10_000
    assert status_and_document(server, "GET", "faults") == (200, {"faults": []})


@pytest.mark.parametrize("digits", [20, 5000])
@pytest.mark.parametrize(("method", "path", "status"), PATHS)
def test_a_number_of_many_digits_is_refused(server: Server, method: str, path: str, status: int, digits: int) -> None:
    """A number of many digits is refused in the path and in the query."""
    actual_status, problem = status_and_document(server, method, path.format("9" * digits))
    assert actual_status == status, problem


def test_large_values_that_are_sound_are_taken(server: Server) -> None:
    """The control: 63 bits, surrogate pairs, some nesting."""
    match = {"api": "EndTxn", "client_id": "\N{PILE OF POO}"}
    fault = {"match": match, "do": {"alter": {"throttle_time_ms": 2**31 - 1}}}
    assert status_and_document(server, "POST", "faults", json.dumps(fault))[0] == 200
    record = {"value": "\N{PILE OF POO}", "timestamp_ms": 2**40}
    assert status_and_document(server, "POST", "topics/t/records", json.dumps({"records": [record]}))[0] == 200
    assert status_and_document(server, "GET", f"journal?since={2**62}")[0] == 200
