"""Timers of consumer group members: beside those of every modern group, two of members with the classic protocol."""

from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member
from broker.coordination.group.modern.timers import MemberTimers, TimerKey
from broker.coordination.group.outcome_builder import OutcomeBuilder


def join_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits the rejoin of a classic member."""
    return ("consumer-join", group_id, member_id)


def sync_timer(group_id: str, member_id: str) -> TimerKey:
    """Return the key of the timer that limits the wait for a classic member's SyncGroup."""
    return ("consumer-sync", group_id, member_id)


class ConsumerTimers(MemberTimers[ConsumerGroup, Member]):
    """Arms and cancels the timers of members of either protocol."""

    def call_back(self, builder: OutcomeBuilder, group_id: str, member: Member) -> None:
        """Start the time limit for a classic member's rejoin, unless it is running."""
        self.arm_once(builder, join_timer(group_id, member.member_id), member.rebalance_timeout_ms)

    def end_call(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel the rejoin timer of a classic member that has joined again."""
        self.cancel(builder, join_timer(group_id, member_id))

    def await_sync(self, builder: OutcomeBuilder, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Limit the wait for a classic member's SyncGroup."""
        self.arm(builder, sync_timer(group_id, member_id), timeout_ms)

    def cancel_all(self, builder: OutcomeBuilder, group_id: str, member_id: str) -> None:
        """Cancel all timers of a member that is removed."""
        super().cancel_all(builder, group_id, member_id)
        for key in (join_timer, sync_timer):
            self.cancel(builder, key(group_id, member_id))
