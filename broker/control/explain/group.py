"""`groups why`: explains the last refused request of a group's members, with the events that led to the refusal."""

from collections.abc import Callable, Mapping

from broker.control.event_text import nothing_refused, refused
from broker.control.explain.transaction import explanation, faults
from broker.control.groups import is_classic, known_group, no_group
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.settings.specification import cite
from broker.steering.timelines.group_events import LEAVE, NO_GENERATION, Causes, GroupEvent
from control_api.answers.common import Refusal
from control_api.times import local_time
from protocol.errors import ErrorCode

E = ErrorCode


@answers("groups why")
async def why(request: ControlRequest) -> Refusal:
    """Explain the last refusal of a request from a group's member."""
    name = request.names["group"]
    history = request.source.group_timelines.of(name)
    refusal = next((event for event in reversed(history.events) if event.error), None)
    if refusal is None:
        if not history.events and (request.source.own is None or not known_group(request, name)):
            raise no_group(request, name)
        return explanation(nothing_refused(f"the members of {name!r}", history.forgotten), history.forgotten)
    text = Refused(request, name, refusal).explain()
    return explanation(
        text, history.forgotten, error=refusal.error, at_ms=refusal.until_ms, rule=refusal.rule, source=refusal.source
    )


class Refused:
    """A refused request of a group member, and the events that caused the refusal."""

    def __init__(self, request: ControlRequest, name: str, refusal: GroupEvent) -> None:
        self._request, self._name, self._refusal = request, name, refusal
        self._causes = refusal.causes or Causes(None, None, None, None, None, complete=False)

    def explain(self) -> str:
        """Return the cause first, then the refused request."""
        refusal = self._refusal
        source = cite(refusal.rule, refusal.source)
        return f"{self.cause()} {refused(_request(refusal), refusal.until_ms, refusal.error, source, refusal.count)}"

    def cause(self) -> str:
        """Return the cause without the refused request."""
        refusal = self._refusal
        if refusal.fault is not None:
            return f"a fault: {faults(self._request, refusal.fault)}; the error did not come from the coordinator."
        return _EXPLAIN.get(ErrorCode[refusal.error or "NONE"], Refused.plainly)(self)

    def generation(self) -> str:
        """Explain ILLEGAL_GENERATION."""
        joined = self._causes.joined
        since = "" if joined is None else f" since {local_time(joined.at_ms)}, when all members had joined"
        number = self._refusal.request_generation
        sent = "no generation" if number == NO_GENERATION else f"generation {number}"
        return (
            f"wrong generation: the request has {sent}, the group is in generation {self._refusal.epoch_after}{since}."
        )

    def member(self) -> str:
        """Explain UNKNOWN_MEMBER_ID."""
        name, sign = self._refusal.member_id, self._causes.last_sign
        if sign is None and self._causes.complete:
            return f"not a member: {name!r} has never joined this group at this coordinator."
        if sign is None:
            return f"not a member: no request of {name!r} is in the log; it may have joined before the oldest event."
        if sign.what == LEAVE:
            return f"not a member: {name!r} left the group at {local_time(sign.at_ms)}, by {sign.request}."
        return (
            f"no longer a member: the last request of {name!r} was at {local_time(sign.at_ms)} ({sign.what}); since "
            f"then its session timed out, a rebalance completed without it, or it was removed."
        )

    def rebalancing(self) -> str:
        """Explain REBALANCE_IN_PROGRESS."""
        first_event, beginner = self._causes.begun, self._causes.beginner
        if first_event is None:
            return f"rebalance in progress: the group is in {self._refusal.state_after}, and its members must rejoin."
        by = "" if beginner is None else f", after {_request(beginner)}"
        return f"rebalance in progress: it began at {local_time(first_event.at_ms)}{by}."

    def instance(self) -> str:
        """Explain FENCED_INSTANCE_ID."""
        static, taken = self._refusal.instance_id, self._causes.taken
        by = "" if taken is None else f": at {local_time(taken.at_ms)} {_request(taken)} replaced this one"
        return f"another member has the group.instance.id {static!r}{by} (KIP-345)."

    def elsewhere(self) -> str:
        """Explain NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS."""
        loads = self._refusal.error == E.COORDINATOR_LOAD_IN_PROGRESS.name
        what = "was still loading the group" if loads else "is not the group's coordinator"
        return f"the coordinator: the request went to broker {self._refusal.broker}, which {what}."

    def protocol(self) -> str:
        """Explain INCONSISTENT_GROUP_PROTOCOL."""
        return (
            "the protocol: the member's protocol type is not the group's, or no assignor is supported by all members."
        )

    def member_epoch(self) -> str:
        """Explain FENCED_MEMBER_EPOCH and STALE_MEMBER_EPOCH (KIP-848)."""
        number = self._refusal.request_generation
        return (
            f"wrong member epoch: the request has {number}, but the member is in another epoch, "
            "or the request lists partitions that the member does not own. After FENCED_MEMBER_EPOCH a member abandons "
            "its partitions and rejoins; after STALE_MEMBER_EPOCH it retries with the epoch of its next heartbeat "
            "response."
        )

    def unreleased(self) -> str:
        """Explain UNRELEASED_INSTANCE_ID."""
        return f"the group.instance.id {self._refusal.instance_id!r} belongs to a member that has not left the group."

    def full(self) -> str:
        """Explain GROUP_MAX_SIZE_REACHED."""
        return "full: the group has as many members as group.max.size or group.consumer.max.size allows."

    def malformed(self) -> str:
        """Explain INVALID_REQUEST and UNSUPPORTED_ASSIGNOR."""
        if self._refusal.rule.startswith(_SHARE_SESSIONS):
            return "the request: a field is invalid, or it acknowledges offsets beyond the records in flight."
        return "the heartbeat: a field is missing or invalid."

    def not_acquired(self) -> str:
        """Explain INVALID_RECORD_STATE."""
        return (
            "the acknowledgement: the records are not acquired by this member; their acquisition lock may have timed "
            "out, or they were acknowledged before. The group's page lists the records in flight."
        )

    def no_session(self) -> str:
        """Explain SHARE_SESSION_NOT_FOUND and INVALID_SHARE_SESSION_EPOCH."""
        return (
            "the share session: the broker has none for this member, or expects another epoch. A session ends with its "
            "connection, and with a broker that restarts; each ShareFetch and ShareAcknowledge adds 1 to its epoch."
        )

    def plainly(self) -> str:
        """Describe any other error, with the group's state."""
        counter = "generation" if is_classic(self._request, self._name) else "group epoch"
        state = (
            f" in {self._refusal.state_after}, {counter} {self._refusal.epoch_after}"
            if self._refusal.state_after
            else ""
        )
        return f"refused: {self._refusal.error}{state}."


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
