"""StreamsGroupDescribe (groups E.8)."""

from collections.abc import Iterable, Mapping

from broker.coordination.group.modern.streams.assignor import STICKY
from broker.coordination.group.modern.streams.configuration import Configured
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member as GroupMember
from broker.coordination.group.modern.streams.tasks import NO_OFFSETS, NO_TASKS, TaskOffsets, Tasks, TaskSets
from protocol.java import string_hash, table_order, utf16
from protocol.log_records.streams_group import TopicInfo as RecordedTopicInfo
from protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)


def described(group: StreamsGroup, writes: int) -> DescribedGroup:
    """Return a group with its topology and members; with the internal topics' partition counts if it is ready.

    ``writes``: the number of records of the shard.
    """
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, group.configuration.committed(writes)),
        members=[
            _member(
                member,
                group.targets.get(member.member_id, NO_TASKS),
                group.task_offsets.get(member.member_id, NO_OFFSETS),
            )
            for member in group.members.values()
        ],
        assignor_name=STICKY,
    )


def task_names(member: GroupMember) -> list[str]:
    """Return a member's tasks for reports, such as ``0_1`` and ``standby 0_2``, also those that it is revoking."""
    have, leaving = member.assigned.undated, member.revoking.undated
    roles = (
        ("", have.active, leaving.active),
        ("standby ", have.standby, leaving.standby),
        ("warm-up ", have.warmup, leaving.warmup),
    )
    return [
        f"{role}{name}_{partition}"
        for role, *each in roles
        for name, partition in sorted(
            {(name, at) for tasks in each for name, partitions in tasks.items() for at in partitions}
        )
    ]


def _topology(group: StreamsGroup, configured: Configured | None) -> Topology | None:
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        return Topology(
            configured.epoch,
            [
                Subtopology(
                    name,
                    _sorted(set(each.source.source_topics)),
                    _sorted(set(each.source.repartition_sink_topics)),
                    _infos(each.changelogs),
                    _infos(each.repartition_sources),
                )
                for name, each in configured.subtopologies.items()
            ],
        )
    if group.topology is None:
        return None
    return Topology(
        group.topology.epoch,
        [
            Subtopology(
                name,
                _sorted(each.source_topics),
                _sorted(each.repartition_sink_topics),
                _infos(each.state_changelog_topics),
                _infos(each.repartition_source_topics),
            )
            for name, each in sorted(group.topology.subtopologies.items(), key=lambda item: utf16(item[0]))
        ],
    )


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=utf16)


def _infos(topics: Iterable[RecordedTopicInfo]) -> list[TopicInfo]:
    return [
        TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            [KeyValue(config.key, config.value) for config in each.topic_configs],
        )
        for each in sorted(topics, key=lambda topic: utf16(topic.name))
    ]


def _member(member: GroupMember, target: TaskSets, offsets: TaskOffsets) -> Member:
    endpoint = member.user_endpoint
    tags: Mapping[str, str] = {each.key: each.value for each in member.client_tags}
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        task_offsets=[TaskOffset(*each) for each in sorted(offsets.local, key=_by_task)],
        task_end_offsets=[TaskOffset(*each) for each in sorted(offsets.end, key=_by_task)],
        client_tags=[KeyValue(key, tags[key]) for key in table_order(list(tags), string_hash)],
        assignment=_assignment(member.assigned.undated),
        target_assignment=_assignment(target),
    )


def _by_task(reported: tuple[str, int, int]) -> tuple[bytes, int]:
    return utf16(reported[0]), reported[1]


def _assignment(tasks: TaskSets) -> Assignment:
    return Assignment(_ids(tasks.active), _ids(tasks.standby), _ids(tasks.warmup))


def _ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(name, sorted(tasks[name])) for name in sorted(tasks, key=utf16)]
