"""Checks the partitions or tasks assigned to members, and keeps them for comparison with descriptions."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pipeline.answers.calls import Body, Call, Fault, listed

HEARTBEATS: Final = {
    "ConsumerGroupHeartbeat": "consumer", "ShareGroupHeartbeat": "share", "StreamsGroupHeartbeat": "streams",
}  # fmt: skip
"""API -> type of its groups."""
ROLES: Final = ("active_tasks", "standby_tasks", "warmup_tasks")
"""The fields with the tasks of a streams group's member."""
_CALLS_OF_CLASSIC: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"})
_COMMITS: Final = frozenset({"OffsetCommit", "TxnOffsetCommit"})
_FOR_GOOD: Final = frozenset({"DeleteGroups"})
Piece = tuple[str, int]
"""Topic id or subtopology, and partition."""


class Holding(NamedTuple):
    """A partition or task that a member owned from one time to another; at the second it was still alive."""

    member_id: str
    since_us: int
    until_us: int
    call: Call
    """The call whose response assigned it."""


@dataclass
class Member:
    """What the journal contains of one member of a group with heartbeats (KIP-848, KIP-932, KIP-1071)."""

    member_id: str
    kind: str
    beats: list[Call] = field(default_factory=list)
    """Successful heartbeats, in order."""
    others: list[Call] = field(default_factory=list)
    """Heartbeats without a successful response, whose effect is unknown."""
    holdings: dict[Piece, list[Holding]] = field(default_factory=lambda: defaultdict(list))
    held: dict[Piece, Call] = field(default_factory=dict)
    subscribed: set[str] = field(default_factory=set)
    has_regex: bool = False

    def note(self, call: Call) -> None:
        """Record a heartbeat."""
        if not call.is_accepted:
            self.others.append(call)
            if call.error is not None:
                self._drop(set(self.held))
            return
        epoch = call.request["member_epoch"]
        reported = pieces(call.request, self.kind)
        if epoch == 0:
            self._drop(set(self.held))
        elif reported is not None and epoch > 0:
            self._drop(self.held.keys() - reported)
        if self.beats:
            for piece, holding in self.held.items():
                self.holdings[piece][-1] = Holding(self.member_id, holding.end_us, call.start_us, holding)
        for piece in (pieces(call.response, self.kind) or ()) if epoch >= 0 else ():
            if piece not in self.held:
                self.held[piece] = call
                self.holdings[piece].append(Holding(self.member_id, call.end_us, call.end_us, call))
        if epoch < 0:  # the member owned all of it until now
            self._drop(set(self.held))
        self.subscribed.update(listed(call.request, "subscribed_topic_names"))
        self.has_regex |= bool(call.request.get("subscribed_topic_regex"))
        self.beats.append(call)

    def _drop(self, gone: set[Piece]) -> None:
        for piece in gone:
            self.held.pop(piece, None)

    def last_before(self, moment: Call) -> Call | None:
        """Return the last heartbeat before a description; None if there is none, or one overlaps the description."""
        if any(
            each.end_us >= moment.start_us and each.start_us <= moment.end_us for each in (*self.beats, *self.others)
        ):
            return None
        before = [each for each in self.beats if each.end_us < moment.start_us]
        if any(
            each.end_us < moment.start_us and (not before or each.start_us > before[-1].start_us)
            for each in self.others
        ):
            return None
        return before[-1] if before else None

    def is_alive_at(self, moment: Call) -> bool:
        """Return whether the heartbeats before and after a description prove that the member was alive."""
        before = self.last_before(moment)
        after = next((each for each in self.beats if each.start_us > moment.end_us), None)
        return (
            before is not None
            and before.request["member_epoch"] >= 0
            and after is not None
            and after.request["member_epoch"] != 0
        )

    @property
    def lists(self) -> tuple[str, ...]:
        """Return the names of the lists in its assignment."""
        return ROLES if self.kind == "streams" else ("topic_partitions",)

    def assigned_at(self, moment: Call, name: str) -> set[Piece] | None:
        """Return one list of the assignment that the member last received before a description."""
        since = [each for each in self.beats if each.end_us < moment.start_us]
        for each in reversed(since):
            assigned_pieces = pieces(each.response, self.kind, name)
            if assigned_pieces is not None:
                return assigned_pieces
            if each.request["member_epoch"] == 0:
                return set()
        return None

    def sent_at(self, moment: Call, name: str) -> Any:
        """Return the last value that the member sent in a field (null means unchanged); None if it never sent one."""
        for each in reversed([one for one in self.beats if one.end_us < moment.start_us]):
            if each.request.get(name) is not None:
                return each.request[name]
            if each.request["member_epoch"] == 0:
                break
        return None


