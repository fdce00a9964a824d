"""Faults of brokers in their answers: name -> the checks that find it, and the requests; the last answer is wrong.

The clients, `c`, ask as they should, as far as they can.
"""

from collections.abc import Mapping
from typing import Any, Final

from protocol.log_records import metadata
from protocol.log_records.transaction import TransactionState as State
from protocol.types import uuid_text
from tests.pipeline.client_fault_cases import Requests
from tests.pipeline.fault_files import T0_MS, topic_id_of
from tests.pipeline.planted_client import CLEAN_TOPIC, Client

OK: Final = {"error_code": "NONE"}
_REFUSED: Final = {"throttle_time_ms": 0, "error_message": None}
_GROUP: Final = 32
"""ConfigResource.Type."""
_BEAT: Final = {"group_id": "g", "member_id": "m", "member_epoch": 3}
_BEATEN: Final = {**OK, "member_id": "m", "member_epoch": 3}
_SHARED: Final = {**OK, "acquisition_lock_timeout_ms": 1000}
_TASK: Final = [{"subtopology_id": "0", "partitions": [0, 1]}]
_T: Final = {"resource_type": 2, "resource_name": "t"}


def _one(api: str, request: Mapping[str, Any], got: Mapping[str, Any], version: int = 9) -> Requests:
    """One request with its answer."""
    return lambda c: c.call(api, request, got, version)


def _refused(api: str, request: Mapping[str, Any], got: Mapping[str, Any], version: int = 4) -> Requests:
    """One request of a group of its own, as if it were refused."""
    return lambda c: c.call(api, {**request, "group_id": c.name}, {**_REFUSED, **got}, version)


def _read(c: Client, *, committed: bool = False, **answer: Any) -> int:
    """A Fetch of offset 4, which has the offsets 4 to 8, with other fields of the partition."""
    return c.fetch(4, (4, 6), (7, 8), stable=9, committed=committed, answer=answer)


def _records(*batches: tuple[int, int]) -> dict[str, Any]:
    listed = [{"base_offset": first, "last_offset": last, "producer_id": -1, "transactional": False, "control": False,
             "count": last - first + 1} for first, last in batches]  # fmt: skip
    return {"size_bytes": 100, "batches": listed, "base_offset": batches[0][0], "last_offset": batches[-1][1]}


def _greeting(key: int, low: int, high: int, copies: int = 1) -> Requests:
    keys = [{"api_key": key, "min_version": low, "max_version": high}] * copies
    return lambda c: c.silent.call("ApiVersions", {}, {**OK, "api_keys": keys}, 3)


