"""Errors beside their request and beside the values of the same answer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pipeline.answers.calls import NONE, Body, Call, Fault, listed

_STATIC: Final = frozenset({"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"})
_INSTANCES: Final = ("group_instance_id", "instance_id")
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "ListOffsets": ("offset",), "DeleteRecords": ("low_watermark",), "OffsetForLeaderEpoch": ("end_offset",),
    "OffsetFetch": ("committed_offset",), "InitProducerId": ("producer_id",), "JoinGroup": ("generation_id",),
}  # fmt: skip
"""What is -1 beside an error."""
Wrong = Iterator[tuple[str, str]]
"""Check, and what is wrong."""


def faults_of(call: Call) -> Iterator[Fault]:
    """What is wrong in one answer that has an error, or ought to have one."""
    rule = _RULES.get(call.api)
    for kind, what in (*_instances(call), *_with_values(call), *(rule(call) if rule is not None else ())):
        yield Fault(call.id, kind, what, group_id=call.request.get("group_id"))


def _instances(call: Call) -> Wrong:
    """Errors of static members (KIP-345) that a dynamic one was given."""
    asked = [call.request, *listed(call.request, "members")]
    if call.error in _STATIC and not any(each.get(name) for each in asked for name in _INSTANCES):
        yield "error-contradicted", f"{call.error} to a member without an instance id"


def _with_values(call: Call) -> Wrong:
    for part in _refused(call.response) if call.error is not None else ():
        for name in _VALUES.get(call.api, ()):
            if part.get(name, -1) >= 0:
                yield "answer-value", f"{part['error_code']} with {name} {part[name]}"


def _refused(value: Any) -> Iterator[Body]:
    """The objects of a body that have an error."""
    if isinstance(value, dict):
        if value.get("error_code") not in (None, NONE):
            yield value
        for part in value.values():
            yield from _refused(part)
    elif isinstance(value, list):
        for part in value:
            yield from _refused(part)


def _coordinators(call: Call) -> Wrong:
    """A coordinator has a node and an address, an error has neither."""
    for each in listed(call.response, "coordinators") if call.version >= 4 else [call.response]:
        if (each["error_code"] == NONE) != (each["node_id"] >= 0):
            yield "answer-value", f"{each['error_code']} with node {each['node_id']}"
        elif each["error_code"] == NONE and not (each["host"] and 0 < each["port"] < 65536):
            yield "answer-value", f"node {each['node_id']} at {each['host']}:{each['port']}"


def _joined(call: Call) -> Wrong:
    """The id that a new member is to come back with (KIP-394)."""
    answer = call.response
    if answer["error_code"] == "MEMBER_ID_REQUIRED" and not answer["member_id"]:
        yield "answer-value", "MEMBER_ID_REQUIRED without a member id"
    if answer["error_code"] not in (NONE, "MEMBER_ID_REQUIRED") and listed(answer, "members"):
        yield "answer-value", f"{answer['error_code']} with members"


def _synced(call: Call) -> Wrong:
    if call.error is not None and call.response.get("assignment"):
        yield "answer-value", f"{call.error} with an assignment"


def _beat(call: Call) -> Wrong:
    if call.error is not None and call.response["member_epoch"] > 0:
        yield "answer-value", f"{call.error} with member epoch {call.response['member_epoch']}"
    if call.error is None and call.request["member_epoch"] < 0 <= call.response["member_epoch"]:
        yield "answer-value", f"member epoch {call.response['member_epoch']} for one who leaves"


def _committed(call: Call) -> Wrong:
    """`offset.metadata.max.bytes` cannot be less than nothing."""
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
    """A leader is no replica that is offline; topics and clusters have ids."""
    if call.version >= 2 and not call.response.get("cluster_id") and "cluster_id" in call.response:
        yield "answer-value", "no cluster id"
    for each in listed(call.response, "topics"):
        if call.version >= 10 and each["error_code"] == NONE and each["topic_id"] is None:
            yield "answer-value", f"{each['name']} without an id"
        for part in listed(each, "partitions"):
            if part["error_code"] == NONE and part["leader_id"] in listed(part, "offline_replicas"):
                yield "answer-value", f"{each['name']}-{part['partition_index']} has a leader that is offline"


def _transactions(call: Call) -> Wrong:
    """An ongoing transaction has partitions and a beginning, one that is over has neither."""
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


_RULES: Final[Mapping[str, Callable[[Call], Wrong]]] = {
    "ConsumerGroupHeartbeat": _beat, "DescribeTransactions": _transactions, "FindCoordinator": _coordinators,
    "JoinGroup": _joined, "ListTransactions": _listed_transactions, "Metadata": _described_topics,
    "OffsetCommit": _committed, "ShareGroupHeartbeat": _beat, "StreamsGroupHeartbeat": _beat, "SyncGroup": _synced,
    "TxnOffsetCommit": _committed,
}  # fmt: skip
