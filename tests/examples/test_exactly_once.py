"""examples/exactly_once, in Python and Java, with the troubles that they are written for."""

from collections.abc import Callable

import pytest

from tests.conftest import BrokerWith
from tests.control.conftest import QUICK
from tests.control.harness import ControlPlane
from tests.examples.running import java, python

Run = Callable[..., str]
pytestmark = pytest.mark.timeout(300)


def languages(name: str) -> pytest.MarkDecorator:
    """`run` is the example of this name, in each language."""
    capital = name.capitalize()
    return pytest.mark.parametrize(
        "run",
        [
            pytest.param(lambda *arguments: python(f"exactly_once/{name}.py", *arguments), id="python"),
            pytest.param(
                lambda *arguments: java(f"exactly_once/{capital}.java", *arguments),
                id="java",
                marks=pytest.mark.interop,
            ),
        ],
    )


@pytest.fixture
def plane(broker_with: BrokerWith) -> ControlPlane:
    """A broker as just started."""
    return ControlPlane(broker_with(settings=QUICK))


def values(plane: ControlPlane, topic: str, isolation: str) -> list[str]:
    """What a consumer of the topic's one partition would read."""
    records = plane.http("GET", f"/v1/topics/{topic}/partitions/0/records?isolation={isolation}")["records"]
    return [record["value"] for record in records if not record["control"]]


@languages("transform")
def test_each_order_is_invoiced_once_with_faults(plane: ControlPlane, run: Run) -> None:
    """A commit whose answer is lost is done and not repeated; a refused one is aborted and repeated."""
    lost = {"match": {"api": "EndTxn"}, "do": {"apply_then": {"disconnect": "reset"}}}
    refused = {"match": {"api": "TxnOffsetCommit"}, "skip": 1, "do": {"error": "ILLEGAL_GENERATION"}}
    for fault in (lost, refused):
        plane.http("POST", "/v1/faults", fault)

    output = run(plane.bootstrap)

    assert plane.http("GET", "/v1/faults?unmet=true")["faults"] == []
    assert "once more" in output
    assert output.splitlines()[-1].endswith("10 of 10")
    committed = values(plane, "invoices", "read_committed")
    assert sorted(committed) == [f"invoice for order {number}" for number in range(10)]
    ends = plane.http("GET", "/v1/journal?api=EndTxn")["entries"]
    assert [end["request"]["committed"] for end in ends].count(False) == 1
    (offset,) = plane.http("GET", "/v1/groups/invoicing")["offsets"]
    assert (offset["topic"], offset["offset"], offset["lag"]) == ("orders", 10, 0)


@languages("recover")
def test_a_producer_whose_transaction_timed_out_goes_on(plane: ControlPlane, run: Run) -> None:
    """The first attempt is aborted by the coordinator, the second one is all there is to see."""
    output = run(plane.bootstrap, plane.url).splitlines()

    assert output[0].startswith("attempt 1: ")
    assert "open for longer than its timeout" in output[1]
    assert output[-1] == "attempt 2: committed"
    assert values(plane, "payments", "read_committed") == ["debit", "credit"]
    assert values(plane, "payments", "read_uncommitted") == ["debit", "debit", "credit"]
