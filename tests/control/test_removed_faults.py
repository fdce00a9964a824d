"""Faults that are removed, or outlive the cluster's state, while requests are under way."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.control.harness import ControlPlane
from tests.control.test_faults import NATURAL, add, errors, produce
from tests.scenarios.core.batches import batch
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


@pytest.mark.parametrize("way", ["reset", "restore"])
def test_what_waited_does_nothing_to_the_state_that_comes_after(plane: ControlPlane, way: str) -> None:
    """The fault stays: a reset keeps it, and a restore always does."""
    taken = plane.kafka.snapshots.take()
    wire = plane.server.wire()
    fault = add(plane, {"delay_ms": 3_600_000}, api="Produce")
    data = [TopicProduceData("t", [PartitionProduceData(0, batch(b"v"))])]
    wire.send(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, data))
    plane.http("GET", f"/v1/faults/{fault}?wait_hits=1")
    if way == "reset":
        plane.http("POST", "/v1/reset", {"keep": ["faults"]})
    else:
        taken.restore()
    wire.check_closed()
    assert [each["id"] for each in plane.http("GET", "/v1/faults")["faults"]] == [fault]
    assert plane.kafka.topics["t"].partitions[0].show().log_end_offset == 0
