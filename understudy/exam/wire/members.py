"""Rules about members of groups: the member ids, generations, epochs and partitions that they were granted."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from understudy.exam.level import Level
from understudy.exam.wire.problem import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    Place,
    Problem,
    answered,
    answered_us,
    succeeded,
)
from understudy.results import JournalEntry

CROSSING_US: Final = 300_000
"""A request that arrives within this (arbitrary) time of a response may have been sent before the client read it."""
NEVER_US: Final = 2**63
FIRST_WITH_EPOCH: Final = 9  # version of OffsetFetch: the member and its epoch
MEMBERSHIP: Final = ("SyncGroup", "Heartbeat", "OffsetCommit")


def memberships(entries: Sequence[JournalEntry]) -> Mapping[tuple[str, str], set[int]]:
    """Return group and member id -> the generations or member epochs that it was granted."""
    epochs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entry in entries:
        if entry.api in {"JoinGroup", "ConsumerGroupHeartbeat"} and succeeded(entry):
            answer = entry.response or {}
            granted = int(answer.get("generation_id", answer.get("member_epoch", -1)))
            epochs[entry.request["group_id"], answer.get("member_id") or entry.request["member_id"]].add(granted)
    return epochs


@dataclass
class _Member:
    """What a member of a classic group was granted: generations by member id; ids that the broker does not know now.

    Generations are in the order of their grants: a coordinator that fails before SyncGroup has not stored the newest,
    and its successor grants a lower one.
    """

    granted: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    dead: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    """Member id -> the place in `granted` of the newest generation that it has used."""

    def joins(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge the member id of a JoinGroup."""
        member, answer = entry.request.get("member_id") or "", entry.response or {}
        if member and member not in self.granted:
            yield Problem(entry, f"member id {member!r} was not granted to this client")
        elif entry.ts_us > self.dead.get(member, entry.ts_us) + CROSSING_US:
            text = f"joins with member id {member!r}, which the broker does not know any more"
            yield Problem(entry, text, Level.SHOULD)
        if answered(entry) and answer.get("member_id"):
            self.dead.pop(answer["member_id"], None)
            self.granted[answer["member_id"]] += [answer["generation_id"]] if succeeded(entry) else []

    def uses(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge member id and generation of another request of a member."""
        member = entry.request.get("member_id") or ""
        generation = generation_of(entry)
        if not any(self.granted.values()):
            return  # it never became a member, such as one that only commits offsets
        granted = self.granted.get(member, [])
        if generation not in granted:
            yield Problem(entry, f"member {member!r} was not granted generation {generation}")
            return
        place, newest = max(at for at, each in enumerate(granted) if each == generation), self.used.get(member, 0)
        if place < newest:
            yield Problem(entry, f"generation {generation} is used after generation {granted[newest]}")
        self.used[member] = max(place, newest)

    def leaves(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge the member ids of a LeaveGroup."""
        left = {entry.request.get("member_id"), *(each.get("member_id") for each in entry.request.get("members", ()))}
        if self.granted and not left & self.granted.keys():
            yield Problem(entry, f"none of the members {left} was this client")


def generation_of(entry: JournalEntry) -> int:
    """Return the generation or member epoch of a request of a member; -1: none."""
    return int(entry.request.get("generation_id", entry.request.get("generation_id_or_member_epoch", -1)))


def classic(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests of a member with a member id or generation that it was not granted, or that has ended."""
    member = _Member()
    rules = {"JoinGroup": member.joins, "LeaveGroup": member.leaves, **dict.fromkeys(MEMBERSHIP, member.uses)}
    for entry in entries:
        if entry.api in rules:
            yield from rules[entry.api](entry)
            if entry.error == "UNKNOWN_MEMBER_ID" and answered(entry) and entry.request.get("member_id"):
                member.dead[entry.request["member_id"]] = answered_us(entry)


@dataclass
class _ModernMember:
    """The epochs and partitions that members of consumer and share groups were granted, and when they left."""

    granted: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    assigned: set[Place] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)

    def beats(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge a heartbeat."""
        member, epoch = entry.request.get("member_id") or "", entry.request.get("member_epoch")
        owned = _assigned(entry.request.get("topic_partitions"))
        if epoch != LEAVES and self.left.get(member, NEVER_US) < entry.ts_us:
            text = f"member {member} joins again after it has left: it was not to leave before it is closed"
            yield Problem(entry, text, Level.SHOULD)
        if epoch not in {JOINS, LEAVES, LEAVES_FOR_A_WHILE, *self.granted[member]}:
            yield Problem(entry, f"member {member} was not granted epoch {epoch}")
        elif epoch == JOINS and owned:
            yield Problem(entry, f"joins with partitions that it does not have: {len(owned)}")
        elif owned - self.assigned:
            yield Problem(entry, f"reports partitions that it was not assigned: {len(owned - self.assigned)}")
        if epoch == JOINS and entry.request.get("rebalance_timeout_ms", 1) <= 0:
            yield Problem(entry, "joins without a rebalance timeout")
        if succeeded(entry):
            answer = entry.response or {}
            self.left[member] = entry.ts_us if epoch == LEAVES else NEVER_US
            self.granted[answer.get("member_id") or member].add(answer["member_epoch"])
            self.assigned |= _assigned((answer.get("assignment") or {}).get("topic_partitions"))


def epochs(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests of a member of a consumer or share group with a member epoch that it was not granted."""
    members = _ModernMember()
    for entry in entries:
        member = entry.request.get("member_id") or ""
        if entry.api in {"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"}:
            yield from members.beats(entry)
        elif entry.api == "ShareFetch" and entry.ts_us > members.left.get(member, NEVER_US) + CROSSING_US:
            yield Problem(entry, f"member {member} has left its group")
        elif entry.api in {"OffsetCommit", "OffsetFetch"} and members.granted:
            yield from _carries_epoch(entry, members.granted)


def _carries_epoch(entry: JournalEntry, granted: Mapping[str, set[int]]) -> Iterator[Problem]:
    """Return a commit or a look-up of committed offsets that does not carry member and epoch (KIP-848)."""
    if entry.api == "OffsetCommit":
        member, epoch = entry.request.get("member_id") or "", entry.request.get("generation_id_or_member_epoch", -1)
        if epoch not in granted.get(member, ()):
            yield Problem(entry, f"member {member!r} was not granted epoch {epoch}")
        return
    for group in entry.request.get("groups", ()) if entry.version >= FIRST_WITH_EPOCH else ():
        member, epoch = group.get("member_id") or "", group.get("member_epoch", -1)
        if epoch not in granted.get(member, ()):
            yield Problem(entry, f"member {member!r} was not granted epoch {epoch}", Level.SHOULD, habit=True)


@dataclass
class _Owner:
    """What a member of a consumer group has been assigned, has fetched, and has reported as not its own."""

    assigned: set[Place] = field(default_factory=set)
    fetched: dict[Place, int] = field(default_factory=dict)
    disowned: dict[Place, int] = field(default_factory=dict)

    def reports(self, entry: JournalEntry) -> None:
        """Compare what a heartbeat reports with what was fetched before; then take over what it is answered."""
        reported = entry.request.get("topic_partitions")
        if reported is not None:
            early = {place for place, at in self.fetched.items() if at + CROSSING_US < entry.ts_us}
            missing = self.assigned & early - _assigned(reported)
            self.disowned = {each: self.disowned.get(each, entry.ts_us) for each in missing}
        answer = (entry.response or {}).get("assignment")
        if entry.error or entry.request.get("member_epoch") == LEAVES:
            self.assigned = set()
        elif answer:
            self.assigned = _assigned(answer["topic_partitions"])
        self.fetched = {place: at for place, at in self.fetched.items() if place in self.assigned}
        self.disowned = {place: at for place, at in self.disowned.items() if place in self.assigned}

    def fetches(self, place: Place, at_us: int) -> bool:
        """Return whether the member has reported the partition as not its own."""
        self.fetched.setdefault(place, at_us)
        return at_us > self.disowned.get(place, NEVER_US) + CROSSING_US


def disowned(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return Fetch requests of partitions that the member has reported as not its own (KIP-848).

    It had fetched them before it reported, and they were assigned to it all the time.
    """
    ids: dict[str, str] = {}
    owner = _Owner()
    for entry in entries:
        if entry.api == "Metadata":
            ids |= {each["name"]: each.get("topic_id", "") for each in (entry.response or {}).get("topics", ())}
        elif entry.api == "ConsumerGroupHeartbeat":
            owner.reports(entry)
        elif entry.api == "Fetch" and owner.assigned:
            for topic in entry.request.get("topics", ()):
                name = topic.get("topic") or ""
                for each in topic["partitions"]:
                    if owner.fetches((ids.get(name) or topic.get("topic_id", ""), each["partition"]), entry.ts_us):
                        text = f"fetches partition {each['partition']}, which it has reported as not its own"
                        yield Problem(entry, text)


def _assigned(topics: Any) -> set[Place]:
    return {(each["topic_id"], partition) for each in topics or () for partition in each["partitions"]}
