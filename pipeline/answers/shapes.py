"""Checks one response alone: values that no field may have, and lists with duplicate elements."""

from collections.abc import Iterator
from typing import Any, Final

from pipeline.answers.calls import NONE, ZERO_ID, Call, Fault, canonical
from protocol.errors import ErrorCode

_BY_POSITION: Final = frozenset({"CreateAcls", "DeleteAcls"})
"""APIs whose results match the requests by position, and may repeat."""
_MAY_REPEAT: Final = frozenset({"record_errors", "aborted_transactions", "error_codes"})
_IDENTITIES: Final = (
    "partition_index", "partition", "partition_id", "member_id", "group_id", "api_key", "broker_id", "replica_id",
    "transactional_id", "mechanism", "producer_id", "subtopology_id", "log_dir",
)  # fmt: skip
"""Fields that must be unique within a list."""
_NAMES: Final = frozenset({"name", "topic", "topic_name", "log_dir"})
"""Names of topics, configurations and others; empty only for a topic that has an id instead."""
_STATES: Final = frozenset({
    "Assigning", "CompletingRebalance", "Dead", "Empty", "NotReady", "PreparingRebalance", "Reconciling", "Stable",
})  # fmt: skip
"""States of groups of all types."""
_LEAST: Final = -2
"""Lowest value of any field except these."""
_MAY_BE_NEGATIVE: Final = frozenset({"base_timestamp_ms", "max_timestamp_ms"})
_NO_MESSAGE: Final = (None, "", NONE)
_UNASKED: Final = -(2**31)
"""`*_authorized_operations` if the request does not ask for them (KIP-430)."""
_OPERATIONS: Final = sum(1 << code for code in range(3, 16))
"""Bits of AclOperation READ to TWO_PHASE_COMMIT."""
_CODES: Final = frozenset(int(code) for code in ErrorCode)
_ACL_APIS: Final = frozenset({"DescribeAcls", "DeleteAcls"})
_OF_ACLS: Final = {
    "resource_type": range(2, 8), "pattern_type": range(3, 5), "operation": range(2, 16),
    "permission_type": range(2, 4),
}  # fmt: skip
"""Codes of what is stored (`protocol.acls`): not UNKNOWN (0), nor ANY (1) and MATCH (2), which only filters have."""
_OF_SETTINGS: Final = {
    "resource_type": frozenset({2, 4, 8, 16, 32}), "config_source": range(-1, 9), "source": range(9),
    "config_type": range(10),
}  # fmt: skip
"""Codes of ConfigResource.Type, of ConfigEntry.ConfigSource (-1: before KIP-226) and of ConfigEntry.ConfigType."""
_SETTING_APIS: Final = frozenset({"DescribeConfigs", "CreateTopics", "ListConfigResources", "IncrementalAlterConfigs"})


def faults_of(call: Call) -> Iterator[Fault]:
    """Yield the faults of one response."""
    for what in _walk(call, call.response, ""):
        yield Fault(call.id, "answer-value", what)
    if not any(True for _ in _repeated(call, call.request, "")):
        for what in _repeated(call, call.response, ""):
            yield Fault(call.id, "answer-items", what)


def _walk(call: Call, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                yield from _walk(call, part, path)
            elif isinstance(part, int) and part < _LEAST:
                yield f"{path.removesuffix('.')} has {part}"
    elif isinstance(value, dict):
        yield from (f"{path}{what}" for what in _of_object(call, value))
        for name, part in value.items():
            if isinstance(part, dict | list):
                yield from _walk(call, part, f"{path}{name}.")
            elif isinstance(part, int) and not _is_possible(call, name, part):
                yield f"{path}{name} is {part}"


def _of_object(call: Call, value: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of an object's fields and their combinations."""
    is_accepted = value.get("error_code", NONE) == NONE
    state = value.get("group_state")
    if state is not None and state not in _STATES and is_accepted and _has_states(call):
        yield f"group_state is {state}"
    if value.get("error_code") == NONE and value.get("error_message") not in _NO_MESSAGE:
        yield "error_message without an error"
    if value.get("topic_id") == ZERO_ID and "partitions" in value and not any(value.get(name) for name in _NAMES):
        yield "a topic without a name or an id"
    yield from (f"{name} is empty" for name in _NAMES & value.keys() if _is_nameless(value, name))


def _has_states(call: Call) -> bool:
    return call.api != "ListGroups" or call.version >= 4  # the first of KIP-518


def _is_nameless(value: dict[str, Any], name: str) -> bool:
    return value[name] == "" and (name == "topic_name" or value.get("topic_id") in (None, ZERO_ID))


def _is_possible(call: Call, name: str, value: int) -> bool:
    if name.endswith("authorized_operations"):
        always = call.api == "DescribeTopicPartitions"
        requested = always or any(
            each and key.startswith("include_") and key.endswith("operations") for key, each in call.request.items()
        )
        return value == _UNASKED or bool(requested and value >= 0 and not value & ~_OPERATIONS)
    if name.endswith("error_code"):
        return value in _CODES
    if value < _LEAST:
        return name in _MAY_BE_NEGATIVE
    if call.api in _ACL_APIS and name in _OF_ACLS:
        return value in _OF_ACLS[name]
    if call.api in _SETTING_APIS and name in _OF_SETTINGS:
        return value in _OF_SETTINGS[name]
    if call.api == "DescribeCluster":
        if name == "endpoint_type":
            return bool(value == call.request.get("endpoint_type", 1))
        if name == "is_fenced":
            return not value or bool(call.request.get("include_fenced_brokers"))
    return True


def _repeated(call: Call, value: Any, path: str) -> Iterator[str]:
    """Yield the lists of a body that contain an element, or an identifying field, twice."""
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, dict | list) and name not in _MAY_REPEAT:
                yield from _repeated(call, part, f"{path}{name}.")
    elif isinstance(value, list):
        may_be_alike = call.api in _BY_POSITION and path.count(".") == 1
        if not may_be_alike and (_has_an_element_twice(value) or _has_an_identity_twice(value)):
            yield f"{path.removesuffix('.')} has an element twice"
        for part in value:
            yield from _repeated(call, part, path)


def _has_an_element_twice(parts: list[Any]) -> bool:
    """Return whether two elements are equal: compares their scalars first, which is cheap and nearly always decides."""
    if len(parts) < 2:
        return False
    if len({_scalars(part) for part in parts}) == len(parts):
        return False
    return len({canonical(part) for part in parts}) < len(parts)


def _scalars(part: Any) -> object:
    """Return what equal elements have in common: an object's scalar fields, or a list's length."""
    if isinstance(part, dict):
        return frozenset((name, value) for name, value in part.items() if not isinstance(value, dict | list))
    return len(part) if isinstance(part, list) else part


def _has_an_identity_twice(parts: list[Any]) -> bool:
    if not parts or not isinstance(parts[0], dict):
        return False
    for name in _IDENTITIES:
        if name in parts[0] and not _is_one_of_several(name, parts[0]):
            values = [part.get(name) for part in parts if part.get(name) not in (None, "", ZERO_ID)]
            if len(set(values)) < len(values):
                return True
    return False


def _is_one_of_several(name: str, part: dict[str, Any]) -> bool:
    """Return whether a field identifies an element only together with other fields."""
    if name in {"partition", "subtopology_id"}:
        return {"partition", "subtopology_id"} <= part.keys()
    return name == "producer_id" and ("transactional_id" in part or "first_offset" in part)
