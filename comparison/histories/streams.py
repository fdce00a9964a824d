"""Steps of streams groups (KIP-1071): heartbeats with topologies and task reports, descriptions, offsets of members."""

from collections.abc import Mapping, Sequence
from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Streamer, Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from protocol.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from protocol.messages.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest

JOINING = 0
REBALANCE_MS = 120_000  # ours: no member may be removed while a history waits
MISSING_INTERNAL_TOPICS = 3  # a status of the heartbeat
COMMIT_BY_ID = 10  # version of OffsetCommit (KIP-848)
ROLES = ("active", "standby", "warmup")


def _streamer(target: Target, step: Step) -> Streamer:
    return target.streamers.setdefault((step["group"], step["member"]), Streamer())


def _topology(target: Target, saved: Mapping[str, Any] | None) -> Topology | None:
    """Build a topology from its saved form: sources, sinks, repartition topics, changelogs, copartition groups."""
    if saved is None:
        return None
    return Topology(
        saved["epoch"],
        [
            Subtopology(
                subtopology["id"],
                [target.called(topic) for topic in subtopology.get("sources", ())],
                subtopology.get("regex", ()),
                _infos(target, subtopology.get("changelogs", ())),
                [target.called(topic) for topic in subtopology.get("sinks", ())],
                _infos(target, subtopology.get("repartitions", ())),
                [
                    CopartitionGroup(sources, (), repartitions)
                    for sources, repartitions in subtopology.get("copartitions", ())
                ],
            )
            for subtopology in saved["subtopologies"]
        ],
    )


def _infos(target: Target, topics: Sequence[Sequence[Any]]) -> list[TopicInfo]:
    return [
        TopicInfo(target.called(name), partitions, factor, _pairs(configs) or ())
        for name, partitions, factor, configs in topics
    ]


