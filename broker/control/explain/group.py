"""Explanation of the last refusal of a group's member: the request, and the events that led to it."""

from collections.abc import Callable, Mapping

from broker.control.event_text import nothing_refused, refused
from broker.control.explain.transaction import explanation, faults
from broker.control.groups import is_classic, known_group, no_group
from broker.control.request import Asked
from broker.control.verbs import answers
from broker.specification import cite
from broker.timelines.group_events import LEAVE, NO_GENERATION, Causes, GroupEvent
from protocol.errors import ErrorCode
from understudy.control_api.answers.common import Refusal
from understudy.control_api.times import local_time

E = ErrorCode


@answers("groups why")
async def why(asked: Asked) -> Refusal:
    """Explain the last refusal of a group's member."""
    name = asked.names["group"]
    history = asked.source.group_timelines.of(name)
    it = next((event for event in reversed(history.events) if event.error), None)
    if it is None:
        if not history.events and (asked.source.own is None or not known_group(asked, name)):
            raise no_group(asked, name)
        return explanation(nothing_refused(f"the members of {name!r}", history.forgotten), history.forgotten)
    text = Refused(asked, name, it).explain()
    return explanation(text, history.forgotten, error=it.error, at_ms=it.until_ms, rule=it.rule, source=it.source)


class Refused:
    """A refusal, and its causes."""

    def __init__(self, asked: Asked, name: str, it: GroupEvent) -> None:
        self._asked, self._name, self._it = asked, name, it
        self._causes = it.causes or Causes(None, None, None, None, None, complete=False)

    def explain(self) -> str:
        """Return the cause first, then the refused request."""
        it = self._it
        return f"{self.cause()} {refused(_request(it), it.until_ms, it.error, cite(it.rule, it.source), it.count)}"

    def cause(self) -> str:
        """The cause alone."""
        it = self._it
        if it.fault is not None:
            return f"a fault: {faults(self._asked, it.fault)}; the coordinator did not decide that."
        return _EXPLAIN.get(ErrorCode[it.error or "NONE"], Refused.plainly)(self)

    def generation(self) -> str:
        """ILLEGAL_GENERATION."""
        joined = self._causes.joined
        since = "" if joined is None else f", since {local_time(joined.at_ms)}, when its members had joined"
        number = self._it.request_generation
        sent = "no generation" if number == NO_GENERATION else f"generation {number}"
        return f"another generation: the request has {sent}, the group is in generation {self._it.epoch_after}{since}."

    def member(self) -> str:
        """UNKNOWN_MEMBER_ID."""
        name, sign = self._it.member_id, self._causes.last_sign
        if sign is None and self._causes.complete:
            return f"not a member: {name!r} has never joined this group at this coordinator."
        if sign is None:
            return f"not a member: no request of {name!r} is in the log; it may have joined before the oldest event."
        if sign.what == LEAVE:
            return f"not a member: {name!r} left at {local_time(sign.at_ms)}, by {sign.request}."
        return (
            f"not a member any more: {name!r} was last heard of at {local_time(sign.at_ms)} ({sign.what}); "
            f"its session timed out, or a rebalance ended without it, or it was removed."
        )

    def rebalancing(self) -> str:
        """REBALANCE_IN_PROGRESS."""
        begun, beginner = self._causes.begun, self._causes.beginner
        if begun is None:
            return f"a rebalance: the group is in {self._it.state_after}, and members have to join again."
        by = "" if beginner is None else f"; before it, {_request(beginner)}"
        return f"a rebalance: it began at {local_time(begun.at_ms)}{by}."

    def instance(self) -> str:
        """FENCED_INSTANCE_ID."""
        static, taken = self._it.instance_id, self._causes.taken
        by = "" if taken is None else f": at {local_time(taken.at_ms)} {_request(taken)} took it"
        return f"another member has the instance id {static!r}{by}; KIP-345."

    def elsewhere(self) -> str:
        """NOT_COORDINATOR and its like."""
        loads = self._it.error == E.COORDINATOR_LOAD_IN_PROGRESS.name
        what = "was still loading the group" if loads else "does not coordinate the group"
        return f"the coordinator: broker {self._it.broker} was asked, which {what}."

    def protocol(self) -> str:
        """INCONSISTENT_GROUP_PROTOCOL."""
        return "the protocol: it is not of the group's type, or offers no assignor that all members know."

    def member_epoch(self) -> str:
        """FENCED_MEMBER_EPOCH and STALE_MEMBER_EPOCH."""
        return (
            f"another epoch: the request has {self._it.request_generation}, but the member is in another one, or the "
            "request names partitions that it does not own; it must give up its partitions and join again."
        )

    def unreleased(self) -> str:
        """UNRELEASED_INSTANCE_ID."""
        return f"the instance id {self._it.instance_id!r} belongs to a member that has not left."

    def full(self) -> str:
        """GROUP_MAX_SIZE_REACHED."""
        return "full: the group has as many members as group.max.size or group.consumer.max.size allows."

    def malformed(self) -> str:
        """INVALID_REQUEST and UNSUPPORTED_ASSIGNOR."""
        if self._it.rule.startswith(_SHARE_SESSIONS):
            return "the request: a field is wrong, or offsets lie beyond the records in flight."
        return "the heartbeat: a field is missing or wrong."

    def not_acquired(self) -> str:
        """INVALID_RECORD_STATE."""
        return (
            "the acknowledgement: another member has these records, or none has; their lock may have ended, or they "
            "were acknowledged before. The group's page lists the records in flight."
        )

    def no_session(self) -> str:
        """SHARE_SESSION_NOT_FOUND and INVALID_SHARE_SESSION_EPOCH."""
        return (
            "the share session: the broker has none of the member, or expects another epoch. A session ends with its "
            "connection, and with a broker that restarts; each ShareFetch and ShareAcknowledge adds 1 to its epoch."
        )

    def plainly(self) -> str:
        """Everything else."""
        counter = "generation" if is_classic(self._asked, self._name) else "group epoch"
        state = f" in {self._it.state_after}, {counter} {self._it.epoch_after}" if self._it.state_after else ""
        return f"refused: {self._it.error}{state}."


_SHARE_SESSIONS = ("groups D.5", "groups D.6")


def _request(event: GroupEvent) -> str:
    member = f" as {event.member_id!r}" if event.member_id else ""
    return f"{event.api} v{event.version} of client `{event.client_id}` (connection {event.connection}){member}"


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
    E.INVALID_RECORD_STATE: Refused.not_acquired,
    E.SHARE_SESSION_NOT_FOUND: Refused.no_session,
    E.INVALID_SHARE_SESSION_EPOCH: Refused.no_session,
    E.UNSUPPORTED_ASSIGNOR: Refused.malformed,
}
