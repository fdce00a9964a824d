"""Plants: answers with values that no answer has, or that the directory's logs and metadata contradict."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from protocol.log_records import metadata
from protocol.log_records.transaction import TransactionState as State
from protocol.types import uuid_text
from tests.pipeline.fault_files import topic_id_of
from tests.pipeline.journal_faults import ANSWERS, answer
from tests.pipeline.journal_lines import Wire, Wiring, assignment

DESCRIBED: Mapping[str, Any] = {"error_code": "NONE", "transaction_state": "Ongoing", "producer_id": 750,
                                "producer_epoch": 0, "transaction_timeout_ms": 60_000, "topics": []}  # fmt: skip


def _value(
    name: str, api: str, request: Mapping[str, Any], got: Mapping[str, Any], check: str = "answer-value"
) -> None:
    """One answer of one request."""
    ANSWERS[name] = (check, lambda wiring, client: wiring.connect(client).call(api, request, got, version=9))


_BEAT = {"group_id": "g", "member_id": "m", "member_epoch": 3}
_value("throttle-negative", "Heartbeat", {"group_id": "g"}, {"error_code": "NONE", "throttle_time_ms": -1})
_value("group-state-unknown", "ListGroups", {}, {"error_code": "NONE", "groups": [
    {"group_id": "g", "group_state": "Sleeping", "group_type": "classic"}]})  # fmt: skip
_value("group-twice", "ListGroups", {}, {"error_code": "NONE", "groups": [{"group_id": "g"}, {"group_id": "g"}]})
_value("group-assignment-epoch", "ConsumerGroupDescribe", {"group_ids": ["g"]}, {"groups": [
    {"group_id": "g", "error_code": "NONE", "group_epoch": 3, "assignment_epoch": 4}]})  # fmt: skip
_value("member-of-another-name", "ConsumerGroupHeartbeat", _BEAT,
       {"error_code": "NONE", "member_id": "n", "member_epoch": 3})  # fmt: skip
_value("heartbeat-interval", "ConsumerGroupHeartbeat", _BEAT,
       {"error_code": "NONE", "member_id": "m", "member_epoch": 3, "heartbeat_interval_ms": -5})  # fmt: skip
_value("assigned-twice", "ConsumerGroupHeartbeat", _BEAT, {
    "error_code": "NONE", "member_id": "m", "member_epoch": 3, "assignment": {"topic_partitions": [
        {"topic_id": uuid_text(UUID(int=9400)), "partitions": [1, 1]}]}})  # fmt: skip
_value("transaction-listed-twice", "ListTransactions", {}, {"error_code": "NONE", "transaction_states": [
    {"transactional_id": "wire-old", "producer_id": 900, "transaction_state": "CompleteCommit"}] * 2})  # fmt: skip
_value("setting-source-unknown", "DescribeConfigs", {"resources": [{"resource_type": 2, "resource_name": "t"}]}, {
    "results": [{"error_code": "NONE", "resource_type": 2, "resource_name": "t", "configs": [
        {"name": "retention.ms", "config_source": 77, "config_type": 5, "synonyms": []}]}]})  # fmt: skip
_value("session-negative", "Fetch", {"session_id": 0, "session_epoch": 0, "topics": []},
       {"error_code": "NONE", "session_id": -4, "responses": []})  # fmt: skip
_value("committed-negative", "OffsetFetch", {"groups": [{"group_id": "g", "topics": None}]}, {"groups": [
    {"group_id": "g", "error_code": "NONE", "topics": [{"name": "t", "partitions": [
        {"partition_index": 0, "committed_offset": -8, "error_code": "NONE"}]}]}]})  # fmt: skip
_value("error-of-elections", "Heartbeat", {"group_id": "g"}, {"error_code": "ELECTION_NOT_NEEDED"}, "answer-error")
_value("error-of-members", "ListOffsets", {"topics": []}, {"topics": [{"name": "t", "partitions": [
    {"partition_index": 0, "error_code": "ILLEGAL_GENERATION"}]}]}, "answer-error")  # fmt: skip
_value("group-left-out", "DescribeGroups", {"groups": ["a", "b"]},
       {"groups": [{"group_id": "a", "error_code": "NONE", "group_state": "Empty"}]}, "answer-items")  # fmt: skip
_value("topic-created-twice", "CreateTopics", {"topics": [{"name": "a"}]},
       {"topics": [{"name": "a", "error_code": "NONE"}] * 2}, "answer-items")  # fmt: skip


@answer("answer-value")
def producer_negative(wiring: Wiring, name: str) -> int:
    """A sequence below the one that means none."""
    return _producer(wiring.connect(name), "elsewhere", last_sequence=-3)


@answer("answer-value")
def leader_without_an_error(wiring: Wiring, name: str) -> int:
    """A hint to another leader belongs to NOT_LEADER_OR_FOLLOWER."""
    return wiring.connect(name).produce(name, hint=4)


@answer("sync-answer")
def assignment_of_another(wiring: Wiring, name: str) -> int:
    """The leader gave partition 1, and the answer has partition 0."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    number = wire.sync(name, name, 1, {name: assignment(name, 1)})
    wiring.lines[number - 1]["response"]["assignment"] = assignment(name, 0).decode()
    return number


