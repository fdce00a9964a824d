"""Expiry of offsets and groups (groups B.3), after Kafka's ``cleanupGroupMetadata``."""

from collections.abc import Callable, Iterator, Mapping

from broker.coordination.group.events import GROUP_EXPIRED, OFFSETS_EXPIRED
from broker.coordination.group.group import Group, GroupType
from broker.coordination.group.offsets.commit import NO_EXPIRY
from broker.coordination.group.offsets.store import Offsets
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.settings import Settings
from broker.time.timers import Rhythm
from protocol.errors import KafkaError
from protocol.log_records.group import OffsetCommit, OffsetCommitTombstone

EXPIRY_TIMER = ("offset-expiry",)
_MINUTE_MS = 60_000


class Expiry:
    """The pass over all groups of a shard, every offsets.retention.check.interval.ms."""

    def __init__(self, groups: Mapping[str, Group], offsets: Offsets, settings: Settings) -> None:
        self._groups, self._offsets, self._settings = groups, offsets, settings

    def arm(self, builder: OutcomeBuilder) -> None:
        """Schedule the next pass after the interval."""
        interval_ms = self._settings.int("offsets.retention.check.interval.ms")
        builder.round(EXPIRY_TIMER, Rhythm(interval_ms, self.quiet_until_ms), self.run)

    def quiet_until_ms(self) -> int | None:
        """Return the time (ms) at which the next offset expires if no request arrives; ``None`` for never."""
        groups = [group for group in self._groups.values() if group.type is not GroupType.SHARE]
        return min((at_ms for group in groups for at_ms in self._expiry_times_ms(group)), default=None)

    def _expiry_times_ms(self, group: Group) -> Iterator[int]:
        base = group.expiry_base()
        if base is not None:
            for topic, offsets in self._offsets.topics(group.group_id).items():
                if not group.subscribes_to(topic):
                    yield from (self._expires_at_ms(commit, base) for commit, _ in offsets.values())

    def run(self, builder: OutcomeBuilder) -> None:
        """Delete expired offsets, and Empty groups that have no offsets left."""
        builder.divisible = True
        self.arm(builder)

        def not_now(_error: KafkaError, instead: OutcomeBuilder) -> None:
            self.arm(instead)

        builder.if_not_appended(not_now)
        for group in self._groups.values():
            if group.type is GroupType.SHARE:
                continue  # ShareGroup.shouldExpire
            if self._expire_offsets(builder, group) and group.is_empty:
                builder.noted(group, GROUP_EXPIRED)
                for record in group.tombstones():
                    builder.record(record)

    def _expire_offsets(self, builder: OutcomeBuilder, group: Group) -> bool:
        """Write tombstones for expired offsets; return whether the group has no offsets left, committed or pending."""
        group_id = group.group_id
        in_transactions = self._offsets.in_transactions(group_id)
        topics = self._offsets.topics(group_id)
        if not topics:
            return not in_transactions
        base = group.expiry_base()
        if base is None:
            return False
        left, expired = False, []
        for topic, offsets in topics.items():
            # Offsets of topics that members read stay, however old they are (KAFKA-4682).
            if group.subscribes_to(topic):
                left = True
                continue
            for partition, (commit, _) in offsets.items():
                # An open transaction may replace it: whether it does is decided by a marker later.
                pending = self._offsets.is_pending(group_id, topic, partition)
                if pending or not self._expired(commit, base, builder.now_ms):
                    left = True
                else:
                    expired.append((topic, partition, commit.offset))
                    builder.record(OffsetCommitTombstone(group_id, topic, partition))
        if expired:
            detail = f"offsets.retention.minutes is {self._settings.int('offsets.retention.minutes')}"
            builder.noted(group, OFFSETS_EXPIRED, detail=detail, places=tuple(expired))
        return not left and not in_transactions

    def _expired(self, commit: OffsetCommit, base: Callable[[OffsetCommit], int], now_ms: int) -> bool:
        return now_ms >= self._expires_at_ms(commit, base)

    def _expires_at_ms(self, commit: OffsetCommit, base: Callable[[OffsetCommit], int]) -> int:
        if commit.expire_timestamp_ms != NO_EXPIRY:
            return commit.expire_timestamp_ms
        return base(commit) + self._settings.int("offsets.retention.minutes") * _MINUTE_MS
