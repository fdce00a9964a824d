"""Members of consumer groups (KIP-848) at the wire."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from protocol.messages.consumer_group_describe import Member as DescribedMember
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from tests.scenarios.groups.members import SETTINGS, G
from tests.server import until
from tests.wire import Wire

SESSION_MS, INTERVAL_MS = 8_000, 1_000
CONSUMER_SETTINGS: dict[str, object] = {
    **SETTINGS,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}
"""Sessions short enough to be waited for."""
Owned = Mapping[UUID, Iterable[int]]


def listed(owned: Owned) -> list[TopicPartitions]:
    """As a heartbeat lists them."""
    return [TopicPartitions(topic_id, sorted(partitions)) for topic_id, partitions in owned.items()]


@dataclass
class Consumer:
    """One member; ``epoch`` and ``owned`` are those of the last response."""

    wire: Wire
    member_id: str = "m1"
    group_id: str = G
    instance_id: str | None = None
    topics: Sequence[str] | None = ("foo",)
    regex: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 300_000
    epoch: int = 0
    owned: dict[UUID, list[int]] | None = None

    def beat(self, epoch: int | None = None, *, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat; fields that are not given are null. The member adopts the response."""
        if "owned" in fields:
            owned = fields.pop("owned")
            fields["topic_partitions"] = None if owned is None else listed(owned)
        fields.setdefault("topic_partitions", None)
        request = ConsumerGroupHeartbeatRequest(
            fields.pop("group_id", self.group_id),
            fields.pop("member_id", self.member_id),
            self.epoch if epoch is None else epoch,
            fields.pop("instance_id", self.instance_id),
            **fields,
        )
        answer: ConsumerGroupHeartbeatResponse = self.wire.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        if answer.error_code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {
                    each.topic_id: sorted(each.partitions)
                    for each in answer.assignment.topic_partitions
                    if each.topic_id is not None
                }
        return answer

    def join(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat: all fields are set."""
        defaults: dict[str, Any] = {
            "owned": {},
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
            "server_assignor": self.assignor,
        }
        if self.regex is not None:
            defaults["subscribed_topic_regex"] = self.regex
        return self.beat(0, **{**defaults, **fields})

    def full(self, epoch: int | None = None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat with all fields set, with the partitions that the member owns."""
        defaults: dict[str, Any] = {
            "owned": self.owned,
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
        }
        return self.beat(epoch, **{**defaults, **fields})

    def keeps_up(self) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat that confirms the last assignment."""
        return self.beat(owned=self.owned)

    def code(self, epoch: int | None = None, **fields: Any) -> int:
        """The error code of a heartbeat."""
        return int(self.beat(epoch, **fields).error_code)

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        """Leave, for good or (-2) for a while."""
        return self.beat(epoch)

    @property
    def partitions(self) -> list[int]:
        """Of its only topic."""
        (indexes,) = (self.owned or {UUID(int=0): []}).values() or ([],)
        return indexes

    @property
    def owns(self) -> tuple[int, list[int]]:
        """Epoch and partitions of its only topic."""
        return self.epoch, self.partitions


def outcome(answer: ConsumerGroupHeartbeatResponse) -> tuple[int, int, list[int] | None]:
    """Code, epoch, and the partitions of the only topic: none for an empty assignment, ``None`` without one."""
    assignment = answer.assignment
    partitions = (
        None if assignment is None else sorted(at for each in assignment.topic_partitions for at in each.partitions)
    )
    return int(answer.error_code), answer.member_epoch, partitions


def settled(*members: Consumer) -> None:
    """Return when all members have the same epoch and nothing moves any more."""

    def done() -> bool | None:
        before = [(each.epoch, each.owned) for each in members]
        for each in members:
            answer = each.keeps_up()
            assert answer.error_code is ErrorCode.NONE, answer
        after = [(each.epoch, each.owned) for each in members]
        return (before == after and len({each.epoch for each in members}) == 1) or None

    until(done, "the members to settle")


def described(wire: Wire, group_id: str = G, version: int = 1) -> DescribedGroup:
    """ConsumerGroupDescribe of one group."""
    (group,) = wire.call(ApiKey.CONSUMER_GROUP_DESCRIBE, version, ConsumerGroupDescribeRequest([group_id])).groups
    described_group: DescribedGroup = group
    return described_group


def member_of(group: DescribedGroup, member_id: str) -> DescribedMember:
    """One member of a description."""
    return next(each for each in group.members if each.member_id == member_id)


def listing(wire: Wire, group_id: str = G) -> ListedGroup | None:
    """The group as ListGroups has it."""
    groups = wire.call(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups
    return next((each for each in groups if each.group_id == group_id), None)
