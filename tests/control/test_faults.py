"""Faults as users write them: which requests they meet, how often, and what becomes of the rest of a request."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import understudy
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.scenarios.core.batches import batch
from tests.wire import Wire

E = ErrorCode
NATURAL = E.NOT_COORDINATOR  # groups have no coordinator yet


def produce(wire: Wire, *partitions: int, topic: str = "t") -> list[tuple[int, ErrorCode, int]]:
    """One record to each; partition, error and base offset of each."""
    data = [PartitionProduceData(partition, batch(b"v")) for partition in partitions]
    answer = wire.call(ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 1000, [TopicProduceData(topic, data)]))
    return [(p.index, p.error_code, p.base_offset) for t in answer.responses for p in t.partition_responses]


def heartbeat(wire: Wire, group: str = "g") -> ErrorCode:
    """The error code of a heartbeat by an unknown member; NATURAL without a fault."""
    code: ErrorCode = wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group, 1, "unknown")).error_code
    return code


def add(plane: ControlPlane, do: Any, **rest: Any) -> str:
    """A fault; the id it got."""
    limits: dict[str, Any] = {name: rest.pop(name) for name in ("skip", "times", "probability") if name in rest}
    return str(plane.http("POST", "/v1/faults", {"match": rest, "do": do, **limits})["id"])


# --- parts of requests -----------------------------------------------------------------------------------------------


def test_one_partition_is_refused_and_the_others_are_written(plane: ControlPlane) -> None:
    """Nothing is appended to the one, and everything to the other."""
    wire = plane.server.wire()
    add(plane, {"error": "NOT_LEADER_OR_FOLLOWER"}, api="Produce", topic="t", partition=1)
    assert produce(wire, 0, 1) == [(0, E.NONE, 0), (1, E.NOT_LEADER_OR_FOLLOWER, -1)]
    assert produce(wire, 0, 1) == [(0, E.NONE, 1), (1, E.NONE, 0)]


def test_a_partition_is_written_and_its_response_is_an_error(plane: ControlPlane) -> None:
    """Apply, then fail: what a producer has to survive without writing twice."""
    wire = plane.server.wire()
    add(plane, {"apply_then": {"error": "REQUEST_TIMED_OUT"}}, api="Produce", topic="t", partition=1)
    assert produce(wire, 0, 1) == [(0, E.NONE, 0), (1, E.REQUEST_TIMED_OUT, -1)]
    assert produce(wire, 0, 1) == [(0, E.NONE, 1), (1, E.NONE, 1)]


def fetch(wire: Wire, version: int, *partitions: int, session: tuple[int, int] = (0, 0), topic_id: Any = None) -> Any:
    """The response to a fetch from the beginning that would wait for long."""
    topics = [FetchTopic("t", [FetchPartition(p, 0, 1 << 20) for p in partitions], topic_id)] if partitions else []
    return wire.call(ApiKey.FETCH, version, FetchRequest(-1, 60_000, 1, 1 << 20, 0, topics, *session))


def errors(response: Any) -> dict[int, ErrorCode]:
    """The error of each partition of a fetch, each of which is there once."""
    places = [p.partition_index for t in response.responses for p in t.partitions]
    assert len(places) == len({*places})
    return {p.partition_index: p.error_code for t in response.responses for p in t.partitions}


@pytest.mark.parametrize("version", [12, 13])
def test_a_partition_of_a_fetch_session_fails(plane: ControlPlane, version: int) -> None:
    """An incremental fetch names no partitions; the error is answered at once, the next fetch is whole (KIP-227)."""
    wire = plane.server.wire()
    topic_id = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic("t")])).topics[0].topic_id
    produce(wire, 0)
    first = fetch(wire, version, 0, 1, topic_id=topic_id)
    assert errors(first) == {0: E.NONE, 1: E.NONE}
    add(plane, {"error": "OFFSET_NOT_AVAILABLE"}, api="Fetch", topic="t", partition=1)
    failed = fetch(wire, version, session=(first.session_id, 1))
    assert errors(failed) == {0: E.NONE, 1: E.OFFSET_NOT_AVAILABLE}
    assert failed.error_code is E.NONE
    assert errors(fetch(wire, version, session=(first.session_id, 2))) == {0: E.NONE, 1: E.NONE}
    add(plane, {"error": "OFFSET_NOT_AVAILABLE"}, api="Fetch", topic="t", partition=1)
    assert errors(fetch(wire, version, 0, 1, topic_id=topic_id)) == {0: E.NONE, 1: E.OFFSET_NOT_AVAILABLE}


def test_one_topic_of_all_is_without_a_leader(plane: ControlPlane) -> None:
    """A request for all topics names none; the answer does, and so may a partition of it."""
    wire = plane.server.wire()
    add(plane, {"error": "LEADER_NOT_AVAILABLE"}, api="Metadata", topic="t", partition=1)
    answer = wire.call(ApiKey.METADATA, 12, MetadataRequest(None))
    error_codes = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
    assert error_codes == {("t", 0): E.NONE, ("t", 1): E.LEADER_NOT_AVAILABLE, ("u", 0): E.NONE}


def test_a_topic_fails_and_the_brokers_are_still_returned(plane: ControlPlane) -> None:
    """A fault on a topic in Metadata leaves the brokers in, without which clients cannot go on."""
    add(plane, {"error": "UNKNOWN_TOPIC_OR_PARTITION"}, api="Metadata", topic="t")
    answer = plane.server.wire().call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic("t")]))
    assert [(t.name, t.error_code) for t in answer.topics] == [("t", E.UNKNOWN_TOPIC_OR_PARTITION)]
    assert len(answer.brokers) == 1


def test_one_group_of_many_fails_or_one_partition_of_it(plane: ControlPlane) -> None:
    """OffsetFetch v8 has errors on groups and on partitions."""
    wire = plane.server.wire()
    wire.call(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b"]))
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(name, [OffsetFetchRequestTopics("t", [0, 1])]) for name in ("a", "b")]
    )
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="OffsetFetch", group="b")
    assert [(g.group_id, g.error_code) for g in wire.call(ApiKey.OFFSET_FETCH, 9, request).groups] == [
        ("a", E.NONE), ("b", E.GROUP_AUTHORIZATION_FAILED)]  # fmt: skip
    add(plane, {"error": "UNSTABLE_OFFSET_COMMIT"}, api="OffsetFetch", group="b", topic="t", partition=1)
    groups = wire.call(ApiKey.OFFSET_FETCH, 9, request).groups
    codes = {(g.group_id, p.partition_index): p.error_code for g in groups for t in g.topics for p in t.partitions}
    assert {place for place, code in codes.items() if code is E.UNSTABLE_OFFSET_COMMIT} == {("b", 1)}


@pytest.mark.parametrize("version", [3, 5])
def test_a_partition_does_not_join_its_transaction(plane: ControlPlane, version: int) -> None:
    """Older and newer shapes of AddPartitionsToTxn."""
    wire = plane.server.wire()
    topics = [AddPartitionsToTxnTopic("t", [0, 1])]
    add(plane, {"error": "TOPIC_AUTHORIZATION_FAILED"}, api="AddPartitionsToTxn", transactional_id="x", partition=1)
    request = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction("x", 1, 0, topics=topics)])
    (result,) = wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, request).results_by_transaction
    codes = {p.partition_index: p.partition_error_code for t in result.topic_results for p in t.results_by_partition}
    assert codes[1] is E.TOPIC_AUTHORIZATION_FAILED
    assert codes[0] is not E.TOPIC_AUTHORIZATION_FAILED


# --- which requests, how often ---------------------------------------------------------------------------------------


def test_a_fault_meets_one_request_by_default(plane: ControlPlane) -> None:
    """First skip, then times; null is every time."""
    wire = plane.server.wire()
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="Heartbeat", skip=1, times=2)
    assert [heartbeat(wire) for _ in range(4)] == [
        NATURAL, E.GROUP_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED, NATURAL]  # fmt: skip
    add(plane, {"error": "REBALANCE_IN_PROGRESS"}, api="HEARTBEAT", times=None)
    assert {heartbeat(wire) for _ in range(5)} == {E.REBALANCE_IN_PROGRESS}


def test_chance_is_the_clusters_own(plane_of: ControlPlaneOf) -> None:
    """The same seed, the same requests met."""
    rounds = []
    for _ in range(2):
        plane = plane_of(seed=7)
        fault = add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="Heartbeat", probability=0.5, times=None)
        wire = plane.server.wire()
        rounds.append([heartbeat(wire) for _ in range(40)])
        assert plane.http("GET", f"/v1/faults/{fault}")["hits"] == rounds[-1].count(E.GROUP_AUTHORIZATION_FAILED)
    assert rounds[0] == rounds[1]
    assert 8 < rounds[0].count(E.GROUP_AUTHORIZATION_FAILED) < 32


@pytest.mark.parametrize(
    ("match", "met"),
    [
        ({}, True),
        ({"api": "EndTxn"}, False),
        ({"versions": [0, 3]}, False),
        ({"versions": [4, 9]}, True),
        ({"broker": 2}, False),
        ({"broker": 1, "listener": "PLAINTEXT"}, True),
        ({"client_id": "test"}, True),
        ({"client_id": "other"}, False),
        ({"group": "g"}, True),
        ({"group": "h"}, False),
        ({"topic": "t"}, False),
        ({"request": {"generation_id": 1, "member_id": "unknown"}}, True),
        ({"api": "Heartbeat", "request": {"generation_id": 2}}, False),
    ],
)
def test_all_conditions_have_to_hold(plane_of: ControlPlaneOf, match: dict[str, Any], met: bool) -> None:
    """AND, over the fields of the request and the broker that received it."""
    plane = plane_of(brokers=2)
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, **match)
    assert (heartbeat(plane.server.wire()) is E.GROUP_AUTHORIZATION_FAILED) is met


def test_faults_add_up(plane: ControlPlane) -> None:
    """Each does its part: one waits, the next one refuses, and a third is never reached."""
    add(plane, {"delay_ms": 1000}, api="Heartbeat", times=None)
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="Heartbeat")
    last = add(plane, {"disconnect": "close"}, api="Heartbeat")
    wire = plane.server.wire()
    wire.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "unknown"))
    plane.http("GET", "/v1/faults/1?wait_hits=1") if last == "3" else None
    plane.server.advance(1000)
    assert wire.answer().error_code is E.GROUP_AUTHORIZATION_FAILED
    assert [f["id"] for f in plane.http("GET", "/v1/faults?unmet=true")["faults"]] == [last]


def test_a_drip_waits_while_the_clock_is_frozen(plane: ControlPlane) -> None:
    """Drops are sent by the cluster's clock."""
    add(plane, {"bytes": {"drip": {"size": 6, "every_ms": 500}}}, api="Heartbeat")
    plane.server.freeze()
    wire = plane.server.wire()
    wire.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "unknown"))
    assert len(wire.socket.recv(100)) == 6
    assert not wire.has_answer()
    plane.server.advance(500)
    assert len(wire.socket.recv(100)) == 6


