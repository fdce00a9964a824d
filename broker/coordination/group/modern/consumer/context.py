"""State shared by all rules of consumer groups: the coordinator's groups, settings, topics."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from uuid import UUID

from broker.coordination.group.group import Groups
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member
from broker.coordination.group.modern.consumer.states import REASONS, state_of
from broker.coordination.group.modern.target_assignment import assignor_names
from broker.coordination.group.modern.topics import Topics, metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Refusal, StateChange
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour, newest_behaves
from protocol.errors import ErrorCode
from protocol.log_records.consumer_group import ConsumerRecord, GroupEpoch


@dataclass(frozen=True, slots=True)
class ConsumerContext:
    """The groups of a coordinator, with the settings and topics that their rules read.

    ``group_setting(group_id, name)`` returns a numeric group setting, clamped to the broker's bounds; ``behaves``:
    whether the emulated release has a behaviour.
    """

    groups: Groups
    settings: Settings
    topics: Topics
    group_setting: Callable[[str, str], int]
    new_uuid: Callable[[], UUID]
    behaves: Callable[[Behaviour], bool] = newest_behaves

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the assignors that groups may choose from; the first is the default."""
        return assignor_names(self.settings)

    def find(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group with that id, or ``None``."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Return a new consumer group without members."""
        return ConsumerGroup(group_id, self.topics, forgets=self.behaves(Behaviour.CHANGED_INSTANCES_FORGOTTEN))

    def missing(self, group_id: str, rule: Rule, *, reads: bool = False) -> Refusal:
        """Return the error for a missing group or one of another kind (GroupMetadataManager.consumerGroup).

        ``reads``: the request reads committed state.
        """
        what = "is not a consumer group" if self.groups.has(group_id, reads=reads) else "not found"
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *rule, f"Group {group_id} {what}.")

    def new_hash(self, group: ConsumerGroup, members: Iterable[Member], forgotten: Collection[str] = ()) -> int:
        """Return the metadata hash of the topics that these members name, and of those that resolved expressions match.

        Expressions in ``forgotten`` are ignored; others count, even if no member subscribes by them any more
        (``ConsumerGroup.computeSubscribedTopicNamesWithoutDeletedMembers``).
        """
        names = {name for member in members for name in member.subscribed}
        for regex, found in group.regexes.items():
            if regex not in forgotten:
                names.update(found.topics or ())
        return metadata_hash(names, self.topics)

    def bump_epoch(
        self,
        builder: OutcomeBuilder,
        group: ConsumerGroup,
        members: Collection[Member],
        forgotten: Collection[str] = (),
    ) -> None:
        """Begin the group's next epoch, with these members and the topics that they subscribe to."""
        new_hash = self.new_hash(group, members, forgotten)
        builder.record(ConsumerRecord.of(group.group_id, GroupEpoch(group.epoch + 1, new_hash)))
        report_change(builder, group, members, group.epoch + 1, group.assignment_epoch)


def report_change(
    builder: OutcomeBuilder, group: ConsumerGroup, members: Collection[Member], epoch: int, assignment_epoch: int
) -> None:
    """Report the group's change of state or epoch to observers, if these members and epochs make one."""
    before, after = group.state, state_of(epoch, assignment_epoch, members)
    if (before, group.epoch) != (after, epoch):
        change = StateChange(group.group_id, REASONS[after], before.value, after.value, group.epoch, epoch)
        builder.changed(change)
