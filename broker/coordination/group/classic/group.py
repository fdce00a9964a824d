"""A classic group and its members (groups A.1), after Kafka's ``ClassicGroup``.

During a rebalance the group changes without records: members that join, rejoin and leave are soft state, which is lost
with the coordinator, as in Kafka. Only a completed generation is recorded (:meth:`ClassicGroup.record`), and
:meth:`ClassicGroup.restored` restores it. This module holds the state; the rules are in other modules.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from broker.coordination.group.classic.states import ENTERED_FROM, REBALANCES_FROM, State
from broker.coordination.group.group import Committer, GroupType, PartitionCheck
from broker.coordination.group.rules import COMMIT, COMMIT_OF_MEMBER, OFFSET_DELETE, Rule
from broker.coordination.reasons import Refusal
from protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from protocol.errors import ErrorCode
from protocol.java import HashMap
from protocol.log_records.group import GroupMember, GroupMetadata, GroupMetadataTombstone, OffsetCommit

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols, name and metadata, in order of preference."""

UNKNOWN_MS: Final = -1


@dataclass(slots=True)
class Member:
    """A classic member; ``client_host`` is in Java's form, ``/127.0.0.1``. An empty assignment means none."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False

    def metadata(self, protocol: str) -> bytes:
        """Return the member's metadata for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the member's preferred protocol among those that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)


