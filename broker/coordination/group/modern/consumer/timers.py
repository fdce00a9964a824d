"""Timers of consumer group members: four for each member, with one rule for all when they fire."""

from collections.abc import Callable
from functools import partial

from broker.coordination.group.modern.consumer.context import ConsumerContext
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member, MemberState
from broker.coordination.group.outcome_builder import OutcomeBuilder, Rule
from protocol.errors import KafkaError

RETRY_MS = 500
"""Delay before a fired timer's rule is retried if the log refused its records (groups 0.6.7)."""
TimerKey = tuple[str, str, str]
Expire = Callable[[OutcomeBuilder, ConsumerGroup, Member], None]
"""Removes a member whose timer has fired."""


def session_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that ends a member's session."""
    return ("consumer-session", group_id, member_id)


def rebalance_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits a member's revocation of partitions."""
    return ("consumer-rebalance", group_id, member_id)


def join_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits the rejoin of a classic member."""
    return ("consumer-join", group_id, member_id)


def sync_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits the wait for a classic member's SyncGroup."""
    return ("consumer-sync", group_id, member_id)


class MemberTimers:
    """Arms and cancels the timers of members; ``expire`` removes a member whose timer has fired."""

    def __init__(self, context: ConsumerContext, expire: Expire) -> None:
        self._context, self._expire = context, expire
        self._called_back: set[TimerKey] = set()
        """Soft state: the running rejoin timers."""

    def arm_session(
        self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int | None = None
    ) -> None:
        """Restart a member's session; ``timeout_ms`` is the session timeout of a classic member's request."""
        if timeout_ms is None:
            timeout_ms = self._context.group_setting(group_id, "consumer.session.timeout.ms")
        self._arm_expiry(builder, session_timer(group_id, member_id), timeout_ms)

    def _arm_expiry(self, builder: OutcomeBuilder, key: TimerKey, timeout_ms: int) -> None:
        """Remove a member when this timer of the member fires."""
        builder.timer(key, timeout_ms, partial(self._fired, key, None))

    def call_back(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Start the time limit for a classic member's rejoin, unless it is running."""
        key = join_timer(group_id, member.member_id)
        if key not in self._called_back:
            self._called_back.add(key)
            self._arm_expiry(builder, key, member.rebalance_timeout_ms)

    def end_call(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel the rejoin timer of a classic member that has joined again."""
        key = join_timer(group_id, member_id)
        self._called_back.discard(key)
        builder.cancel(key)

    def await_sync(self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Limit the wait for a classic member's SyncGroup."""
        self._arm_expiry(builder, sync_timer(group_id, member_id), timeout_ms)

    def update_rebalance(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Start or cancel the time limit on revocation, by the member's new state.

        Classic members have their own limits; a running one is kept.
        """
        if member.classic is not None:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.limit_revocation(builder, group_id, member)
        else:
            builder.cancel(rebalance_timer(group_id, member.member_id))

    def limit_revocation(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Remove a member that still has the same epoch after its rebalance timeout."""
        key = rebalance_timer(group_id, member.member_id)
        builder.timer(key, member.rebalance_timeout_ms, partial(self._fired, key, member.epoch))

    def cancel_all(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel all timers of a member that is removed."""
        for key in (session_timer, rebalance_timer, join_timer, sync_timer):
            builder.cancel(key(group_id, member_id))
        self._called_back.discard(join_timer(group_id, member_id))

    def _fired(self, key: TimerKey, epoch: int | None, builder: OutcomeBuilder) -> None:
        _, group_id, member_id = key
        called_back = key in self._called_back
        self._called_back.discard(key)
        group = self._context.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return
        rule: Rule = partial(self._fired, key, epoch)

        def refused(_error: KafkaError, instead: OutcomeBuilder) -> None:
            if called_back:
                self._called_back.add(key)
            instead.timer(key, RETRY_MS, rule)

        builder.if_not_appended(refused)
        self._expire(builder, group, member)