def test_altered_fields_are_those_of_the_items_that_are_meant(plane: ControlPlane) -> None:
    """``*`` is every element, as far as the fault speaks of it."""
    add(plane, {"alter": {"topics.*.partitions.*.leader_id": 9}}, api="Metadata", topic="t", partition=0)
    answer = plane.server.wire().call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic("t")]))
    assert {p.partition_index: p.leader_id for t in answer.topics for p in t.partitions} == {0: 9, 1: 1}


# --- looking after them ----------------------------------------------------------------------------------------------


def test_hits_can_be_waited_for(plane: ControlPlane) -> None:
    """The answer comes with the last hit that was waited for, or when time is up."""
    fault = add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="Heartbeat", times=None)
    wire = plane.server.wire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(plane.http, "GET", f"/v1/faults/{fault}?wait_hits=2&timeout_ms=9000")
        while not waiting.done():
            heartbeat(wire)
        assert waiting.result()["hits"] >= 2
    hits = plane.http("GET", f"/v1/faults/{fault}?wait_hits=99999&timeout_ms=1")["hits"]
    assert 2 <= hits < 99_999


def test_removed_faults_meet_nothing(plane: ControlPlane) -> None:
    """One by one, all, or by a reset that does not keep them."""
    wire = plane.server.wire()
    one = add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, times=None, api="Heartbeat")
    assert plane.http("DELETE", f"/v1/faults/{one}")["id"] == one
    assert heartbeat(wire) is NATURAL
    assert plane.refused("DELETE", f"/v1/faults/{one}")[0] == 404
    assert plane.refused("GET", f"/v1/faults/{one}")[0] == 404
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, times=None, api="Heartbeat")
    plane.http("POST", "/v1/reset", {"keep": ["faults"]})
    assert heartbeat(wire) is E.GROUP_AUTHORIZATION_FAILED
    assert plane.http("DELETE", "/v1/faults") == {"removed": 1}
    assert heartbeat(wire) is NATURAL
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, times=None, api="Heartbeat")
    plane.server.reset()
    assert heartbeat(wire) is NATURAL


