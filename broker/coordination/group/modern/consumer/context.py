"""Epochs of consumer groups, and the context of their rules."""

from collections.abc import Callable, Collection, Iterable
from uuid import UUID

from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import Member
from broker.coordination.group.modern.consumer.states import REASONS, state_of
from broker.coordination.group.modern.context import ModernContext, report_transition
from broker.coordination.group.modern.target_assignment import assignor_names
from broker.coordination.group.modern.topics import metadata_hash
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.log_records.consumer_group import ConsumerRecord, GroupEpoch


@dataclass(frozen=True, slots=True)
class ConsumerContext(ModernContext[ConsumerGroup]):
    """State shared by all rules of consumer groups; ``new_uuid`` makes member ids."""

    new_uuid: Callable[[], UUID]

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the assignors that groups may choose from; the first is the default."""
        return assignor_names(self.settings)

    def new_group(self, group_id: str) -> ConsumerGroup:
        """Return a new consumer group without members."""
        return ConsumerGroup(group_id, self.topics, forgets=self.behaves(Behaviour.CHANGED_INSTANCES_FORGOTTEN))

    def new_hash(self, group: ConsumerGroup, members: Iterable[Member], forgotten: Collection[str] = ()) -> int:
        """Return the metadata hash of the topics that these members name, and of those that resolved expressions match.

        Expressions in ``forgotten`` are ignored; others count, even if no member subscribes by them any more
        (``ConsumerGroup.computeSubscribedTopicNamesWithoutDeletedMembers``).
        """
        names = {name for member in members for name in member.subscribed}
        for regex, resolved in group.regexes.items():
            if regex not in forgotten:
                names.update(resolved.topics or ())
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
    after = state_of(epoch, assignment_epoch, members)
    report_transition(builder, group, after, epoch, REASONS)