@answer("fetch-aborted")
def aborted_that_was_committed(wiring: Wiring, name: str) -> int:
    """The transaction was committed, and the answer has it as aborted."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3, producer=751, transactional=True)
    log.marker(751, 0, committed=True)
    return wire.fetch(name, 4, committed=True, aborted=[(751, 0)], stable=4)


@answer("bound-answer")
def watermark_beyond_the_end(wiring: Wiring, name: str) -> int:
    """The log has three records, and consumers may read five."""
    wiring.where.shelf(name).data(3)
    return wiring.connect(name).fetch(name, 0, stable=5)


@answer("bound-answer")
def earliest_behind_the_start(wiring: Wiring, name: str) -> int:
    """ListOffsets names 2 as the earliest offset of a log that begins at 0."""
    wiring.where.shelf(name).data(3)
    request = {
        "isolation_level": 0,
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]}],
    }
    part = {"partition_index": 0, "error_code": "NONE", "timestamp": -1, "offset": 2, "leader_epoch": 0}
    return wiring.connect(name).call(
        "ListOffsets", request, {"topics": [{"name": name, "partitions": [part]}]}, version=7
    )


@answer("metadata-differs")
def partition_of_no_topic(wiring: Wiring, name: str) -> int:
    """The topic has one partition; a member is to read the second."""
    wiring.where.shelf(name).data(3)
    assigned = {"topic_partitions": [{"topic_id": uuid_text(topic_id_of(name)), "partitions": [1]}]}
    request = {"group_id": name, "member_id": name, "member_epoch": 0}
    got = {"error_code": "NONE", "member_id": name, "member_epoch": 1, "assignment": assigned}
    return wiring.connect(name).call("ConsumerGroupHeartbeat", request, got, version=1)


@answer("metadata-differs")
def leader_epoch_of_the_future(wiring: Wiring, name: str) -> int:
    """ListOffsets has leader epoch 6, and the metadata 0."""
    wiring.where.shelf(name).data(3)
    request = {
        "isolation_level": 0,
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    }
    part = {"partition_index": 0, "error_code": "NONE", "timestamp": -1, "offset": 3, "leader_epoch": 6}
    return wiring.connect(name).call(
        "ListOffsets", request, {"topics": [{"name": name, "partitions": [part]}]}, version=7
    )


@answer("metadata-differs")
def coordinator_that_never_registered(wiring: Wiring, name: str) -> int:
    """The metadata know brokers 1, 2 and 11; FindCoordinator names 9."""
    place = (metadata.Endpoint("PLAINTEXT", "localhost", 9092),)
    values = [metadata.encode(metadata.RegisterBrokerRecord(each, end_points=place))[1] for each in (1, 2, 11)]
    wiring.where.shelf("__cluster_metadata").data(3, keys=[None] * 3, values=values)
    request = {"key_type": 0, "coordinator_keys": [name]}
    coordinator = {"key": name, "node_id": 9, "host": "h", "port": 9, "error_code": "NONE"}
    return wiring.connect(name).call("FindCoordinator", request, {"coordinators": [coordinator]}, version=4)


@answer("metadata-differs")
def producer_id_of_no_block(wiring: Wiring, name: str) -> int:
    """The metadata gave out the ids below 3000."""
    return wiring.connect(name).init(None, (3000, 0))


def _described(wiring: Wiring, name: str, **fields: Any) -> int:
    """DescribeTransactions of a transaction that is ongoing."""
    state = {**DESCRIBED, "transactional_id": name, **fields}
    wire = wiring.connect(name)
    return wire.call("DescribeTransactions", {"transactional_ids": [name]}, {"transaction_states": [state]}, version=0)


@answer("transaction-answer")
def transaction_of_another_timeout(wiring: Wiring, name: str) -> int:
    """A minute in the coordinator's log, an hour in the answer."""
    wiring.where.transaction(name, 750, 0, State.ONGOING, [("wire-clean", 0)])
    return _described(wiring, name, transaction_timeout_ms=3_600_000)


