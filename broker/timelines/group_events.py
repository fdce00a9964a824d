"""The events of groups: how they are folded when they are old, and which of them explain a refusal."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from typing import NamedTuple

from broker.coordination.group.classic.states import ALL_JOINED, REBALANCE_BEGUN
from broker.coordination.group.consumer.states import NEW_EPOCH
from broker.coordination.group.share.group import REASONS, State
from broker.timelines.event_log import Weight
from broker.timelines.events import COORDINATOR_CODES, Refusals, RequestEvent
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

NO_GENERATION = -1
JOIN, SYNC, LEAVE = "asked to join", "asked for its assignment", "asked to leave"
_ROUNDS = "rounds"
_REFUSALS = Refusals(ErrorCode.REBALANCE_IN_PROGRESS, *COORDINATOR_CODES)
REBALANCE, JOINED = REBALANCE_BEGUN.kind, ALL_JOINED.kind
_BEGINNINGS = frozenset({REBALANCE, NEW_EPOCH.kind, REASONS[State.STABLE].kind})


class LastSign(NamedTuple):
    """The last request of a member that was not refused. Every heartbeat leaves one; texts are made when it is read.

    ``asked`` is a text such as ``asked to join``, where the request is an event of its own.
    """

    at_ms: int
    asked: str | None
    api: ApiKey
    version: int
    client_id: str

    @property
    def what(self) -> str:
        """What the member did, such as ``asked to join`` or ``Heartbeat``."""
        return self.asked or self.api.title

    @property
    def request(self) -> str:
        """The request, for people."""
        return f"{self.api.title} v{self.version} of client `{self.client_id}`"


@dataclass(slots=True)
class GroupEvent(RequestEvent):
    """One event, or many that are folded.

    ``request_generation`` and ``member_id`` are the request's. Of a folded event ``at_ms``, ``state_before`` and
    ``epoch_before`` are those of the first, ``until_ms``, ``state_after`` and ``epoch_after`` of the last;
    ``rebalances`` is how many of the folded events began a rebalance. ``causes`` are those of a refusal.
    """

    at_ms: int
    event: str
    state_before: str = ""
    state_after: str = ""
    epoch_before: int = NO_GENERATION
    epoch_after: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None
    request_generation: int = NO_GENERATION
    until_ms: int = -1
    rebalances: int = 0
    causes: "Causes | None" = None


class Causes(NamedTuple):
    """The events that explain a refusal, as far as they are remembered.

    ``complete`` is false where events of the group were folded or forgotten before, so that what is missing here may
    have happened even so.
    """

    last_sign: LastSign | None
    joined: GroupEvent | None
    """When the members had joined, which began the present generation."""
    begun: GroupEvent | None
    """The latest rebalance."""
    beginner: GroupEvent | None
    """The request to join or to leave before it."""
    taken: GroupEvent | None
    """The request of another connection to join with the same instance id."""
    complete: bool

    def events(self) -> tuple[GroupEvent, ...]:
        """Those that have an event of their own."""
        return tuple(each for each in (self.joined, self.begun, self.beginner, self.taken) if each is not None)


class GroupHistory(NamedTuple):
    """The events of a group, oldest first, and how many are forgotten (-1: it is not known)."""

    events: list[GroupEvent]
    forgotten: int


NO_HISTORY = GroupHistory([], 0)


def is_retriable(event: GroupEvent) -> bool:
    """Whether it is a refusal that belongs to a rebalance, or to a coordinator that moves."""
    return _REFUSALS.are_retriable(event.error)


class Folding:
    """How events of groups are folded: rebalances, as long as nothing was refused in between."""

    @staticmethod
    def weight(event: GroupEvent) -> Weight:
        """A refusal lasts; one that every rebalance brings lasts less."""
        return _REFUSALS.weight(event.error)

    @staticmethod
    def key(event: GroupEvent) -> Hashable | None:
        """Rounds; the same refusal again."""
        if event.error is None:
            return _ROUNDS
        alike = (event.error, event.rule, event.api, event.client_id, event.connection, event.member_id, event.fault)
        return alike if is_retriable(event) else (*alike, event.request_generation)

    @staticmethod
    def folded(older: GroupEvent, newer: GroupEvent) -> GroupEvent:
        """Equal refusals are one that counts; everything else becomes rebalances, of no request in particular."""
        count = older.count + newer.count
        if older.error is not None and Folding.key(older) == Folding.key(newer):
            return replace(newer, at_ms=older.at_ms, count=count)
        rebalances = _rebalances(older) + _rebalances(newer)
        return GroupEvent(
            older.at_ms,
            f"{rebalances} rebalance{'' if rebalances == 1 else 's'}" if rebalances else "requests of members",
            older.state_before,
            newer.state_after,
            older.epoch_before,
            newer.epoch_after,
            until_ms=newer.until_ms,
            count=count,
            rebalances=rebalances,
        )

    @staticmethod
    def forgotten(event: GroupEvent) -> int:
        """How many events it represented."""
        return event.count


def _rebalances(event: GroupEvent) -> int:
    return event.rebalances or int(event.event in _BEGINNINGS)


def causes_of(
    refused: GroupEvent, newest_first: Collection[GroupEvent], last_sign: LastSign | None, *, forgotten: bool
) -> Causes:
    """The events that explain a refusal."""
    healthy = [event for event in newest_first if event.error is None]
    at = next((at for at, event in enumerate(healthy) if event.event == REBALANCE), None)
    earlier = [] if at is None else healthy[at + 1 :]
    static, connection = refused.instance_id, refused.connection
    return Causes(
        last_sign,
        next((event for event in healthy if event.event == JOINED), None),
        None if at is None else healthy[at],
        next((event for event in earlier if event.event in (JOIN, LEAVE)), None),
        next(
            (
                event
                for event in healthy
                if static and event.instance_id == static and event.event == JOIN and event.connection != connection
            ),
            None,
        ),
        not forgotten and all(event.count == 1 for event in healthy),
    )
