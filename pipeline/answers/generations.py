"""Finds errors for members of classic groups that contradict the generations which the group has issued."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pipeline.answers.calls import NONE, Call, Fault, listed, may_be_deleted

_SOON_US: Final = 1_000_000
"""Within this time no session expires (`group.min.session.timeout.ms` is 6 s), and a request has reached the group."""
_SEVERAL_LEAVE: Final = 3
"""Version of LeaveGroup since which several members leave at once, each with an error of its own."""
_OF_MEMBERS: Final = frozenset({"SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit", "LeaveGroup"})
_REMOVALS: Final = frozenset({"LeaveGroup", "DeleteGroups"})


@dataclass
class _Group:
    """The calls of one group, in order."""

    joins: list[Call] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def sort(self) -> None:
        """Sort the calls by their start; `during` and `newest` rely on it."""
        self.joins.sort(key=_start_us)
        self.calls.sort(key=_start_us)

    def during(self, from_us: int, until_us: int, *, joins: bool = False) -> list[Call]:
        """Return the calls that started between two times."""
        calls = self.joins if joins else self.calls
        return calls[bisect_left(calls, from_us, key=_start_us) : bisect_right(calls, until_us, key=_start_us)]

    def newest(self, until_us: int) -> int | None:
        """Return the newest generation that may have started before a time; None if unknown."""
        begun = self.during(0, until_us, joins=True)
        if not all(each.is_answered for each in begun):
            return None
        return max((_granted(each) for each in begun), default=-1)


@dataclass
class Generations:
    """The classic groups of one run and era."""

    _groups: dict[str, _Group] = field(default_factory=lambda: defaultdict(_Group))
    _removals: list[Call] = field(default_factory=list)

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a call; faults are found at the end."""
        if call.api == "JoinGroup":
            self._groups[call.request["group_id"]].joins.append(call)
        elif call.api in _OF_MEMBERS and call.is_answered:
            self._groups[call.request["group_id"]].calls.append(call)
        if call.api in _REMOVALS:
            self._removals.append(call)
        return iter(())

    def faults(self) -> Iterator[Fault]:
        """Yield the contradictions among all calls."""
        for group_id, group in self._groups.items():
            group.sort()
            for call, what in (*self._protocols(group), *_waiting(group), *self._refusals(group), *_departed(group)):
                yield Fault(
                    call.id, "generation-answer", what, group_id=group_id, member_id=call.request.get("member_id")
                )

    def _refusals(self, group: _Group) -> Iterator[tuple[Call, str]]:
        granted = {(each.response["member_id"], _granted(each)) for each in group.joins if each.is_accepted}
        for call in group.calls:
            member_id, generation = call.request.get("member_id"), _generation(call.request)
            is_member = _errors(call) == {"ILLEGAL_GENERATION"} and (member_id, generation) in granted
            if is_member and group.newest(call.end_us) == generation:
                yield call, f"generation {generation} is refused, and none is newer"
        for call in (*group.calls, *group.joins):
            if "UNKNOWN_MEMBER_ID" in _errors(call) and self._was_there(group, call):
                yield call, "a member is unknown that was known a second before"

    def _protocols(self, group: _Group) -> Iterator[tuple[Call, str]]:
        """Yield generations with two protocols; a deleted group starts over with generation 1."""
        deletions = [each for each in self._removals if each.api == "DeleteGroups"]
        chosen: dict[int, tuple[Call, str]] = {}
        for each in group.joins:
            name = each.response.get("protocol_name")
            if each.is_accepted and name:
                generation = _granted(each)
                before, other = chosen.setdefault(generation, (each, name))
                if may_be_deleted(before, each, deletions):
                    chosen[generation] = (each, name)
                elif other != name:
                    yield each, f"generation {generation} has the protocols {other} and {name}"

    def _was_there(self, group: _Group, call: Call) -> bool:
        """Return whether this connection just made a successful call as the member, which was not removed since."""
        ids = {each.get("member_id", "") for each in (call.request, *listed(call.request, "members"))} - {""}
        if len(ids) != 1 or call.request.get("group_instance_id"):
            return False
        proofs = [
            each
            for joins in (False, True)
            for each in group.during(call.start_us - _SOON_US, call.start_us, joins=joins)
            if _names(each) in ids and each.connection == call.connection and each.end_us <= call.start_us
            and _is_soon(each, call)
        ]  # fmt: skip
        return bool(proofs) and not any(
            each.end_us >= proofs[0].start_us and each.start_us <= call.end_us
            for each in self._removals
            if each is not call
        )