OF_READS_AND_WRITES: Final[Mapping[str, tuple[str, Requests]]] = {
    "produce-base_offset": ("produce-answer", lambda c: c.produce(offset=4, answer={"base_offset": -1})),
    "produce-log_start_offset": ("produce-answer", lambda c: c.produce(offset=4, answer={"log_start_offset": 9})),
    "produce-index": ("produce-answer", lambda c: c.produce(offset=4, answer={"index": 3})),
    "produce-error-with-offset": (
        "produce-answer", lambda c: c.produce(error="NOT_ENOUGH_REPLICAS", answer={"base_offset": 3})),
    "produce-partition-unanswered": ("produce-answer", lambda c: c.changed(c.produce(), responses=[])),
    "produce-with-a-message": (
        "produce-answer", lambda c: c.produce(offset=4, answer={"error_message": "too large"})),
    "produce-with-record-errors": (
        "produce-answer", lambda c: c.produce(offset=4, answer={"record_errors": [{"batch_index": 0}]})),
    "produce-same-offsets": ("produce-offsets", lambda c: (c.produce(offset=3), c.produce(offset=4))),
    "produce-offsets-back": ("produce-offsets", lambda c: (c.produce(offset=30), c.produce(offset=10))),
    # the batch between was refused, and the broker takes the next one
    "produce-gap-accepted": ("produce-accepted", lambda c: (
        c.produce(0, offset=0), c.produce(3, error="NOT_ENOUGH_REPLICAS"), c.produce(6, offset=3))),
    # another client has the next epoch already
    "produce-fenced-accepted": ("produce-accepted", lambda c: (
        c.init(), c.produce(0, named=True, offset=0), c.other.init(1), c.produce(3, named=True, offset=4))),
    "throttled-without-a-quota": ("throttle-answer", lambda c: c.changed(c.produce(offset=4), throttle_time_ms=500)),
    # a hint to another leader belongs to NOT_LEADER_OR_FOLLOWER
    "leader-without-an-error": ("answer-value", lambda c: c.produce(hint=4)),
    "fetch-error-of-a-group": ("answer-error", lambda c: c.produce(error="UNKNOWN_MEMBER_ID")),
    "fetch-stable-beyond-watermark": ("fetch-answer", lambda c: _read(c, last_stable_offset=12)),
    "fetch-start-beyond-watermark": ("fetch-answer", lambda c: _read(c, log_start_offset=12)),
    "fetch-records-beyond-watermark": (
        "fetch-answer", lambda c: _read(c, high_watermark=6, last_stable_offset=6)),
    "fetch-watermark-none": ("fetch-answer", lambda c: _read(c, high_watermark=-1, last_stable_offset=-1)),
    "fetch-records-before": ("fetch-answer", lambda c: _read(c, records=_records((0, 2)))),
    "fetch-records-out-of-order": ("fetch-answer", lambda c: _read(c, records=_records((7, 8), (4, 6)))),
    "fetch-records-overlap": ("fetch-answer", lambda c: _read(c, records=_records((4, 6), (6, 8)))),
    # a read_committed consumer gets a batch that no response calls stable
    "fetch-records-beyond-the-stable-offset": (
        "fetch-answer", lambda c: _read(c, committed=True, last_stable_offset=7)),
    "fetch-error-with-records": ("fetch-answer", lambda c: _read(c, error_code="NOT_LEADER_OR_FOLLOWER")),
    "fetch-unasked-partition": ("answer-items", lambda c: _read(c, partition_index=5)),
    "fetch-aborted-for-uncommitted": (
        "fetch-answer", lambda c: _read(c, aborted_transactions=[{"producer_id": 700, "first_offset": 4}])),
    "fetch-with-another-replica": ("fetch-answer metadata-differs", lambda c: c.fetch(
        4, (4, 6), stable=9, answer={"preferred_read_replica": 3})),
    "fetch-in-a-session-unasked": ("fetch-answer", lambda c: c.changed(c.fetch(4, (4, 6), stable=9), session_id=77)),
    "session-negative": ("answer-value", _one(
        "Fetch", {"session_id": 0, "session_epoch": 0, "topics": []}, {**OK, "session_id": -4, "responses": []})),
    "watermark-back": ("fetch-watermark-back", lambda c: (
        c.fetch(0, (0, 2), stable=9), c.fetch(3, (3, 5), stable=6))),
    # the log has 0-2 and 3-5, the answer 0-5 in one
    "fetch-of-other-batches": ("fetch-differs", lambda c: (c.write(), c.write(), c.fetch(0, (0, 5), stable=6))),
    "fetch-of-another-producer": ("fetch-differs", lambda c: (
        c.write(idempotent=True), c.fetch(0, (0, 2), producer=704, stable=3))),
    "fetch-left-out": ("fetch-gap", lambda c: (c.write(), c.write(), c.fetch(0, (3, 5), stable=6))),
    "fetch-left-out-between": ("fetch-gap", lambda c: (
        c.write(), c.write(), c.write(), c.fetch(0, (0, 2), (6, 8), stable=9))),
    "aborted-that-was-committed": ("fetch-aborted", lambda c: (
        c.write(transactional=True), c.mark(committed=True),
        c.fetch(4, committed=True, aborted=[(c.producer, 0)], stable=4))),
    "watermark-beyond-the-end": ("bound-answer", lambda c: (c.write(), c.fetch(stable=5))),
    # records that are sent afterwards lie below the high watermark
    "watermark-of-the-future": ("bound-order", lambda c: (
        c.append(crc=711), c.fetch(0, (0, 2), stable=5), c.append(crc=712))[1]),
    # the transaction has no marker yet, and the last stable offset is that of its end
    "stable-within-a-transaction": ("stable-answer", lambda c: (
        c.write(transactional=True), c.fetch(3, stable=3), c.fetch(3, stable=3), c.mark(committed=True))[1]),
    # OFFSET_OUT_OF_RANGE for offset 2 of 6, after an answer that named them all
    "offset-that-the-log-has": ("error-contradicted", lambda c: (
        c.write(), c.write(), c.fetch(6, stable=6), c.failed("OFFSET_OUT_OF_RANGE", c.fetch(2, stable=6, answer={
            "error_code": "OFFSET_OUT_OF_RANGE", "high_watermark": -1, "last_stable_offset": -1})))),
    "latest-before-acknowledged": ("list-offsets-answer", lambda c: (c.produce(offset=10), c.list_offsets(-1, 5))),
    "latest-back": ("list-offsets-answer", lambda c: (c.list_offsets(-1, 9), c.list_offsets(-1, 8))),
    "earlier-than-asked": ("list-offsets-answer", lambda c: c.list_offsets(5000, 3, time_ms=4000)),
    "listed-unasked": ("answer-items", lambda c: c.list_offsets(-1, 3, index=6)),
    "earliest-behind-the-start": ("bound-answer", lambda c: (c.write(), c.list_offsets(-2, 2))),
    "leader-epoch-of-the-future": ("metadata-differs", lambda c: (c.write(), c.list_offsets(-1, 3, epoch=6))),
    "error-of-members": ("answer-error", _one("ListOffsets", {"topics": []}, {"topics": [{"name": "t", "partitions": [
        {"partition_index": 0, "error_code": "ILLEGAL_GENERATION"}]}]})),
    "epoch-that-ends-beyond": ("answer-place", lambda c: (c.write(), c.call(
        "OffsetForLeaderEpoch", {"topics": [{"topic": c.name, "partitions": [{"partition": 0, "leader_epoch": 0}]}]},
        {"topics": [{"topic": c.name, "partitions": [
            {"partition": 0, "error_code": "NONE", "leader_epoch": 0, "end_offset": 9}]}]}, 4))),
}  # fmt: skip


