"""ShareGroupDescribe (groups D.1)."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.topics import Topics
from protocol.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

ASSIGNOR = "simple"


def described(group: ShareGroup, topics: Topics) -> DescribedGroup:
    """Return a group with its members; deleted topics are omitted."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[
            Member(
                member.member_id,
                member.rack_id,
                member.epoch,
                member.client_id,
                member.client_host,
                sorted(member.subscribed),
                _assignment(member.assigned, topics),
            )
            for member in group.members.values()
        ],
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], topics: Topics) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, topic.name, sorted(indexes))
            for topic_id, indexes in partitions.items()
            if (topic := topics.of_id(topic_id)) is not None
        ]
    )
