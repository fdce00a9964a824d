"""Compares descriptions of consumer, share and streams groups with what their members sent and received."""

from collections.abc import Iterator
from typing import Any, Final

from pipeline.answers.calls import NONE, Body, Call, Fault, listed
from pipeline.answers.members import Groups, Member, Piece, pieces

DESCRIPTIONS: Final = {
    "ConsumerGroupDescribe": "consumer", "ShareGroupDescribe": "share", "StreamsGroupDescribe": "streams",
}  # fmt: skip
"""API -> type of its groups."""
KIND: Final = "group-description"
WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})
"""States of a group that has no members."""
_SENT: Final = ("instance_id", "rack_id", "process_id", "subscribed_topic_names", "subscribed_topic_regex")
"""Fields of a member that its description repeats."""


def faults_of(call: Call, groups: Groups) -> Iterator[Fault]:
    """Yield the faults of a description."""
    kind = DESCRIPTIONS[call.api]
    for each in listed(call.response, "groups"):
        if each["error_code"] == NONE:
            is_stable = each["group_state"] == "Stable" and kind != "share"
            group_id = each["group_id"]
            for what in (*_epochs(each, is_stable=is_stable), *_work(each, is_stable=is_stable, kind=kind)):
                yield Fault(call.id, KIND, what, group_id=group_id)
            for what in (*_topology(each, groups), *(_owners(each, kind) if kind != "share" else ())):
                yield Fault(call.id, KIND, what, group_id=group_id)
            for member_id, what in _members(call, each, groups):
                yield Fault(call.id, KIND, what, group_id=group_id, member_id=member_id)


def _epochs(group: Body, *, is_stable: bool) -> Iterator[str]:
    """Check epochs: target assignment <= group, member <= target assignment; all are equal in a stable group."""
    epoch, state, described = group["group_epoch"], group["group_state"], listed(group, "members")
    if bool(described) == (state in WITHOUT_MEMBERS):
        yield f"{state} with {len(described)} members"
    if group["assignment_epoch"] > epoch or (is_stable and group["assignment_epoch"] != epoch):
        yield f"{state} with assignment epoch {group['assignment_epoch']} of group epoch {epoch}"
    for each in described:
        if each["member_epoch"] > epoch or (is_stable and not each.get("is_classic") and each["member_epoch"] != epoch):
            yield f"{state} with member epoch {each['member_epoch']} of group epoch {epoch}"


def _owners(group: Body, kind: str) -> Iterator[str]:
    for name in ("assignment", "target_assignment"):
        seen: dict[Piece, str] = {}
        for each in listed(group, "members"):
            for piece in pieces(each.get(name) or {}, kind) or ():
                if seen.setdefault(piece, each["member_id"]) != each["member_id"]:
                    yield f"{name.replace('_', ' ')} of {piece[0]} {piece[1]} to two members"


def _members(call: Call, group: Body, groups: Groups) -> Iterator[tuple[str, str]]:
    group_id = group["group_id"]
    there = {each["member_id"]: each for each in listed(group, "members")}
    for member_id, each in there.items():
        member = groups.members.get((group_id, member_id))
        if member is not None:
            yield from ((member_id, what) for what in _differences(call, each, member))
        elif "classic" not in groups.kinds[group_id]:
            yield member_id, "a member that never joined"
    for (other, member_id), member in groups.members.items():
        if other == group_id and member_id not in there and member.is_alive_at(call):
            yield member_id, "a member is missing"


def _work(group: Body, *, is_stable: bool, kind: str) -> Iterator[str]:
    """In a stable group each member has its target assignment."""
    for each in listed(group, "members") if is_stable else ():
        have, target = each.get("assignment") or {}, each.get("target_assignment") or {}
        of = "topic_id" if kind == "consumer" else "subtopology_id"
        for name in ("active_tasks", "standby_tasks", "warmup_tasks") if kind == "streams" else ("topic_partitions",):
            sets = [
                {(one[of], number) for one in listed(body, name) for number in one["partitions"]}
                for body in (have, target)
            ]
            if sets[0] != sets[1] and not each.get("is_classic"):
                yield f"Stable, and {each['member_id']} has {sorted(sets[0])} and its target is {sorted(sets[1])}"


def _topology(group: Body, groups: Groups) -> Iterator[str]:
    """Check that a topology is one that members have sent for its epoch."""
    reported = group.get("topology")
    known = groups.topologies.get(group["group_id"])
    if not reported or not known:
        return
    sent = known.get(reported["epoch"])
    if sent is None:
        yield f"a topology of epoch {reported['epoch']}, which no member has"
        return
    shapes = [sorted(map(_subtopology, topology)) for topology in (listed(reported, "subtopologies"), sent)]
    if shapes[0] != shapes[1] and not any(listed(each, "source_topic_regex") for each in sent):
        yield f"subtopologies are {shapes[0]}, not {shapes[1]}"


def _subtopology(each: Body) -> tuple[Any, ...]:
    topics = (sorted(listed(each, name)) for name in ("source_topics", "repartition_sink_topics"))
    infos = ("state_changelog_topics", "repartition_source_topics")
    inner = (sorted(one["name"] for one in listed(each, info)) for info in infos)
    return (each["subtopology_id"], *topics, *inner)


def _differences(call: Call, described: Body, member: Member) -> Iterator[str]:
    """Yield the fields that differ from what the member sent or last received."""
    last = member.last_before(call)
    if last is None or last.request["member_epoch"] < 0:
        return
    expected: dict[str, Any] = {"member_epoch": last.response["member_epoch"], "client_id": last.client_id or ""}
    for name in _SENT:
        value = member.sent_at(call, name)
        if value is not None and name in described:
            expected[name] = value
    topology = member.sent_at(call, "topology")
    if topology is not None and "topology_epoch" in described:
        expected["topology_epoch"] = topology["epoch"]
    for name, value in expected.items():
        reported = described.get(name)
        are_equal = reported == value if not isinstance(value, list) else sorted(reported or ()) == sorted(value)
        if not are_equal:
            yield f"{name.replace('_', ' ')} is {reported}, not {value}"
    yield from _kind_differs(described, member)
    for name in member.lists:
        assigned = member.assigned_at(call, name)
        have = pieces(described.get("assignment") or {}, member.kind, name) or set()
        if assigned is not None and member.is_alive_at(call) and have != assigned:
            yield f"{name.replace('_', ' ')} {sorted(have)}, not {sorted(assigned)}"


def _kind_differs(described: Body, member: Member) -> Iterator[str]:
    if described.get("subscribed_topic_regex") and not member.has_regex:
        yield f"a regular expression {described['subscribed_topic_regex']} that it never sent"
    if member.kind == "streams" and described.get("is_classic"):
        yield "a classic member"
    if member.kind == "consumer" and described.get("member_type", -1) not in {-1, 1}:
        yield f"member type {described['member_type']}"
