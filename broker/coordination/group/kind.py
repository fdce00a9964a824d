"""The interface between the coordinator of groups and the rules of one kind of group.

:class:`~broker.coordination.group.machine.GroupMachine` has one table of kinds. A share (KIP-932) or streams group
(KIP-1071) needs a ``Group``, a ``GroupKind`` and a line in that table; the requests that all kinds answer, replay,
loading and steering find their rules by it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from broker.coordination.group.group import GroupType
from broker.coordination.group.outcome_builder import OutcomeBuilder
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest
from protocol.messages.sync_group import SyncGroupRequest


@dataclass(frozen=True, slots=True)
class Joiner:
    """The client that sends a JoinGroup, and the capabilities of the request's version.

    ``client_host`` is in Java's form, ``/127.0.0.1``. ``needs_member_id``: a dynamic member first gets its id
    (KIP-394); ``skips_assignment``: a returning static leader may be asked not to assign (KIP-814).
    """

    client_id: str
    client_host: str
    needs_member_id: bool
    skips_assignment: bool


class ClassicRequests(Protocol):
    """The requests of the classic protocol, to a group of one kind (groups A.3); ``group`` is of that kind.

    The classic kind also answers where there is no group (``None``), and takes over a group that makes way.
    """

    def join(
        self, builder: OutcomeBuilder, group: Any, request: JoinGroupRequest, joiner: Joiner, reply_to: Hashable
    ) -> None:
        """JoinGroup: replies a JoinGroupResponse, at once or later; raises KafkaError, or refuses by reply."""
        ...

    def sync(self, builder: OutcomeBuilder, group: Any, request: SyncGroupRequest, reply_to: Hashable) -> None:
        """SyncGroup: replies a SyncGroupResponse. Raises KafkaError."""
        ...

    def heartbeat(self, builder: OutcomeBuilder, group: Any, request: HeartbeatRequest, reply_to: Hashable) -> None:
        """Heartbeat: replies a HeartbeatResponse. Raises KafkaError."""
        ...

    def leave(self, builder: OutcomeBuilder, group: Any, request: LeaveGroupRequest, reply_to: Hashable) -> None:
        """LeaveGroup: replies a LeaveGroupResponse with one entry for each member that the request names."""
        ...


class GroupKind(Protocol):
    """The rules of one kind of group."""

    @property
    def type(self) -> GroupType:
        """The kind."""
        ...

    @property
    def record_classes(self) -> tuple[Any, ...]:
        """The classes of the records that make and change groups of this kind."""
        ...

    @property
    def makes_way(self) -> bool:
        """Whether a classic member that joins an Empty group of this kind replaces it (groups A.3 Q1)."""
        ...

    @property
    def classic_requests(self) -> ClassicRequests:
        """The answers to members that speak the classic protocol."""
        ...

    def replay(self, record: Any) -> None:
        """Apply a record of one of ``record_classes``."""
        ...

    def loaded(self, builder: OutcomeBuilder) -> None:
        """Arm the timers of all groups of this kind: the coordinator has read its log."""
        ...

    def unloaded(self, builder: OutcomeBuilder) -> None:
        """Answer every parked request with NOT_COORDINATOR: the coordinator is gone (groups A.12)."""
        ...

    def rebalance(self, builder: OutcomeBuilder, group: Any) -> None:
        """Steering: let a group rebalance now, as if a member had asked for it; nothing happens in an Empty one."""
        ...

    def evict(self, builder: OutcomeBuilder, group: Any, member_id: str) -> None:
        """Steering: remove a member as if its session had ended. Raises UNKNOWN_MEMBER_ID."""
        ...
