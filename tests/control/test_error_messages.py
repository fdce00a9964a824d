"""Common mistakes: each error message names what to write instead."""

from typing import Any

import pytest

from tests.control.harness import ControlPlane
from tests.control.test_transactions import RawProducer

PRODUCE: dict[str, Any] = {"api": "Produce"}
DROP: dict[str, Any] = {"drop": True}
MISTAKES: list[tuple[str, str, Any, int, str]] = [
    ("POST", "faults", {"api": "Produce", "do": DROP}, 422, """'api' goes into 'match': {"match": {"api": """),
    ("POST", "faults", {"match": PRODUCE, "drop": True}, 422, """'drop' goes into 'do': {"do": {"drop": true}}"""),
    ("POST", "faults", {"match": PRODUCE}, 422, 'needs "do", such as {"error": "NOT_COORDINATOR"}'),
    ("POST", "faults", {"match": {"api": "Prodcue"}, "do": DROP}, 422, "did you mean Produce?"),
    ("POST", "faults", {"match": {"topc": "t"}, "do": DROP}, 422, "did you mean topic?"),
    ("POST", "faults", {"match": PRODUCE, "do": {"eror": "X"}}, 422, "did you mean error?"),
    (
        "POST",
        "faults",
        {"do": {"error": "NOPE"}},
        422,
        "no error 'NOPE'; use the names of Kafka, such as NOT_COORDINATOR",
    ),
    ("POST", "faults", {"do": {"error": "FENCED"}}, 422, "did you mean PRODUCER_FENCED or"),
    ("POST", "faults", {"do": {"delay_ms": "2s"}}, 422, "in milliseconds, not '2s': write 2000"),
    ("POST", "faults", {"do": {"apply_then": "drop"}}, 422, 'an object, such as {"disconnect": "close"}, not'),
    ("POST", "faults", {"match": {"versions": 5}, "do": DROP}, 422, "[first, last], such as [0, 3], not 5"),
    ("POST", "faults", {"match": "Produce", "do": DROP}, 422, """such as {"api": "Produce"}, not 'Produce'"""),
    ("GET", "faults/77", None, 404, "there are none; a reset removes all faults"),
    ("POST", "clock/advance", {"ms": "15m"}, 422, "not '15m': write 900000"),
    ("POST", "clock/advance", {"minutes": 15}, 422, "known fields: ms"),
    ("GET", "clock/advance", None, 405, "write POST /v1/clock/advance"),
    ("PUT", "groups/a%2Fb", None, 405, "write GET /v1/groups/a/b"),
    ("POST", "../openapi.json", None, 405, "write GET /openapi.json"),
    ("POST", "clock/advance", {"ms": "9" * 400 + "s"}, 422, "a whole number"),
    ("POST", "clock/freeze", {"ms": 5}, 422, "this request takes no fields"),
    ("POST", "clock/advance", {"ms": 10**13 + 1}, 422, "'ms' must be at most 10000000000000, not 10000000000001"),
    ("POST", "broker/1/kill", None, 404, "did you mean /v1/brokers/1/kill?"),
    ("POST", "brokers/1/strat", None, 404, "did you mean /v1/brokers/1/start?"),
    ("POST", "reset", {"keep": "topics"}, 422, """a list of names, such as ["topics"], not 'topics'"""),
    ("POST", "reset", {"keep": ["topic"]}, 422, "'keep' cannot contain 'topic'; did you mean topics?"),
    ("PUT", "versions", {"as_version": 2.8}, 422, 'not 2.8: write it as a text, "2.8"'),
    ("GET", "transactions/pay", None, 404, "'pay'; did you mean payments-1?"),
    ("GET", "transactions/pay/why", None, 404, "'pay'; did you mean payments-1?"),
    ("POST", "transactions/payments-1/release", None, 409, "hold it with POST /v1/transactions/payments-1/hold"),
    ("GET", "groups/", None, 404, "there is no /v1/groups/; did you mean /v1/groups?"),
    ("DELETE", "topics/", None, 404, "there is no /v1/topics/; did you mean /v1/topics?"),
    ("GET", "groups/shiping", None, 404, "there is no group 'shiping'"),
    ("GET", "journal?error=FENCED", None, 422, "did you mean PRODUCER_FENCED or"),
    ("GET", "journal?apii=EndTxn", None, 422, "known parameters: id, api, "),
    ("POST", "topics/t/records", {"records": [{"value": 5}]}, 422, "'value' needs a text, null or {"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "text"), MISTAKES, ids=lambda value: str(value)[:40])
def test_a_mistake_is_answered_with_what_to_write(
    plane: ControlPlane, method: str, path: str, body: Any, status: int, text: str
) -> None:
    """The problem's detail names what to write instead."""
    if "transactions" in path:
        RawProducer(plane, "payments-1")
    actual_status, problem = plane.refused(method, f"/v1/{path}".replace("/v1/../", "/"), body)
    assert actual_status == status
    assert text in problem["detail"]
