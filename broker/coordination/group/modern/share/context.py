"""Epochs of share groups, and the context of their rules."""

from collections.abc import Collection, Mapping
from dataclasses import field
from uuid import UUID

from broker.coordination.group.modern.context import ModernContext, report_transition
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.member import ShareMember
from broker.coordination.group.modern.share.state_partitions import SharePartitions
from broker.coordination.group.modern.share.states import REASONS, State
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import SHARE_HEARTBEAT
from protocol.deferred import dataclass
from protocol.log_records.share_group import ShareGroupEpoch, ShareGroupRecord


@dataclass(frozen=True, slots=True)
class ShareContext(ModernContext[ShareGroup]):
    """State shared by all rules of share groups."""

    begun_ms: dict[str, dict[UUID, int]] = field(default_factory=dict)
    """Soft state: group id -> topic id -> when the initialization of its partitions began (ms)."""

    def record_partitions(self, builder: OutcomeBuilder, group_id: str, lists: SharePartitions) -> None:
        """Write the record of a group's share partitions, with all three lists (groups D.2)."""
        builder.record(lists.record(group_id))
        self.partitions_seen(group_id, lists, builder.now_ms)

    def partitions_seen(self, group_id: str, lists: SharePartitions, now_ms: int) -> None:
        """Start the retry interval of initializations: their record was written or loaded (groups D.2 I4)."""
        self.begun_ms[group_id] = dict.fromkeys(lists.initializing, now_ms)

    def existing_or_new(self, group_id: str, *, creates: bool) -> ShareGroup:
        """Return the share group with that id, or a new one if ``creates``. Raises GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is None and creates:
            return ShareGroup(group_id)
        return self.existing(group_id, SHARE_HEARTBEAT.row(" S2"), absent="Share group {} not found.")

    def bump_epoch(self, builder: OutcomeBuilder, group: ShareGroup, members: Collection[ShareMember]) -> None:
        """Begin the group's next epoch with these members and their subscribed topics."""
        new_hash = metadata_hash({name for each in members for name in each.subscribed}, self.topics)
        builder.record(ShareGroupRecord.of(group.group_id, ShareGroupEpoch(group.epoch + 1, new_hash)))
        report_change(builder, group, members, group.epoch + 1)


def report_change(builder: OutcomeBuilder, group: ShareGroup, members: Collection[ShareMember], epoch: int) -> None:
    """Report the group's change of state or epoch to observers, if these members and this epoch make one."""
    after = State.STABLE if members else State.EMPTY
    report_transition(builder, group, after, epoch, REASONS)


Offsets = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> start offset."""
