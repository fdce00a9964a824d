"""Timers of streams groups: session and revocation limit of each member, and the initial delay of a group."""

from collections.abc import Callable
from functools import partial

from broker.coordination.group.modern.streams.context import StreamsContext
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.member import Member, MemberState
from broker.coordination.group.outcome_builder import OutcomeBuilder, Rule
from protocol.errors import KafkaError

RETRY_MS = 500
"""Delay before a fired timer's rule is retried if the log refused its records (groups 0.6.7)."""
TimerKey = tuple[str, str, str]
Expire = Callable[[OutcomeBuilder, StreamsGroup, Member], None]
"""Removes a member whose timer has fired."""


def session_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that ends a member's session."""
    return ("streams-session", group_id, member_id)


def rebalance_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits a member's revocation of tasks."""
    return ("streams-rebalance", group_id, member_id)


def delay_timer(group_id: str) -> tuple[str, str]:
    """Return the key of the timer that ends a group's initial rebalance delay."""
    return ("streams-delay", group_id)


class MemberTimers:
    """Arms and cancels the timers of members; ``expire`` removes a member whose timer has fired."""

    def __init__(self, context: StreamsContext, expire: Expire) -> None:
        self._context, self._expire = context, expire

    def arm_session(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Restart a member's session."""
        key = session_timer(group_id, member_id)
        timeout_ms = self._context.settings.number(group_id, "streams.session.timeout.ms")
        builder.timer(key, timeout_ms, partial(self._fired, key, None))

    def update_rebalance(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Start or cancel the time limit on revocation, by the member's new state."""
        key = rebalance_timer(group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_TASKS:
            builder.timer(key, member.rebalance_timeout_ms, partial(self._fired, key, member.epoch))
        else:
            builder.cancel(key)

    def cancel_all(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel all timers of a member that is removed."""
        builder.cancel(session_timer(group_id, member_id))
        builder.cancel(rebalance_timer(group_id, member_id))

    def _fired(self, key: TimerKey, epoch: int | None, builder: OutcomeBuilder) -> None:
        _, group_id, member_id = key
        group = self._context.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return
        rule: Rule = partial(self._fired, key, epoch)

        def refused(_error: KafkaError, instead: OutcomeBuilder) -> None:
            instead.timer(key, RETRY_MS, rule)

        builder.if_not_appended(refused)
        self._expire(builder, group, member)
