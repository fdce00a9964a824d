"""`groups why`: explains the last refusal, who is gone and why, and what the members wait for now."""

from collections.abc import Callable, Iterator, Mapping

from broker.control.coordinators import group_coordinator
from broker.control.event_text import nothing_refused, refused
from broker.control.explain.answers import explanation, faults
from broker.control.explain.group_state import GroupState, departure, happened
from broker.control.groups import is_classic, known_group, no_group
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.coordination.coordinators import GROUP_TOPIC
from broker.settings.specification import cite
from broker.steering.journal.mentioned import few
from broker.steering.timelines.group_events import LEAVE, NO_GENERATION, Causes, GroupEvent
from control_api.answers.common import Refusal
from control_api.times import local_time
from protocol.errors import ErrorCode

E = ErrorCode


@answers("groups why")
async def why(request: ControlRequest) -> Refusal:
    """Explain the last refusal of a request about a group, the departures since, and what its members wait for."""
    name = request.names["group"]
    history = request.source.group_timelines.of(name)
    refusal = next((event for event in reversed(history.events) if event.error), None)
    if refusal is None:
        if not history.events and (request.source.own is None or not known_group(request, name)):
            raise no_group(request, name)
        nothing = nothing_refused(f"group {name!r}", history.forgotten)
        return explanation(nothing, history.forgotten, also=tuple(_besides(request, name, 0)))
    return explanation(
        Refused(request, name, refusal).explain(),
        history.forgotten,
        error=refusal.error,
        at_ms=refusal.until_ms,
        rule=refusal.rule,
        source=refusal.source,
        also=tuple(_besides(request, name, refusal.until_ms + 1)),
    )


def _besides(request: ControlRequest, name: str, since_ms: int) -> Iterator[str]:
    """Yield the departures since the refusal, and the group's present state."""
    for sentence in happened(request.source, name, since_ms):
        yield sentence.text
    coordinator = None if request.source.own is None else group_coordinator(request.cluster, name)
    group = None if coordinator is None else coordinator[1].machine.groups.get(name)
    if coordinator is not None and group is not None:
        for sentence in GroupState(request, group, coordinator[1]).sentences():
            yield sentence.text


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
        return EXPLAINED.get(ErrorCode[refusal.error or "NONE"], Refused.plainly)(self)

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
        if not name:
            return "not a member: the request names none, as a consumer does that has left the group, or never joined."
        if sign is None and self._causes.complete:
            return f"not a member: {name!r} has never joined this group at this coordinator."
        if sign is None:
            return f"not a member: no request of {name!r} is in the log; it may have joined before the oldest event."
        if sign.what == LEAVE:
            return f"not a member: {name!r} left the group at {local_time(sign.at_ms)}, by {sign.request}."
        departed = self._causes.departed
        last = f"its last request was {sign.request} at {local_time(sign.at_ms)}"
        if departed is None:
            return f"no longer a member: {last}; the event that removed {name!r} is no longer in the log."
        return f"no longer a member: {departure(departed)}; {last}."

    def rebalancing(self) -> str:
        """Explain REBALANCE_IN_PROGRESS."""
        first_event, beginner = self._causes.begun, self._causes.beginner
        if first_event is None:
            return f"rebalance in progress: the group is in {self._refusal.state_after}, and its members must rejoin."
        by = "" if beginner is None else f", after {_request(beginner)}"
        return f"rebalance in progress: it began at {local_time(first_event.at_ms)}{by}."

    def instance(self) -> str:
        """Explain FENCED_INSTANCE_ID."""
        static, departed = self._refusal.instance_id, self._causes.departed
        by = "" if departed is None else f": {departure(departed)}"
        return f"another member has the group.instance.id {static!r}{by} (KIP-345)."

    def elsewhere(self) -> str:
        """Explain NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS."""
        broker = f"the coordinator: the request went to broker {self._refusal.broker}"
        if self._refusal.error == E.COORDINATOR_LOAD_IN_PROGRESS.name:
            return f"{broker}, which was still loading the group."
        if self._request.source.own is None:
            return f"{broker}, which is not the group's coordinator."
        coordinator = group_coordinator(self._request.cluster, self._name)
        if coordinator is not None:
            return (
                f"{broker}, which was not the group's coordinator; broker {coordinator[0].id} is the coordinator now."
            )
        if GROUP_TOPIC not in self._request.cluster.image.topics:
            return f"{broker}, but no group has a coordinator before FindCoordinator has created {GROUP_TOPIC}."
        return f"{broker}, but the group's partition of {GROUP_TOPIC} has no leader now."

    def pending(self) -> str:
        """Explain UNSTABLE_OFFSET_COMMIT."""
        places = few(list(self._refusal.partitions)) or "a partition"
        return (
            f"pending offsets: the committed offset of {places} was in an open transaction, and OffsetFetch of stable "
            "offsets waits for its end (KIP-447)."
        )

    def of_transaction(self) -> str:
        """Explain the errors of a producer that TxnOffsetCommit has."""
        return f"the transaction: {self._refusal.error}; `understudy ctl transactions why` explains its producer."

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
        departed = self._causes.departed
        removed = "" if departed is None else f"; {departure(departed)}"
        return f"full: the group has as many members as group.max.size or group.consumer.max.size allows{removed}."

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
        places = few(list(self._refusal.partitions))
        of = f" for {places}" if places else ""
        meaning = MEANINGS.get(ErrorCode[self._refusal.error or "NONE"])
        return f"refused: {meaning}{of}." if meaning else f"refused: {self._refusal.error}{of}{state}."