OF_PRODUCERS: Final[Mapping[str, tuple[str, Requests]]] = {
    "identity-twice": ("producer-id-answer", lambda c: (c.init(named=False), c.other.init(named=False))),
    "epoch-granted-back": ("producer-id-answer", lambda c: (c.init(5), c.other.init(4))),
    "identity-none": ("producer-id-answer", lambda c: c.changed(
        c.init(named=False), producer_id=-1, producer_epoch=-1)),
    "epoch-of-a-new-producer": ("producer-id-answer", _one(
        "InitProducerId", {"transactional_id": None, "producer_id": -1},
        {**OK, "producer_id": 2991, "producer_epoch": 8})),
    # the metadata gave out the ids below 3000
    "producer-id-of-no-block": ("metadata-differs", lambda c: c.changed(c.init(named=False), producer_id=3000)),
    "refused-with-an-identity": ("answer-value", _refused(
        "InitProducerId", {"transactional_id": None},
        {"error_code": "COORDINATOR_LOAD_IN_PROGRESS", "producer_id": 990, "producer_epoch": 0})),
    "id-not-found-that-is-made": ("answer-error", _refused(
        "InitProducerId", {"transactional_id": "t"},
        {"error_code": "TRANSACTIONAL_ID_NOT_FOUND", "producer_id": -1, "producer_epoch": -1})),
    # a transactional id gets another producer id at once
    "another-producer-id": ("transaction-report", lambda c: (
        c.init(), c.changed(c.init(had=0), producer_id=c.producer + 500))),
    "end-of-a-fenced-producer": ("end-answer", lambda c: (c.init(), c.other.init(1), c.end())),
    "end-with-an-older-epoch": ("end-answer", lambda c: (c.init(4), c.end(4, granted=3))),
    "leader-gone-for-a-coordinator": ("answer-error", _refused(
        "EndTxn", {"transactional_id": "t", "producer_id": 4, "producer_epoch": 0, "committed": True},
        {"error_code": "NOT_LEADER_OR_FOLLOWER"})),
    "aborted-after-its-commit": ("transaction-report", lambda c: (c.init(), c.add(), c.end(), c.end(committed=False))),
    # each EndTxn ends an epoch since version 5
    "aborted-with-the-epoch-of-its-commit": ("transaction-report", lambda c: (
        c.init(), c.end(granted=1), c.end(committed=False, granted=2))),
    "transaction-of-another-timeout": ("transaction-answer answer-value", lambda c: (
        c.coordinator(State.ONGOING, topic=CLEAN_TOPIC), c.describe_transaction(transaction_timeout_ms=3_600_000))),
    "transaction-of-another-partition": ("transaction-answer", lambda c: (
        c.coordinator(State.ONGOING, topic=CLEAN_TOPIC),
        c.describe_transaction(topics=[{"topic": CLEAN_TOPIC, "partitions": [3]}]))),
    "transaction-over-with-partitions": ("answer-value transaction-answer", lambda c: (
        c.coordinator(State.ONGOING, topic=CLEAN_TOPIC), _described(c, "CompleteCommit", 0))),
    "transaction-reported-prepared": ("transaction-report transaction-answer", lambda c: (
        *_begun(c), _described(c, "PrepareAbort", 0))),
    "transaction-reported-without-a-partition": ("transaction-report transaction-answer", lambda c: (
        *_begun(c), _described(c, "Ongoing", 1))),
    "transaction-not-listed": ("transaction-report", lambda c: (*_begun(c), c.list_transactions())),
    "commit-reported-as-abort": ("transaction-report transaction-answer", lambda c: (
        *_begun(c), c.end(), c.list_transactions("CompleteAbort"))),
    "transaction-listed-twice": ("answer-value answer-items", _one("ListTransactions", {}, {
        **OK, "transaction_states": [
            {"transactional_id": "wire-old", "producer_id": 900, "transaction_state": "CompleteCommit"}] * 2})),
    # a sequence below the one that means none
    "producer-negative": ("answer-value", lambda c: c.describe_producer("elsewhere", last_sequence=-3)),
    # the partition has the sequences 0 to 2 of this producer
    "producer-of-another-sequence": ("transaction-answer", lambda c: (
        c.write(idempotent=True), c.describe_producer(), c.describe_producer(last_sequence=5))),
}  # fmt: skip


