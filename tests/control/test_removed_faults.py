"""Faults that are removed while requests are under way: these meet them no more."""

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from tests.control.harness import ControlPlane
from tests.control.test_faults import NATURAL, add, errors, produce
from tests.serving import until

E = ErrorCode


def test_a_delayed_request_does_not_meet_faults_that_were_removed_meanwhile(plane: ControlPlane) -> None:
    """Neither another delay, which could not be ended any more, nor an error."""
    wire = plane.server.wire()
    first = add(plane, {"delay_ms": 3_600_000}, api="Heartbeat")
    add(plane, {"delay_ms": 3_600_000}, api="Heartbeat")
    add(plane, {"error": "UNKNOWN_MEMBER_ID"}, api="Heartbeat")
    wire.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "unknown"))
    plane.http("GET", f"/v1/faults/{first}?wait_hits=1")
    plane.http("DELETE", "/v1/faults")
    assert wire.answer().error_code is NATURAL


def test_a_delay_that_was_removed_while_the_request_was_served_delays_nothing(plane: ControlPlane) -> None:
    """A fetch that waits for records has met the fault already, which would come after it."""
    wire = plane.server.wire()
    fault = add(plane, {"delay_ms": 3_600_000, "where": "after"}, api="Fetch")
    topics = [FetchTopic("t", [FetchPartition(0, 0, 1 << 20)], None)]
    wire.send(ApiKey.FETCH, 12, FetchRequest(-1, 60_000, 1, 1 << 20, 0, topics, 0, 0))
    pending = "/v1/journal?api=Fetch&outcome=is%20being%20served"
    until(lambda: plane.http("GET", pending)["entries"], "the fetch waits")
    plane.http("DELETE", f"/v1/faults/{fault}")
    assert produce(plane.server.wire(), 0) == [(0, E.NONE, 0)]
    assert errors(wire.answer()) == {0: E.NONE}
