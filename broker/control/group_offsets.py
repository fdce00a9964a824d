"""Verb that resets a group's committed offsets, like kafka-consumer-groups.sh --reset-offsets."""

from collections.abc import Iterator

from broker.control.coordinators import group_coordinator
from broker.control.groups import describe
from broker.control.problems import conflict, unprocessable
from broker.control.request import ControlRequest
from broker.control.topics import have_internal, log_of, topic_named
from broker.control.verbs import answers
from broker.coordination.coordinators import GROUP_TOPIC
from broker.coordination.metadata.image import Topic
from broker.coordination.runtime import State
from control_api.answers import groups as answer
from control_api.groups import OffsetsReset
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from storage.log.partition_log import PartitionLog

_WAYS = ("to", "offset", "timestamp_ms")


@answers("groups reset-offsets")
async def reset(request: ControlRequest, body: OffsetsReset) -> answer.Group:
    """Commit offsets for a group without members; a group that does not exist is created by it."""
    name = request.names["group"]
    ways = [way for way in _WAYS if way in body]
    if len(ways) != 1:
        raise unprocessable(f"the body needs exactly one of {', '.join(_WAYS)}; it has {' and '.join(ways) or 'none'}",
                            "to")  # fmt: skip
    topic = topic_named(request, body["topic"])
    partitions = list(_partitions(request, topic, body))
    if GROUP_TOPIC not in request.cluster.image.topics:
        await have_internal(request, GROUP_TOPIC)
    node_and_coordinator = group_coordinator(request.cluster, name)
    if node_and_coordinator is None or node_and_coordinator[1].state is State.LOADING:
        raise conflict(f"group {name!r} has no coordinator at the moment; start its broker, advance the clock, or wait")
    node, coordinator = node_and_coordinator
    commit = OffsetCommitRequest(name, topics=[OffsetCommitRequestTopic(topic.name, partitions, topic.id)])
    try:
        await coordinator.ask(
            lambda machine, now_ms, to: machine.commit_offsets(commit, now_ms, to, knows_stale_epochs=False)
        )
    except KafkaError as error:
        raise conflict(_refusal(name, error)) from error
    return describe(request, coordinator.machine.groups[name], node, coordinator.machine)


def _refusal(name: str, error: KafkaError) -> str:
    if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
        return f"group {name!r} has members, which would not notice the reset; stop its consumers first, or evict them"
    return f"{error.code.name}: {error.message or 'the group coordinator refused it'}"


def _partitions(request: ControlRequest, topic: Topic, body: OffsetsReset) -> Iterator[OffsetCommitRequestPartition]:
    """Yield the new offset of each partition."""
    only = body.get("partition")
    if only is not None and only >= len(topic.partitions):
        last = len(topic.partitions) - 1
        raise unprocessable(f"topic {topic.name!r} has no partition {only}; it has 0 to {last}", "partition")
    for index in range(len(topic.partitions)) if only is None else (only,):
        hosted = request.cluster.partitions.get((topic.name, index))
        log = None if hosted is None else log_of(hosted)
        if log is None:
            raise conflict(f"{topic.name}-{index} has no replica on a running broker, so its offsets are unknown")
        yield OffsetCommitRequestPartition(index, _offset(log, body), "", log.epochs.latest)


def _offset(log: PartitionLog, body: OffsetsReset) -> int:
    """Return the new offset, within the log as in Kafka's tool; a time after the last record means the log end."""
    start, end = log.log_start_offset, log.high_watermark
    if "offset" in body:
        return min(max(body["offset"], start), end)
    if "timestamp_ms" in body:
        position = log.reader.offset_for_timestamp(body["timestamp_ms"], end)
        return end if position is None else position.offset
    return start if body["to"] == "earliest" else end