def test_ids_are_never_given_twice(plane: ControlPlane) -> None:
    """A handle from before a reset names no fault of after it."""
    before = add(plane, {"drop": True})
    plane.server.reset()
    assert add(plane, {"drop": True}) != before


# --- mistakes --------------------------------------------------------------------------------------------------------

WRONG = [
    ({}, "do", 'needs "do"'),
    ({"do": {}}, "do", "exactly one of"),
    ({"do": {"error": "NOT_COORDINATOR", "drop": True}}, "do", "error and drop"),
    ({"do": {"error": "NOT_COORDINATR"}}, "do.error", "did you mean NOT_COORDINATOR"),
    ({"do": {"error": "NONE"}}, "do.error", "alter"),
    ({"do": {"eror": "NOT_COORDINATOR"}}, "do.eror", "did you mean error"),
    ({"do": {"drop": False}}, "do.drop", "only be true"),
    ({"do": {"disconnect": "rst"}}, "do.disconnect", "close or reset"),
    ({"do": {"delay_ms": -1}}, "do.delay_ms", "whole number"),
    ({"do": {"delay_ms": 5, "where": "during"}}, "do.where", "before or after"),
    ({"do": {"drop": True, "where": "before"}}, "do.where", "delay_ms"),
    ({"do": {"apply_then": {"throttle_ms": 5}}}, "do.apply_then.throttle_ms", "known: error"),
    ({"do": {"alter": {"error_code": 5}}}, "match.api", "match.api"),
    ({"match": {"api": "EndTxn"}, "do": {"alter": {"eror_code": 5}}}, "do.alter.eror_code", "it has"),
    ({"match": {"api": "EndTxn"}, "do": {"alter": {"producer_id": "x"}}}, "do.alter.producer_id", "whole number"),
    ({"match": {"api": "Fetch"}, "do": {"alter": {"responses.topic": "x"}}}, "do.alter.responses.topic", "is a list"),
    ({"do": {"bytes": {"corrupt": [1, 0]}}}, "do.bytes.corrupt", "mask"),
    ({"do": {"bytes": {"extra": "xyz"}}}, "do.bytes.extra", "hexadecimal"),
    ({"do": {"bytes": {"correlation_id": 1 << 40}}}, "do.bytes.correlation_id", "int32"),
    ({"do": {"bytes": {"drip": {"size": 0}}}}, "do.bytes.drip.size", "at least 1"),
    ({"match": {"api": "EndTxm"}, "do": {"drop": True}}, "match.api", "did you mean EndTxn"),
    ({"match": {"api": "Vote"}, "do": {"drop": True}}, "match.api", "not served"),
    ({"match": {"apii": "EndTxn"}, "do": {"drop": True}}, "match.apii", "did you mean api"),
    ({"match": {"api": "EndTxn", "topic": "t"}, "do": {"drop": True}}, "match.topic", "has no topic"),
    ({"match": {"api": "EndTxn", "versions": [7, 8]}, "do": {"drop": True}}, "match.versions", "0 to 5"),
    ({"match": {"versions": [3, 2]}, "do": {"drop": True}}, "match.versions", "first, last"),
    ({"match": {"broker": 9}, "do": {"drop": True}}, "match.broker", "no broker 9"),
    ({"match": {"listener": "PLAINTXT"}, "do": {"drop": True}}, "match.listener", "did you mean PLAINTEXT"),
    ({"match": {"partition": -1}, "do": {"drop": True}}, "match.partition", "at least 0"),
    ({"match": {"topic": 5}, "do": {"drop": True}}, "match.topic", "a text"),
    ({"match": {"request": {"comitted": True}}, "do": {"drop": True}}, "match.request.comitted", "no API"),
    (
        {"match": {"api": "EndTxn", "request": {"committed": 1}}, "do": {"drop": True}},
        "match.request.committed",
        "true",
    ),
    ({"match": {"api": "Metadata", "partition": 1}, "do": {"drop": True}}, "match.partition", "name no partition"),
    (
        {"match": {"api": "ListGroups", "group": "g"}, "do": {"error": "NOT_COORDINATOR"}},
        "match",
        "no error per",
    ),
    ({"match": {"api": "SaslHandshake"}, "do": {"throttle_ms": 5}}, "do.throttle_ms", "no throttle time"),
    ({"do": {"drop": True}, "times": 0}, "times", "at least 1"),
    ({"do": {"drop": True}, "skip": -1}, "skip", "at least 0"),
    ({"do": {"drop": True}, "probability": 0}, "probability", "above 0"),
    ({"do": {"drop": True}, "when": 1}, "when", "known fields"),
]


