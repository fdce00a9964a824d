"""State shared by all rules of share groups: the coordinator's groups, settings, topics."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from broker.coordination.group.group import Groups
from broker.coordination.group.modern.share.group import REASONS, ShareGroup, State
from broker.coordination.group.modern.share.member import ShareMember
from broker.coordination.group.modern.share.state_partitions import SharePartitions
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import SHARE_HEARTBEAT
from broker.coordination.reasons import Refusal, StateChange
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour
from protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ShareContext:
    """The groups of a coordinator, with the settings and topics that their rules read.

    ``group_setting(group_id, name)`` returns a numeric group setting, clamped to the broker's bounds; ``behaves``:
    whether the emulated release has a behaviour.
    """

    groups: Groups
    settings: Settings
    topics: Topics
    group_setting: Callable[[str, str], int]
    behaves: Callable[[Behaviour], bool]
    begun_ms: dict[str, dict[UUID, int]] = field(default_factory=dict)
    """Soft state: group id -> topic id -> when the initialization of its partitions began (ms)."""

    def record_partitions(self, builder: OutcomeBuilder, group_id: str, lists: SharePartitions) -> None:
        """Write the record of a group's share partitions, with all three lists (groups D.2)."""
        builder.record(lists.record(group_id))
        self.partitions_seen(group_id, lists, builder.now_ms)

    def partitions_seen(self, group_id: str, lists: SharePartitions, now_ms: int) -> None:
        """Start the retry interval of initializations: their record was written or loaded (groups D.2 I4)."""
        self.begun_ms[group_id] = dict.fromkeys(lists.initializing, now_ms)

    def find(self, group_id: str) -> ShareGroup | None:
        """Return the share group with that id, or ``None``."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def existing(self, group_id: str, *, reads: bool = False) -> ShareGroup:
        """Return the share group with that id; ``reads``: for a request that reads committed state.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        group = self.find(group_id)
        if group is None:
            what = "is not a share group" if self.groups.has(group_id, reads=reads) else "not found"
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *SHARE_HEARTBEAT.row(" S1"), f"Group {group_id} {what}.")
        return group

    def found_or_new(self, group_id: str, *, creates: bool) -> ShareGroup:
        """Return the share group with that id, or a new one if ``creates``. Raises GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is None and creates:
            return ShareGroup(group_id)
        what = f"Share group {group_id} not found." if group is None else f"Group {group_id} is not a share group."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *SHARE_HEARTBEAT.row(" S2"), what)


def report_change(builder: OutcomeBuilder, group: ShareGroup, members: Collection[ShareMember], epoch: int) -> None:
    """Report the group's change of state or epoch to observers, if these members and this epoch make one."""
    before, after = group.state, State.STABLE if members else State.EMPTY
    if (before, group.epoch) != (after, epoch):
        change = StateChange(group.group_id, REASONS[after], before.value, after.value, group.epoch, epoch)
        builder.changed(change)


Offsets = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> start offset."""
