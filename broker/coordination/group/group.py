"""The interface of groups of any kind, and of the rules of one kind.

Classic, consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071) share one name space per shard (groups F.7)
and one table. :class:`~broker.coordination.group.machine.GroupMachine` has one table of kinds: requests that all kinds
answer, replay, loading and the control plane find the rules of a group there. A new kind needs a ``Group``, a
``GroupKind`` and a line in that table.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.group.rules import NO_CLASSIC_MEMBERS
from broker.coordination.reasons import Refusal
from protocol.deferred import dataclass
from protocol.errors import ErrorCode
from protocol.java import TimelineMap
from protocol.log_records.group import GroupRecord, OffsetCommit
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest

PartitionCheck = Callable[[str, UUID | None, int], None]
"""Raises KafkaError unless the committer may commit for that topic, topic id (if known) and partition."""


class GroupType(StrEnum):
    """A kind of group, by its name in the protocol (ListGroups v5, KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """The member that commits offsets. ``generation`` is a generation or a member epoch, -1 for none.

    ``knows_stale_epochs``: whether the request's version has the error codes of KIP-848.
    """

    member_id: str
    instance_id: str | None
    generation: int
    transactional: bool = False
    knows_stale_epochs: bool = False


class Group(Protocol):
    """One group of any kind."""

    group_id: str

    @property
    def type(self) -> GroupType:
        """The kind of the group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group may be deleted."""
        ...

    @property
    def state_name(self) -> str:
        """The name of the group's state in the protocol."""
        ...

    @property
    def epoch(self) -> int:
        """The group epoch; the generation of a classic group."""
        ...

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups; "" for none."""
        ...

    def in_states(self, names: Iterable[str]) -> bool:
        """Return whether the state is among these names, given in lower case (groups A.13)."""
        ...

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Raise KafkaError unless the committer may commit offsets now; return the check for each partition, if any."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError unless the member may fetch offsets now."""
        ...

    def check_offset_delete(self) -> None:
        """Raise KafkaError unless offsets of the group may be deleted now."""
        ...

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic, so that its offsets are kept."""
        ...

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return the function commit -> start of its retention (ms); ``None`` while no offset expires."""
        ...

    def tombstones(self) -> tuple[GroupRecord, ...]:
        """Return the tombstones that delete the group, without those of its offsets."""
        ...


class Groups(MutableMapping[str, Group]):
    """The groups of a shard by id, and which of them reads of committed state do not see yet.

    Not a subclass of ``dict``, whose inherited methods would change the groups without the table.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._table: TimelineMap[None] = TimelineMap()
        self.unseen: set[str] = set()
        """Groups created without a record. Reads see committed state only, so they see these after the next record."""

    def __getitem__(self, group_id: str) -> Group:
        return self._groups[group_id]

    def __setitem__(self, group_id: str, group: Group) -> None:
        self._table[group_id] = None
        self._groups[group_id] = group

    def __delitem__(self, group_id: str) -> None:
        del self._groups[group_id]
        self._table.pop(group_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def forget(self, group_id: str) -> None:
        """Remove a group, if there is one."""
        if group_id in self:
            del self[group_id]

    def in_table_order(self) -> list[Group]:
        """Return the groups in the iteration order of Kafka's table."""
        return [self[group_id] for group_id in self._table]

    def has(self, group_id: str, *, reads: bool) -> bool:
        """Return whether a group of any kind exists for a request that ``reads`` committed state, or that writes."""
        return group_id in self and not (reads and group_id in self.unseen)


@dataclass(frozen=True, slots=True)
class Joiner:
    """The client that sends a JoinGroup, and the features of the request's version.

    ``client_host`` is in Java's form, ``/127.0.0.1``. ``needs_member_id``: a dynamic member must first obtain its id
    (KIP-394); ``skips_assignment``: a returning static leader can be instructed to skip the assignment (KIP-814).
    """

    client_id: str
    client_host: str
    needs_member_id: bool
    skips_assignment: bool


class ClassicRequests(Protocol):
    """The requests of the classic protocol to groups of one kind (groups A.3); ``group`` is of that kind.

    The classic kind also handles a missing group (``None``), and replaces an Empty group whose kind ``makes_way``.
    """

    def join(
        self, builder: OutcomeBuilder, group: Any, request: JoinGroupRequest, joiner: Joiner, reply_to: Hashable
    ) -> None:
        """JoinGroup: replies with a JoinGroupResponse, now or later. Errors are raised or in the reply."""
        ...

    def sync(self, builder: OutcomeBuilder, group: Any, request: SyncGroupRequest, reply_to: Hashable) -> None:
        """SyncGroup: replies with a SyncGroupResponse. Raises KafkaError."""
        ...

    def heartbeat(self, builder: OutcomeBuilder, group: Any, request: HeartbeatRequest, reply_to: Hashable) -> None:
        """Heartbeat: replies with a HeartbeatResponse. Raises KafkaError."""
        ...

    def leave(self, builder: OutcomeBuilder, group: Any, request: LeaveGroupRequest, reply_to: Hashable) -> None:
        """LeaveGroup: replies with a LeaveGroupResponse with one entry for each member in the request."""
        ...


class GroupKind(Protocol):
    """The rules of one kind of group."""

    @property
    def type(self) -> GroupType:
        """The kind of group."""
        ...

    @property
    def record_classes(self) -> tuple[Any, ...]:
        """The classes of the records that create and change groups of this kind."""
        ...

    @property
    def makes_way(self) -> bool:
        """Whether a classic member that joins an Empty group of this kind replaces the group (groups A.3 Q1)."""
        ...

    @property
    def classic_requests(self) -> ClassicRequests:
        """The handlers of classic protocol requests to groups of this kind."""
        ...

    def replay(self, record: Any) -> None:
        """Apply a record of one of ``record_classes``."""
        ...

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Arm the timers of all groups of this kind after the coordinator has read its log."""
        ...

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Answer every parked request with NOT_COORDINATOR: the coordinator is unloaded (groups A.12)."""
        ...

    def rebalance(self, builder: OutcomeBuilder, group: Any) -> None:
        """Control plane: rebalance a group now, as if a member had triggered it. No effect on an Empty group."""
        ...

    def evict(self, builder: OutcomeBuilder, group: Any, member_id: str) -> None:
        """Control plane: remove a member as if its session had expired. Raises UNKNOWN_MEMBER_ID."""
        ...


class NoClassicMembers:
    """Refuses every request of the classic protocol, as no member uses it."""

    def join(
        self,
        builder: OutcomeBuilder,
        group: Group,  # noqa: ARG002
        request: JoinGroupRequest,  # noqa: ARG002
        joiner: Joiner,  # noqa: ARG002
        reply_to: Hashable,
    ) -> None:
        """Reply INCONSISTENT_GROUP_PROTOCOL."""
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        builder.refuse(reply_to, join_refused(code), Refusal(code, *NO_CLASSIC_MEMBERS), direct=True)

    def sync(
        self,
        builder: OutcomeBuilder,  # noqa: ARG002
        group: Group,  # noqa: ARG002
        request: SyncGroupRequest,
        reply_to: Hashable,  # noqa: ARG002
    ) -> None:
        """Raise UNKNOWN_MEMBER_ID."""
        raise _unknown(request.member_id)

    def heartbeat(
        self,
        builder: OutcomeBuilder,  # noqa: ARG002
        group: Group,  # noqa: ARG002
        request: HeartbeatRequest,
        reply_to: Hashable,  # noqa: ARG002
    ) -> None:
        """Raise UNKNOWN_MEMBER_ID."""
        raise _unknown(request.member_id)

    def leave(
        self,
        builder: OutcomeBuilder,
        group: Group,  # noqa: ARG002
        request: LeaveGroupRequest,
        reply_to: Hashable,
    ) -> None:
        """Reply UNKNOWN_MEMBER_ID for each member."""
        members = tuple(
            MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
            for each in request.members
        )
        refusal = Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *NO_CLASSIC_MEMBERS)
        builder.refuse(reply_to, LeaveGroupResponse(members=members), refusal)


def _unknown(member_id: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *NO_CLASSIC_MEMBERS, f"Member {member_id} is not a member.")
