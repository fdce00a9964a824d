"""The timeline of each group: its members' requests, its state changes, and its refusals with their rules.

The coordinator's runtime reports each state change with its reason, and each refusal with its rule (``Observer``);
the middleware adds the requests. Successful heartbeats and commits are not events; only each member's last one is
kept. Events are in memory only, within the limits of the event log; old rebalances are folded.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker.coordination.group import rules
from broker.coordination.group.group import Group
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.outcome_builder import GroupOutcome
from broker.coordination.reasons import Refusal, StateChange
from broker.coordination.runtime import State as Running
from broker.request.api import AnyHandler, ForField
from broker.request.context import RequestContext
from broker.steering.timelines.event_log import LIMITS, EventLog
from broker.steering.timelines.events import origin_of
from broker.steering.timelines.group_events import (
    JOIN,
    LEAVE,
    NO_GENERATION,
    SYNC,
    Folding,
    GroupEvent,
    GroupHistory,
    LastSign,
    causes_of,
    is_retriable,
)
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.codec import first_error
from protocol.errors import ErrorCode, KafkaError
from protocol.paths import errors


class GroupTimelines:
    """The timelines of all groups of a cluster; observes its group machines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._log: EventLog[str, GroupEvent] = EventLog(Folding())
        # Bounded like the ids in the log; the least recently used entry is dropped.
        self._signs: OrderedDict[tuple[str, str], LastSign] = OrderedDict()  # group and member -> its last request
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

    def clear(self) -> None:
        """Remove all events."""
        self._log.clear()
        self._signs.clear()

    # --- the observer of the machines --------------------------------------------------------------------------------

    def on_applied(
        self,
        machine: GroupMachine,  # noqa: ARG002
        outcome: GroupOutcome,
        replaced: Sequence[None],  # noqa: ARG002
        cause: object | None,  # noqa: ARG002
    ) -> None:
        """Add the state changes of an outcome."""
        self.note_changes(outcome.changes)

    def note_changes(self, changes: Sequence[StateChange]) -> None:
        """Add an event for each state change."""
        for change in changes:
            self._log.note(change.name, _event_of(change, self._clock.now_ms()))

    def on_refused(self, machine: GroupMachine, error: KafkaError, cause: object | None) -> None:  # noqa: ARG002
        """Keep the refusal until the response is known: a fault may change the error that the client gets."""
        if id(cause) in self._refusals:
            self._refusals[id(cause)] = error

    # --- the middleware ----------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, ForField]:
        """Return this middleware for each API that members call."""
        return dict.fromkeys(_RULES, ForField("group_id", self.watch))

    async def watch(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
        """Middleware, outermost: record the request with the response as sent, with the effect of faults."""
        name = request.group_id
        asked = _asked(request, ctx.api.key)
        if asked is not None:
            self._log.note(name, self._event(request, ctx, asked))
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
            self._note_sign(request, ctx, asked, response)
        else:
            self._note_refusal(request, response, ctx, error, refusal)
        return response

    def _note_sign(self, request: Any, ctx: RequestContext, asked: str | None, response: Any) -> None:
        # A member that joins without an id gets one in the response.
        member = _member(request).member_id or getattr(response, "member_id", "")
        if member:
            key = request.group_id, member
            self._signs[key] = LastSign(self._clock.now_ms(), asked, ctx.api.key, ctx.version, ctx.client_id)
            self._signs.move_to_end(key)
            if len(self._signs) > LIMITS.ids:
                self._signs.popitem(last=False)

    def _note_refusal(
        self, request: Any, response: Any, ctx: RequestContext, error: ErrorCode, refusal: KafkaError | None
    ) -> None:
        name = request.group_id
        event = replace(self._event(request, ctx, "refused"), error=error.name)
        if ctx.api.key is ApiKey.LEAVE_GROUP:  # it may list several members; the refused one need not be the first
            refused = next((each for each in response.members if each.error_code is error), _member(request))
            event = replace(event, member_id=refused.member_id, instance_id=getattr(refused, "group_instance_id", None))
        if isinstance(refusal, Refusal):
            event = replace(event, rule=refusal.rule, source=refusal.source)
        if ctx.notes.refused_by is not None:  # the error comes from a fault, not from a rule of groups
            event = replace(event, fault=ctx.notes.refused_by, rule="", source="")
        sign = self._signs.get((name, event.member_id))
        causes = causes_of(event, list(self._log.newest_first(name)), sign, forgotten=self._log.forgotten(name) != 0)
        lasting = () if is_retriable(event) else causes.events()
        self._log.note(name, replace(event, causes=causes), lasting)

    def _event(self, request: Any, ctx: RequestContext, event: str) -> GroupEvent:
        group, at_ms, member = _group(ctx, request.group_id), self._clock.now_ms(), _member(request)
        state, epoch = ("", NO_GENERATION) if group is None else (group.state_name, group.epoch)
        rule, source = _RULES[ctx.api.key]
        return GroupEvent(
            at_ms,
            event,
            state,
            state,
            epoch,
            epoch,
            member.member_id,
            getattr(member, "group_instance_id", getattr(member, "instance_id", None)),
            _generation(request),
            at_ms,
            rule=rule,
            source=source,
            **origin_of(ctx),
        )


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
    )


def _member(request: Any) -> Any:
    """Return the fields of the request's member, or of the first one that LeaveGroup lists."""
    return next(iter(getattr(request, "members", ())), request)


def _asked(request: Any, key: ApiKey) -> str | None:
    """Return the name of the event that a request is by itself: join, sync or leave; else ``None``."""
    if key not in _MODERN_HEARTBEATS:
        return _ASKED.get(key)
    if request.member_epoch > JOINING:
        return None
    return JOIN if request.member_epoch == JOINING else LEAVE


def _group(ctx: RequestContext, name: str) -> Group | None:
    try:
        runtime = ctx.node.group_coordinator(name)
    except KafkaError:
        return None
    return runtime.machine.groups.get(name) if runtime.state is Running.ACTIVE else None


def _generation(request: Any) -> int:
    """Return the generation or member epoch in a request; -1 if it has none."""
    names = ("generation_id", "generation_id_or_member_epoch", "member_epoch")
    return next((getattr(request, name) for name in names if hasattr(request, name)), NO_GENERATION)


_MODERN_HEARTBEATS = frozenset(
    {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT}
)
_ASKED: Mapping[ApiKey, str] = {ApiKey.JOIN_GROUP: JOIN, ApiKey.SYNC_GROUP: SYNC, ApiKey.LEAVE_GROUP: LEAVE}
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
}
"""API -> its section of the specification, for events without a rule from the machine."""
