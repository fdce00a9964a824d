"""Compares the errors of a response with its request and with the other fields of the response."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pipeline.answers.calls import NONE, ZERO_ID, Body, Call, Fault, listed
from protocol.api_errors import ERRORS_OF
from protocol.errors import ErrorCode

_STATIC: Final = frozenset({"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"})
_INSTANCES: Final = ("group_instance_id", "instance_id")
OF_ANY_REQUEST: Final = frozenset({
    NONE, "UNKNOWN_SERVER_ERROR", "UNSUPPORTED_VERSION", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR",
    "CLUSTER_AUTHORIZATION_FAILED", "BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "NOT_CONTROLLER",
})  # fmt: skip
"""Errors that are returned before a request reaches the handler of its API."""
_OF_PARTITIONS: Final = frozenset({NONE, "LEADER_NOT_AVAILABLE", "LISTENER_NOT_FOUND", "REPLICA_NOT_AVAILABLE"})
"""Errors of the partitions in a topic description."""
_ERRORS_BELOW: Final = frozenset({"Metadata", "ShareAcknowledge", "ShareFetch"})
_OF_TOPICS: Final = frozenset({
    "NOT_LEADER_OR_FOLLOWER", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION",
})  # fmt: skip
"""Errors of topics and partitions, which these APIs never return at the top level."""
_TOPIC: Final = 2
_DELETE: Final = 1
"""AlterConfigOp DELETE."""
_PLAIN_KEYS: Final = (0, 1)
"""Coordinator key types without a required format: groups and transactional ids."""
_MAY_HAVE_BOTH: Final = frozenset(
    {"ApiVersions", "ElectLeaders", "FindCoordinator", "LeaveGroup", "ListGroups", "UpdateFeatures"}
)
"""APIs that return results beside a top-level error."""
_CODES: Final = frozenset(int(code) for code in ErrorCode)
_API_VERSIONS: Final = 18  # its key
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Client software names and versions that brokers accept (KIP-511)."""
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "ListOffsets": ("offset",), "DeleteRecords": ("low_watermark",), "OffsetForLeaderEpoch": ("end_offset",),
    "OffsetFetch": ("committed_offset",), "InitProducerId": ("producer_id",), "JoinGroup": ("generation_id",),
}  # fmt: skip
"""Fields that are -1 beside an error."""
Wrong = Iterator[tuple[str, str]]
"""Check, and description of the fault."""


def faults_of(call: Call) -> Iterator[Fault]:
    """Yield the faults of one response that has an error or should have one."""
    rule = _RULES.get(call.api)
    for kind, what in (
        *_foreign(call),
        *_with_results(call),
        *_instances(call),
        *_with_values(call),
        *(rule(call) if rule else ()),
    ):
        yield Fault(call.id, kind, what, group_id=call.request.get("group_id"))


def _foreign(call: Call) -> Wrong:
    """Yield errors that Kafka does not return for this API."""
    if call.api in ERRORS_OF:
        for name in sorted(set(_names(call.response)) - OF_ANY_REQUEST):
            if name not in ERRORS_OF[call.api]:
                yield "answer-error", name
    if call.api in _ERRORS_BELOW and call.response.get("error_code") in _OF_TOPICS:
        yield "answer-error", f"{call.response['error_code']} for the whole"


def _names(value: Any) -> Iterator[str]:
    """Yield all errors in a body, including numeric ones."""
    if isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _names(part)
    elif isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, dict | list):
                yield from _names(part)
            elif name.endswith("error_code"):
                if isinstance(part, str):
                    yield part
                elif isinstance(part, int) and part in _CODES:
                    yield ErrorCode(part).name


def _with_results(call: Call) -> Wrong:
    """Yield results beside an error; the list must be empty, except for the addresses of leaders."""
    if call.error is None or call.api in _MAY_HAVE_BOTH:
        return
    for part in _refused(call.response):
        for name, results in part.items():
            if (
                isinstance(results, list)
                and name != "node_endpoints"
                and any(isinstance(each, dict) for each in results)
            ):
                yield "answer-value", f"{part['error_code']} with {name}"