def pieces(body: Body, kind: str, name: str | None = None) -> set[Piece] | None:
    """The partitions or tasks in a heartbeat, its answer or a description; None: nothing is acks of them.

    Without the name of a list of tasks, the active ones.
    """
    if kind == "streams":
        assignment = body.get(name or "active_tasks")
        return (
            None
            if assignment is None
            else {(each["subtopology_id"], one) for each in assignment for one in each["partitions"]}
        )
    assignment = body.get("topic_partitions")
    if assignment is None and body.get("assignment") is not None:
        assignment = body["assignment"]["topic_partitions"]
    return (
        None if assignment is None else {(each["topic_id"], one) for each in assignment for one in each["partitions"]}
    )


@dataclass
class Groups:
    """The groups of one run and era."""

    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    """By group and member id."""
    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By group: types of the APIs that its members called successfully."""
    topologies: dict[str, dict[int, list[Body]]] = field(default_factory=lambda: defaultdict(dict))
    """By group and topology epoch: subtopologies."""
    counts: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By topic name: numbers of partitions that responses have reported."""
    alive: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    """By classic group: successful calls of its members."""
    classic: dict[tuple[str, str], list[Call]] = field(default_factory=lambda: defaultdict(list))
    """By group and member id: JoinGroup and SyncGroup."""
    deleted: list[Call] = field(default_factory=list)
    refused: list[Call] = field(default_factory=list)
    """Commits that were refused with UNKNOWN_MEMBER_ID."""
    topics: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topic id -> names."""
    subtopologies: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By group: all subtopologies that its members have sent."""

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a call, and yield the faults of the call itself."""
        if call.api in HEARTBEATS:
            yield from self._heartbeat(call)
        elif call.api in _CALLS_OF_CLASSIC:
            if call.is_accepted:
                self.kinds[call.request["group_id"]].add("classic")
                self.alive[call.request["group_id"]].append(call)
            if call.api in {"JoinGroup", "SyncGroup"}:
                member_id = call.request["member_id"] or call.response.get("member_id", "")
                self.classic[call.request["group_id"], member_id].append(call)
                yield from _classic_answer(call)
        elif call.api in _FOR_GOOD:
            self.deleted.append(call)
        elif call.api in _COMMITS and "UNKNOWN_MEMBER_ID" in _codes(call):
            self.refused.append(call)
        elif call.api in {"Metadata", "CreateTopics", "DescribeTopicPartitions"}:
            for each in listed(call.response, "topics"):
                if each.get("name") and each.get("topic_id"):
                    self.topics[each["topic_id"]].add(each["name"])
                    count = len(listed(each, "partitions")) if call.api != "CreateTopics" else each["num_partitions"]
                    self.counts[each["name"]].add(count)

    def _heartbeat(self, call: Call) -> Iterator[Fault]:
        request, kind = call.request, HEARTBEATS[call.api]
        group_id = request["group_id"]
        member_id = request["member_id"] or call.response.get("member_id") or ""
        member = self.members.setdefault((group_id, member_id), Member(member_id, kind))
        if call.is_accepted:
            self.kinds[group_id].add(kind)
            last = member.beats[-1] if member.beats else None
            went_on = last and request["member_epoch"] > 0 and last.end_us < call.start_us
            if went_on and last and call.response["member_epoch"] < last.response["member_epoch"]:
                yield self._fault(call, "member-epoch-answer", "an epoch lower than in the last response", member_id)
            if request["member_epoch"] >= 0 and call.response["member_epoch"] < 0:
                yield self._fault(call, "answer-value", "the member epoch of a member that leaves", member_id)
        topology = request.get("topology") or {}
        self.subtopologies[group_id].update(each["subtopology_id"] for each in listed(topology, "subtopologies"))
        if topology:
            self.topologies[group_id][topology["epoch"]] = listed(topology, "subtopologies")
        member.note(call)
        if call.is_accepted and kind == "streams":
            yield from self._tasks(call, member)

    def _tasks(self, call: Call, member: Member) -> Iterator[Fault]:
        """Check that a member has a task in only one role (active, standby, warm-up), and that the task exists."""
        group_id = call.request["group_id"]
        known = self.subtopologies[group_id]
        seen: set[Piece] = set()
        wrong: dict[str, Piece] = {}
        for name in ROLES:
            for each in listed(call.response, name):
                place = each["subtopology_id"]
                if known and place not in known:
                    wrong["a task of an unknown subtopology"] = (place, -1)
                most = self.tasks_of(group_id, place)
                for piece in ((place, number) for number in each["partitions"]):
                    if most is not None and piece[1] >= most:
                        wrong[f"a task beyond the {most} that exist"] = piece
                    if piece in seen:
                        wrong["one task in two roles"] = piece
                    seen.add(piece)
        for what, (place, number) in wrong.items():
            yield self._fault(call, "assignment-answer", f"{what}: {place} {number}", member.member_id)

    def tasks_of(self, group_id: str, subtopology_id: str) -> int | None:
        """Return the maximum number of tasks of a subtopology: the partitions of its largest topic; None if unknown."""
        most = 0
        for topology in self.topologies[group_id].values():
            for each in topology:
                if each["subtopology_id"] == subtopology_id:
                    if listed(each, "source_topic_regex") or listed(each, "repartition_source_topics"):
                        return None
                    sizes = [max(self.counts.get(name) or {0}) for name in listed(each, "source_topics")]
                    if not all(sizes):
                        return None
                    most = max(most, *sizes)
        return most or None

    def faults(self) -> Iterator[Fault]:
        """Yield partitions or tasks that two members owned at once, and topics that a member did not subscribe to."""
        for call in self.refused:
            member = self.members.get((call.request["group_id"], call.request["member_id"]))
            if member is not None and member.is_alive_at(call):
                what = "a member is unknown that is known before and after"
                yield self._fault(call, "error-contradicted", what, member.member_id)
        by_piece: dict[tuple[str, Piece], list[Holding]] = defaultdict(list)
        for (group_id, _), member in self.members.items():
            if member.kind != "share":
                for piece, holdings in member.holdings.items():
                    by_piece[group_id, piece] += holdings
            yield from self._subscriptions(member)
        seen: set[tuple[int, str]] = set()
        for (_, piece), of_piece in by_piece.items():
            for one, other in _overlaps(of_piece):
                later = max(one.call, other.call, key=lambda each: each.end_us)
                who = f"{one.member_id} and {other.member_id} both have it"
                if (later.id, who) not in seen:
                    seen.add((later.id, who))
                    yield self._fault(later, "assignment-answer", who, None, piece)

    def _subscriptions(self, member: Member) -> Iterator[Fault]:
        """Yield assigned topics without a subscription, if all names are known and no regular expression was sent."""
        if member.kind == "streams" or member.has_regex or not member.subscribed:
            return
        for call in member.beats:
            for topic_id, partition in sorted(pieces(call.response, member.kind) or ()):
                names = self.topics.get(topic_id)
                if names and not names & member.subscribed:
                    yield self._fault(
                        call,
                        "assignment-answer",
                        "a topic without a subscription",
                        member.member_id,
                        (min(names), partition),
                    )

    def _fault(self, call: Call, kind: str, what: str, member_id: str | None, piece: Piece | None = None) -> Fault:
        name, partition = piece or (None, None)
        topic = min(self.topics.get(name or "", {name})) if name else None
        return Fault(call.id, kind, what, topic, partition, None, call.request["group_id"], member_id)


def _codes(call: Call) -> set[str]:
    """Return the errors of a response's partitions."""
    return {part["error_code"] for each in listed(call.response, "topics") for part in listed(each, "partitions")}


