"""The interface between the group coordinator and the rules of one kind of group.

:class:`~broker.coordination.group.machine.GroupMachine` has one table of kinds: requests that all kinds answer, replay,
loading and the control plane find the rules of a group there. A new kind needs a ``Group``, a ``GroupKind`` and a line
in that table.
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
