"""An assignor of consumer groups that is a Python callable (``ConsumerGroupPartitionAssignor``, KIP-848)."""

from collections.abc import Mapping, Sequence
from typing import Any

from broker.coordination.group.modern.assignor.range import Assignment, Assignor, Job
from broker.settings.plugins import call
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class AssignmentMember:
    """A member: its names of topics that exist, and its current target, partitions by topic."""

    instance_id: str | None
    topics: Sequence[str]
    assignment: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class AssignmentRequest:
    """Input of an assignor (``GroupSpec``): members by id, and the partition count of each subscribed topic."""

    members: Mapping[str, AssignmentMember]
    partitions: Mapping[str, int]


def plugin_assignor(reference: str) -> Assignor:
    """Return the assignor that asks a callable; it returns each member's partitions by topic.

    The assignor raises KafkaError UNKNOWN_SERVER_ERROR if the callable fails, or assigns what does not exist.
    """

    def assign(job: Job) -> dict[str, Assignment]:
        names = job.names
        members = {
            each.member_id: AssignmentMember(
                each.instance_id,
                [names[topic_id] for topic_id in each.topics],
                {names[topic_id]: partitions for topic_id, partitions in each.target.items() if topic_id in names},
            )
            for each in job.subscribers
        }
        partitions = {names[topic_id]: count for topic_id, count in job.partitions.items()}
        result = call(reference, AssignmentRequest(members, partitions))
        try:
            return {member_id: _checked(job, result.get(member_id, {})) for member_id in members}
        except (AttributeError, TypeError) as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from error

    return assign


def _checked(job: Job, assigned: Mapping[str, Any]) -> Assignment:
    ids = {name: topic_id for topic_id, name in job.names.items()}
    for name, partitions in assigned.items():
        if name not in ids or not all(0 <= index < job.partitions[ids[name]] for index in partitions):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the assignor assigns {name} {sorted(partitions)}")
    return {ids[name]: frozenset(partitions) for name, partitions in assigned.items() if partitions}
