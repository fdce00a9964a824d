"""Every kind of fault works with every API of the broker, also with one that is added later."""

from typing import Any
from uuid import UUID

import pytest

from broker.handlers import APIS
from broker.request.api import ServedVersions
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.errors import ErrorCode
from protocol.items import level_of
from protocol.messages.metadata import MetadataRequest
from protocol.paths import to_json
from tests.conftest import BrokerWith
from tests.control.samples import errors, sample
from tests.serving import Server, until
from tests.wire import Closed, Wire

CODE = ErrorCode.THROTTLING_QUOTA_EXCEEDED  # telemetry turns most others into INVALID_REQUEST, as in Kafka
SETTINGS = {"group.initial.rebalance.delay.ms": 0}
ACL = {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3, "principal": "User:a"}
ACL_FILTER = {"resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3, "permission_type": 3}
CODED_FIELDS: dict[ApiKey, dict[str, Any]] = {
    ApiKey.CREATE_ACLS: ACL,
    ApiKey.DELETE_ACLS: ACL_FILTER,
    ApiKey.DESCRIBE_ACLS: ACL_FILTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"mechanism": 1, "iterations": 4096},
}
"""Values for fields that have only certain codes: with others the broker closes the connection, or nothing is sent."""
ALL_OR_NOTHING = (ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.CREATE_ACLS)
"""APIs whose requests list topics or resources, but whose responses have no error for a single one."""
DEEP_CODES = {
    ApiKey.WRITE_TXN_MARKERS: "markers.*.topics.*.partitions.*.error_code",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "results.*.partitions.*.error_code",
    ApiKey.READ_SHARE_GROUP_STATE: "results.*.partitions.*.error_code",
    ApiKey.WRITE_SHARE_GROUP_STATE: "results.*.partitions.*.error_code",
    ApiKey.DELETE_SHARE_GROUP_STATE: "results.*.partitions.*.error_code",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "results.*.partitions.*.error_code",
}
"""Paths of the error codes in responses that have neither a throttle time nor a top-level error."""
TOPICLESS = {ApiKey.DELETE_TOPICS: {"name": "other"}, ApiKey.CREATE_TOPICS: {"name": "new"}}


@pytest.fixture
def kafka(broker_with: BrokerWith) -> Server:
    """A broker with the topic of the sample requests."""
    return broker_with(topics=["t:1"], settings=SETTINGS)


def request_of(api: ServedVersions, topic_id: UUID | None) -> Any:
    """A valid request of the API whose response does not wait."""
    values: dict[str, Any] = {"acks": 1, "session_timeout_ms": 10_000, "client_software_name": "walk"}
    values |= {"client_software_version": "1", "session_epoch": -1, "replica_id": -1, "mechanism": "PLAIN"}
    if api.key not in TOPICLESS:
        values["topic_id"] = topic_id
    values |= CODED_FIELDS.get(api.key, {})
    return sample(message_class(api.key, "Request"), **values, **TOPICLESS.get(api.key, {}))


class Walk:
    """One API of a server, with one request for each fault."""

    def __init__(self, kafka: Server, api: ServedVersions) -> None:
        self.kafka, self.api = kafka, api
        self.version = api.versions[1]
        reported = kafka.wire().call(ApiKey.METADATA, 12, sample(MetadataRequest))
        self.topic_id = reported.topics[0].topic_id

    def add(self, do: Any, **match: Any) -> str:
        """Add a fault on this API; return its id."""
        fault = self.kafka.control("POST", "/v1/faults", {"match": {"api": self.api.key.title, **match}, "do": do})
        return str(fault["id"])

    def hits(self, fault: str) -> int:
        """The number of requests that the fault has met."""
        return int(self.kafka.control("GET", f"/v1/faults/{fault}")["hits"])

    def ask(self) -> Wire:
        """A new connection on which the sample request has been sent."""
        wire = self.kafka.wire()
        wire.send(self.api.key, self.version, request_of(self.api, self.topic_id))
        return wire

    def answer(self, do: Any, **match: Any) -> Any:
        """The response to the sample request, which the fault must have met."""
        fault = self.add(do, **match)
        answer = self.ask().answer()
        assert self.hits(fault) == 1
        return answer


@pytest.fixture(params=APIS, ids=lambda api: api.key.title)
def walk(request: pytest.FixtureRequest, kafka: Server) -> Walk:
    """One test for each API."""
    return Walk(kafka, request.param)


def test_an_error_replaces_the_response(walk: Walk) -> None:
    """In the fields in which that API has its errors, and in no other."""
    answer = walk.answer({"error": CODE.name})
    assert errors(answer) - {ErrorCode.NONE} == {CODE}


def test_apply_then_replaces_the_response_of_a_processed_request(walk: Walk) -> None:
    """The response is the same as without apply_then."""
    answer = walk.answer({"apply_then": {"error": CODE.name}})
    assert errors(answer) - {ErrorCode.NONE} == {CODE}


@pytest.mark.parametrize("do", [{"delay_ms": 60_000}, {"delay_ms": 60_000, "where": "after"},
                                {"apply_then": {"delay_ms": 60_000}}], ids=["before", "after", "then"])  # fmt: skip