@pytest.mark.parametrize(("body", "field", "text"), WRONG, ids=[f"{at}-{each[1]}" for at, each in enumerate(WRONG)])
def test_a_mistake_is_answered_with_its_field_and_what_to_write(
    plane: ControlPlane, body: dict[str, Any], field: str, text: str
) -> None:
    """A bad fault gets 422 with its field and what to write, and is not added."""
    status, problem = plane.refused("POST", "/v1/faults", body)
    assert (status, problem["field"]) == (422, field)
    assert text in problem["detail"]
    assert plane.http("GET", "/v1/faults") == {"faults": []}


# --- the other ways -------------------------------------------------------------------------------------------------


def test_python_adds_waits_and_removes(plane: ControlPlane) -> None:
    """``with kafka.faults.add(...) as fault``."""
    kafka, wire = plane.kafka, plane.server.wire()
    with kafka.faults.add(api="Heartbeat", group="g", error="GROUP_AUTHORIZATION_FAILED") as fault:
        assert heartbeat(wire) is E.GROUP_AUTHORIZATION_FAILED
        assert fault.wait_hits(1).hits == 1
    assert kafka.faults.list() == []
    with pytest.raises(understudy.ControlError, match="did you mean NOT_COORDINATOR"):
        kafka.faults.add(error="NOT_COORDINATR")
    with (
        kafka.faults.add(api="EndTxn", apply_then=understudy.Disconnect("reset")) as fault,
        pytest.raises(TimeoutError),
    ):
        fault.wait_hits(1, timeout_ms=1)
    assert [state.match for state in kafka.faults.unmet()] == [{"api": "EndTxn"}]
    kafka.faults.clear()
    assert kafka.faults.unmet() == []


