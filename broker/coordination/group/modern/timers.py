"""Timers of the members of modern groups: sessions and limits of revocation, with one rule for all when they fire."""

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol

from broker.coordination.group.events import MISSED_REBALANCE, MISSED_SYNC, NOT_REVOKED, SESSION_EXPIRED
from broker.coordination.group.group import GroupType
from broker.coordination.group.modern.context import G, ModernContext
from broker.coordination.group.modern.group import M, ModernMember
from broker.coordination.group.outcome_builder import OutcomeBuilder, Rule
from protocol.errors import KafkaError

RETRY_MS = 500
"""Delay before a fired timer's rule is retried if the log refused its records (groups 0.6.7)."""
TimerKey = tuple[str, str, str]
"""The timer's purpose, the group id and the member id."""
_REASONS = {
    "session": SESSION_EXPIRED,
    "rebalance": NOT_REVOKED,
    "join": MISSED_REBALANCE,
    "sync": MISSED_SYNC,
}
"""End of a timer's purpose -> why its member is removed when it fires."""


class RevokingMember(ModernMember, Protocol):
    """A member that gets ``rebalance_timeout_ms`` to revoke what its target no longer has."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """The member's rebalance timeout."""
        ...


def session_timer(kind: GroupType, group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that ends a member's session."""
    return (f"{kind}-session", group_id, member_id)


def rebalance_timer(kind: GroupType, group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits a member's revocation of partitions or tasks."""
    return (f"{kind}-rebalance", group_id, member_id)


class MemberTimers(Generic[G, M]):
    """Arms and cancels the timers of members; ``expire`` removes a member whose timer has fired."""

    def __init__(self, context: ModernContext[G], expire: Callable[[OutcomeBuilder, G, M], None]) -> None:
        self._context, self._expire = context, expire
        self._kind = context.group_class.type
        self._running: set[TimerKey] = set()
        """Soft state: the running timers of :meth:`arm_once`."""

    def arm_session(
        self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int | None = None
    ) -> None:
        """Restart a member's session; ``timeout_ms`` is the session timeout of a classic member's request."""
        if timeout_ms is None:
            timeout_ms = self._context.group_setting(group_id, f"{self._kind}.session.timeout.ms")
        self.arm(builder, session_timer(self._kind, group_id, member_id), timeout_ms)

    def arm(self, builder: OutcomeBuilder, key: TimerKey, timeout_ms: int) -> None:
        """Remove a member when this timer of the member fires."""
        builder.timer(key, timeout_ms, partial(self._fired, key, None, timeout_ms))

    def arm_once(self, builder: OutcomeBuilder, key: TimerKey, timeout_ms: int) -> None:
        """Arm a timer unless it is running."""
        if key not in self._running:
            self._running.add(key)
            self.arm(builder, key, timeout_ms)

    def limit_revocation(self, builder: OutcomeBuilder, group_id: str, member: RevokingMember) -> None:
        """Remove a member that still has the same epoch after its rebalance timeout."""
        key = rebalance_timer(self._kind, group_id, member.member_id)
        fired = partial(self._fired, key, member.epoch, member.rebalance_timeout_ms)
        builder.timer(key, member.rebalance_timeout_ms, fired)

    def update_rebalance(
        self, builder: OutcomeBuilder, group_id: str, member: RevokingMember, *, revokes: bool
    ) -> None:
        """Start or cancel the time limit on revocation, by the member's new state."""
        if revokes:
            self.limit_revocation(builder, group_id, member)
        else:
            builder.cancel(rebalance_timer(self._kind, group_id, member.member_id))

    def cancel(self, builder: OutcomeBuilder, key: TimerKey) -> None:
        """Cancel a timer, also one of :meth:`arm_once`."""
        self._running.discard(key)
        builder.cancel(key)

    def cancel_all(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel all timers of a member that is removed."""
        for key in (session_timer, rebalance_timer):
            builder.cancel(key(self._kind, group_id, member_id))

    def _fired(self, key: TimerKey, epoch: int | None, timeout_ms: int, builder: OutcomeBuilder) -> None:
        _, group_id, member_id = key
        was_running = key in self._running
        self._running.discard(key)
        group = self._context.find(group_id)
        member: M | None = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return
        rule: Rule = partial(self._fired, key, epoch, timeout_ms)

        def refused(_error: KafkaError, instead: OutcomeBuilder) -> None:
            if was_running:
                self._running.add(key)
            instead.timer(key, RETRY_MS, rule)

        builder.if_not_appended(refused)
        builder.member(group, _REASONS[key[0].partition("-")[2]], member, f"{timeout_ms} ms")
        self._expire(builder, group, member)