def test_a_delay_ends_by_the_clusters_clock(walk: Walk, do: Any) -> None:
    """There is no response until the clock has been advanced."""
    fault = walk.add(do)
    wire = walk.ask()
    walk.kafka.control("GET", f"/v1/faults/{fault}?wait_hits=1")
    assert not wire.has_answer()
    walk.kafka.advance(60_000)
    assert isinstance(wire.answer(), message_class(walk.api.key, "Response"))


@pytest.mark.parametrize("do", [{"disconnect": "close"}, {"disconnect": "reset"},
                                {"apply_then": {"disconnect": "close"}}, {"apply_then": {"disconnect": "reset"}}],
                         ids=["close", "reset", "then close", "then reset"])  # fmt: skip
def test_the_connection_ends_without_an_answer(walk: Walk, do: Any) -> None:
    """A disconnect fault closes the connection without a response, whether the request was processed or not."""
    fault = walk.add(do)
    walk.ask().check_closed()
    assert walk.hits(fault) == 1


@pytest.mark.parametrize("do", [{"drop": True}, {"apply_then": {"drop": True}}], ids=["drop", "then drop"])
def test_a_dropped_answer_never_comes(walk: Walk, do: Any) -> None:
    """Neither do later ones of that connection, which stays open; other connections are served."""
    fault = walk.add(do)
    wire = walk.ask()
    walk.kafka.control("GET", f"/v1/faults/{fault}?wait_hits=1")
    wire.send(ApiKey.API_VERSIONS, 0, sample(message_class(ApiKey.API_VERSIONS, "Request")))
    answered = walk.kafka.wire().call(ApiKey.API_VERSIONS, 0, sample(message_class(ApiKey.API_VERSIONS, "Request")))
    assert answered.api_keys
    assert not wire.has_answer()


def test_a_throttle_time_is_returned(walk: Walk) -> None:
    """The fault is refused if the response has no such field."""
    if "throttle_time_ms" in message_class(walk.api.key, "Response").FIELDS:
        assert walk.answer({"throttle_ms": 1}).throttle_time_ms == 1
    else:
        with pytest.raises(AssertionError, match="no throttle time"):
            walk.add({"throttle_ms": 1})


def test_a_field_is_altered(walk: Walk) -> None:
    """The throttle time, or else an error code."""
    cls = message_class(walk.api.key, "Response")
    name = next((name for name in ("throttle_time_ms", "error_code") if name in cls.FIELDS), None)
    if name is None:
        path = DEEP_CODES[walk.api.key]
        assert errors(walk.answer({"alter": {path: CODE.name}})) == {CODE}
        return
    value = 7 if name == "throttle_time_ms" else CODE.name
    assert to_json(getattr(walk.answer({"alter": {name: value}}), name)) == value


def test_the_bytes_of_a_response_are_damaged(walk: Walk) -> None:
    """Truncated, flipped, with another correlation id, with extra bytes; a response that drips arrives complete."""
    frame_size = len(walk.ask().receive_frame()) + 4
    assert walk.answer({"bytes": {"drip": {"size": max(frame_size // 3, 1), "every_ms": 0}}}) is not None
    for do in ({"truncate": 7}, {"corrupt": [7, 255]}, {"correlation_id": -5}, {"extra": "c0ffee"}):
        fault = walk.add({"bytes": do})
        check_damaged(walk.ask(), do)
        assert walk.hits(fault) == 1


def check_damaged(wire: Wire, do: Any) -> None:
    """Check that the response has this damage, and no other."""
    if "truncate" in do:
        with pytest.raises(Closed):
            wire.receive_frame()
        return
    frame = wire.receive_frame()
    number = int.from_bytes(frame[:4], "big", signed=True)
    assert number == {"corrupt": 254, "correlation_id": -5, "extra": 1}[next(iter(do))]
    if "extra" in do:
        until(wire.has_answer, "the extra bytes")
        assert wire.socket.recv(10) == bytes.fromhex("c0ffee")


def test_items_fail_one_by_one(walk: Walk) -> None:
    """A fault on a topic, partition, group or transactional id makes only that item of a request fail."""
    level = level_of(message_class(walk.api.key, "Request"))
    values = {"topic": "t", "partition": 0, "group": "g", "transactional_id": "x"}
    values["topic"] = TOPICLESS.get(walk.api.key, {}).get("name", "t")
    met = [kind for kind in level.kinds if refused_alone(walk, kind, values[kind])]
    assert met or not level.kinds or walk.api.key in ALL_OR_NOTHING


def refused_alone(walk: Walk, kind: str, value: Any) -> bool:
    """Return whether the API has errors of single items of that kind; if so, check that the requested one has it."""
    if walk.api.key is ApiKey.FIND_COORDINATOR and kind == "transactional_id":
        return False
    if walk.api.key.title in ("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs"):
        return True  # the resource of the sample has no type; other tests alter the configs of topics
    try:
        answer = walk.answer({"error": CODE.name}, **{kind: value})
    except AssertionError as error:
        assert "has no error per" in str(error)  # noqa: PT017 - either outcome is a pass
        return False
    assert CODE in errors(answer)
    return True
