"""`GET /v1/apis`: what it offers for a fault is what a fault can have, and what Kafka was seen to answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from protocol.api_errors import ERRORS_OF
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.items import KINDS
from protocol.messages.heartbeat import HeartbeatRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane

RECORDED = Path(__file__).resolve().parent.parent / "differential"
VALUES: dict[str, Any] = {"topic": "t", "partition": 0, "group": "g", "transactional_id": "x"}
EVERYWHERE = {"UNKNOWN_SERVER_ERROR", "NONE", "-"}


def fits(plane: ControlPlane, api: str, kind: str, do: dict[str, Any]) -> bool:
    """Whether such a fault is taken."""
    status, _ = plane.raw("POST", "/v1/faults", {"match": {"api": api, kind: VALUES[kind]}, "do": do})
    assert status in {200, 422}
    return status == 200


def test_what_is_offered_fits_and_nothing_else_does(plane: ControlPlane) -> None:
    """Each condition with each kind of effect, for each API."""
    offered, taken = set(), set()
    for api in plane.kafka.apis():
        for kind in KINDS:
            offered |= {(api.name, kind, "error")} if kind in api.error_conditions else set()
            offered |= {(api.name, kind, "drop")} if kind in api.request_conditions else set()
            offered |= {(api.name, kind, "bytes")} if kind in api.conditions else set()
            for do in ({"error": "NOT_COORDINATOR"}, {"drop": True}, {"bytes": {"truncate": 1}}):
                if fits(plane, api.name, kind, do):
                    taken.add((api.name, kind, next(iter(do))))
    assert offered == taken
    assert len(offered) > 100


def test_effects_and_fields_are_those_that_a_fault_can_have(plane: ControlPlane) -> None:
    """A throttle time where the response has one; every path of a response can be altered, every path matched."""
    for api in plane.kafka.apis():
        status, _ = plane.raw("POST", "/v1/faults", {"match": {"api": api.name}, "do": {"throttle_ms": 1}})
        assert (status == 200) is ("throttle_ms" in api.effects), api.name
        for path in api.response_fields:
            _, answer = plane.raw("POST", "/v1/faults", {"match": {"api": api.name}, "do": {"alter": {path: {}}}})
            assert "has no field" not in json.loads(answer).get("detail", ""), (api.name, path)
        for path in api.request_fields:
            match = {"api": api.name, "request": {path: {}}}
            _, answer = plane.raw("POST", "/v1/faults", {"match": match, "do": {"drop": True}})
            assert "has no field" not in json.loads(answer).get("detail", ""), (api.name, path)
    (end,) = plane.kafka.apis(api="EndTxn")
    assert "committed" in end.request_fields
    (produce,) = plane.kafka.apis(api="produce")
    assert "responses.*.partition_responses.*.error_code" in produce.response_fields


def test_each_api_has_its_errors_by_kafkas_names(plane: ControlPlane) -> None:
    """Each once; all codes are given beside them, for those who want another one."""
    answer = plane.http("GET", "/v1/apis")
    assert {api["name"] for api in answer["apis"]} == set(ERRORS_OF)
    assert set(answer["error_codes"]) == set(ErrorCode.__members__) - {"NONE"}
    for api in answer["apis"]:
        assert api["errors"], api["name"]
        assert len(set(api["errors"])) == len(api["errors"])
        assert set(api["errors"]) <= set(answer["error_codes"])


@pytest.mark.parametrize("file", ["histories.json", "histories-4.4.json"])
def test_what_a_real_broker_was_seen_to_answer_is_among_them(file: str) -> None:
    """In tens of thousands of random histories, played on Kafka."""
    seen = {(api, code) for api, _, code, _ in json.loads((RECORDED / file).read_text(encoding="utf-8"))["seen"]}
    missing = {(api, code) for api, code in seen if code not in {*EVERYWHERE, *ERRORS_OF[api]}}
    assert missing == set()
    assert len(seen) > 50


def test_versions_are_those_that_clients_are_offered(plane_of: ControlPlaneOf) -> None:
    """Of the release that is played; none where that has no such API."""
    plane = plane_of(as_version="2.8", topics=["t:2"])
    known = {api.name: api.versions for api in plane.kafka.apis()}
    shown = plane.http("GET", "/v1/versions")["apis"]
    assert {name: None if v is None else {"min": v.min, "max": v.max} for name, v in known.items()} == shown
    assert known["ConsumerGroupHeartbeat"] is None
    produce = known["Produce"]
    assert produce is not None
    assert produce.max == 9


def test_an_api_that_is_not_known_is_asked_for_again(plane: ControlPlane) -> None:
    """With the name that may have been meant."""
    status, problem = plane.refused("GET", "/v1/apis?api=EndTxm")
    assert (status, problem["field"]) == (422, "api")
    assert "EndTxn" in problem["detail"]


def test_a_fault_counts_down_and_is_exhausted(plane: ControlPlane) -> None:
    """What is left is states, and that nothing is; a fault without a limit has no number."""
    fault = plane.kafka.faults.add(api="Heartbeat", error="NOT_COORDINATOR", times=2, optional=True)
    endless = plane.kafka.faults.add(api="Heartbeat", error="NOT_COORDINATOR", times=None, optional=True)
    wire, states = plane.server.wire(), [fault.show()]
    for _ in range(3):
        wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "stranger"))
        states.append(fault.show())
    assert [(each.hits, each.remaining, each.exhausted) for each in states] == [
        *((0, 2, False), (1, 1, False), (2, 0, True), (2, 0, True)),
    ]
    assert (endless.show().hits, endless.show().remaining, endless.show().exhausted) == (1, None, False)


@pytest.mark.verb("apis")
def test_a_client_meets_the_errors_that_are_offered(plane: ControlPlane) -> None:
    """Those that no producer repeats reach its program by name."""
    (produce,) = plane.kafka.apis(api="Produce")
    final = [code for code in produce.errors if code in {"MESSAGE_TOO_LARGE", "INVALID_RECORD", "PRODUCER_FENCED"}]
    assert len(final) == 3
    producer = Producer({"bootstrap.servers": plane.bootstrap, "enable.idempotence": False})
    met: list[str] = []
    for code in final:
        with plane.kafka.faults.add(api="Produce", error=code):
            producer.produce("t", b"v", on_delivery=lambda error, _: met.append(error.name() if error else ""))
            assert producer.flush(60) == 0
        name = {"MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE"}.get(code, code)
        assert met[-1].removeprefix("_") == name
    assert len(met) == len(final)