def _instances(call: Call) -> Wrong:
    """Yield errors of static members (KIP-345) that a dynamic member received."""
    identities = [call.request, *listed(call.request, "members")]
    if call.error in _STATIC and not any(each.get(name) for each in identities for name in _INSTANCES):
        yield "error-contradicted", f"{call.error} to a member without an instance id"


def _with_values(call: Call) -> Wrong:
    for part in _refused(call.response) if call.error is not None else ():
        for name in _VALUES.get(call.api, ()):
            if part.get(name, -1) >= 0:
                yield "answer-value", f"{part['error_code']} with {name} {part[name]}"


def _refused(value: Any) -> Iterator[Body]:
    """Yield the objects in a body that have an error."""
    if isinstance(value, dict):
        if value.get("error_code") not in (None, NONE):
            yield value
        for part in value.values():
            yield from _refused(part)
    elif isinstance(value, list):
        for part in value:
            yield from _refused(part)


def _coordinators(call: Call) -> Wrong:
    """Check FindCoordinator: a coordinator has a node and an address, an error has neither."""
    # Since version 4 for many keys (KIP-699).
    for each in listed(call.response, "coordinators") if call.version >= 4 else [call.response]:
        if (each["error_code"] == NONE) != (each["node_id"] >= 0):
            yield "answer-value", f"{each['error_code']} with node {each['node_id']}"
        elif each["error_code"] == "INVALID_REQUEST" and call.request.get("key_type", 0) in _PLAIN_KEYS:
            yield "error-contradicted", "INVALID_REQUEST for the key of a group or transactional id"
        elif each["error_code"] == NONE and not (each["host"] and 0 < each["port"] < 65536):
            yield "answer-value", f"node {each['node_id']} at {each['host']}:{each['port']}"


def _joined(call: Call) -> Wrong:
    """Check JoinGroup, including the member id for rejoining (KIP-394)."""
    answer = call.response
    if answer["error_code"] == "MEMBER_ID_REQUIRED" and not answer["member_id"]:
        yield "answer-value", "MEMBER_ID_REQUIRED without a member id"
    if (
        answer["error_code"] == NONE
        and call.version >= 7  # the first with the protocol type (KIP-559)
        and answer["generation_id"] >= 0
        and not answer["protocol_name"]
    ):
        yield "answer-value", "a generation without a protocol"
    if answer["error_code"] not in (NONE, "MEMBER_ID_REQUIRED") and listed(answer, "members"):
        yield "answer-value", f"{answer['error_code']} with members"


def _synced(call: Call) -> Wrong:
    if call.error is not None and call.response.get("assignment"):
        yield "answer-value", f"{call.error} with an assignment"


def _beat(call: Call) -> Wrong:
    """Check heartbeats: a member keeps its id; the three task lists are sent together or not at all (KIP-1071)."""
    if call.error is None and call.response.get("member_id", "") is None:
        yield "answer-value", "no member id"
    if call.error is not None and call.response.get("heartbeat_interval_ms", 0) > 0:
        yield "answer-value", f"{call.error} with a heartbeat interval"
    lists = {call.response.get(name) is None for name in ("active_tasks", "standby_tasks", "warmup_tasks")}
    if call.error is None and len(lists) > 1:
        yield "answer-value", "some of the lists of tasks"
    if call.error is not None and call.response["member_epoch"] > 0:
        yield "answer-value", f"{call.error} with member epoch {call.response['member_epoch']}"
    if call.error is None and call.request["member_epoch"] < 0 <= call.response["member_epoch"]:
        yield "answer-value", f"member epoch {call.response['member_epoch']} for a member that leaves"