def _pairs(values: Mapping[str, str] | Sequence[Sequence[str]] | None) -> list[KeyValue] | None:
    """Build key-value fields from a mapping, or from pairs, which may have duplicate keys."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return None if pairs is None else [KeyValue(*pair) for pair in pairs]


def _offsets(offsets: Sequence[Sequence[Any]] | None) -> list[TaskOffset] | None:
    return None if offsets is None else [TaskOffset(*offset) for offset in offsets]


def _owned(streamer: Streamer, owned: Any) -> list[list[TaskIds] | None]:
    """Return the task lists of a heartbeat: all or a part of the last assignment, or the given tasks by role."""
    if owned is None:
        return [None, None, None]
    if isinstance(owned, Mapping):
        return [None if role not in owned else [TaskIds(*tasks) for tasks in owned[role]] for role in ROLES]
    lists: list[list[TaskIds] | None] = []
    for role in ROLES:
        tasks = [] if owned == "none" else [(name, list(each)) for name, each in streamer.tasks.get(role, ())]
        if owned == "fewer" and tasks:
            tasks[0][1].pop()
        lists.append([TaskIds(name, each) for name, each in tasks if each])
    return lists


def beat(target: Target, step: Step) -> StepRequest:
    """StreamsGroupHeartbeat: `epoch` is a number, or "own", the last one that the member got."""
    streamer = _streamer(target, step)
    epoch = streamer.epoch if step["epoch"] == "own" else step["epoch"]
    topology = _topology(target, step.get("topology"))
    active, standby, warmup = _owned(streamer, step.get("owned"))
    endpoint = step.get("endpoint")
    request = StreamsGroupHeartbeatRequest(
        target.called(step["group"]) if step["group"] else "",
        step["member"],
        min(epoch + step.get("epoch_shift", 0), 2**31 - 1),  # an int32
        streamer.endpoint_epoch if step.get("endpoints", "own") == "own" else step["endpoints"],
        instance_id=step.get("instance"),
        rack_id=step.get("rack"),
        rebalance_timeout_ms=step.get("timeout_ms", REBALANCE_MS if epoch == JOINING else -1),
        topology=topology,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        process_id=step.get("process"),
        user_endpoint=None if endpoint is None else Endpoint(*endpoint),
        client_tags=_pairs(step.get("tags")),
        task_offsets=_offsets(step.get("offsets")),
        task_end_offsets=_offsets(step.get("end_offsets")),
        shutdown_application=step.get("shutdown", False),
    )

    def after(answer: Any) -> None:
        if answer.error_code is ErrorCode.NONE:
            streamer.epoch, streamer.endpoint_epoch = max(answer.member_epoch, 0), answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                lists = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
                streamer.tasks = {
                    role: [(task.subtopology_id, tuple(task.partitions)) for task in tasks]
                    for role, tasks in zip(ROLES, lists, strict=True)
                }
            named = target.internal_topics.setdefault(step["group"], set())
            named.update(_internal_topics(topology))
            if any(status.status_code == MISSING_INTERNAL_TOPICS for status in answer.status or ()):
                target.expected.update(named)
        elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            streamer.epoch, streamer.tasks = JOINING, {}

    key = ApiKey.STREAMS_GROUP_HEARTBEAT
    return StepRequest(key, step["v"], request, step["c"], after, Settle.STREAMS, step["group"])


def _internal_topics(topology: Topology | None) -> set[str]:
    return {
        topic.name
        for subtopology in (() if topology is None else topology.subtopologies)
        for topic in (*subtopology.state_changelog_topics, *subtopology.repartition_source_topics)
    }


def describe(target: Target, step: Step) -> StepRequest:
    """StreamsGroupDescribe of groups, perhaps with duplicates."""
    groups = [target.called(group) if group else "" for group in step["groups"]]
    request = StreamsGroupDescribeRequest(groups, step.get("operations", False), step.get("description", False))
    return StepRequest(ApiKey.STREAMS_GROUP_DESCRIBE, step["v"], request, step["c"], reads=True)


def describe_topology(target: Target, step: Step) -> StepRequest:
    """StreamsGroupTopologyDescriptionUpdate, without a description."""
    request = StreamsGroupTopologyDescriptionUpdateRequest(target.called(step["group"]))
    return StepRequest(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, step["v"], request, step["c"])


def commit(target: Target, step: Step) -> StepRequest:
    """OffsetCommit of one partition by a member, with an epoch that it has or had."""
    streamer = _streamer(target, step)
    epoch = streamer.epoch if step["epoch"] == "own" else step["epoch"]
    partition = OffsetCommitRequestPartition(step["partition"], step["offset"])
    if step["v"] >= COMMIT_BY_ID:
        topic = OffsetCommitRequestTopic("", [partition], target.topic_id(step["topic"]))
    else:
        topic = OffsetCommitRequestTopic(target.called(step["topic"]), [partition])
    request = OffsetCommitRequest(
        target.called(step["group"]),
        epoch + step.get("epoch_shift", 0),
        step["member"],
        topics=[topic],
        group_instance_id=step.get("instance"),
    )
    return StepRequest(ApiKey.OFFSET_COMMIT, step["v"], request, step["c"])


def fetch_offsets(target: Target, step: Step) -> StepRequest:
    """OffsetFetch of all of a group's offsets by a member."""
    streamer = _streamer(target, step)
    epoch = streamer.epoch if step["epoch"] == "own" else step["epoch"]
    group = OffsetFetchRequestGroup(
        target.called(step["group"]),
        None,
        member_id=step["member"],
        member_epoch=epoch + step.get("epoch_shift", 0),
    )
    request = OffsetFetchRequest(require_stable=step.get("stable", False), groups=[group])
    return StepRequest(ApiKey.OFFSET_FETCH, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "streams_beat": beat,
    "describe_streams_group": describe,
    "describe_topology": describe_topology,
    "streams_commit": commit,
    "streams_fetch_offsets": fetch_offsets,
}
