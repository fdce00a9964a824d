"""What the proxy concludes from requests and answers, and what it refuses to steer."""

import json
import subprocess
import sys
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from protocol.apis import ApiKey
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.conftest import BrokerWith
from tests.proxy.conftest import ProxyTo
from tests.serving import Server

SETTINGS = {"group.initial.rebalance.delay.ms": 0, "transaction.state.log.num.partitions": 1}


@pytest.fixture
def behind(broker_with: BrokerWith) -> Server:
    """One broker of ours, behind the proxy."""
    server = broker_with(topics={"t": 1}, settings=SETTINGS)
    server.make_coordinators()
    return server


@pytest.fixture
def proxy(behind: Server, proxy_to: ProxyTo) -> Server:
    """A proxy in front of it."""
    return proxy_to(behind.addresses[0])


def refusal(server: Server, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
    """Status and sentence of a verb that is refused."""
    url = urlsplit(str(server.process.ready.control_url))
    connection = HTTPConnection(str(url.hostname), url.port, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())["detail"]
    finally:
        connection.close()


def init(wire: Any, name: str) -> Any:
    """A producer's id and epoch."""
    return wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))


def test_a_fenced_producer_is_explained(proxy: Server) -> None:
    """The proxy knows who fenced whom, from the requests that passed it."""
    old, new = proxy.wire(client_id="old"), proxy.wire(client_id="new")
    first = init(old, "x")
    added = AddPartitionsToTxnTransaction(
        "x", first.producer_id, first.producer_epoch, topics=[AddPartitionsToTxnTopic("t", [0])]
    )
    old.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest(transactions=[added]))
    assert proxy.control("GET", "/v1/transactions/x")["state"] == "Ongoing"
    end = EndTxnRequest("x", first.producer_id, first.producer_epoch, committed=True)
    old.call(ApiKey.END_TXN, 3, end)
    assert proxy.control("GET", "/v1/transactions/x")["state"] == "PrepareCommit"
    second = init(new, "x")
    assert second.producer_epoch > first.producer_epoch
    assert old.call(ApiKey.END_TXN, 3, end).error_code.name == "PRODUCER_FENCED"

    why = proxy.control("GET", "/v1/transactions/x/why")
    assert why["error"] == "PRODUCER_FENCED"
    assert "`new`" in why["why"], why["why"]
    kinds = [each["event"] for each in proxy.control("GET", "/v1/transactions/x")["timeline"]]
    assert kinds == ["initialised", "begun", "commit decided", "initialised", "refused"]


def test_a_producer_fenced_elsewhere_is_reported_as_that(behind: Server, proxy: Server) -> None:
    """A client that does not use the proxy moves the id: the explanation does not invent a cause."""
    wire = proxy.wire()
    first = init(wire, "x")
    init(behind.wire(), "x")
    wire.call(ApiKey.END_TXN, 3, EndTxnRequest("x", first.producer_id, first.producer_epoch, committed=True))
    assert "did not pass through this proxy" in proxy.control("GET", "/v1/transactions/x/why")["why"]


def test_a_group_has_a_timeline(proxy: Server) -> None:
    """Its generation and its last refusal are known."""
    wire = proxy.wire(client_id="member")
    joining = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    joined = wire.call(ApiKey.JOIN_GROUP, 3, joining)
    assert proxy.control("GET", "/v1/groups/g")["epoch"] == joined.generation_id
    wire.call(ApiKey.HEARTBEAT, 3, HeartbeatRequest("g", joined.generation_id + 7, joined.member_id))
    assert proxy.control("GET", "/v1/groups/g/why")["error"] == "ILLEGAL_GENERATION"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/clock/advance", {"ms": 1000}),
        ("POST", "/v1/brokers/1/kill", None),
        ("POST", "/v1/transactions/x/hold", {"at": "prepare"}),
        ("POST", "/v1/coordinators/move", {"type": "group", "key": "g", "broker": 1}),
        ("POST", "/v1/snapshots", None),
        ("GET", "/v1/topics", None),
    ],
)
def test_what_only_our_own_brokers_can_do_is_refused(
    proxy: Server, method: str, path: str, body: dict[str, Any] | None
) -> None:
    """With one sentence that names the reason, and the command that could do it."""
    status, sentence = refusal(proxy, method, path, body)
    assert status == 409
    assert "a proxy in front of" in sentence
    assert "understudy serve" in sentence


def test_ctl_works_with_a_proxy(proxy: Server) -> None:
    """The brokers at the proxy's addresses; a reset removes faults, journal and timelines, and nothing upstream."""
    init(proxy.wire(), "x")
    proxy.control("POST", "/v1/faults", {"match": {"api": "EndTxn"}, "do": {"disconnect": "reset"}})

    def ctl(*arguments: str) -> str:
        command = [
            sys.executable,
            "-m",
            "understudy",
            "ctl",
            "--control",
            str(proxy.process.ready.control_url),
            *arguments,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert proxy.addresses[0].rpartition(":")[2] in ctl("cluster")
    assert "x" in ctl("transactions", "list")
    ctl("reset")
    assert proxy.control("GET", "/v1/transactions")["transactions"] == []
    assert proxy.control("GET", "/v1/faults")["faults"] == []
    assert "understudy_requests_total" in ctl("metrics")
    assert init(proxy.wire(), "x").producer_epoch == 1, "the cluster upstream was reset"
