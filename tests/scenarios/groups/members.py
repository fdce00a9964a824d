"""Members of classic groups at the wire, and the offsets that they commit."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.server import Server, until
from tests.wire import Wire

G = "g"
SETTINGS: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "connections.max.idle.ms": -1,
}
"""Groups begin at once, and connections stay however far the clock is pushed."""


def coordinated(server: Server, group_id: str = G) -> Wire:
    """A connection to the group's coordinator, asked for until it is there, as clients do."""
    first = server.wire()

    def ready() -> Any:
        request = FindCoordinatorRequest(coordinator_keys=[group_id])
        (coordinator,) = first.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators
        return coordinator if coordinator.error_code is ErrorCode.NONE else None

    return server.wire(until(ready, f"the coordinator of {group_id}").node_id)


@dataclass
class Member:
    """One member on a connection of its own."""

    wire: Wire
    metadata: bytes = b"meta"
    instance_id: str | None = None
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    group_id: str = G
    member_id: str = ""
    generation: int = -1
    last: JoinGroupResponse = field(default_factory=JoinGroupResponse)
    protocols: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"

    def _join_request(self) -> JoinGroupRequest:
        protocols = [JoinGroupRequestProtocol(name, self.metadata) for name in self.protocols]
        return JoinGroupRequest(
            self.group_id,
            self.session_ms,
            self.member_id,
            self.protocol_type,
            protocols,
            self.rebalance_ms,
            self.instance_id,
        )

    def refused(self, version: int = 9) -> tuple[int, str]:
        """JoinGroup that is answered at once: the error code and the member id of the response."""
        answer = self.wire.call(ApiKey.JOIN_GROUP, version, self._join_request())
        return int(answer.error_code), answer.member_id

    def start(self) -> None:
        """Send JoinGroup; a dynamic member without an id gets one first."""
        if not self.member_id and self.instance_id is None:
            named = self.wire.call(ApiKey.JOIN_GROUP, 9, self._join_request())
            assert named.error_code is ErrorCode.MEMBER_ID_REQUIRED
            self.member_id = named.member_id
        self.wire.send(ApiKey.JOIN_GROUP, 9, self._join_request())

    def joined(self) -> JoinGroupResponse:
        """The answer to the JoinGroup."""
        self.last = self.wire.answer()
        assert self.last.error_code is ErrorCode.NONE, self.last
        self.member_id, self.generation = self.last.member_id, self.last.generation_id
        return self.last

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> None:
        """Send SyncGroup."""
        member_assignments = [
            SyncGroupRequestAssignment(member_id, raw) for member_id, raw in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            self.group_id, self.generation, self.member_id, member_assignments, self.instance_id, "consumer", "range"
        )
        self.wire.send(ApiKey.SYNC_GROUP, 5, request)

    def sync(self, assignments: dict[str, bytes] | None = None) -> SyncGroupResponse:
        """Send SyncGroup and wait."""
        self.send_sync(assignments)
        answer: SyncGroupResponse = self.wire.answer()
        return answer

    def heartbeat(self) -> ErrorCode:
        """Send Heartbeat."""
        request = HeartbeatRequest(self.group_id, self.generation, self.member_id, self.instance_id)
        answer: ErrorCode = self.wire.call(ApiKey.HEARTBEAT, 4, request).error_code
        return answer

    def beat(self, generation: int | None = None, member_id: str | None = None) -> int:
        """Heartbeat, perhaps of another generation or member; the code."""
        who = self.member_id if member_id is None else member_id
        request = HeartbeatRequest(
            self.group_id, self.generation if generation is None else generation, who, self.instance_id
        )
        return int(self.wire.call(ApiKey.HEARTBEAT, 4, request).error_code)

    def leave(self) -> None:
        """Send LeaveGroup."""
        request = LeaveGroupRequest(self.group_id, members=[MemberIdentity(self.member_id, self.instance_id)])
        assert self.wire.call(ApiKey.LEAVE_GROUP, 5, request).members[0].error_code is ErrorCode.NONE

    def commit(self, topic: str, offset: int) -> ErrorCode:
        """Commit an offset of partition 0."""
        return commit(self.wire, topic, offset, self.generation, self.member_id, self.group_id)

    @property
    def leads(self) -> bool:
        """Whether it has to assign."""
        return self.last.leader == self.member_id


# --- a group ---------------------------------------------------------------------------------------------------------


def described(wire: Wire, group_id: str = G) -> DescribedGroup:
    """DescribeGroups of one group."""
    (group,) = wire.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([group_id])).groups
    described_group: DescribedGroup = group
    return described_group


def see_members(server: Server, count: int, group_id: str = G) -> None:
    """Return when the coordinator has read the joins of so many members."""
    watcher = coordinated(server, group_id)
    until(lambda: len(described(watcher, group_id).members) >= count, f"{count} members")


def see_state(server: Server, state: str, group_id: str = G) -> None:
    """Return when the group is in that state."""
    watcher = coordinated(server, group_id)
    until(lambda: described(watcher, group_id).group_state == state, state)


def assembled(server: Server, *members: Member) -> None:
    """All members in one new generation; those who are new wait for the first one."""
    for member in members[1:]:
        member.start()
    if len(members) > 1:
        see_members(server, len(members))
    members[0].start()
    if members[0].generation < 0:
        see_members(server, 1)
        server.advance(0)  # the initial delay is 0, but the clock is frozen
    for member in members:
        member.joined()
    assert len({member.generation for member in members}) == 1


def rebalanced(server: Server, *members: Member) -> None:
    """All members in one generation, each with an assignment that names its index: a0, a1, ...

    The first one creates the group by itself unless it is in one already.
    """
    if members[0].generation < 0:
        assembled(server, members[0])
        assert members[0].sync({members[0].member_id: b"a0"}).assignment == b"a0"
    if len(members) > 1:
        assembled(server, *members)
        assert members[0].leads
        for member in members[1:]:
            member.send_sync()
        members[0].send_sync({member.member_id: b"a%d" % index for index, member in enumerate(members)})
        for index, member in enumerate(members):
            assert member.wire.answer().assignment == b"a%d" % index


# --- offsets ---------------------------------------------------------------------------------------------------------


def commit(
    wire: Wire, topic: str | UUID, offset: int, generation: int = -1, member_id: str = "", group_id: str = G
) -> ErrorCode:
    """OffsetCommit of partition 0, by the topic's name or id."""
    by_id = isinstance(topic, UUID)
    partitions = [OffsetCommitRequestPartition(0, offset)]
    named = OffsetCommitRequestTopic(
        "" if by_id else str(topic), partitions, topic if isinstance(topic, UUID) else None
    )
    request = OffsetCommitRequest(group_id, generation, member_id, topics=[named])
    answer = wire.call(ApiKey.OFFSET_COMMIT, 10 if by_id else 9, request)
    code: ErrorCode = answer.topics[0].partitions[0].error_code
    return code


def offset_of(wire: Wire, topic: str | UUID, group_id: str = G) -> int:
    """OffsetFetch of partition 0, by the topic's name or id."""
    by_id = isinstance(topic, UUID)
    named = OffsetFetchRequestTopics("" if by_id else str(topic), [0], topic if isinstance(topic, UUID) else None)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, [named])], require_stable=True)
    (group,) = wire.call(ApiKey.OFFSET_FETCH, 10 if by_id else 9, request).groups
    partition = group.topics[0].partitions[0]
    assert (group.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    offset: int = partition.committed_offset
    return offset
