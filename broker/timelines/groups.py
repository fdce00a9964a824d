"""The timeline of each group: its members' requests, its state changes, and each refusal with the rule behind it.

The coordinator's runtime reports each state change with the reason that the machine gives, and the rule of a refusal
(``Observer``); the middleware adds the requests. Successful heartbeats and commits are not events; only the time of
each member's last one is kept. Events are in memory only, within the limits of the event log; old rebalances are
folded.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker.api import AnyHandler, Middleware
from broker.clock import Clock
from broker.context import RequestContext
from broker.coordination.group import rules
from broker.coordination.group.group import Group
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.outcome_builder import GroupOutcome
from broker.coordination.reasons import Refusal, StateChange
from broker.coordination.runtime import State as Running
from broker.timelines.event_log import LIMITS, EventLog
from broker.timelines.events import origin_of
from broker.timelines.group_events import (
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
from protocol.apis import ApiKey
from protocol.error_codes import first_error
from protocol.errors import ErrorCode, KafkaError
from protocol.paths import errors


class GroupTimelines:
    """The events of all groups of a cluster; the observer of its group machines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._log: EventLog[str, GroupEvent] = EventLog(Folding())
        # At most as many as the log remembers ids; the least recently used one is dropped.
        self._signs: OrderedDict[tuple[str, str], LastSign] = OrderedDict()  # group and member -> its last request
        # The requests that are being served, by the identity of their context, which is the cause -> their refusal.
        self._refusals: dict[int, KafkaError | None] = {}

    def of(self, name: str) -> GroupHistory:
        """The requests and the state changes of the group, oldest first."""
        return GroupHistory(self._log.of(name), self._log.forgotten(name))

    def ids(self) -> list[str]:
        """All groups of which events are kept, those with the latest ones last."""
        return self._log.ids()

    def clear(self) -> None:
        """Forget everything."""
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
        """A group has changed its state, perhaps several times."""
        self.note_changes(outcome.changes)

    def note_changes(self, changes: Sequence[StateChange]) -> None:
        """Groups have changed their state."""
        for change in changes:
            self._log.note(change.name, _event_of(change, self._clock.now_ms()))

    def on_refused(self, machine: GroupMachine, error: KafkaError, cause: object | None) -> None:  # noqa: ARG002
        """A refusal is noted when the request is answered: the answer that goes out counts."""
        if id(cause) in self._refusals:
            self._refusals[id(cause)] = error

    # --- the middleware ----------------------------------------------------------------------------------------------

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware]:
        """The watch over each API that members use."""
        return dict.fromkeys(_RULES, self.watch)

    def watch(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Awaitable[Any]:
        """Watch a request. The outermost middleware: the answer that goes out counts, also a fault's."""
        return self._watch(request, ctx, handle) if request.group_id else handle(request, ctx)

    async def _watch(self, request: Any, ctx: RequestContext, handle: AnyHandler) -> Any:
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
            error = next(errors(response), None)  # an acknowledgement's is in a field that no counter counts
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: every new member first receives its id.
            self._log.note(name, self._event(request, ctx, "was given its member id"))
        elif error is None:
            self._note_sign(request, ctx, asked, response)
        else:
            self._note_refusal(request, response, ctx, error, refusal)
        return response

    def _note_sign(self, request: Any, ctx: RequestContext, asked: str | None, response: Any) -> None:
        # A member that joins without an id gets it in the answer.
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
        if ctx.api.key is ApiKey.LEAVE_GROUP:  # it may name several members, and another than the first is refused
            refused = next((each for each in response.members if each.error_code is error), _member(request))
            event = replace(event, member_id=refused.member_id, instance_id=getattr(refused, "group_instance_id", None))
        if isinstance(refusal, Refusal):
            event = replace(event, rule=refusal.rule, source=refusal.source)
        if ctx.notes.refused_by is not None:  # no rule of the group's decided that
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
    """The member that a request speaks for; LeaveGroup names several."""
    return next(iter(getattr(request, "members", ())), request)


def _asked(request: Any, key: ApiKey) -> str | None:
    """What a request asks for, where that is an event of its own."""
    if key not in _MODERN_HEARTBEATS:
        return _ASKED.get(key)
    if request.member_epoch > JOINING:
        return None
    return JOIN if request.member_epoch == JOINING else LEAVE


def _group(ctx: RequestContext, name: str) -> Group | None:
    try:
        runtime = ctx.node.groups_for(name)
    except KafkaError:
        return None
    return runtime.machine.groups.get(name) if runtime.state is Running.ACTIVE else None


def _generation(request: Any) -> int:
    """The one that a request names; -1 for none."""
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
"""API -> the section by which it is answered, where the machine gives no rule of its own."""
