"""What all rules of consumer groups share: the groups of a shard, settings, topics, and the timers of members."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from uuid import UUID

from broker.coordination.group.classic import ClassicGroup
from broker.coordination.group.consumer.group import ConsumerGroup
from broker.coordination.group.consumer.members import Member, MemberState
from broker.coordination.group.consumer.topics import Topics, metadata_hash
from broker.coordination.group.draft import Draft, Rule
from broker.coordination.group.model import Group
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.consumer_group import ConsumerRecord, GroupEpoch

RETRY_MS = 500
"""When a timer's rule is tried again whose records were refused (groups 0.6.7)."""


class Settings(Protocol):
    """The broker's settings by Kafka's own names."""

    def int(self, name: str) -> int:
        """The value of a numeric setting."""
        ...

    def string(self, name: str) -> str:
        """The value of a text."""
        ...

    def list(self, name: str) -> tuple[str, ...]:
        """The values of a list."""
        ...


def _never() -> ConsumerGroup:
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)


def session_timer(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Key of the timer that ends a member's session."""
    return ("consumer-session", group_id, member_id)


def rebalance_timer(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Key of the timer that ends the wait for a member to give up partitions."""
    return ("consumer-rebalance", group_id, member_id)


def join_timer(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Key of the timer that ends the wait for a member of the classic protocol to join anew."""
    return ("consumer-join", group_id, member_id)


def sync_timer(group_id: str, member_id: str) -> tuple[str, str, str]:
    """Key of the timer that ends the wait for a member of the classic protocol to sync."""
    return ("consumer-sync", group_id, member_id)


@dataclass(slots=True)
class Shard:
    """What the rules act on. ``own(group_id, name)`` is a numeric setting of a group, held within the broker's bounds.

    ``remove`` is set by the rules that remove members (``removing``), which timers come to; ``upgraded`` and
    ``downgraded`` by those that change a group's kind (``migrating``).
    """

    groups: dict[str, Group]
    settings: Settings
    topics: Topics
    own: Callable[[str, str], int]
    new_uuid: Callable[[], UUID]
    remove: Callable[[Draft, ConsumerGroup, list[Member]], None] = lambda *_: None
    upgraded: "Callable[[Draft, ClassicGroup], ConsumerGroup]" = field(default=lambda *_: _never())
    downgraded: "Callable[[Draft, ConsumerGroup, Sequence[Member]], bool]" = field(default=lambda *_: False)

    def find(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of that id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def new_hash(self, group: ConsumerGroup, members: Iterable[Member]) -> int:
        """The hash of the topics that these members subscribe to."""
        names: set[str] = set()
        for member in members:
            names |= group.names_of(member)
        return metadata_hash(names, self.topics)

    def bumped(self, draft: Draft, group: ConsumerGroup, members: Iterable[Member]) -> None:
        """The group's next epoch, with what these members subscribe to."""
        draft.record(ConsumerRecord.of(group.group_id, GroupEpoch(group.epoch + 1, self.new_hash(group, members))))

    # --- timers ------------------------------------------------------------------------------------------------------

    def arm_session(self, draft: Draft, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """The member has been heard of; ``timeout_ms`` where it has said itself how long it may be silent."""
        if timeout_ms is None:
            timeout_ms = self.own(group_id, "consumer.session.timeout.ms")
        self.arm_expiry(draft, session_timer(group_id, member_id), timeout_ms)

    def arm_expiry(self, draft: Draft, key: tuple[str, str, str], timeout_ms: int) -> None:
        """Remove a member when that timer, one of its own, fires."""
        draft.timer(key, timeout_ms, partial(self._expired, key, None))

    def follow(self, draft: Draft, group_id: str, member: Member) -> None:
        """The member's record has changed: it may take only so long to give up what it has to."""
        key = rebalance_timer(group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            draft.timer(key, member.rebalance_timeout_ms, partial(self._expired, key, member.epoch))
        else:
            draft.cancel(key)

    def forget_timers(self, draft: Draft, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for key in (session_timer, rebalance_timer, join_timer, sync_timer):
            draft.cancel(key(group_id, member_id))

    def _expired(self, key: tuple[str, str, str], epoch: int | None, draft: Draft) -> None:
        _, group_id, member_id = key
        group = self.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return
        rule: Rule = partial(self._expired, key, epoch)

        def refused(_error: KafkaError, instead: Draft) -> None:
            instead.timer(key, RETRY_MS, rule)

        draft.if_not_appended(refused)
        self.remove(draft, group, [member])
