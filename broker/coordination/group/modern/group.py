"""What consumer, share and streams groups have in common, after Kafka's ``ModernGroup`` and ``ModernGroupMember``."""

from collections.abc import Iterable
from typing import ClassVar, Generic, Protocol, TypeVar

from broker.coordination.group.group import GroupType
from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import TimelineMap


class ModernMember(Protocol):
    """A member of a modern group; ``epoch`` is that of the target that it has reached."""

    @property
    def member_id(self) -> str:
        """The member id."""
        ...

    @property
    def client_id(self) -> str:
        """The client id."""
        ...

    @property
    def epoch(self) -> int:
        """The member epoch."""
        ...


class ModernState(Protocol):
    """A state of a group, by its name in the protocol."""

    @property
    def value(self) -> str:
        """The name."""
        ...


M = TypeVar("M", bound=ModernMember)


class ModernGroup(Generic[M]):
    """Epochs, members and their lookup. ``static_members`` are member ids by instance id; share groups have none.

    A subclass has the state, and changes only in its ``replay``.
    """

    __slots__ = (
        "assignment_epoch", "assignment_timestamp_ms", "epoch", "group_id", "members", "metadata_hash",
        "static_members",
    )  # fmt: skip

    type: ClassVar[GroupType]
    member_rule: ClassVar[Rule]
    """The rule of a heartbeat by which an unknown member is refused."""

    def __init__(self, group_id: str, epoch: int = 0) -> None:
        self.group_id = group_id
        self.epoch = self.assignment_epoch = epoch
        self.metadata_hash = self.assignment_timestamp_ms = 0
        self.members: TimelineMap[M] = TimelineMap()
        self.static_members: dict[str, str] = {}

    @property
    def state(self) -> ModernState:
        """The group's state."""
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        """Whether the group may be deleted."""
        return not len(self.members)

    @property
    def state_name(self) -> str:
        """The name of the group's state in the protocol."""
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type in ListGroups."""
        return self.type.value

    def in_states(self, names: Iterable[str]) -> bool:
        """Return whether the state is among these names, given in lower case."""
        return self.state.value.lower() in names

    def member(self, member_id: str, rule: Rule | None = None) -> M:
        """Return a member; ``rule`` is the rule of a request that is no heartbeat.

        Raises:
            Refusal: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {self.group_id}."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *(rule or self.member_rule), message)
        return member

    def static_member(self, instance_id: str, member_id: str | None = None, rule: Rule | None = None) -> M:
        """Return the member that has an instance id; ``rule`` is the rule of a request that is no heartbeat.

        Raises:
            Refusal: UNKNOWN_MEMBER_ID if there is none, FENCED_INSTANCE_ID if it is not ``member_id``.
        """
        owner_id = self.static_members.get(instance_id)
        if owner_id is None:
            message = f"Instance id {instance_id} is unknown."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *(rule or self.member_rule), message)
        if member_id is not None and owner_id != member_id:
            message = f"Static member {member_id} with instance id {instance_id} was fenced by member {owner_id}."
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, *(rule or self.member_rule), message)
        return self.member(owner_id, rule)
