"""The timers of a consumer group's members: four for each, and one rule when any of them fires."""

from collections.abc import Callable
from functools import partial

from broker.coordination.group.consumer.context import ConsumerContext
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.member import Member, MemberState
from broker.coordination.group.outcome_builder import OutcomeBuilder, Rule
from protocol.errors import KafkaError

RETRY_MS = 500
"""When a timer's rule is tried again whose records were refused (groups 0.6.7)."""
TimerKey = tuple[str, str, str]
Expire = Callable[[OutcomeBuilder, ConsumerGroup, Member], None]
"""Removes a member whose timer has fired."""


def session_timer(group_id: str, member_id: str) -> TimerKey:
    """Key of the timer that ends a member's session."""
    return ("consumer-session", group_id, member_id)


def rebalance_timer(group_id: str, member_id: str) -> TimerKey:
    """Key of the timer that ends the wait for a member to give up partitions."""
    return ("consumer-rebalance", group_id, member_id)


def join_timer(group_id: str, member_id: str) -> TimerKey:
    """Key of the timer that ends the wait for a member of the classic protocol to join again."""
    return ("consumer-join", group_id, member_id)


def sync_timer(group_id: str, member_id: str) -> TimerKey:
    """Key of the timer that ends the wait for a member of the classic protocol to sync."""
    return ("consumer-sync", group_id, member_id)


class MemberTimers:
    """Arms and cancels the timers of members; ``expire`` removes a member whose timer has fired."""

    def __init__(self, context: ConsumerContext, expire: Expire) -> None:
        self._context, self._expire = context, expire
        self._called_back: set[TimerKey] = set()
        """Soft state: the timers of members that were asked to join again, while they run."""

    def arm_session(
        self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int | None = None
    ) -> None:
        """Begin a member's session again; ``timeout_ms`` where the member has named its session timeout itself."""
        if timeout_ms is None:
            timeout_ms = self._context.group_setting(group_id, "consumer.session.timeout.ms")
        self._arm_expiry(builder, session_timer(group_id, member_id), timeout_ms)

    def _arm_expiry(self, builder: OutcomeBuilder, key: TimerKey, timeout_ms: int) -> None:
        """Remove a member when that timer, one of its own, fires."""
        builder.timer(key, timeout_ms, partial(self._fired, key, None))

    def call_back(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Limit the time in which a member of the classic protocol has to join again, unless that is running."""
        key = join_timer(group_id, member.member_id)
        if key not in self._called_back:
            self._called_back.add(key)
            self._arm_expiry(builder, key, member.rebalance_timeout_ms)

    def end_call(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """A member of the classic protocol has joined again."""
        key = join_timer(group_id, member_id)
        self._called_back.discard(key)
        builder.cancel(key)

    def await_sync(self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Limit the time in which a member of the classic protocol has to sync."""
        self._arm_expiry(builder, sync_timer(group_id, member_id), timeout_ms)

    def update_rebalance(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Limit the time to give up partitions, by the member's new record; or end the limit.

        Members of the classic protocol have their own limits, and what runs for them goes on.
        """
        if member.classic is not None:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self.limit_revocation(builder, group_id, member)
        else:
            builder.cancel(rebalance_timer(group_id, member.member_id))

    def limit_revocation(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Remove a member that is still in its epoch when its rebalance timeout has passed."""
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
