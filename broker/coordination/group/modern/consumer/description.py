"""ConsumerGroupDescribe (groups C.12)."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Assigned
from broker.coordination.group.modern.consumer.member import Member as GroupMember
from broker.coordination.group.modern.target_assignment import shown_assignor
from broker.coordination.group.modern.topics import Topics
from protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CONSUMER_TYPE, CLASSIC_TYPE = 1, 0


def described(group: ConsumerGroup, topics: Topics, assignors: Sequence[str]) -> DescribedGroup:
    """Return a group with its members; deleted topics are omitted."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=shown_assignor(group.members.values(), assignors),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: GroupMember, topics: Topics) -> Member:
    target = group.targets.get(member.member_id, {})
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(member.subscribed),
        member.regex,
        _assignment(held(member), topics),
        _assignment({each: sorted(of_topic) for each, of_topic in target.items()}, topics),
        CONSUMER_TYPE if member.classic is None else CLASSIC_TYPE,
    )


def held(member: GroupMember) -> Mapping[UUID, Sequence[int]]:
    """Return a member's partitions by topic: assigned ones first, then those that it is revoking."""
    partitions: dict[UUID, list[int]] = {}
    each: Assigned
    for each in (member.assigned, member.revoking):
        for topic_id, epochs in each.items():
            partitions.setdefault(topic_id, []).extend(epochs)
    return partitions


def _assignment(partitions: Mapping[UUID, Sequence[int]], topics: Topics) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, topic.name, indexes)
            for topic_id, indexes in partitions.items()
            if (topic := topics.of_id(topic_id)) is not None
        ]
    )