class ClassicGroup:
    """One classic group.

    ``awaiting_join`` and ``awaiting_sync`` hold the reply tokens of parked requests by member id. ``pending`` are ids
    returned with MEMBER_ID_REQUIRED that have not joined yet; ``pending_sync`` members have not sent their SyncGroup of
    this generation yet.
    """

    __slots__ = (
        "_supporters", "awaiting_join", "awaiting_sync", "generation", "group_id", "leader", "members",
        "new_member_added", "pending", "pending_sync", "previous_state", "protocol_name", "protocol_type", "state",
        "state_timestamp_ms", "static_members", "subscriptions",
    )  # fmt: skip

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state, self.previous_state, self.state_timestamp_ms = State.EMPTY, State.DEAD, now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: HashMap[Member] = HashMap()
        self.static_members: dict[str, str] = {}
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        self.awaiting_join: dict[str, Hashable] = {}
        self.awaiting_sync: dict[str, Hashable] = {}
        self.subscriptions: frozenset[str] | None = None
        self.new_member_added = False
        self._supporters: Counter[str] = Counter()

    # --- as every group (broker.coordination.group.group.Group) ------------------------------------------------------

    @property
    def type(self) -> GroupType:
        """The kind of the group."""
        return GroupType.CLASSIC

    @property
    def is_empty(self) -> bool:
        """Whether the group may be deleted."""
        return self.state is State.EMPTY

    @property
    def state_name(self) -> str:
        """The name of the group's state in the protocol."""
        return self.state.value

    @property
    def epoch(self) -> int:
        """The generation."""
        return self.generation

    @property
    def listed_protocol_type(self) -> str:
        """The protocol type, "" for none."""
        return self.protocol_type or ""

    def in_states(self, names: Iterable[str]) -> bool:
        """Return whether the state is among these names, given in lower case."""
        return self.state.value.lower() in names

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Fence a commit (groups B.1 OC2; transactions C.4.2): 22, 25, 27 or 82.

        Transactional commits need no member data (v0-2 have none) and are accepted during a rebalance.
        """
        member_id, instance_id, generation, transactional, _ = committer
        if generation < 0 and self.state is State.EMPTY:
            return None
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id, COMMIT_OF_MEMBER)
            self.check_generation(generation, COMMIT_OF_MEMBER)
        elif not transactional and self.state is not State.EMPTY:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *COMMIT.row(" OC2.3"))
        if not transactional and self.state is State.COMPLETING_REBALANCE:
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, *COMMIT.row(" OC2.4"))
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Accept any member: classic groups do not check it (groups B.2)."""

    def check_offset_delete(self) -> None:
        """Refuse while the group has members, unless its protocol type is "consumer" (transactions E.4): 68."""
        if self.state is not State.EMPTY and not self.is_consumer_type:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, *OFFSET_DELETE)

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic; true if its subscriptions are unknown (groups B.4)."""
        return self.is_consumer_type if self.subscriptions is None else topic in self.subscriptions

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return the function commit -> start of its retention (ms); ``None`` while none expires (groups B.3)."""
        if self.protocol_type is None:
            return _commit_timestamp
        if self.state is State.EMPTY:
            since_ms = self.state_timestamp_ms
            return _commit_timestamp if since_ms == UNKNOWN_MS else lambda _: since_ms
        if self.is_consumer_type and self.subscriptions is not None and self.state is State.STABLE:
            return _commit_timestamp
        return None

    def tombstones(self) -> tuple[GroupMetadataTombstone]:
        """Return the tombstone that deletes the group; also written for a group without a record."""
        return (GroupMetadataTombstone(self.group_id),)

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def is_consumer_type(self) -> bool:
        """Whether the members use Kafka's embedded consumer protocol."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin now."""
        return self.state in REBALANCES_FROM

    @property
    def all_joined(self) -> bool:
        """Whether all members have joined, and no returned id is pending."""
        return len(self.members) == len(self.awaiting_join) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout among the members, 0 without any (groups A.5)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def check_member(self, member_id: str, instance_id: str | None, rule: Rule) -> None:
        """Raise UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless the group has this member (groups A.4 J4.3).

        ``rule`` is the rule of the request.
        """
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *rule)
            if owner != member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID, *rule)
        if member_id not in self.members:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *rule)

    def check_generation(self, generation: int, rule: Rule) -> None:
        """Raise ILLEGAL_GENERATION unless this is the current generation."""
        if generation != self.generation:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION, *rule)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols may join (groups A.4 J3.1)."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return self.protocol_type == protocol_type and any(self._supporters[name] == everybody for name, _ in protocols)

    def chosen_protocol(self) -> str:
        """Return the most voted protocol that all members support; ties are broken as in Java (groups A.5 R7.4).

        A name that a member lists twice counts twice, so it is not one that all members support. If no protocol is
        left, Kafka fails, and its members wait forever.
        """
        everybody = len(self.members)
        candidates = {name for name, count in self._supporters.items() if count == everybody}
        if not all(any(name in candidates for name, _ in member.protocols) for member in self.members.values()):
            candidates = set(self._supporters)
        votes: HashMap[int] = HashMap()
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = (votes.get(name) or 0) + 1
        return max(votes, key=votes.__getitem__)  # the first of the greatest, as Stream.max keeps it

    # --- changing ----------------------------------------------------------------------------------------------------

    def enter(self, state: State, now_ms: int) -> None:
        """Enter another state. Raises ValueError if the transition is not allowed."""
        if self.state not in ENTERED_FROM[state]:
            raise ValueError(f"group {self.group_id}: {state} is not entered from {self.state}")
        self.previous_state, self.state, self.state_timestamp_ms = self.state, state, now_ms

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member; the first one sets the protocol type, and leads if there is no leader."""
        if not len(self.members):
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self._put(member)
        self.pending.discard(member.member_id)

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """Replace a member's protocols and timeouts when it rejoins."""
        self._forget_protocols(member)
        member.protocols = protocols
        member.rebalance_timeout_ms, member.session_timeout_ms = rebalance_timeout_ms, session_timeout_ms
        self._supporters.update(name for name, _ in protocols)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id; if it was the leader, another member becomes the leader."""
        member = self.members.pop(member_id)
        if member is not None:
            self._forget_protocols(member)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        self.awaiting_join.pop(member_id, None)
        self.awaiting_sync.pop(member_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give a static member another id; the rest is kept. Quirk: also client id and host (groups A.6.1).

        Quirk: an old id that has not sent its SyncGroup stays in ``pending_sync``.
        """
        old = self.members[old_id]
        self.members.pop(old_id)
        new = Member(
            new_id,
            instance_id,
            old.client_id,
            old.client_host,
            old.session_timeout_ms,
            old.rebalance_timeout_ms,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = new
        self.static_members[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return new

    def elect_joined_leader(self) -> bool:
        """Elect a leader among the members that joined; return false if none did (groups A.5 R7.2)."""
        if self.leader is None:
            return False
        if self.leader in self.awaiting_join:
            return True
        joined = next((member_id for member_id in self.members if member_id in self.awaiting_join), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def next_generation(self, now_ms: int) -> None:
        """Begin the next generation at the end of the join phase."""
        self.generation += 1
        if len(self.members):
            self.protocol_name = self.chosen_protocol()
            self.enter(State.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.enter(State.EMPTY, now_ms)
        self.subscriptions = self._subscriptions()
        self.pending_sync.clear()

    # --- the log -----------------------------------------------------------------------------------------------------

    def record(self, assignments: Mapping[str, bytes]) -> GroupMetadata:
        """Return the record of this generation, with its members' assignments."""
        protocol = self.protocol_name
        members = tuple(
            GroupMember(
                member.member_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                b"" if protocol is None else member.metadata(protocol),
                assignments[member.member_id],
                member.instance_id,
            )
            for member in self.members.values()
        )
        return GroupMetadata(
            self.group_id,
            self.protocol_type or "",
            self.generation,
            protocol,
            self.leader,
            self.state_timestamp_ms,
            members,
        )

    def creation_record(self) -> GroupMetadata:
        """Return the record of a new, Empty group, regardless of the request that created it (groups A.11)."""
        return GroupMetadata(self.group_id, "", 0, None, None, self.state_timestamp_ms)

    def finished(self, record: GroupMetadata) -> None:
        """Apply the record of a completed generation: its assignments are valid now."""
        for stored in record.members:
            member = self.members.get(stored.member_id)
            if member is not None:
                member.assignment = stored.assignment
        if record.members and self.state is State.COMPLETING_REBALANCE:
            self.enter(State.STABLE, self.state_timestamp_ms)

    @classmethod
    def restored(cls, record: GroupMetadata) -> Self:
        """Return the group that a coordinator restores from its log (groups A.12)."""
        group = cls(record.group_id, record.current_state_timestamp_ms)
        group.state = State.STABLE if record.members else State.EMPTY
        group.previous_state = State.EMPTY
        group.generation = record.generation
        group.protocol_type = record.protocol_type or None
        group.protocol_name, group.leader = record.protocol, record.leader
        for stored in record.members:
            rebalance_ms = stored.rebalance_timeout_ms
            member = Member(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                stored.session_timeout_ms,
                stored.session_timeout_ms if rebalance_ms == UNKNOWN_MS else rebalance_ms,
                () if record.protocol is None else ((record.protocol, stored.subscription),),
                stored.assignment,
            )
            group._put(member)
        group.subscriptions = group._subscriptions()
        return group

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._supporters.update(name for name, _ in member.protocols)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _forget_protocols(self, member: Member) -> None:
        self._supporters.subtract(name for name, _ in member.protocols)

    def _subscriptions(self) -> frozenset[str] | None:
        """Return the topics that members of a "consumer" group subscribe to, ``None`` for unknown (groups A.1)."""
        if not self.is_consumer_type:
            return None
        if not len(self.members):
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.metadata(self.protocol_name))
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)


def _commit_timestamp(offset: OffsetCommit) -> int:
    return offset.commit_timestamp_ms
