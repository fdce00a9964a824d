"""Logs that begin anywhere, records at given offsets, and faults that wait for an offset, as replays need them."""

from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_api.topics import MOST_OFFSET
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_faults import add, errors, fetch, produce
from tests.scenarios.core.batches import batch
from tests.wire import Wire

E = ErrorCode
T0 = "/v1/topics/t/partitions/0"


def written(plane: ControlPlane, *records: dict[str, Any]) -> list[int]:
    """The offsets that t-0 gave to records."""
    rows = [{"value": "v", "partition": 0, **record} for record in records]
    return [row["offset"] for row in plane.http("POST", "/v1/topics/t/records", {"records": rows})["written"]]


def bounds(plane: ControlPlane) -> tuple[int, int, int]:
    """Start, high watermark and end of t-0."""
    partition = plane.http("GET", T0)
    return partition["log_start_offset"], partition["high_watermark"], partition["log_end_offset"]


# --- logs ------------------------------------------------------------------------------------------------------------


def test_a_log_goes_on_at_an_offset(plane_of: ControlPlaneOf) -> None:
    """On all replicas: what is produced next gets that offset, and another leader has it too."""
    plane = plane_of(brokers=3, topics=["t:1"], settings={"default.replication.factor": 3})
    assert written(plane, {}, {}) == [0, 1]
    plane.http("POST", f"{T0}/start", {"offset": 8_000_000_000})
    assert bounds(plane) == (8_000_000_000,) * 3
    leader = plane.http("GET", T0)["leader"]
    assert produce(plane.server.wire(leader), 0) == [(0, E.NONE, 8_000_000_000)]
    other = next(broker for broker in (1, 2, 3) if broker != leader)
    plane.http("POST", f"{T0}/leader", {"broker": other})
    assert bounds(plane) == (8_000_000_000, 8_000_000_001, 8_000_000_001)


@pytest.mark.verb("partitions start-at")
def test_records_have_the_offsets_that_they_are_given(plane: ControlPlane) -> None:
    """With gaps within a call and between calls; a record without an offset follows the one before."""
    plane.http("POST", f"{T0}/start", {"offset": 100})
    assert written(plane, {"offset": 105}, {}, {"offset": 110}) == [105, 106, 110]
    assert written(plane, {"offset": 200, "timestamp_ms": 5}) == [200]
    assert bounds(plane) == (100, 201, 201)
    records = plane.http("GET", f"{T0}/records")["records"]
    assert [record["offset"] for record in records] == [105, 106, 110, 200]
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 107)])
    assert [message.offset() for message in consumer.consume(2, 60)] == [110, 200]
    consumer.close()


@pytest.mark.parametrize(
    ("records", "field"),
    [
        ([{"offset": 1}], "records.0.offset"),
        ([{"offset": 9}, {"offset": 9}], "records.1.offset"),
        ([{"offset": 9}, {}, {"offset": 10}], "records.2.offset"),
        ([{"offset": 9}, {"offset": 9 + 2**31}], "records.1.offset"),
    ],
)
def test_an_offset_is_given_once(plane: ControlPlane, records: list[dict[str, Any]], field: str) -> None:
    """Nothing is written if one of them is taken, or too far from the first for one batch."""
    written(plane, {}, {})
    rows = [{"value": "v", "partition": 0, **record} for record in records]
    status, problem = plane.refused("POST", "/v1/topics/t/records", {"records": rows})
    assert (status, problem["field"]) == (422, field)
    assert bounds(plane) == (0, 2, 2)


def test_a_log_has_offsets_left_behind_its_start(plane: ControlPlane) -> None:
    """Beyond that, clients would meet the end of int64."""
    for path, body, field in (
        (f"{T0}/start", {"offset": MOST_OFFSET + 1}, "offset"),
        ("/v1/topics/t/records", {"records": [{"partition": 0, "offset": MOST_OFFSET + 1}]}, "records.0.offset"),
    ):
        status, problem = plane.refused("POST", path, body)
        assert (status, problem["field"]) == (422, field)
        assert str(MOST_OFFSET) in problem["detail"]
    plane.http("POST", f"{T0}/start", {"offset": MOST_OFFSET})
    assert written(plane, {}, {}) == [MOST_OFFSET, MOST_OFFSET + 1]


def test_the_state_of_coordinators_stays(plane: ControlPlane) -> None:
    """Their topics cannot be emptied; nor can those without a leader."""
    assert plane.bootstrap
    status, problem = plane.refused("POST", "/v1/topics/__consumer_offsets/partitions/0/start", {"offset": 1})
    assert status == 409
    assert "coordinators" in problem["detail"]
    plane.http("POST", f"{T0}/leader", {"broker": None})
    status, problem = plane.refused("POST", f"{T0}/start", {"offset": 1})
    assert status == 409