def _departed(group: _Group) -> Iterator[tuple[Call, str]]:
    """Yield successful requests of members that have left before, and never joined by this id again."""
    joined = {str(each.response.get("member_id")): each.end_us for each in group.joins if each.is_accepted}
    left: dict[str, int] = {}
    for call in group.calls:
        for member_id in _left(call):
            left.setdefault(member_id, call.end_us)
    for call in group.calls:
        for member_id in _left(call) if call.api == "LeaveGroup" else {_accepted_of(call)} & left.keys():
            if left[member_id] < call.start_us and joined.get(member_id, 0) <= left[member_id]:
                yield call, f"{call.api} of a member that has left"


def _left(call: Call) -> set[str]:
    """Return the ids of the members that a LeaveGroup has removed."""
    if call.api != "LeaveGroup" or not call.is_answered or call.response.get("error_code") != NONE:
        return set()
    alone = [call.request] if call.version < _SEVERAL_LEAVE else []
    several = alone or [one for one in listed(call.response, "members") if one.get("error_code") == NONE]
    return {str(each.get("member_id")) for each in several if each.get("member_id")}


def _accepted_of(call: Call) -> str:
    """Return the member whose request succeeded; empty for none."""
    is_success = call.is_accepted or (call.api == "Heartbeat" and call.error == "REBALANCE_IN_PROGRESS")
    return str(call.request.get("member_id") or "") if is_success and call.is_answered else ""


def _waiting(group: _Group) -> Iterator[tuple[Call, str]]:
    """Yield successful heartbeats during a rebalance: while a member waits in JoinGroup, the others must rejoin."""
    seen: set[int] = set()
    for join in group.joins:
        if not join.is_accepted or join.end_us - join.start_us <= 2 * _SOON_US:
            continue
        for beat in group.during(join.start_us + _SOON_US + 1, join.end_us - _SOON_US):
            is_one = beat.api == "Heartbeat" and beat.is_accepted and beat.broker == join.broker
            waits = beat.end_us + _SOON_US < join.end_us and _granted(join) > _generation(beat.request)
            if is_one and waits and beat.id not in seen:
                seen.add(beat.id)
                yield beat, "no rebalance, though another member is waiting in JoinGroup"


def _names(call: Call) -> str:
    """Return the member id whose membership a response proves; empty if none."""
    if call.api == "Heartbeat" and call.error in (None, "REBALANCE_IN_PROGRESS"):
        return str(call.request["member_id"])
    if call.api == "SyncGroup" and call.error is None:
        return str(call.request["member_id"])
    if call.api == "JoinGroup" and call.is_answered and call.error in (None, "MEMBER_ID_REQUIRED"):
        return str(call.response["member_id"])
    return ""


def _is_soon(before: Call, after: Call) -> bool:
    """Return whether one call came right after another, by both clocks."""
    return after.end_us - before.start_us < _SOON_US and after.at_ms - before.at_ms < _SOON_US // 1000


def _start_us(call: Call) -> int:
    return call.start_us


def _granted(join: Call) -> int:
    """Return the generation in a JoinGroup response; -1 if it has none."""
    return int(join.response.get("generation_id", -1))


def _generation(request: dict[str, Any]) -> int:
    return int(request.get("generation_id", request.get("generation_id_or_member_epoch", -1)))


def _errors(call: Call) -> set[str]:
    """Return all errors of a response, including those of partitions and members."""
    codes = {call.response.get("error_code", NONE)}
    for name in ("topics", "members"):
        for each in listed(call.response, name):
            codes.add(each.get("error_code", NONE))
            codes.update(part.get("error_code", NONE) for part in listed(each, "partitions"))
    return codes - {NONE}