_SHARE_SESSIONS = ("groups D.5", "groups D.6")


def _request(event: GroupEvent) -> str:
    member = f" as {event.member_id!r}" if event.member_id else ""
    return f"{event.api} v{event.version} of client `{event.client_id}` (connection {event.connection}){member}"


MEANINGS: Mapping[ErrorCode, str] = {
    E.GROUP_AUTHORIZATION_FAILED: "no ACL allows the client's principal to use the group",
    E.TOPIC_AUTHORIZATION_FAILED: "no ACL allows the client's principal to use a topic of the request",
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "no ACL allows the client's principal to use the transactional id",
    E.INVALID_GROUP_ID: "the group id is empty",
    E.INVALID_SESSION_TIMEOUT: "session.timeout.ms is outside group.min.session.timeout.ms and "
    "group.max.session.timeout.ms of the broker",
    E.GROUP_ID_NOT_FOUND: "the coordinator has no group with this id, or one of another type",
    E.NON_EMPTY_GROUP: "the group still has members",
    E.GROUP_SUBSCRIBED_TO_TOPIC: "a member of the group subscribes to the topic",
    E.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition does not exist",
    E.UNKNOWN_TOPIC_ID: "no topic has this id: it was deleted, and perhaps created again",
    E.OFFSET_METADATA_TOO_LARGE: "the metadata of the offset is longer than offset.metadata.max.bytes",
    E.UNSUPPORTED_VERSION: "the group protocol is switched off, or the member uses an API version too old for it",
    E.INVALID_REGULAR_EXPRESSION: "the regular expression of the subscription is invalid",
    E.STREAMS_INVALID_TOPOLOGY: "the topology of the streams application is invalid",
    E.STREAMS_INVALID_TOPOLOGY_EPOCH: "the topology epoch of the streams application is invalid",
    E.STREAMS_TOPOLOGY_FENCED: "the group has a newer topology than the member",
    E.NOT_LEADER_OR_FOLLOWER: "the broker does not lead the share partition; the client looks for the leader",
    E.FENCED_STATE_EPOCH: "the state of the share partition has a newer state epoch",
    E.SHARE_SESSION_LIMIT_REACHED: "the broker has as many share sessions as group.share.max.share.sessions allows",
    E.REQUEST_TIMED_OUT: "the coordinator could not write its records in time, as too few replicas are in sync",
    E.KAFKA_STORAGE_ERROR: "the log directory of the coordinator's broker is offline",
}
"""The meaning of errors whose cause is in the request, or in a setting; docs/troubleshooting.md lists them."""


EXPLAINED: Mapping[ErrorCode, Callable[[Refused], str]] = {
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
    E.UNSTABLE_OFFSET_COMMIT: Refused.pending,
    E.INVALID_PRODUCER_EPOCH: Refused.of_transaction,
    E.PRODUCER_FENCED: Refused.of_transaction,
    E.INVALID_PRODUCER_ID_MAPPING: Refused.of_transaction,
    E.INVALID_TXN_STATE: Refused.of_transaction,
    E.CONCURRENT_TRANSACTIONS: Refused.of_transaction,
    E.TRANSACTION_ABORTABLE: Refused.of_transaction,
}