def test_the_topics_of_coordinators_can_be_there_from_the_start(plane_of: ControlPlaneOf) -> None:
    """With the settings that their coordinators give them; a client finds its coordinator at once."""
    plane = plane_of(settings={"offsets.topic.num.partitions": 7})
    for name, partitions in (("__consumer_offsets", 7), ("__transaction_state", 50)):
        topic = plane.http("POST", "/v1/topics", {"name": name})
        assert (topic["internal"], len(topic["partitions"])) == (True, partitions)
        assert topic["configs"]["cleanup.policy"] == "compact"
    share_topic = plane.http(
        "POST", "/v1/topics", {"name": "__share_group_state", "configs": {"segment.bytes": "1048576"}}
    )
    assert (share_topic["internal"], share_topic["configs"]) == (True, {"segment.bytes": "1048576"})
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    answer = plane.server.wire().call(ApiKey.FIND_COORDINATOR, 4, request)
    assert answer.coordinators[0].error_code is E.NONE


# --- faults ----------------------------------------------------------------------------------------------------------


def test_a_record_is_refused_in_any_request(plane: ControlPlane) -> None:
    """The batch with the third record fails, twice; batches before it and after it are written."""
    wire = plane.server.wire()
    add(plane, {"error": "NOT_LEADER_OR_FOLLOWER"}, api="Produce", topic="t", partition=0, offset=2, times=2)
    refused = (0, E.NOT_LEADER_OR_FOLLOWER, -1)
    assert [produce(wire, 0)[0] for _ in range(5)] == [
        (0, E.NONE, 0), (0, E.NONE, 1), refused, refused, (0, E.NONE, 2)]  # fmt: skip
    assert produce(wire, 1) == [(1, E.NONE, 0)]


def produced(wire: Wire, *values: bytes) -> ErrorCode:
    """The error of one batch to t-0."""
    data = [TopicProduceData("t", [PartitionProduceData(0, batch(*values))])]
    answer = wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, data))
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


def test_a_record_in_the_middle_of_a_batch_counts(plane: ControlPlane) -> None:
    """A batch is met if it reaches the offset, wherever it begins."""
    wire = plane.server.wire()
    add(plane, {"error": "NOT_LEADER_OR_FOLLOWER"}, api="Produce", topic="t", partition=0, offset=3)
    assert [produced(wire, b"a", b"b"), produced(wire, b"c", b"d")] == [E.NONE, E.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("version", [12, 13])
def test_a_fetch_is_met_where_it_begins(plane: ControlPlane, version: int) -> None:
    """Those that begin before pass; in a session the offset is that which the session knows."""
    wire = plane.server.wire()
    topic_id = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic("t")])).topics[0].topic_id
    for _ in range(3):
        produce(wire, 0)
    first = fetch(wire, version, 0, topic_id=topic_id)
    add(plane, {"error": "OFFSET_NOT_AVAILABLE"}, api="Fetch", topic="t", partition=0, offset=3)
    session = (first.session_id, 1)
    assert errors(fetch(wire, version, session=session)) == {0: E.NONE}, "it begins at 0"
    topics = [FetchTopic("t", [FetchPartition(0, 3, 1 << 20)], topic_id)]
    request = FetchRequest(-1, 0, 0, 1 << 20, 0, topics, first.session_id, 2)
    assert errors(wire.call(ApiKey.FETCH, version, request)) == {0: E.OFFSET_NOT_AVAILABLE}
    add(plane, {"error": "OFFSET_NOT_AVAILABLE"}, api="Fetch", topic="t", partition=0, offset=3)
    assert errors(fetch(wire, version, session=(first.session_id, 3))) == {0: E.OFFSET_NOT_AVAILABLE}


@pytest.mark.parametrize(
    ("match", "remedy"),
    [
        ({}, "Produce or Fetch"),
        ({"api": "EndTxn"}, "Produce or Fetch"),
        ({"api": "Fetch", "topic": "t"}, "'partition'"),
    ],
)
def test_an_offset_needs_a_partition(plane: ControlPlane, match: dict[str, Any], remedy: str) -> None:
    """422 with the field and the remedy."""
    body = {"match": {**match, "offset": 5}, "do": {"drop": True}}
    status, problem = plane.refused("POST", "/v1/faults", body)
    assert (status, problem["field"]) == (422, "match.offset")
    assert remedy in problem["detail"]


@pytest.mark.verb("partitions start-at")
def test_a_log_in_memory_that_begins_elsewhere_is_there_after_a_kill(plane: ControlPlane) -> None:
    """The start that was noted when its broker stopped is not taken for its own."""
    written(plane, *[{}] * 5)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    admin.delete_records([TopicPartition("t", 0, 3)])[TopicPartition("t", 0, 3)].result(60)
    plane.kafka.brokers[1].stop()
    plane.kafka.brokers[1].start()
    plane.http("POST", f"{T0}/start", {"offset": 1})
    assert written(plane, {}) == [1]
    plane.kafka.brokers[1].kill()
    plane.kafka.brokers[1].start()
    assert bounds(plane) == (1, 2, 2)