def test_the_shell_adds_lists_and_removes(plane: ControlPlane) -> None:
    """``understudy ctl faults`` adds, lists and removes a fault."""
    wire = plane.server.wire()
    fault = plane.ctl("faults", "add", "--api", "Heartbeat", "--group", "g", "--error", "GROUP_AUTHORIZATION_FAILED")[
        "id"
    ]
    assert heartbeat(wire) is E.GROUP_AUTHORIZATION_FAILED
    assert plane.ctl("faults", "show", fault, "--wait-hits", "1")["hits"] == 1
    assert fault in plane.ctl_text("faults", "list")
    assert plane.ctl("faults", "list", "--unmet")["faults"] == []
    plane.ctl("faults", "remove", fault)
    plane.ctl("faults", "add", "--apply-then", "disconnect=reset", "--request", '{"committed": true}')
    assert plane.ctl("faults", "clear") == {"removed": 1}


def test_a_request_that_ends_otherwise_is_not_met(plane: ControlPlane) -> None:
    """Request fields are compared as JSON shows them: a commit and an abort differ."""
    wire = plane.server.wire()
    add(plane, {"error": "GROUP_AUTHORIZATION_FAILED"}, api="EndTxn", request={"committed": True})
    assert (
        wire.call(ApiKey.END_TXN, 3, EndTxnRequest("x", 1, 0, committed=False)).error_code
        is not E.GROUP_AUTHORIZATION_FAILED
    )
    assert (
        wire.call(ApiKey.END_TXN, 3, EndTxnRequest("x", 1, 0, committed=True)).error_code
        is E.GROUP_AUTHORIZATION_FAILED
    )


def test_a_delayed_request_goes_on_when_its_fault_is_removed(plane: ControlPlane) -> None:
    """At once, at any time of the clock."""
    wire = plane.server.wire()
    fault = add(plane, {"delay_ms": 3_600_000}, api="Heartbeat")
    wire.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "unknown"))
    plane.http("GET", f"/v1/faults/{fault}?wait_hits=1")
    plane.http("DELETE", f"/v1/faults/{fault}")
    assert wire.answer().error_code is NATURAL


def test_a_reset_does_not_let_old_requests_in(plane: ControlPlane) -> None:
    """What waited before it is hung up, rather than done to the new cluster."""
    wire = plane.server.wire()
    fault = add(plane, {"delay_ms": 3_600_000}, api="Produce")
    request = ProduceRequest(None, -1, 1000, [TopicProduceData("t", [PartitionProduceData(0, batch(b"v"))])])
    wire.send(ApiKey.PRODUCE, 9, request)
    plane.http("GET", f"/v1/faults/{fault}?wait_hits=1")
    plane.server.reset()
    wire.check_closed()
    assert produce(plane.server.wire(), 0) == [(0, E.NONE, 0)]