def _begun(c: Client) -> tuple[int, ...]:
    """A transaction of one partition, which goes on; those of other plants have timed out."""
    return c.wait(60), c.coordinator(State.ONGOING, topic=CLEAN_TOPIC, at_ms=T0_MS), c.init(), c.add(CLEAN_TOPIC)


def _described(c: Client, state: str, partition: int) -> int:
    topics = [{"topic": CLEAN_TOPIC, "partitions": [partition]}]
    return c.describe_transaction(state, topics=topics, transaction_start_time_ms=T0_MS)


OF_GROUPS: Final[Mapping[str, tuple[str, Requests]]] = {
    "offset-forgotten": ("offset-fetch-answer", lambda c: (
        c.join(), c.fetch(0, (0, 4)), c.commit(5), c.fetch_offset(-1))),
    "offset-of-an-earlier-commit": ("offset-fetch-answer", lambda c: (
        c.join(), c.fetch(0, (0, 4)), c.commit(3), c.commit(5), c.fetch_offset(3))),
    "offset-of-an-aborted-transaction": ("offset-fetch-answer", lambda c: (
        c.init(), c.join(), c.fetch(0, (0, 9)), c.commit(5), c.commit_in_transaction(8, c.name, 1),
        c.end(committed=False, granted=1), c.fetch_offset(8))),
    "committed-negative": ("answer-value", _one("OffsetFetch", {"groups": [{"group_id": "g", "topics": None}]}, {
        "groups": [{"group_id": "g", **OK, "topics": [{"name": "t", "partitions": [
            {"partition_index": 0, "committed_offset": -8, "error_code": "NONE"}]}]}]})),
    # the group is a generation further
    "old-commit-accepted": ("generation-accepted", lambda c: (
        c.join(1), c.fetch(0, (0, 4)), c.second.join(2, "two"), c.commit(5))),
    "old-heartbeat-accepted": ("generation-accepted", lambda c: (c.join(1), c.second.join(3, "two"), c.heartbeat(1))),
    "generation-back": ("join-answer", lambda c: (c.join(4), c.join(2))),
    "another-member": ("join-answer", lambda c: c.join(1, "b", sent_id="a")),
    "two-leaders": ("join-answer", lambda c: (c.join(), c.other.join(1, "two"))),
    "member-id-required-again": ("error-contradicted", _one(
        "JoinGroup", {"group_id": "required", "member_id": "required-1"},
        {"error_code": "MEMBER_ID_REQUIRED", "member_id": "required-1"})),
    "member-id-that-is-none": ("answer-value", _refused(
        "JoinGroup", {"member_id": ""}, {"error_code": "MEMBER_ID_REQUIRED", "member_id": "", "generation_id": -1})),
    "refused-with-a-generation": ("answer-value", _refused(
        "JoinGroup", {"member_id": ""}, {"error_code": "MEMBER_ID_REQUIRED", "member_id": "m", "generation_id": 2})),
    "static-error-of-a-dynamic-member": ("error-contradicted", _refused(
        "Heartbeat", {"member_id": "m", "generation_id": 1, "group_instance_id": None},
        {"error_code": "FENCED_INSTANCE_ID"})),
    "metadata-too-large": ("error-contradicted", lambda c: c.with_request(
        c.commit(0, -1, "OFFSET_METADATA_TOO_LARGE"), "topics", 0, "partitions", 0, committed_metadata="")),
    "newest-generation-refused": ("generation-answer", lambda c: (c.join(), c.commit(0, error="ILLEGAL_GENERATION"))),
    "member-that-vanished": ("generation-answer", lambda c: (
        c.join(), c.heartbeat(), c.heartbeat(error="UNKNOWN_MEMBER_ID"))),
    # members of one generation have different protocols
    "two-protocols": ("generation-answer", lambda c: (
        c.join(1, "one", protocol_name="range"), c.other.join(1, "two", protocol_name="sticky", leader="one"))),
    # a member goes on while another one waits for it
    "not-called-to-the-rebalance": ("generation-answer", lambda c: (
        c.ready(), c.other.ready(), c.join(), c.other.call(
            "JoinGroup", {"group_id": c.name, "member_id": "two", "group_instance_id": None},
            {**OK, "generation_id": 2, "member_id": "two", "leader": "two"}, took_us=9_000_000),
        c.wait(2), c.heartbeat(), c.wait(9))[5]),
    "heartbeat-after-leaving": ("generation-answer", lambda c: (c.join(), c.leave(), c.heartbeat())),
    "unknown-member-joins-again": ("verdict-withdrawn", lambda c: (
        c.heartbeat(error="UNKNOWN_MEMBER_ID"), c.join(2))[0]),
    # a member could not get its assignment, and goes on in the same generation
    "rebalance-that-was-none": ("verdict-withdrawn", lambda c: (
        c.join(), c.call("SyncGroup", {"group_id": c.name, "generation_id": 1, "member_id": c.name,
                                       "protocol_type": "consumer", "assignments": []},
                         {"error_code": "REBALANCE_IN_PROGRESS"}), c.heartbeat())[1]),
    "member-unknown-for-once": ("verdict-withdrawn generation-answer", lambda c: (
        c.heartbeat(3), c.heartbeat(3, "UNKNOWN_MEMBER_ID"), c.heartbeat(3))[1]),
    # the leader gave partition 1, and the answer has partition 0
    "assignment-of-another": ("sync-answer", lambda c: (
        c.join(), c.changed(c.sync(1, 1), assignment=c.assignment(0)))),
    "group-state-unknown": ("answer-value", _one("ListGroups", {}, {**OK, "groups": [
        {"group_id": "g", "group_state": "Sleeping", "group_type": "classic"}]})),
    "group-twice": ("answer-value answer-items", _one("ListGroups", {}, {**OK, "groups": [{"group_id": "g"}] * 2})),
    "group-left-out": ("answer-items", _one("DescribeGroups", {"groups": ["a", "b"]}, {"groups": [
        {"group_id": "a", **OK, "group_state": "Empty"}]})),
    "throttle-negative": ("answer-value", _one("Heartbeat", {"group_id": "g"}, {**OK, "throttle_time_ms": -1})),
    "error-of-elections": ("answer-error", _one(
        "Heartbeat", {"group_id": "g"}, {"error_code": "ELECTION_NOT_NEEDED"})),
}  # fmt: skip


