"""The life of each group, event by event: who asked to join, sync and leave, and what was refused, by which rule.

How its state moved the group itself remembers (``ClassicGroup.moves``), timers included; it is taken over from there
whenever somebody asks. A consumer group (KIP-848) is looked at with each request and each look at its timeline: what a
timer did to it in between stands there when it is seen. Events are kept for people, in memory only, a few hundred for
each group.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from broker.chain import Handler, Middleware
from broker.clock import Clock
from broker.context import RequestContext
from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.group import State as ConsumerState
from broker.coordination.group.consumer.members import JOINING
from broker.coordination.group.states import Move, State
from broker.coordination.runtime import State as Running
from broker.middleware.fields import errors
from broker.middleware.journal import FAULT_NOTE
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError

EVENTS_OF_A_GROUP, EVENTS = 200, 10_000
"""How much is remembered; the group that was heard of least recently makes room."""
NO_GENERATION = -1
Watched = ClassicGroup | ConsumerGroup
"""The kinds of groups that have timelines."""


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One event; ``said`` is the generation that the request names, ``member_id`` the member it speaks for."""

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    epoch_before: int = NO_GENERATION
    epoch_after: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: str = ""
    fault: str | None = None
    said: int = NO_GENERATION


class GroupTimelines:
    """The events of all groups of a cluster."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: OrderedDict[str, deque[GroupEvent]] = OrderedDict()
        self._count = 0
        self._seen: dict[str, tuple[ClassicGroup, int]] = {}  # group -> how many of its moves stand in the events
        self._stood: dict[str, tuple[str, int]] = {}  # consumer group -> its state and epoch when it was looked at

    def of(self, name: str, group: Watched | None) -> list[GroupEvent]:
        """What was asked, and what became of the group, oldest first."""
        self._take_over(name, group)
        return list(self._events.get(name, ()))

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()
        self._seen.clear()
        self._stood.clear()
        self._count = 0

    @property
    def middleware(self) -> Mapping[ApiKey, Middleware]:
        """The watch over each API that members use."""
        return dict.fromkeys(_RULES, self.watch)

    def watch(self, request: Any, ctx: RequestContext, handle: Handler) -> Awaitable[Any]:
        """Middleware, outermost: what is answered in the end counts, be it a fault's."""
        return self._watch(request, ctx, handle) if request.group_id else handle(request, ctx)

    async def _watch(self, request: Any, ctx: RequestContext, handle: Handler) -> Any:
        name = request.group_id
        self._take_over(name, _group(ctx, name))
        asked = _asked(request, ctx.api.key)
        if asked is not None:
            self._note(request, ctx, asked, None)
        response = await handle(request, ctx)
        self._take_over(name, _group(ctx, name))
        error = next(errors(response), None)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self._note(request, ctx, "was told its member id", None)  # KIP-394: how every new member begins
        elif error is not None:
            self._note(request, ctx, "refused", error.name)
        return response

    def _take_over(self, name: str, group: Watched | None) -> None:
        """The moves that the group has made since somebody looked: they come after what is known, in its order."""
        if isinstance(group, ConsumerGroup):
            self._look_at(name, group)
        if not isinstance(group, ClassicGroup):
            return
        known, seen = self._seen.get(name, (group, 0))
        new = group.moved - (seen if known is group else 0)
        if new:
            events = self._events.get(name)
            at_ms = events[-1].at_ms if events else 0
            for move in list(group.moves)[-new:]:
                self.note(name, _moved(move, at_ms))
            self._seen[name] = (group, group.moved)

    def _look_at(self, name: str, group: ConsumerGroup) -> None:
        """What has become of a consumer group since somebody looked."""
        now = group.state_name, group.epoch
        before = self._stood.get(name, ("", NO_GENERATION))
        if now != before:
            self._stood[name] = now
            event, rule = _STANDS[group.state]
            self.note(name, GroupEvent(self._clock.now_ms(), event, before[0], now[0], before[1], now[1], rule=rule))

    def note(self, name: str, event: GroupEvent) -> None:
        """One more event; what was silent for longest is forgotten where all together have too many."""
        events = self._events.get(name)
        if events is None:
            events = self._events[name] = deque(maxlen=EVENTS_OF_A_GROUP)
        self._events.move_to_end(name)
        self._count += len(events) < EVENTS_OF_A_GROUP
        events.append(event)
        while self._count > EVENTS:
            gone, forgotten = self._events.popitem(last=False)
            self._seen.pop(gone, None)
            self._stood.pop(gone, None)
            self._count -= len(forgotten)

    def _note(self, request: Any, ctx: RequestContext, event: str, error: str | None) -> None:
        group = _group(ctx, request.group_id)
        state, epoch = ("", NO_GENERATION) if group is None else (group.state_name, _epoch(group))
        member = next(iter(getattr(request, "members", ())), request)  # LeaveGroup names several
        self.note(
            request.group_id,
            GroupEvent(
                self._clock.now_ms(),
                event,
                state,
                state,
                epoch,
                epoch,
                getattr(member, "member_id", ""),
                getattr(member, "group_instance_id", getattr(member, "instance_id", None)),
                ctx.client_id,
                ctx.connection.number,
                ctx.node.id,
                ctx.api.key.title,
                ctx.version,
                error,
                _RULES[ctx.api.key],
                ctx.notes.get(FAULT_NOTE) if error and ctx.notes else None,
                _generation(request),
            ),
        )