@answer("transaction-answer")
def transaction_of_another_partition(wiring: Wiring, name: str) -> int:
    """A partition that was never added."""
    wiring.where.transaction(name, 752, 0, State.ONGOING, [("wire-clean", 0)])
    return _described(wiring, name, producer_id=752, topics=[{"topic": "wire-clean", "partitions": [3]}])


def _producer(wire: Wire, topic: str, **fields: Any) -> int:
    """DescribeProducers of partition 0 with one producer."""
    one = {"producer_id": 753, "producer_epoch": 0, "last_sequence": 2, "last_timestamp": -1, "coordinator_epoch": -1,
           "current_txn_start_offset": -1} | fields  # fmt: skip
    part = {"partition_index": 0, "error_code": "NONE", "active_producers": [one]}
    request = {"topics": [{"name": topic, "partition_indexes": [0]}]}
    return wire.call("DescribeProducers", request, {"topics": [{"name": topic, "partitions": [part]}]}, version=0)


@answer("transaction-answer")
def producer_of_another_sequence(wiring: Wiring, name: str) -> int:
    """The partition has the sequences 0 to 2 of this producer."""
    wiring.where.shelf(name).data(3, producer=753)
    wire = wiring.connect(name)
    _producer(wire, name)
    return _producer(wire, name, last_sequence=5)


@answer("node-address")
def another_port_for_a_moment(wiring: Wiring, name: str) -> int:
    """The second of three answers has another port."""
    wire = wiring.connect(name)
    numbers = []
    for port in (9092, 9999, 9092):
        got = {"brokers": [{"node_id": 11, "host": "h", "port": port}], "controller_id": 11, "topics": []}
        numbers.append(wire.call("Metadata", {"topics": []}, got, version=12))
    return numbers[1]


@answer("coordinator-answer")
def coordinator_without_a_node(wiring: Wiring, name: str) -> int:
    """No error, and no node."""
    coordinator = {"key": name, "node_id": -1, "host": "", "port": -1, "error_code": "NONE"}
    request = {"key_type": 0, "coordinator_keys": [name]}
    return wiring.connect(name).call("FindCoordinator", request, {"coordinators": [coordinator]}, version=4)


@answer("answer-items")
def coordinator_unasked(wiring: Wiring, name: str) -> int:
    """Of another group."""
    coordinator = {"key": "another", "node_id": 1, "host": "h", "port": 9, "error_code": "NONE"}
    request = {"key_type": 0, "coordinator_keys": [name]}
    return wiring.connect(name).call("FindCoordinator", request, {"coordinators": [coordinator]}, version=4)


_SHARED = {"error_code": "NONE", "acquisition_lock_timeout_ms": 1000}
_TASK = [{"subtopology_id": "0", "partitions": [0, 1]}]
_value("acquired-never", "ShareFetch", {"group_id": "g", "member_id": "m"}, {**_SHARED, "responses": [{"partitions": [
    {"acquired_records": [{"first_offset": 3, "last_offset": 4, "delivery_count": 0}]}]}]})  # fmt: skip
_value("acquired-unread", "ShareFetch", {"group_id": "g", "member_id": "m"}, {**_SHARED, "responses": [{"partitions": [
    {"records": {"base_offset": 3, "last_offset": 4},
     "acquired_records": [{"first_offset": 3, "last_offset": 9, "delivery_count": 1}]}]}]})  # fmt: skip
_value("task-active-and-standby", "StreamsGroupHeartbeat", _BEAT, {
    "error_code": "NONE", "member_id": "m", "member_epoch": 3, "heartbeat_interval_ms": 5000,
    "active_tasks": _TASK, "standby_tasks": _TASK, "warmup_tasks": []})  # fmt: skip