def _committed(call: Call) -> Wrong:
    """Check OFFSET_METADATA_TOO_LARGE: `offset.metadata.max.bytes` cannot be negative."""
    empty = {
        (each["name"], part["partition_index"])
        for each in listed(call.request, "topics")
        for part in listed(each, "partitions")
        if part.get("committed_metadata") == ""
    }
    for each in listed(call.response, "topics"):
        for part in listed(each, "partitions"):
            if part["error_code"] == "OFFSET_METADATA_TOO_LARGE" and (each["name"], part["partition_index"]) in empty:
                yield "error-contradicted", "OFFSET_METADATA_TOO_LARGE without metadata"


def _described_topics(call: Call) -> Wrong:
    """Check that an offline replica is no leader, and that topics and clusters have ids."""
    if (
        call.version >= 2
        and call.api == "Metadata"
        and not call.response.get("cluster_id")
        and "cluster_id" in call.response
    ):
        yield "answer-value", "no cluster id"
    for each in listed(call.response, "topics"):
        if each["error_code"] == NONE and not each["name"]:
            yield "answer-value", "a topic without a name"
        # Metadata since version 10 (KIP-516).
        if (call.version >= 10 or call.api != "Metadata") and each["error_code"] == NONE and each["topic_id"] is None:
            yield "answer-value", f"{each['name']} without an id"
        for part in listed(each, "partitions"):
            if part["error_code"] not in _OF_PARTITIONS:
                yield "answer-error", f"{part['error_code']} of a partition"
            if part["error_code"] == NONE and part["leader_id"] in listed(part, "offline_replicas"):
                yield "answer-value", f"{each['name']}-{part['partition_index']} has a leader that is offline"


def _transactions(call: Call) -> Wrong:
    """Check that an ongoing transaction has partitions and a start time, and a completed one has no partitions."""
    for each in listed(call.response, "transaction_states"):
        state, has_partitions = each["transaction_state"], bool(listed(each, "topics"))
        if each["error_code"] != NONE:
            continue
        if state == "Ongoing" and not (has_partitions and each["transaction_start_time_ms"] >= 0):
            yield "answer-value", f"{each['transactional_id']} is ongoing without partitions or a beginning"
        if state in {"Empty", "CompleteCommit", "CompleteAbort"} and has_partitions:
            yield "answer-value", f"{each['transactional_id']} is {state} with partitions"


def _listed_transactions(call: Call) -> Wrong:
    if not set(listed(call.response, "unknown_state_filters")) <= set(listed(call.request, "state_filters")):
        yield "answer-items", "unknown state filters that no one asked for"


def _versions(call: Call) -> Wrong:
    """Check ApiVersions: no ZooKeeper migration, and INVALID_REQUEST only for malformed client names and versions."""
    request, answer = call.request, call.response
    if answer.get("zk_migration_ready"):
        yield "answer-value", "ready for a migration from ZooKeeper"
    names = (request.get("client_software_name"), request.get("client_software_version"))
    # Clients have names since version 3 (KIP-511).
    if call.error == "INVALID_REQUEST" and (call.version < 3 or all(_SOFTWARE.fullmatch(each or "") for each in names)):
        yield "error-contradicted", "INVALID_REQUEST though the client's name and version fit"
    if call.error is not None and {each["api_key"] for each in listed(answer, "api_keys")} - {_API_VERSIONS}:
        yield "answer-value", f"{call.error} with API versions"


def _altered(call: Call) -> Wrong:
    for each in listed(call.response, "responses"):
        sent = [one for one in listed(call.request, "resources") if one["resource_name"] == each["resource_name"]]
        if each["error_code"] == "INVALID_REQUEST" and each["resource_type"] == _TOPIC and _is_plain(sent):
            yield "error-contradicted", f"INVALID_REQUEST though the settings of {each['resource_name']} are named once"
        if each["error_code"] == "UNKNOWN_TOPIC_OR_PARTITION" and each["resource_type"] != _TOPIC:
            yield "error-contradicted", f"{each['error_code']} for {each['resource_name']}, which is no topic"


