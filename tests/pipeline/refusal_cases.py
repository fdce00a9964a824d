"""Plants: errors that nothing justifies, and errors and values that no broker puts beside each other."""

from collections.abc import Callable
from typing import Any

from protocol.types import uuid_text
from tests.pipeline.broker_answer_cases import changed
from tests.pipeline.fault_files import topic_id_of
from tests.pipeline.journal_faults import ANSWERS, answer
from tests.pipeline.journal_lines import Wire, Wiring

_REFUSED = {"throttle_time_ms": 0, "error_message": None}


def _one_answer(
    name: str, check: str, api: str, request: dict[str, Any], response: dict[str, Any], version: int = 4
) -> None:
    """A request with a wrong answer."""

    def make(wiring: Wiring, topic: str) -> int:
        return wiring.connect(topic).call(
            api, {**request, "group_id": topic}, {**_REFUSED, **response}, version=version
        )

    ANSWERS[name] = (check, make)


def _with(name: str, check: str, ask: Callable[[Wire, str], int], change: Callable[[Any], Any]) -> None:
    """A right answer that is changed."""

    def make(wiring: Wiring, topic: str) -> int:
        return changed(wiring, ask(wiring.connect(topic), topic), change)

    ANSWERS[name] = (check, make)


def _fetched(wire: Wire, topic: str) -> int:
    return wire.fetch(topic, 4, [(4, 6)], stable=9)


def _produced(wire: Wire, topic: str) -> int:
    return wire.produce(topic, offset=4)


_with("fetch-with-another-replica", "fetch-answer", _fetched,
      lambda got: got["responses"][0]["partitions"][0].update(preferred_read_replica=3))  # fmt: skip
_with("fetch-in-a-session-unasked", "fetch-answer", _fetched, lambda got: got.update(session_id=77))
_with("produce-with-a-message", "produce-answer", _produced,
      lambda got: got["responses"][0]["partition_responses"][0].update(error_message="too large"))  # fmt: skip
_with("produce-with-record-errors", "produce-answer", _produced,
      lambda got: got["responses"][0]["partition_responses"][0].update(record_errors=[{"batch_index": 0}]))  # fmt: skip
_one_answer("coordinator-that-is-none", "answer-value", "FindCoordinator", {"key": "k", "key_type": 0},
            {"error_code": "COORDINATOR_NOT_AVAILABLE", "node_id": 1, "host": "h", "port": 9092}, 2)  # fmt: skip
_one_answer("coordinator-without-a-host", "answer-value", "FindCoordinator", {"key": "k", "key_type": 0},
            {"error_code": "NONE", "node_id": 1, "host": "", "port": 9092}, 2)  # fmt: skip
_one_answer("member-id-that-is-none", "answer-value", "JoinGroup", {"member_id": ""},
            {"error_code": "MEMBER_ID_REQUIRED", "member_id": "", "generation_id": -1})  # fmt: skip
_one_answer("refused-with-a-generation", "answer-value", "JoinGroup", {"member_id": ""},
            {"error_code": "MEMBER_ID_REQUIRED", "member_id": "m", "generation_id": 2})  # fmt: skip
_one_answer("refused-with-an-epoch", "answer-value", "ConsumerGroupHeartbeat", {"member_id": "m", "member_epoch": 3},
            {"error_code": "FENCED_MEMBER_EPOCH", "member_id": "m", "member_epoch": 3})  # fmt: skip
_one_answer("static-error-of-a-dynamic-member", "error-contradicted", "Heartbeat",
            {"member_id": "m", "generation_id": 1, "group_instance_id": None},
            {"error_code": "FENCED_INSTANCE_ID"})  # fmt: skip
_one_answer("refused-with-an-identity", "answer-value", "InitProducerId", {"transactional_id": None},
            {"error_code": "COORDINATOR_LOAD_IN_PROGRESS", "producer_id": 990, "producer_epoch": 0})  # fmt: skip


_with("throttled-without-a-quota", "throttle-answer", _produced, lambda got: got.update(throttle_time_ms=500))
_one_answer("id-not-found-that-is-made", "answer-error", "InitProducerId", {"transactional_id": "t"},
            {"error_code": "TRANSACTIONAL_ID_NOT_FOUND", "producer_id": -1, "producer_epoch": -1})  # fmt: skip
_one_answer("leader-gone-for-a-coordinator", "answer-error", "EndTxn", {"transactional_id": "t", "producer_id": 4,
            "producer_epoch": 0, "committed": True}, {"error_code": "NOT_LEADER_OR_FOLLOWER"})  # fmt: skip
_one_answer("left-with-an-epoch", "answer-value", "ConsumerGroupHeartbeat", {"member_id": "m", "member_epoch": -1},
            {"error_code": "NONE", "member_id": "m", "member_epoch": 4})  # fmt: skip


@answer("share-answer")
def shared_without_being_acquired(wiring: Wiring, name: str) -> int:
    """A member of a share group is given records, and none of them is its own."""
    wiring.where.shelf(name).data(3)
    topic_id = uuid_text(topic_id_of(name))
    batch = {"base_offset": 0, "last_offset": 2, "producer_id": -1}
    part = {"partition_index": 0, "error_code": "NONE", "acknowledge_error_code": "NONE", "acquired_records": [],
            "current_leader": {"leader_id": 0, "leader_epoch": 0},
            "records": {"size_bytes": 100, "base_offset": 0, "last_offset": 2, "batches": [batch]}}  # fmt: skip
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}]
    request = {
        "group_id": name,
        "member_id": "m",
        "share_session_epoch": 0,
        "forgotten_topics_data": [],
        "topics": topics,
    }
    got = {"error_code": "NONE", "acquisition_lock_timeout_ms": 30_000, "node_endpoints": [],
           "responses": [{"topic_id": topic_id, "partitions": [part]}]}  # fmt: skip
    return wiring.connect(name).call("ShareFetch", request, got, version=1)


