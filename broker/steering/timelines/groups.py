"""The timeline of each group: its members' requests, its state changes, and its refusals with their rules.

The coordinator's runtime reports each state change with its reason, and each refusal with its rule (``Observer``);
the middleware adds the requests. Successful heartbeats and commits are not events; only each member's last one is
kept. Events are in memory only, within the limits of the event log; old rebalances are folded.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.coordination.group import rules
from broker.coordination.group.events import (
    ID_EXPIRED,
    MISSED_REBALANCE,
    MISSED_SYNC,
    NOT_REVOKED,
    OFFSETS_EXPIRED,
    SESSION_EXPIRED,
)
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.reasons import STEERING, Refusal, StateChange
from broker.coordination.runtime import State as Running
from broker.request.api import AnyHandler, ForField, Middleware
from broker.request.context import RequestContext
from broker.steering.timelines.event_log import LIMITS, EventLog
from broker.steering.timelines.events import origin_of
from broker.steering.timelines.group_events import (
    JOIN,
    LEAVE,
    MOST_PLACES,
    NO_GENERATION,
    SYNC,
    Folding,
    GroupEvent,
    GroupHistory,
    LastSign,
    causes_of,
    is_departure,
    is_retriable,
    is_unloading,
)
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.codec import first_error
from protocol.errors import ErrorCode, KafkaError
from protocol.items import items_of, response_level
from protocol.log_records.group import OffsetCommit
from protocol.paths import errors

if TYPE_CHECKING:
    from broker.coordination.group.group import Group
    from broker.coordination.group.machine import GroupMachine
    from broker.coordination.group.outcome_builder import GroupOutcome

K = TypeVar("K")
V = TypeVar("V")


class GroupTimelines:
    """The timelines of all groups of a cluster; observes its group machines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._log: EventLog[str, GroupEvent] = EventLog(Folding())
        # Bounded like the ids in the log; the least recently used entry is dropped.
        self._signs: OrderedDict[tuple[str, str], LastSign] = OrderedDict()  # group and member -> its last request
        # Group and member -> the event that removed it; the member is empty if its coordinator was unloaded.
        self._departures: OrderedDict[tuple[str, str], GroupEvent] = OrderedDict()
        self.expired: Counter[str] = Counter()
        """What ended by time alone since the start: members and offsets."""
        self._commits: OrderedDict[tuple[str, str, int], tuple[int, str | None]] = OrderedDict()
        # Requests being served: identity of the context, which observers get as the cause -> the refusal.
        self._refusals: dict[int, KafkaError | None] = {}

    def of(self, name: str) -> GroupHistory:
        """Return the requests and state changes of a group, oldest first."""
        return GroupHistory(self._log.of(name), self._log.forgotten(name))

    def ids(self) -> list[str]:
        """Return all groups with events in the log, those with the latest events last."""
        return self._log.ids()

    def refused(self) -> list[str]:
        """Return the groups that were refused, those with the latest refusals last."""
        return self._log.refused()

    def last_sign(self, name: str, member_id: str) -> LastSign | None:
        """Return the last successful request of a member, if it is still known."""
        return self._signs.get((name, member_id))

    def last_commit(self, name: str, topic: str, partition: int) -> tuple[int, str | None] | None:
        """Return when an offset was committed last and by which client (None: the control plane), if that is known."""
        return self._commits.get((name, topic, partition))

    def clear(self) -> None:
        """Remove all events."""
        self._log.clear()
        self._signs.clear()
        self._departures.clear()
        self._commits.clear()

    # --- the observer of the machines --------------------------------------------------------------------------------

    def on_applied(
        self,
        machine: "GroupMachine",  # noqa: ARG002
        outcome: "GroupOutcome",
        replaced: Sequence[None],  # noqa: ARG002
        cause: object | None,
    ) -> None:
        """Add the state changes of an outcome, and keep who has committed each offset last."""
        self.note_changes(outcome.changes)
        for record in outcome.records:
            if type(record) is OffsetCommit:
                client = cause.client_id if isinstance(cause, RequestContext) else None
                place = record.group_id, record.topic, record.partition
                _put(self._commits, place, (record.commit_timestamp_ms, client))

    def note_changes(self, changes: Sequence[StateChange]) -> None:
        """Add an event for each state change."""
        for change in changes:
            event = _event_of(change, self._clock.now_ms())
            self._log.note(change.name, event)
            self.expired["members"] += event.event in _TIMED_OUT
            self.expired["offsets"] += len(change.places) if change.reason is OFFSETS_EXPIRED else 0
            if is_departure(event) or is_unloading(event):
                _put(self._departures, (change.name, event.member_id), event)

    def on_refused(self, machine: "GroupMachine", error: KafkaError, cause: object | None) -> None:  # noqa: ARG002
        """Keep the refusal until the response is known: a fault may change the error that the client gets."""
        if id(cause) in self._refusals:
            self._refusals[id(cause)] = error

    # --- the middleware ----------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware | ForField]:
        """Return this middleware for each API that names groups: one in ``group_id``, or several."""
        of_members = dict.fromkeys(_RULES, ForField("group_id", self.watch))
        return {**of_members, **dict.fromkeys(_OF_SEVERAL_GROUPS, self.watch_several)}

    async def watch(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
        """Middleware, outermost: record the request with the response as sent, with the effect of faults."""
        name = request.group_id
        action = _action_of(request, ctx.api.key)
        if action is not None:
            self._log.note(name, self._event(request, ctx, action))
        self._refusals[id(ctx)] = None
        try:
            response = await handle(request, ctx)
        finally:
            refusal = self._refusals.pop(id(ctx)) or ctx.notes.refusal
        error = first_error(response)
        if error is None and ctx.api.key is ApiKey.SHARE_FETCH:
            error = next(errors(response), None)  # first_error does not read the acknowledgement's error field
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: every new member first receives its id.
            self._log.note(name, self._event(request, ctx, "was given its member id"))
        elif error is None:
            self._note_sign(request, ctx, action, response)
        else:
            self._note_refusal(request, response, ctx, error, refusal)
        return response

    async def watch_several(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
        """Middleware of APIs that name several groups: record what is refused of each."""
        response = await handle(request, ctx)
        if first_error(response) is not None:
            refused: dict[str, GroupEvent] = {}
            for item in items_of(response_level(ctx.api.key), response):
                if item.error and item.group and _names_group(request):
                    if item.group not in refused:
                        member = _listed(request, item.group)
                        event = self._event(request, ctx, "refused", name=item.group, member=member)
                        refused[item.group] = replace(event, error=item.error.name)
                    if isinstance(item.topic, str) and item.partition is not None:
                        event = refused[item.group]
                        if len(event.places) < MOST_PLACES:
                            event.places += ((item.topic, item.partition, -1),)
            for name, event in refused.items():
                self._note(name, event, ctx, ctx.notes.refusal)
        return response

    def _note_sign(self, request: Any, ctx: RequestContext, action: str | None, response: Any) -> None:
        # A member that joins without an id gets one in the response.
        member = getattr(_member(request), "member_id", "") or getattr(response, "member_id", "")
        if member:
            key = request.group_id, member
            now_ms, number = self._clock.now_ms(), ctx.connection.number
            _put(self._signs, key, LastSign(now_ms, action, ctx.api.key, ctx.version, ctx.client_id, number))

    def _note_refusal(
        self, request: Any, response: Any, ctx: RequestContext, error: ErrorCode, refusal: KafkaError | None
    ) -> None:
        name = request.group_id
        event = replace(self._event(request, ctx, "refused"), error=error.name)
        if ctx.api.key is ApiKey.LEAVE_GROUP:  # it may list several members; the refused one need not be the first
            refused = next((each for each in response.members if each.error_code is error), _member(request))
            event = replace(event, member_id=refused.member_id, instance_id=getattr(refused, "group_instance_id", None))
        self._note(name, event, ctx, refusal)

    def _note(self, name: str, event: GroupEvent, ctx: RequestContext, refusal: KafkaError | None) -> None:
        """Add a refusal with its rule or fault, and its causes."""
        if isinstance(refusal, Refusal):
            event = replace(event, rule=refusal.rule, source=refusal.source)
        if ctx.notes.refused_by is not None:  # the error comes from a fault, not from a rule of groups
            event = replace(event, fault=ctx.notes.refused_by, rule=STEERING, source="")
        sign = self._signs.get((name, event.member_id))
        departed = self._departures.get((name, event.member_id)) if event.member_id else None
        unloaded = self._departures.get((name, ""))
        if departed is None and unloaded is not None and sign is not None and sign.at_ms <= unloaded.at_ms:
            departed = unloaded
        known, forgotten = list(self._log.newest_first(name)), self._log.forgotten(name) != 0
        causes = causes_of(known, sign, departed, forgotten=forgotten)
        lasting = () if is_retriable(event) else causes.events()
        self._log.note(name, replace(event, causes=causes), lasting)

    def _event(
        self, request: Any, ctx: RequestContext, event: str, *, name: str | None = None, member: Any = None
    ) -> GroupEvent:
        member = _member(request) if member is None else member
        group, at_ms = _group(ctx, request.group_id if name is None else name), self._clock.now_ms()
        state, epoch = ("", NO_GENERATION) if group is None else (group.state_name, group.epoch)
        rule, source = _RULES.get(ctx.api.key) or _OF_SEVERAL_GROUPS[ctx.api.key]
        return GroupEvent(
            at_ms,
            event,
            state,
            state,
            epoch,
            epoch,
            getattr(member, "member_id", None) or "",
            getattr(member, "group_instance_id", getattr(member, "instance_id", None)),
            _generation(member) if hasattr(member, "member_epoch") else _generation(request),
            at_ms,
            rule=rule,
            source=source,
            **origin_of(ctx),
        )


def _put(known: OrderedDict[K, V], key: K, value: V) -> None:
    """Add an entry; beyond the limit, the least recently used one is dropped."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > LIMITS.ids:
        known.popitem(last=False)


def _event_of(change: StateChange, now_ms: int) -> GroupEvent:
    return GroupEvent(
        now_ms,
        change.reason.kind,
        change.state_before,
        change.state_after,
        change.epoch_before,
        change.epoch_after,
        rule=change.reason.rule,
        source=change.reason.source,
        until_ms=now_ms,
        member_id=change.member_id,
        instance_id=change.instance_id,
        client_id=change.client_id,
        detail=change.detail,
        places=change.places[:MOST_PLACES],
    )


def _names_group(request: Any) -> bool:
    """Return whether FindCoordinator's keys are groups; other requests have no keys."""
    return not getattr(request, "key_type", 0)


def _listed(request: Any, name: str) -> Any:
    """Return the entry of a group in OffsetFetch, which names the member; else the request, which names none."""
    entries = getattr(request, "groups", ())
    return next((each for each in entries if getattr(each, "group_id", None) == name), request)


def _member(request: Any) -> Any:
    """Return the fields of the request's member, or of the first one that LeaveGroup lists."""
    return next(iter(getattr(request, "members", ())), request)


def _action_of(request: Any, key: ApiKey) -> str | None:
    """Return the name of the event that a request is by itself: join, sync or leave; else ``None``."""
    if key not in _MODERN_HEARTBEATS:
        return _ACTIONS.get(key)
    if request.member_epoch > JOINING:
        return None
    return JOIN if request.member_epoch == JOINING else LEAVE


def _group(ctx: RequestContext, name: str) -> "Group | None":
    try:
        runtime = ctx.node.group_coordinator(name)
    except KafkaError:
        return None
    return runtime.machine.groups.get(name) if runtime.state is Running.ACTIVE else None


def _generation(request: Any) -> int:
    """Return the generation or member epoch in a request; -1 if it has none."""
    names = ("generation_id", "generation_id_or_member_epoch", "member_epoch")
    return next((getattr(request, name) for name in names if hasattr(request, name)), NO_GENERATION)


_TIMED_OUT: Final = frozenset(
    reason.kind for reason in (SESSION_EXPIRED, MISSED_REBALANCE, MISSED_SYNC, NOT_REVOKED, ID_EXPIRED)
)
_MODERN_HEARTBEATS: Final = frozenset(
    {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT}
)
_ACTIONS: Mapping[ApiKey, str] = {ApiKey.JOIN_GROUP: JOIN, ApiKey.SYNC_GROUP: SYNC, ApiKey.LEAVE_GROUP: LEAVE}
_RULES: Mapping[ApiKey, rules.Rule] = {
    ApiKey.JOIN_GROUP: rules.JOIN,
    ApiKey.SYNC_GROUP: rules.SYNC,
    ApiKey.HEARTBEAT: rules.HEARTBEAT,
    ApiKey.LEAVE_GROUP: rules.LEAVE,
    ApiKey.OFFSET_COMMIT: rules.COMMIT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: rules.CONSUMER_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT: rules.SHARE_HEARTBEAT,
    ApiKey.SHARE_FETCH: rules.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE: rules.SHARE_ACKNOWLEDGE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: rules.STREAMS_HEARTBEAT,
    ApiKey.TXN_OFFSET_COMMIT: rules.COMMIT_PENDING,
    ApiKey.OFFSET_DELETE: rules.OFFSET_DELETE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: rules.SHARE_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: rules.SHARE_OFFSETS,
}
"""API -> its section of the specification, for events without a rule from the machine."""
_OF_SEVERAL_GROUPS: Mapping[ApiKey, rules.Rule] = {
    ApiKey.OFFSET_FETCH: rules.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR: rules.FIND_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS: rules.DESCRIBE,
    ApiKey.DELETE_GROUPS: rules.DESCRIBE,
    ApiKey.CONSUMER_GROUP_DESCRIBE: rules.DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE: rules.DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE: rules.STREAMS_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: rules.SHARE_OFFSETS,
}
"""APIs that name several groups -> their sections."""
