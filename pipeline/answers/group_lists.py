"""Compares descriptions of classic groups and lists of all groups with what the members sent and received."""

from collections.abc import Iterator
from typing import Final

from pipeline.answers.calls import NONE, Body, Call, Fault, listed, may_be_deleted
from pipeline.answers.descriptions import KIND, WITHOUT_MEMBERS
from pipeline.answers.members import Groups

LISTS: Final = frozenset({"DescribeGroups", "ListGroups"})
_PROTOCOLS: Final = {"consumer": "consumer", "share": "share", "streams": "streams"}
"""Type of a group in lower case -> its protocol type."""


def faults_of(call: Call, groups: Groups) -> Iterator[Fault]:
    """Yield the faults of a DescribeGroups or ListGroups response."""
    if call.api == "DescribeGroups":
        for each in listed(call.response, "groups"):
            if each["error_code"] == NONE:
                for member_id, what in _of_classic(call, each, groups):
                    yield Fault(call.id, KIND, what, group_id=each["group_id"], member_id=member_id)
    elif call.error is None:
        for group_id, what in (*_kinds(call, groups), *_left_out(call, groups)):
            yield Fault(call.id, KIND, what, group_id=group_id)


def _of_classic(call: Call, group: Body, groups: Groups) -> Iterator[tuple[str | None, str]]:
    """Compare members with their JoinGroup and SyncGroup responses in the last generation that both contain."""
    described = listed(group, "members")
    if bool(described) == (group["group_state"] in WITHOUT_MEMBERS):
        yield None, f"{group['group_state']} with {len(described)} members"
    joined = [
        each for (name, _), memberships in groups.classic.items() if name == group["group_id"] for each in memberships
    ]
    settled = [each for each in joined if each.is_accepted and each.end_us < call.start_us]
    if not settled or any(each.end_us >= call.start_us and each.start_us <= call.end_us for each in joined):
        return
    is_stable = group["group_state"] == "Stable"
    last = max((each for each in settled if each.api == "JoinGroup"), key=lambda each: each.end_us, default=None)
    if last is not None and is_stable:
        names = {"protocol_type": last.request["protocol_type"], "protocol_data": last.response["protocol_name"]}
        for name, value in names.items():
            if value and group[name] != value:
                yield None, f"{name.replace('_', ' ')} is {group[name]}, not {value}"
        yield from _absent(described, settled)
    for each in described:
        if not each["member_id"]:
            yield None, "a member without an id"
            continue
        own = _calls_of(each["member_id"], settled)
        if own:
            yield from ((each["member_id"], what) for what in _differences(each, own, is_stable=is_stable))
        elif not _calls_of(each["member_id"], joined):
            yield each["member_id"], "a member that never came"


def _absent(described: list[Body], settled: list[Call]) -> Iterator[tuple[str, str]]:
    """Yield members that the leader of a generation received but that the description omits beside others of it."""
    joins = [each for each in settled if each.api == "JoinGroup"]
    newest = max((each.response["generation_id"] for each in joins), default=-1)
    led = [each for each in joins if each.response["generation_id"] == newest and listed(each.response, "members")]
    there = {each["member_id"] for each in described}
    last = {each.response["member_id"]: each.response["generation_id"] for each in joins}
    if led and there and all(last.get(member_id) == newest for member_id in there):
        for each in led[-1].response["members"]:
            if each["member_id"] not in there:
                yield each["member_id"], "a member of the generation is missing"


def _calls_of(member_id: str, calls: list[Call]) -> list[Call]:
    return [each for each in calls if member_id in (each.request["member_id"], each.response.get("member_id"))]


def _differences(described: Body, own: list[Call], *, is_stable: bool) -> Iterator[str]:
    last = own[-1]
    if described["client_id"] != (last.client_id or ""):
        yield f"client id is {described['client_id']}, not {last.client_id}"
    if is_stable and last.api == "SyncGroup" and described["member_assignment"] != last.response["assignment"]:
        yield "another assignment than SyncGroup gave"


def _kinds(call: Call, groups: Groups) -> Iterator[tuple[str, str]]:
    """Compare a group's type and protocol type with those that its members use."""
    for each in listed(call.response, "groups"):
        group_id, kinds = each["group_id"], groups.kinds.get(each["group_id"], set())
        kind = next(iter(kinds)) if len(kinds) == 1 else ""
        # Since version 5 with types (KIP-848).
        if call.version >= 5 and kind and each["group_type"].lower() != kind:
            yield group_id, f"type {each['group_type']} of a {kind} group"
        if kind in _PROTOCOLS and each["protocol_type"] != _PROTOCOLS[kind]:
            yield group_id, f"protocol type {each['protocol_type']} of a {kind} group"
        if kind == "classic" and each["group_state"] == "Stable":
            sent = {one.request["protocol_type"] for one in groups.alive[group_id] if one.api == "JoinGroup"}
            if sent and each["protocol_type"] not in sent:
                yield group_id, f"protocol type {each['protocol_type']}, not {' or '.join(sorted(sent))}"


def _left_out(call: Call, groups: Groups) -> Iterator[tuple[str, str]]:
    """Yield groups that ListGroups omits, though this broker served their members before and after it."""
    if listed(call.request, "states_filter") or listed(call.request, "types_filter"):
        return
    there = {each["group_id"] for each in listed(call.response, "groups")}
    for (group_id, _), member in groups.members.items():
        last = member.last_before(call)
        if group_id not in there and last is not None and last.broker == call.broker and member.is_alive_at(call):
            yield group_id, "the group is left out"
    for group_id, holdings in groups.alive.items():
        around = [each for each in holdings if each.broker == call.broker]
        before = max(
            (each for each in around if each.end_us < call.start_us), key=lambda each: each.end_us, default=None
        )
        after = min(
            (each for each in around if each.start_us > call.end_us), key=lambda each: each.start_us, default=None
        )
        if group_id not in there and before and after and not may_be_deleted(before, after, groups.deleted):
            yield group_id, "the group is left out"