OF_MEMBERS: Final[Mapping[str, tuple[str, Requests]]] = {
    "member-epoch-went-back": ("member-epoch-answer", lambda c: (c.beat(0, 5), c.beat(5, 4))),
    "epoch-fenced-for-once": ("verdict-withdrawn", lambda c: (
        c.beat(3, 3, error="FENCED_MEMBER_EPOCH"), c.beat(3, 3))[0]),
    "member-of-another-name": ("answer-value", _one(
        "ConsumerGroupHeartbeat", _BEAT, {**_BEATEN, "member_id": "n"})),
    "heartbeat-interval": ("answer-value", _one(
        "ConsumerGroupHeartbeat", _BEAT, {**_BEATEN, "heartbeat_interval_ms": -5})),
    "refused-with-an-epoch": ("answer-value", _refused(
        "ConsumerGroupHeartbeat", {"member_id": "m", "member_epoch": 3},
        {"error_code": "FENCED_MEMBER_EPOCH", "member_id": "m", "member_epoch": 3})),
    "left-with-an-epoch": ("answer-value", _refused(
        "ConsumerGroupHeartbeat", {"member_id": "m", "member_epoch": -1},
        {**OK, "member_id": "m", "member_epoch": 4})),
    "assigned-twice": ("answer-value answer-items answer-place", lambda c: c.beat(3, 3, assignment={
        "topic_partitions": c.partitions(1, 1)})),
    # the topic has one partition; a member is to read the second
    "partition-of-no-topic": ("metadata-differs answer-place", lambda c: (
        c.write(), c.beat(0, 1, assignment={"topic_partitions": c.partitions(1)}))),
    # a second member is given a partition that the first one keeps
    "partition-of-two-members": ("assignment-answer", lambda c: (
        c.write(), c.beat(0, 1, member="m1", owned=[], assignment={"topic_partitions": c.partitions(0)}),
        c.other.beat(0, 1, member="m2", owned=[], assignment={"topic_partitions": c.partitions(0)}),
        c.beat(1, 1, member="m1", owned=c.partitions(0)))[2]),
    # a member has another epoch than it was given
    "description-with-another-epoch": ("group-description", lambda c: (
        c.write(), c.beat(0, 1, owned=[], assignment={"topic_partitions": c.partitions(0)}),
        c.call("ConsumerGroupDescribe", {"group_ids": [c.name]}, {"groups": [{
            **OK, "error_message": None, "group_id": c.name, "group_state": "Reconciling", "group_epoch": 2,
            "assignment_epoch": 2, "assignor_name": "uniform", "members": [{
                "member_id": "m", "instance_id": None, "rack_id": None, "member_epoch": 2, "client_id": c.name,
                "client_host": "/127.0.0.1", "subscribed_topic_names": [c.name], "subscribed_topic_regex": None,
                "assignment": {"topic_partitions": []}, "target_assignment": {"topic_partitions": []},
                "member_type": 1}]}]}, 1))),
    "group-assignment-epoch": ("answer-value", _one("ConsumerGroupDescribe", {"group_ids": ["g"]}, {"groups": [
        {"group_id": "g", **OK, "group_epoch": 3, "assignment_epoch": 4}]})),
    "task-active-and-standby": ("answer-value assignment-answer", _one("StreamsGroupHeartbeat", _BEAT, {
        **_BEATEN, "heartbeat_interval_ms": 5000, "active_tasks": _TASK, "standby_tasks": _TASK, "warmup_tasks": []})),
    "acquired-never": ("answer-value", _one("ShareFetch", {"group_id": "g", "member_id": "m"}, {
        **_SHARED, "responses": [{"partitions": [
            {"acquired_records": [{"first_offset": 3, "last_offset": 4, "delivery_count": 0}]}]}]})),
    "acquired-unread": ("answer-value", _one("ShareFetch", {"group_id": "g", "member_id": "m"}, {
        **_SHARED, "responses": [{"partitions": [
            {"records": {"base_offset": 3, "last_offset": 4},
             "acquired_records": [{"first_offset": 3, "last_offset": 9, "delivery_count": 1}]}]}]})),
    # a second member acquires what the first one has, whose connection goes on
    "records-of-two-members": ("share-answer", lambda c: (
        c.write(6), c.share_fetch("m1", (0, 2, 1), records={"base_offset": 0, "last_offset": 2}),
        c.other.share_fetch("m2", (2, 4, 1), records={"base_offset": 2, "last_offset": 4}),
        c.call("ListGroups", {}, {**OK, "groups": []}))[2]),
    "shared-without-being-acquired": ("share-answer", lambda c: (c.write(), c.share_fetch("m", records={
        "base_offset": 0, "last_offset": 2, "batches": [{"base_offset": 0, "last_offset": 2, "producer_id": -1}]}))),
}  # fmt: skip


