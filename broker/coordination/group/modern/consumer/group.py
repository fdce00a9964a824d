"""A consumer group: the state from its records, and the state derived from it (groups C.1), after ``ConsumerGroup``."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from uuid import UUID

from broker.coordination.group.group import Committer, GroupType, PartitionCheck
from broker.coordination.group.modern.consumer.member import Assigned, Member, Partitions, target_of
from broker.coordination.group.modern.consumer.states import State, state_of
from broker.coordination.group.modern.epochs import LEAVING_STATIC
from broker.coordination.group.modern.group import ModernGroup
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.rules import COMMIT, MEMBER_LOOKUP, OFFSET_FETCH
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.java import HashTable, TimelineMap, reserved_capacity, string_hash
from protocol.log_records.consumer_group import (
    ConsumerKind,
    ConsumerRecord,
    CurrentMember,
    GroupEpoch,
    MemberMetadata,
    RegularExpression,
    TargetEpoch,
    TargetMember,
)
from protocol.log_records.group import OffsetCommit

FIRST_EPOCH = 1
"""Epoch of a new group (before 4.3 it was 0)."""


class ConsumerGroup(ModernGroup[Member]):
    """One consumer group. Only :meth:`replay` changes it.

    ``targets`` are the target assignments by member id; ``regexes`` the topics that regular expressions matched when
    last resolved; ``static_members`` instance id -> member id. ``forgets``: Behaviour.CHANGED_INSTANCES_FORGOTTEN.
    """

    __slots__ = (
        "_forgets", "_names", "_owners", "_patterns", "_topics", "checked", "homogeneous", "regexes", "targets",
    )  # fmt: skip

    type = GroupType.CONSUMER
    member_rule = MEMBER_LOOKUP

    def __init__(self, group_id: str, topics: Topics, *, forgets: bool = True) -> None:
        super().__init__(group_id, FIRST_EPOCH)
        self._topics, self._forgets = topics, forgets
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, RegularExpression] = {}
        self.checked: tuple[int, int] | None = None
        """Soft: the metadata version that was last compared with the hash, and the group epoch then (groups C.6)."""
        self.homogeneous = True
        """Whether all members had the same subscription when one last changed (``ModernGroup.subscriptionType``)."""
        self._owners: dict[tuple[UUID, int], int] = {}
        self._names: Counter[str] = Counter()
        self._patterns: TimelineMap[int] = TimelineMap()

    # --- as every group (broker.coordination.group.group.Group) ------------------------------------------------------

    @property
    def state(self) -> State:
        """The group's state (groups C.1)."""
        return state_of(self.epoch, self.assignment_epoch, self.members.values())

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Fence a commit by the member's epoch (groups B.1 OC3; transactions C.4.2): 22, 25, 35 or 113.

        An earlier epoch is accepted for partitions that the member has had since then (KIP-1251).
        """
        epoch = committer.generation
        if epoch < 0 and self.is_empty:
            return None
        if committer.transactional and epoch == -1 and not committer.member_id and committer.instance_id is None:
            return None
        member = self.members.get(committer.member_id)
        if member is None:
            message = f"Member {committer.member_id} is not a member."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *COMMIT.row(" OC3.2"), message)
        if member.classic is None and not committer.transactional and not committer.knows_stale_epochs:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                *COMMIT.row(" OC3.3"),
                "OffsetCommit version 9 or above must be used by members using the modern group protocol",
            )
        named = committer.knows_stale_epochs and member.classic is None
        stale = ErrorCode.STALE_MEMBER_EPOCH if named else ErrorCode.ILLEGAL_GENERATION
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise Refusal(stale, *COMMIT.row(" OC3.5"))

        def check(topic: str, topic_id: UUID | None, partition: int) -> None:
            known = self._topics.named(topic) if topic_id is None else None
            committed_id = topic_id if known is None else known.id
            since = None if committed_id is None else _since(member, committed_id, partition)
            if since is None or epoch < since:
                raise Refusal(stale, *COMMIT.row(" OC3.6"))

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Fence a fetch that names a member (groups B.2): 22, 25 or 113."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:
            # ConsumerGroup.validateOffsetFetch looks up null.
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, *OFFSET_FETCH)
        member = self.members.get(member_id or "")
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *OFFSET_FETCH)
        if member_epoch != member.epoch:
            classic = member.classic is not None
            code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
            raise Refusal(code, *OFFSET_FETCH)

    def check_offset_delete(self) -> None:
        """Accept any state: the group may have members (transactions E.4)."""

    def subscribes_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic by name, or by a regular expression that matched it."""
        return topic in self._names or any(
            topic in resolved.topics for regex, resolved in self.regexes.items() if regex in self._patterns
        )

    def expiry_base(self) -> Callable[[OffsetCommit], int] | None:
        """Return the function commit -> start of its retention, in ms (groups B.3)."""
        return lambda commit: commit.commit_timestamp_ms

    def tombstones(self, heirs: Mapping[str, str] | None = None) -> tuple[ConsumerRecord, ...]:
        """Return the group's tombstones in Kafka's order, also for records never written (transactions F.4).

        ``heirs``: member id -> the member that has just replaced it, whose records are deleted instead.
        """
        members = [(heirs or {}).get(member_id, member_id) for member_id in self.members]
        kinds = (
            *((ConsumerKind.CURRENT_MEMBER, member_id) for member_id in members),
            *((ConsumerKind.TARGET_MEMBER, member_id) for member_id in members),
            (ConsumerKind.TARGET_METADATA, ""),
            *((ConsumerKind.MEMBER_METADATA, member_id) for member_id in members),
            *((ConsumerKind.REGULAR_EXPRESSION, regex) for regex in _table(self.regexes)),
            (ConsumerKind.PARTITION_METADATA, ""),
            (ConsumerKind.GROUP_METADATA, ""),
        )
        return tuple(ConsumerRecord(kind, self.group_id, name) for kind, name in kinds)

    # --- reading -----------------------------------------------------------------------------------------------------

    def owner_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """Return the epoch of the partition's owner, also while it is revoking it; ``None`` without an owner."""
        return self._owners.get((topic_id, partition))

    def hash_is_due(self, version: int) -> bool:
        """Return whether the hash was not compared with this metadata version, or the epoch was not stored."""
        return self.checked is None or self.checked[0] != version or self.epoch < self.checked[1]

    def target_for(self, member_id: str, instance_id: str | None) -> Partitions:
        """Return a member's target; a static member has that of its instance id's holder, and none if the id is new."""
        holder = member_id if instance_id is None else self.static_members.get(instance_id)
        return {} if holder is None else self.targets.get(holder, {})

    def homogeneous_with(self, before: Member, after: Member, members: int) -> bool:
        """Return whether all subscriptions are the same after a member's change (``ConsumerGroup.subscriptionType``).

        Kafka counts by topic: members that name it, and resolved regular expressions that match it. ``members`` is the
        number of members after the change.
        """
        return _all_alike(*self._subscriptions(before, after), members)

    def names_with(self, before: Member, after: Member) -> set[str]:
        """Return all subscribed topics after a member's change (``computeSubscribedTopicNames``)."""
        names, _, resolved = self._subscriptions(before, after)
        return {*names, *resolved}

    def patterns_with(self, before: Member, after: Member) -> list[str]:
        """Return the members' regular expressions after a member's change, in the order of Kafka's map.

        The expression of its only subscriber is removed and added again, also if it stays the same.
        """
        return list(self._patterns_with(before, after))

    def _patterns_with(self, before: Member, after: Member) -> HashTable[str, int]:
        patterns: HashTable[str, int] = HashTable(string_hash, reserved_capacity(len(self._patterns)))
        for regex in self._patterns:
            patterns.put(regex, self._patterns[regex])
        if before.regex:
            patterns.compute(before.regex, _one_less)
        if after.regex:
            patterns.compute(after.regex, _one_more)
        return patterns

    def _subscriptions(self, before: Member, after: Member) -> tuple[Counter[str], Mapping[str, int], Counter[str]]:
        """Count members by topic name and by expression, and expressions by matched topic."""
        names = Counter(self._names)
        _take(names, before.subscribed)
        names.update(after.subscribed)
        last = before.regex if before.regex != after.regex and self.subscribers_of(before.regex or "") == 1 else None
        resolved = Counter(
            topic for regex, expression in self.regexes.items() if regex != last for topic in expression.topics or ()
        )
        return names, dict(self._patterns_with(before, after).items()), resolved

    def subscribers_of(self, regex: str) -> int:
        """Return how many members subscribe by a regular expression."""
        return self._patterns.get(regex) or 0

    def names_besides(self, regexes: Collection[str]) -> set[str]:
        """Return all subscribed topics, without those that these expressions matched."""
        matched = (each.topics or () for regex, each in self.regexes.items() if regex not in regexes)
        return {*self._names, *(topic for topics in matched for topic in topics)}

    def names_of(self, member: Member) -> frozenset[str]:
        """Return the topics that a member subscribes to, by name and by its regular expression if that is resolved."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.subscribed if resolved is None else member.subscribed.union(resolved.topics or ())

    def away(self, member: Member) -> bool:
        """Return whether a static member has left temporarily (epoch -2)."""
        return member.epoch == LEAVING_STATIC

    # --- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: ConsumerRecord) -> None:
        """Apply a record of this group; a tombstone for a missing entry changes nothing."""
        name, value = record.name, record.value
        match value:
            case GroupEpoch():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case MemberMetadata():
                self._put((self.members.get(name) or Member(name)).with_metadata(value))
            case TargetEpoch():
                self.assignment_epoch = value.assignment_epoch
                self.assignment_timestamp_ms = value.assignment_timestamp_ms
            case TargetMember():
                self.targets[name] = target_of(value)
            case CurrentMember():
                self._put((self.members.get(name) or Member(name)).is_at(value))
            case RegularExpression():
                self.regexes[name] = value
            case None:
                self._forget(record)

    def _forget(self, record: ConsumerRecord) -> None:
        match record.kind:
            case ConsumerKind.MEMBER_METADATA:
                member = self.members.pop(record.name)
                if member is not None:
                    self._leave(member, for_good=True)
                    self._compare_subscriptions()
            case ConsumerKind.CURRENT_MEMBER:
                member = self.members.get(record.name)
                if member is not None:
                    self._put(member.is_at(CurrentMember(member_epoch=-1)))
            case ConsumerKind.TARGET_MEMBER:
                self.targets.pop(record.name, None)
            case ConsumerKind.REGULAR_EXPRESSION:
                self.regexes.pop(record.name, None)

    def _put(self, member: Member) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._leave(before, for_good=self._forgets)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._names.update(member.subscribed)
        if member.regex:
            self._patterns.compute(member.regex, _one_more)
        for topic_id, partition in _held(member.assigned, member.revoking):
            self._owners[topic_id, partition] = member.epoch
        self._compare_subscriptions()

    def _compare_subscriptions(self) -> None:
        """Update ``homogeneous``. A regular expression that is resolved later does not, as in Kafka."""
        resolved = Counter(topic for expression in self.regexes.values() for topic in expression.topics or ())
        patterns = {regex: self._patterns[regex] for regex in self._patterns}
        self.homogeneous = _all_alike(self._names, patterns, resolved, len(self.members))

    def _leave(self, member: Member, *, for_good: bool) -> None:
        """Undo :meth:`_put`; the holder of an instance id is removed only if ``for_good``."""
        if for_good and self.static_members.get(member.instance_id or "") == member.member_id:
            assert member.instance_id is not None
            del self.static_members[member.instance_id]
        _take(self._names, member.subscribed)
        if member.regex:
            self._patterns.compute(member.regex, _one_less)
        for place in _held(member.assigned, member.revoking):
            self._owners.pop(place, None)


def _table(keys: Iterable[str]) -> TimelineMap[None]:
    """Return a Kafka table with these keys, inserted in this order."""
    table: TimelineMap[None] = TimelineMap()
    for key in keys:
        table[key] = None
    return table


def _one_less(count: int | None) -> int | None:
    return None if count is None or count == 1 else count - 1


def _one_more(count: int | None) -> int:
    return 1 if count is None else count + 1


def _all_alike(
    names: Mapping[str, int], patterns: Mapping[str, int], resolved: Mapping[str, int], members: int
) -> bool:
    if not patterns:
        return all(names.get(topic, 0) == members for topic in {*names, *resolved})
    if next(iter(patterns.values())) != members:
        return False
    return not names and all(count == 1 for count in resolved.values())


def _held(*held: Assigned) -> Iterable[tuple[UUID, int]]:
    return ((topic_id, partition) for each in held for topic_id, epochs in each.items() for partition in epochs)


def _take(counts: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]


def _since(member: Member, topic_id: UUID, partition: int) -> int | None:
    """Return since which epoch a member has a partition, also while revoking it; ``None`` if it does not."""
    epochs: Mapping[int, int] = member.assigned.get(topic_id, {})
    if partition not in epochs:
        epochs = member.revoking.get(topic_id, {})
    return epochs.get(partition)
