"""Extracts the partitions in responses, to be compared with the logs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pipeline.answers.calls import NONE, ZERO_ID, Body, Call, listed

_TOPIC: Final = 2
_METADATA: Final = "__cluster_metadata"


class Place(NamedTuple):
    """One partition in a response. Fields as in `calls.ANSWER_PLACES`; None: not in the response."""

    topic: str | None
    topic_id: str | None
    partition: int
    leader_epoch: int | None = None
    end_offset: int | None = None


def rows_of(call: Call) -> Iterator[dict[str, Any]]:
    """Yield rows of `calls.ANSWER_PLACES`."""
    rows_of_api = _PLACES.get(call.api)
    for each in rows_of_api(call) if rows_of_api is not None and call.is_answered else ():
        topic_id = None if each.topic_id == ZERO_ID else each.topic_id
        row = each._replace(topic=each.topic or None, topic_id=topic_id)._asdict()
        yield {"run": call.run, "era": call.era, "id": call.id, **row}


def _described(call: Call) -> Iterator[Place]:
    for each in listed(call.response, "topics"):
        for part in listed(each, "partitions") if each["error_code"] == NONE else ():
            yield Place(each["name"], each["topic_id"], part["partition_index"], part["leader_epoch"])


def _created(call: Call) -> Iterator[Place]:
    for each in listed(call.response, "topics") if not call.request.get("validate_only") else ():
        if each["error_code"] == NONE and each.get("topic_id"):
            yield Place(each["name"], each["topic_id"], max(each["num_partitions"], 1) - 1)


def _assigned(body: Any) -> Iterator[Place]:
    for each in listed(body, "topic_partitions"):
        for number in each["partitions"]:
            yield Place(each.get("topic_name"), each["topic_id"], number)


def _members(call: Call) -> Iterator[Place]:
    for group in listed(call.response, "groups"):
        for member in listed(group, "members"):
            for name in ("assignment", "target_assignment"):
                yield from _assigned(member.get(name))


def _heartbeat(call: Call) -> Iterator[Place]:
    yield from _assigned(call.response.get("assignment"))


def _partitions(call: Call, topic: str, name: str) -> Iterator[tuple[Body, Body]]:
    for each in listed(call.response, topic):
        for part in listed(each, name):
            yield each, part


def _quorum(call: Call) -> Iterator[Place]:
    for each, part in _partitions(call, "topics", "partitions"):
        if each["topic_name"] == _METADATA:
            for voter in listed(part, "current_voters"):
                yield Place(_METADATA, None, part["partition_index"], None, voter["log_end_offset"])


def _epochs(call: Call) -> Iterator[Place]:
    for each, part in _partitions(call, "topics", "partitions"):
        if part["error_code"] == NONE and part["leader_epoch"] >= 0:
            yield Place(each["topic"], None, part["partition"], part["leader_epoch"], part["end_offset"])


def _share_offsets(call: Call) -> Iterator[Place]:
    for group in listed(call.response, "groups"):
        for each in listed(group, "topics"):
            for part in listed(each, "partitions"):
                if part["error_code"] == NONE and part["start_offset"] >= 0:
                    end = part["start_offset"] + max(part["lag"], 0)
                    place = (each["topic_name"], each["topic_id"], part["partition_index"])
                    yield Place(*place, part["leader_epoch"], end)


def _acquired(call: Call) -> Iterator[Place]:
    for each, part in _partitions(call, "responses", "partitions"):
        for run in listed(part, "acquired_records"):
            yield Place(None, each["topic_id"], part["partition_index"], None, run["last_offset"] + 1)


def _directories(call: Call) -> Iterator[Place]:
    for result in listed(call.response, "results"):
        for each in listed(result, "topics"):
            for part in listed(each, "partitions"):
                yield Place(each["name"], None, part["partition_index"])


def _committed(call: Call) -> Iterator[Place]:
    for each, part in _partitions(call, "topics", "partitions"):
        if part["error_code"] == NONE:
            yield Place(each.get("name"), each.get("topic_id"), part["partition_index"])


def _resources(call: Call) -> Iterator[Place]:
    for each in listed(call.response, "config_resources"):
        if each["resource_type"] == _TOPIC:
            yield Place(each["resource_name"], None, 0)


_PLACES: Final[Mapping[str, Callable[[Call], Iterator[Place]]]] = {
    "ConsumerGroupDescribe": _members, "ConsumerGroupHeartbeat": _heartbeat, "CreateTopics": _created,
    "DescribeLogDirs": _directories, "DescribeQuorum": _quorum, "DescribeShareGroupOffsets": _share_offsets,
    "DescribeTopicPartitions": _described,
    "ListConfigResources": _resources, "OffsetCommit": _committed, "OffsetForLeaderEpoch": _epochs,
    "ShareFetch": _acquired,
    "ShareGroupDescribe": _members, "ShareGroupHeartbeat": _heartbeat,
}  # fmt: skip