def _overlaps(holdings: list[Holding]) -> Iterator[tuple[Holding, Holding]]:
    """Yield pairs of members that owned the same partition or task at the same time."""
    ordered = sorted(holdings, key=lambda each: (each.since_us, each.until_us))
    open_: dict[str, Holding] = {}
    for each in ordered:
        for member_id, other in open_.items():
            if member_id != each.member_id and other.until_us > each.since_us:
                yield other, each
        if each.member_id not in open_ or open_[each.member_id].until_us < each.until_us:
            open_[each.member_id] = each


def _classic_answer(call: Call) -> Iterator[Fault]:
    """Check that JoinGroup and SyncGroup responses repeat the requested protocol (KIP-559)."""
    if not call.is_accepted:
        return
    request, answer = call.request, call.response
    wrong = None
    if (
        call.api == "JoinGroup"
        and call.version >= 7  # the first with the protocol type (KIP-559)
        and answer.get("protocol_type", request["protocol_type"]) != request["protocol_type"]
    ):
        wrong = f"protocol type {answer.get('protocol_type')}"
    if (
        call.api == "JoinGroup"
        and call.version >= 9  # the first of KIP-814
        and answer.get("skip_assignment")
        and not request.get("group_instance_id")
    ):
        wrong = "the assignment is missing for a dynamic member"
    if call.api == "SyncGroup" and call.version >= 5:  # the first of KIP-559
        for name in ("protocol_type", "protocol_name"):
            if request.get(name) and answer.get(name, request[name]) != request[name]:
                wrong = f"{name.replace('_', ' ')} {answer.get(name)}"
    if wrong:
        yield Fault(call.id, "answer-items", wrong, group_id=request["group_id"], member_id=request["member_id"])