def _asked(request: Any, key: ApiKey) -> str | None:
    """What a request asks for, where that is an event of its own."""
    if key is not ApiKey.CONSUMER_GROUP_HEARTBEAT:
        return _ASKED.get(key)
    if request.member_epoch > JOINING:
        return None
    return "asked to join" if request.member_epoch == JOINING else "asked to leave"


def _epoch(group: Watched) -> int:
    return group.generation if isinstance(group, ClassicGroup) else group.epoch


def _group(ctx: RequestContext, name: str) -> Watched | None:
    try:
        runtime = ctx.node.groups_for(name)
    except KafkaError:
        return None
    found = runtime.machine.groups.get(name) if runtime.state is Running.ACTIVE else None
    return found if isinstance(found, ClassicGroup | ConsumerGroup) else None


def _moved(move: Move, at_ms: int) -> GroupEvent:
    event, rule = _MOVES[move.after]
    before, after = move.before.value, move.after.value
    return GroupEvent(max(move.at_ms, at_ms), event, before, after, move.generation_before, move.generation, rule=rule)


def _generation(request: Any) -> int:
    """The one that a request names; -1 for none."""
    names = ("generation_id", "generation_id_or_member_epoch", "member_epoch")
    return next((getattr(request, name) for name in names if hasattr(request, name)), NO_GENERATION)


_MOVES: Mapping[State, tuple[str, str]] = {
    State.PREPARING_REBALANCE: ("a rebalance begins", "groups A.5 R3"),
    State.COMPLETING_REBALANCE: ("everybody has joined", "groups A.5 R7"),
    State.STABLE: ("assigned", "groups A.7"),
    State.EMPTY: ("everybody has left", "groups A.5 R7"),
    State.DEAD: ("gone", "groups A.13"),
}
_STANDS: Mapping[ConsumerState, tuple[str, str]] = {
    ConsumerState.EMPTY: ("everybody has left", "groups C.8"),
    ConsumerState.ASSIGNING: ("a new epoch waits for its target", "groups C.4 H9"),
    ConsumerState.RECONCILING: ("members go to their target", "groups C.5"),
    ConsumerState.STABLE: ("everybody has its target", "groups C.5"),
    ConsumerState.DEAD: ("gone", "groups A.13"),
}
_ASKED: Mapping[ApiKey, str] = {
    ApiKey.JOIN_GROUP: "asked to join",
    ApiKey.SYNC_GROUP: "asked for its assignment",
    ApiKey.LEAVE_GROUP: "asked to leave",
}
_RULES: Mapping[ApiKey, str] = {
    ApiKey.JOIN_GROUP: "groups A.4",
    ApiKey.SYNC_GROUP: "groups A.7",
    ApiKey.HEARTBEAT: "groups A.8",
    ApiKey.LEAVE_GROUP: "groups A.9",
    ApiKey.OFFSET_COMMIT: "groups B.1",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "groups C.4",
}