@answer("answer-error")
def fetch_error_of_a_group(wiring: Wiring, name: str) -> int:
    """A producer is refused with an error of members."""
    return wiring.connect(name).produce(name, error="UNKNOWN_MEMBER_ID")


@answer("error-contradicted")
def metadata_too_large(wiring: Wiring, name: str) -> int:
    """A commit without metadata has too much of it."""
    number = wiring.connect(name).commit(name, "m", -1, name, 0, error="OFFSET_METADATA_TOO_LARGE")
    wiring.lines[number - 1]["request"]["topics"][0]["partitions"][0]["committed_metadata"] = ""
    return number


def _topic(name: str, **fields: Any) -> dict[str, Any]:
    part = {"error_code": "NONE", "partition_index": 0, "leader_id": 1, "leader_epoch": 0, "replica_nodes": [1, 2],
            "isr_nodes": [1, 2], "offline_replicas": []}  # fmt: skip
    return {"error_code": "NONE", "name": name, "topic_id": None, "is_internal": False, "partitions": [part | fields]}


@answer("answer-value")
def leader_that_is_offline(wiring: Wiring, name: str) -> int:
    """A partition is led by a replica that is offline."""
    brokers = [{"node_id": each, "host": "h", "port": 9091 + each, "rack": None} for each in (1, 2)]
    got = {
        "brokers": brokers,
        "controller_id": 1,
        "cluster_id": "planted",
        "topics": [_topic(name, offline_replicas=[1])],
    }
    return wiring.connect(name).call("Metadata", {"topics": [{"name": name}]}, got, version=9)


@answer("generation-answer")
def newest_generation_refused(wiring: Wiring, name: str) -> int:
    """A member commits with the generation that it was granted."""
    wire = wiring.connect(name)
    wire.join(name, "m", 1)
    return wire.commit(name, "m", 1, name, 0, error="ILLEGAL_GENERATION")


@answer("generation-answer")
def member_that_vanished(wiring: Wiring, name: str) -> int:
    """A member is unknown just after its heartbeat was answered."""
    wire = wiring.connect(name)
    wire.join(name, "m", 1)
    wire.heartbeat(name, "m", 1)
    return wire.heartbeat(name, "m", 1, error="UNKNOWN_MEMBER_ID")


@answer("generation-answer")
def two_protocols(wiring: Wiring, name: str) -> int:
    """Members of one generation have different protocols."""
    number = 0
    for member, protocol in (("one", "range"), ("two", "sticky")):
        number = wiring.connect(f"{name}-{member}").join(name, member, 1)
        wiring.lines[number - 1]["response"].update(protocol_name=protocol, leader="one")
    return number


@answer("generation-answer")
def not_called_to_the_rebalance(wiring: Wiring, name: str) -> int:
    """A member goes on while another one waits for it."""
    one, two = wiring.connect(f"{name}-1"), wiring.connect(f"{name}-2")
    one.join(name, "one", 1)
    request = {"group_id": name, "member_id": "two", "group_instance_id": None}
    got = {"error_code": "NONE", "generation_id": 2, "member_id": "two", "leader": "two"}
    two.call("JoinGroup", request, got, took_us=9_000_000)
    wiring.now_us += 2_000_000
    number = one.heartbeat(name, "one", 1)
    wiring.now_us += 9_000_000
    return number


@answer("verdict-withdrawn")
def unknown_member_joins_again(wiring: Wiring, name: str) -> int:
    """An id that was unknown is a member's afterwards."""
    wire = wiring.connect(name)
    number = wire.heartbeat(name, "m", 1, error="UNKNOWN_MEMBER_ID")
    wire.join(name, "m", 2)
    return number


@answer("verdict-withdrawn")
def rebalance_that_was_none(wiring: Wiring, name: str) -> int:
    """A member could not get its assignment, and goes on in the same generation."""
    wire = wiring.connect(name)
    wire.join(name, "m", 1)
    request = {"group_id": name, "generation_id": 1, "member_id": "m", "protocol_type": "consumer", "assignments": []}
    number = wire.call("SyncGroup", request, {"error_code": "REBALANCE_IN_PROGRESS"})
    wire.heartbeat(name, "m", 1)
    return number


def _leaves(wire: Wire, group: str, member: str) -> None:
    members = [{"member_id": member, "group_instance_id": None}]
    wire.call("LeaveGroup", {"group_id": group, "members": members}, {
        "error_code": "NONE", "members": [{**members[0], "error_code": "NONE"}]}, version=5)  # fmt: skip


@answer("transaction-report")
def aborted_after_its_commit(wiring: Wiring, name: str) -> int:
    """A transaction is committed and then aborted, and both succeed."""
    wire = wiring.connect(name)
    wire.init(name, (2_410, 0))
    wire.add(name, (2_410, 0), name, 0)
    wire.end(name, (2_410, 0))
    return wire.end(name, (2_410, 0), committed=False)


@answer("transaction-report")
def aborted_with_the_epoch_of_its_commit(wiring: Wiring, name: str) -> int:
    """Each EndTxn ends an epoch since version 5."""
    wire = wiring.connect(name)
    wire.init(name, (2_420, 0))
    wire.end(name, (2_420, 0), granted=(2_420, 1), version=5)
    return wire.end(name, (2_420, 0), committed=False, granted=(2_420, 2), version=5)


@answer("generation-answer")
def heartbeat_after_leaving(wiring: Wiring, name: str) -> int:
    """A member that has left is still one."""
    wire = wiring.connect(name)
    wire.join(name, "m", 1)
    _leaves(wire, name, "m")
    return wire.heartbeat(name, "m", 1)
