"""Refusals of groups in words: what was refused, and what made it so."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.control.asked import Asked
from broker.control.groups import known_group, no_group, watched_group
from broker.control.sentences import clock_time
from broker.middleware.group_timeline import NO_GENERATION, GroupEvent
from protocol.errors import ErrorCode

E = ErrorCode


async def why(asked: Asked) -> dict[str, Any]:
    """The last refusal of a group's member told in words."""
    name = asked.names["group"]
    events = asked.cluster.group_timelines.of(name, watched_group(asked, name))
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    if last is None:
        if not events and not known_group(asked, name):
            raise no_group(asked, name)
        return {"why": f"nothing was refused to the members of {name!r} yet", "error": None, "at_ms": None, "rule": ""}
    refused = events[last]
    return {
        "why": Refused(asked, events[:last], refused).in_words(),
        "error": refused.error,
        "at_ms": refused.at_ms,
        "rule": refused.rule,
    }


class Refused:
    """A refusal, and the events before it."""

    def __init__(self, asked: Asked, before: Sequence[GroupEvent], refused: GroupEvent) -> None:
        self._asked, self._before, self._it = asked, before, refused

    def in_words(self) -> str:
        """The cause first, then what was refused."""
        it = self._it
        told = f"Refused was {_request(it)}, at {clock_time(it.at_ms)}, with {it.error} ({it.rule})."
        if it.fault is not None:
            return f"a fault: fault {it.fault}; nothing of the group decided that. {told}"
        return f"{_EXPLAIN.get(ErrorCode[it.error or 'NONE'], Refused.plainly)(self)} {told}"

    def generation(self) -> str:
        """ILLEGAL_GENERATION."""
        moved = next((e for e in reversed(self._before) if e.event == "everybody has joined"), None)
        since = "" if moved is None else f", since {clock_time(moved.at_ms)}, when everybody had joined anew"
        said = "no generation" if self._it.said == NO_GENERATION else f"generation {self._it.said}"
        return f"another generation: the request says {said}, the group is in generation {self._it.epoch_after}{since}."

    def member(self) -> str:
        """UNKNOWN_MEMBER_ID."""
        name = self._it.member_id
        mine = [event for event in self._before if event.member_id == name and event.error is None and name]
        left = next((event for event in reversed(mine) if event.event == "asked to leave"), None)
        if left is not None:
            return f"not a member: {name!r} left at {clock_time(left.at_ms)}, by {_request(left)}."
        if mine:
            last = mine[-1]
            return (
                f"not a member any more: {name!r} was last heard of at {clock_time(last.at_ms)} ({last.event}); "
                f"its session timed out, or a rebalance ended without it, or it was removed; groups A.10."
            )
        return f"not a member: {name!r} has never joined this group at this coordinator."

    def rebalancing(self) -> str:
        """REBALANCE_IN_PROGRESS."""
        begun = next((at for at in reversed(range(len(self._before))) if self._before[at].event == _BEGINS), None)
        if begun is None:
            return f"a rebalance: the group is in {self._it.state_after}, members have to join anew."
        cause = next(
            (e for e in reversed(self._before[:begun]) if e.event in ("asked to join", "asked to leave")), None
        )
        by = "" if cause is None else f"; before it, {_request(cause)}"
        return f"a rebalance: it began at {clock_time(self._before[begun].at_ms)}{by}; groups A.5."

    def instance(self) -> str:
        """FENCED_INSTANCE_ID."""
        static = self._it.instance_id
        taken = next((e for e in reversed(self._before) if static and e.instance_id == static and not e.error
                      and e.event == "asked to join" and e.connection != self._it.connection), None)  # fmt: skip
        by = "" if taken is None else f": at {clock_time(taken.at_ms)} {_request(taken)} took it"
        return f"another member has the instance id {static!r}{by}; KIP-345."

    def elsewhere(self) -> str:
        """NOT_COORDINATOR and its like."""
        loads = self._it.error == E.COORDINATOR_LOAD_IN_PROGRESS.name
        what = "was still loading the group" if loads else "does not coordinate the group"
        return f"the coordinator: broker {self._it.broker} was asked, which {what}."

    def protocol(self) -> str:
        """INCONSISTENT_GROUP_PROTOCOL."""
        return "the protocol: it is not of the group's type, or offers no assignor that all members know; groups A.4."

    def member_epoch(self) -> str:
        """FENCED_MEMBER_EPOCH and STALE_MEMBER_EPOCH."""
        return (
            f"another epoch: the request says {self._it.said}, and the member is in another one, or says that it has "
            "what it has not; it gives up its partitions and joins anew; groups C.4 H5."
        )

    def unreleased(self) -> str:
        """UNRELEASED_INSTANCE_ID."""
        return f"the instance id {self._it.instance_id!r} belongs to a member that has not left; groups C.4 H4."

    def full(self) -> str:
        """GROUP_MAX_SIZE_REACHED."""
        return "no room: the group has as many members as group.max.size or group.consumer.max.size lets it have."

    def malformed(self) -> str:
        """INVALID_REQUEST and UNSUPPORTED_ASSIGNOR."""
        return "what the heartbeat says: a field is missing or wrong, whatever the group is; groups C.2."

    def plainly(self) -> str:
        """Everything else."""
        state = f" in {self._it.state_after}, generation {self._it.epoch_after}" if self._it.state_after else ""
        return f"refused: {self._it.error}{state}."


def _request(event: GroupEvent) -> str:
    member = f" as {event.member_id!r}" if event.member_id else ""
    return f"{event.api} v{event.version} of client `{event.client_id}` (connection {event.connection}){member}"


_BEGINS = "a rebalance begins"
_EXPLAIN: Mapping[ErrorCode, Callable[[Refused], str]] = {
    E.ILLEGAL_GENERATION: Refused.generation,
    E.UNKNOWN_MEMBER_ID: Refused.member,
    E.REBALANCE_IN_PROGRESS: Refused.rebalancing,
    E.FENCED_INSTANCE_ID: Refused.instance,
    E.NOT_COORDINATOR: Refused.elsewhere,
    E.COORDINATOR_NOT_AVAILABLE: Refused.elsewhere,
    E.COORDINATOR_LOAD_IN_PROGRESS: Refused.elsewhere,
    E.INCONSISTENT_GROUP_PROTOCOL: Refused.protocol,
    E.FENCED_MEMBER_EPOCH: Refused.member_epoch,
    E.STALE_MEMBER_EPOCH: Refused.member_epoch,
    E.UNRELEASED_INSTANCE_ID: Refused.unreleased,
    E.GROUP_MAX_SIZE_REACHED: Refused.full,
    E.INVALID_REQUEST: Refused.malformed,
    E.UNSUPPORTED_ASSIGNOR: Refused.malformed,
}