def _is_plain(sent: list[Body]) -> bool:
    """Return whether exactly one resource is changed, each setting once and to a value."""
    configs = [one for each in sent for one in listed(each, "configs")]
    return (
        len(sent) == 1
        and len({one["name"] for one in configs}) == len(configs)
        and all(one["value"] is not None or one.get("config_operation") == _DELETE for one in configs)
    )


def _grown(call: Call) -> Wrong:
    names = [each["name"] for each in listed(call.request, "topics")]
    for each in listed(call.response, "results"):
        if each["error_code"] == "INVALID_REQUEST" and names.count(each["name"]) == 1:
            yield "error-contradicted", f"INVALID_REQUEST though {each['name']} is named once"


def _deleted(call: Call) -> Wrong:
    sent = listed(call.request, "topics")
    names = [each.get("name") or each.get("topic_id") for each in sent]
    # Topics by name or id since version 6 (KIP-516).
    for each in listed(call.response, "responses") if call.version >= 6 else ():
        once = names.count(each.get("name")) + names.count(each.get("topic_id")) == 1
        both = any(one.get("name") and one.get("topic_id") not in (None, ZERO_ID) for one in sent)
        if each["error_code"] == "INVALID_REQUEST" and once and not both:
            yield "error-contradicted", f"INVALID_REQUEST though {each.get('name') or each['topic_id']} is named once"


def _fetched_offsets(call: Call) -> Wrong:
    """Check that a partition without a committed offset has no leader epoch and no metadata."""
    for group in listed(call.response, "groups"):
        for each in listed(group, "topics"):
            for part in listed(each, "partitions"):
                rest = (part.get("committed_leader_epoch", -1), part.get("metadata") or "")
                # Since version 8 the response has groups (KIP-709).
                if part["committed_offset"] < 0 and rest != (-1, "") and call.version >= 8:
                    yield "answer-value", f"no committed offset, with leader epoch {rest[0]} and metadata {rest[1]!r}"


def _created(call: Call) -> Wrong:
    """Check that a created topic has an id, and that a topic which was not created has neither id nor partitions."""
    sent = listed(call.request, "topics")
    names = [each["name"] for each in sent]
    plain = {
        each["name"]
        for each in sent
        if names.count(each["name"]) == 1 and not listed(each, "assignments")
        and all(one["value"] is not None for one in listed(each, "configs"))
    }  # fmt: skip
    for each in listed(call.response, "topics"):
        has_id, error = each.get("topic_id") not in (None, ZERO_ID), each["error_code"]
        is_made = error == NONE and not call.request.get("validate_only")
        # Since version 7 with ids (KIP-516).
        if is_made and call.version >= 7 and "topic_id" in each and not has_id:
            yield "answer-value", f"{each['name']} without an id"
        if error != NONE and (has_id or each.get("num_partitions", -1) > 0):
            yield "answer-value", f"{error} with an id or partitions"
        if error == "INVALID_REQUEST" and each["name"] in plain:
            yield "error-contradicted", f"INVALID_REQUEST though {each['name']} is named once, without assignments"
        if each.get("topic_config_error_code") and listed(each, "configs"):
            yield "answer-value", f"settings beside error {each['topic_config_error_code']}"


_RULES: Final[Mapping[str, Callable[[Call], Wrong]]] = {
    "AlterConfigs": _altered, "ApiVersions": _versions, "ConsumerGroupHeartbeat": _beat, "CreatePartitions": _grown,
    "CreateTopics": _created, "DeleteTopics": _deleted, "DescribeTopicPartitions": _described_topics,
    "DescribeTransactions": _transactions, "FindCoordinator": _coordinators, "IncrementalAlterConfigs": _altered,
    "JoinGroup": _joined, "ListTransactions": _listed_transactions, "Metadata": _described_topics,
    "OffsetCommit": _committed, "OffsetFetch": _fetched_offsets, "ShareGroupHeartbeat": _beat,
    "StreamsGroupHeartbeat": _beat, "SyncGroup": _synced, "TxnOffsetCommit": _committed,
}  # fmt: skip