def _broker(number: int) -> metadata.RegisterBrokerRecord:
    return metadata.RegisterBrokerRecord(number, end_points=(metadata.Endpoint("PLAINTEXT", "localhost", 9092),))


def _known_topic(c: Client, **fields: Any) -> dict[str, Any]:
    return {"name": c.name, "topic_id": uuid_text(topic_id_of(c.name)), **fields}


def _altered(c: Client, value: str, answered: str) -> int:
    """A setting of a group is given a value, and is described."""
    of = {"resource_type": _GROUP, "resource_name": c.name}
    name = "share.record.lock.duration.ms"
    change = {"name": name, "config_operation": 0, "value": value}
    taken = {"responses": [{**of, **OK, "error_message": None}]}
    c.call("IncrementalAlterConfigs", {"resources": [{**of, "configs": [change]}]}, taken, 1)
    config = {"name": name, "value": answered, "read_only": False, "config_source": 8, "is_sensitive": False,
              "synonyms": [], "config_type": 3, "documentation": None}  # fmt: skip
    request = {"resources": [{**of, "configuration_keys": None}], "include_synonyms": False}
    got = {"results": [{**of, **OK, "error_message": None, "configs": [config]}]}
    return c.call("DescribeConfigs", request, got, 4)


OF_CLUSTERS: Final[Mapping[str, tuple[str, Requests]]] = {
    "versions-upside-down": ("versions-answer", _greeting(3, 5, 4)),
    "versions-negative": ("versions-answer", _greeting(3, -1, 4)),
    "versions-twice": ("versions-answer answer-items", _greeting(3, 0, 12, copies=2)),
    # LeaveGroup in a version that ApiVersions has
    "version-that-was-offered": ("error-contradicted", lambda c: (
        c.call("ApiVersions", {}, {**OK, "api_keys": [{"api_key": 13, "min_version": 0, "max_version": 5}]}, 3),
        c.call("LeaveGroup", {"group_id": c.name}, {"error_code": "UNSUPPORTED_VERSION"}, 4))),
    # the second request of a connection is answered before the first
    "answers-that-overtake": ("answer-order", lambda c: (
        c.call("ListGroups", {}, {**OK, "groups": []}, took_us=50_000),
        c.call("ListGroups", {}, {**OK, "groups": []}, step_us=1_000))),
    "metadata-leader-unknown": ("metadata-answer", lambda c: c.metadata(
        leader_id=7, replica_nodes=[1, 7], isr_nodes=[1, 7])),
    "metadata-leader-no-replica": ("metadata-answer", lambda c: c.metadata(replica_nodes=[2], isr_nodes=[2])),
    "metadata-isr-no-replica": ("metadata-answer", lambda c: c.metadata(isr_nodes=[1, 3])),
    "metadata-partition-twice": ("metadata-answer answer-items", lambda c: c.metadata(copies=2)),
    "metadata-controller-unknown": ("metadata-answer", lambda c: c.metadata(controller_id=8)),
    "leader-that-is-offline": ("answer-value", lambda c: c.metadata(offline_replicas=[1])),
    # and no request deleted the topic
    "topic-id-changed": ("metadata-changed answer-contradicted", lambda c: (
        c.metadata(), c.metadata(topic={"topic_id": "B" * 22}))),
    "leader-epoch-went-back": ("metadata-changed", lambda c: (c.metadata(), c.metadata(leader_epoch=2))),
    # for a topic that the broker had named, and that was never deleted
    "topic-that-was-named": ("error-contradicted", lambda c: (
        c.write(), c.metadata(topic=_known_topic(c), leader_epoch=0, replica_nodes=[1], isr_nodes=[1]),
        c.metadata(topic=_known_topic(c, error_code="UNKNOWN_TOPIC_OR_PARTITION", partitions=[])))),
    # the second of three answers has another port
    "another-port-for-a-moment": ("node-address", lambda c: [c.call("Metadata", {"topics": []}, {
        "brokers": [{"node_id": 11, "host": "h", "port": port}], "controller_id": 11, "topics": []}, 12)
        for port in (9092, 9999, 9092)][1]),
    "topic-created-twice": ("answer-items", _one("CreateTopics", {"topics": [{"name": "a"}]}, {
        "topics": [{"name": "a", **OK}] * 2})),
    "setting-source-unknown": ("answer-value", _one("DescribeConfigs", {"resources": [_T]}, {"results": [
        {**OK, **_T, "configs": [{"name": "retention.ms", "config_source": 77, "config_type": 5, "synonyms": []}]}]})),
    # another value than it was given, and not that of before
    "setting-that-was-not-taken": ("answer-contradicted", lambda c: (
        _altered(c, "15000", "15000"), _altered(c, "20000", "17000"))),
    "coordinator-without-a-node": ("coordinator-answer answer-value", lambda c: c.find_coordinator(-1)),
    "coordinator-unasked": ("answer-items", lambda c: c.find_coordinator(1, key="another")),
    # the metadata know brokers 1, 2 and 11
    "coordinator-that-never-registered": ("metadata-differs", lambda c: (
        c.where.recorded(_broker(1), _broker(2), _broker(11)), c.find_coordinator(9))),
    "coordinator-that-is-none": ("answer-value", _refused("FindCoordinator", {"key": "k", "key_type": 0}, {
        "error_code": "COORDINATOR_NOT_AVAILABLE", "node_id": 1, "host": "h", "port": 9092}, 2)),
    "coordinator-without-a-host": ("answer-value", _refused("FindCoordinator", {"key": "k", "key_type": 0}, {
        **OK, "node_id": 1, "host": "", "port": 9092}, 2)),
}  # fmt: skip

ANSWERS: Final[Mapping[str, tuple[str, Requests]]] = {
    **OF_READS_AND_WRITES, **OF_PRODUCERS, **OF_GROUPS, **OF_MEMBERS, **OF_CLUSTERS,
}  # fmt: skip