_value("epoch-of-a-new-producer", "InitProducerId", {"transactional_id": None, "producer_id": -1},
       {"error_code": "NONE", "producer_id": 2991, "producer_epoch": 8}, "producer-id-answer")  # fmt: skip
_value("member-id-required-again", "JoinGroup", {"group_id": "required", "member_id": "required-1"},
       {"error_code": "MEMBER_ID_REQUIRED", "member_id": "required-1"}, "error-contradicted")  # fmt: skip


@answer("error-contradicted")
def version_that_was_offered(wiring: Wiring, name: str) -> int:
    """LeaveGroup in a version that ApiVersions has, and UNSUPPORTED_VERSION."""
    wire = wiring.connect(name)
    ranges = [{"api_key": 13, "min_version": 0, "max_version": 5}]
    wire.call("ApiVersions", {}, {"error_code": "NONE", "api_keys": ranges}, version=3)
    return wire.call("LeaveGroup", {"group_id": name}, {"error_code": "UNSUPPORTED_VERSION"}, version=4)


@answer("verdict-withdrawn")
def member_unknown_for_once(wiring: Wiring, name: str) -> int:
    """A member that is unknown, and with the next heartbeat is not."""
    wire = wiring.connect(name)
    wire.heartbeat(name, f"{name}-1", 3)
    refused = wire.heartbeat(name, f"{name}-1", 3, "UNKNOWN_MEMBER_ID")
    wire.heartbeat(name, f"{name}-1", 3)
    return refused


@answer("verdict-withdrawn")
def epoch_fenced_for_once(wiring: Wiring, name: str) -> int:
    """A member of a consumer group whose epoch is fenced, and valid again."""
    wire = wiring.connect(name)
    request = {"group_id": name, "member_id": "m", "member_epoch": 3}
    got = {"error_code": "NONE", "member_id": "m", "member_epoch": 3, "heartbeat_interval_ms": 5000}
    refused = wire.call("ConsumerGroupHeartbeat", request, {"error_code": "FENCED_MEMBER_EPOCH"}, version=1)
    wire.call("ConsumerGroupHeartbeat", request, got, version=1)
    return refused


@answer("answer-order")
def answers_that_overtake(wiring: Wiring, name: str) -> int:
    """The second request of a connection is answered before the first."""
    wire = wiring.connect(name)
    wire.call("ListGroups", {}, {"error_code": "NONE", "groups": []}, took_us=50_000)
    return wire.call("ListGroups", {}, {"error_code": "NONE", "groups": []}, step_us=1_000)


@answer("error-contradicted")
def offset_that_the_log_has(wiring: Wiring, name: str) -> int:
    """OFFSET_OUT_OF_RANGE for offset 2 of 6, after an answer that named them all."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3)
    log.data(3)
    wire.fetch(name, 6, stable=6)
    number = wire.fetch(name, 2, stable=6)
    line = wiring.lines[number - 1]
    line["response"]["responses"][0]["partitions"][0] |= {
        "error_code": "OFFSET_OUT_OF_RANGE", "high_watermark": -1, "last_stable_offset": -1,
    }  # fmt: skip
    line["error"], line["error_codes"] = "OFFSET_OUT_OF_RANGE", [1]
    return number


@answer("error-contradicted")
def topic_that_was_named(wiring: Wiring, name: str) -> int:
    """UNKNOWN_TOPIC_OR_PARTITION for a topic that the broker had named, and that was never deleted."""
    wiring.where.shelf(name).data(3)
    part = {"error_code": "NONE", "partition_index": 0, "leader_id": 1, "leader_epoch": 0, "replica_nodes": [1],
            "isr_nodes": [1]}  # fmt: skip
    topic = {"name": name, "topic_id": uuid_text(topic_id_of(name)), "error_code": "NONE", "is_internal": False}
    brokers = {"brokers": [{"node_id": 1, "host": "127.0.0.1", "port": 9092}], "controller_id": 1}
    wire = wiring.connect(name)
    request = {"topics": [{"name": name}]}
    wire.call("Metadata", request, {**brokers, "topics": [{**topic, "partitions": [part]}]}, version=12)
    unknown = {**topic, "error_code": "UNKNOWN_TOPIC_OR_PARTITION", "partitions": []}
    return wire.call("Metadata", request, {**brokers, "topics": [unknown]}, version=12)
