"""Checks that a response covers exactly the elements of its request."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pipeline.answers.calls import NONE, Body, Call, Fault, canonical, listed


class _Items(NamedTuple):
    """Where a body lists its elements: the list, the fields that identify an element, and its nested list."""

    field: str
    names: tuple[str, ...]
    parts: str | None = None
    part: str | None = None
    """None: the parts are numbers."""


_STATE = (
    _Items("topics", ("topic_id",), "partitions", "partition"),
    _Items("results", ("topic_id",), "partitions", "partition"),
)
_BOTH_TOPICS = _Items("topics", ("name",), "partitions", "partition_index")
_SETTINGS = (
    _Items("resources", ("resource_type", "resource_name")),
    _Items("responses", ("resource_type", "resource_name")),
)
_MEMBERS = _Items("members", ("member_id", "group_instance_id"))
ITEMS: Final[Mapping[str, tuple[_Items, _Items]]] = {
    "AlterClientQuotas": (_Items("entries", ("entity",)), _Items("entries", ("entity",))),
    "AlterConfigs": _SETTINGS,
    "AlterPartitionReassignments": (_BOTH_TOPICS, _BOTH_TOPICS._replace(field="responses")),
    "AlterShareGroupOffsets": (
        _Items("topics", ("topic_name",), "partitions", "partition_index"),
        _Items("responses", ("topic_name",), "partitions", "partition_index"),
    ),
    "DeleteShareGroupOffsets": (_Items("topics", ("topic_name",)), _Items("responses", ("topic_name",))),
    "DeleteShareGroupState": _STATE,
    "DescribeQuorum": (
        _Items("topics", ("topic_name",), "partitions", "partition_index"),
        _Items("topics", ("topic_name",), "partitions", "partition_index"),
    ),
    "DescribeShareGroupOffsets": (_Items("groups", ("group_id",)), _Items("groups", ("group_id",))),
    "DescribeTopicPartitions": (_Items("topics", ("name",)), _Items("topics", ("name",))),
    "DescribeUserScramCredentials": (_Items("users", ("name",)), _Items("results", ("user",))),
    "ElectLeaders": (
        _Items("topic_partitions", ("topic",), "partitions"),
        _Items("replica_election_results", ("topic",), "partition_result", "partition_id"),
    ),
    "IncrementalAlterConfigs": _SETTINGS,
    "InitializeShareGroupState": _STATE,
    "LeaveGroup": (_MEMBERS, _MEMBERS),
    "OffsetDelete": (_BOTH_TOPICS, _BOTH_TOPICS),
    "OffsetForLeaderEpoch": (
        _Items("topics", ("topic",), "partitions", "partition"),
        _Items("topics", ("topic",), "partitions", "partition"),
    ),
    "ReadShareGroupState": _STATE,
    "ReadShareGroupStateSummary": _STATE,
    "ShareAcknowledge": (
        _Items("topics", ("topic_id",), "partitions", "partition_index"),
        _Items("responses", ("topic_id",), "partitions", "partition_index"),
    ),
    "WriteShareGroupState": _STATE,
}  # fmt: skip
"""APIs whose response repeats each element of the request once."""
_BY_POSITION: Final = {"CreateAcls": ("creations", "results"), "DeleteAcls": ("filters", "filter_results")}


def faults_of(call: Call) -> Iterator[Fault]:
    """Yield requested elements that a response omits, and elements that were not requested."""
    if call.response.get("error_code", NONE) != NONE:
        return
    requested, answered = _compared(call)
    if requested:  # an empty request means nothing, or everything
        for item in sorted(requested - answered):
            yield Fault(call.id, "answer-items", f"left out: {item}")
        for item in sorted(answered - requested):
            yield Fault(call.id, "answer-items", f"not asked for: {item}")


def _compared(call: Call) -> tuple[set[str], set[str]]:
    """Return the elements of a request and of its response; two empty sets if they cannot be compared."""
    if call.api in ITEMS and _names_all(call):
        sent, got = ITEMS[call.api]
        return _named(call.request, sent), _named(call.response, got)
    if call.api == "AlterUserScramCredentials":
        changed = listed(call.request, "deletions") + listed(call.request, "upsertions")
        return {each["name"] for each in changed}, {each["user"] for each in listed(call.response, "results")}
    if call.api in _BY_POSITION:
        one, other = _BY_POSITION[call.api]
        return _positions(call.request, one), _positions(call.response, other)
    return set(), set()


def _positions(body: Body, name: str) -> set[str]:
    return {f"the {at}." for at in range(1, len(listed(body, name)) + 1)}


def _names_all(call: Call) -> bool:
    """Return whether the response is complete: not a page, and not an older version with another layout."""
    if call.api == "DescribeTopicPartitions":
        return call.response.get("next_cursor") is None and call.request.get("cursor") is None
    return call.api != "LeaveGroup" or call.version >= 3  # several members (KIP-345)


def _named(body: Body, where: _Items) -> set[str]:
    names: set[str] = set()
    for each in listed(body, where.field):
        name = canonical([each.get(field) for field in where.names])
        if where.parts is None:
            names.add(name)
        for part in listed(each, where.parts) if where.parts else ():
            names.add(f"{name} {part if where.part is None else part.get(where.part)}")
    return names
