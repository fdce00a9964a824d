"""State shared by all rules of one kind of modern groups: the coordinator's groups, settings, topics."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from broker.coordination.group.group import Groups
from broker.coordination.group.modern.group import ModernGroup, ModernState
from broker.coordination.group.modern.topics import Topics
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Reason, Refusal, StateChange
from broker.coordination.settings import Settings
from broker.settings.releases import Behaviour
from protocol.deferred import dataclass
from protocol.errors import ErrorCode

G = TypeVar("G", bound=ModernGroup[Any])
S = TypeVar("S", bound=ModernState)


@dataclass(frozen=True, slots=True)
class ModernContext(Generic[G]):
    """The groups of a coordinator, with the settings and topics that their rules read.

    ``group_setting(group_id, name)`` returns a numeric group setting, clamped to the broker's bounds; ``behaves``:
    whether the emulated release has a behaviour.
    """

    group_class: type[G]
    groups: Groups
    settings: Settings
    topics: Topics
    group_setting: Callable[[str, str], int]
    behaves: Callable[[Behaviour], bool]

    def find(self, group_id: str) -> G | None:
        """Return the group of this kind with that id, or ``None``."""
        group: object = self.groups.get(group_id)
        return group if isinstance(group, self.group_class) else None

    def existing(self, group_id: str, rule: Rule, *, absent: str = "Group {} not found.", reads: bool = False) -> G:
        """Return the group of this kind with that id; ``rule`` is the request's; ``reads``: it reads committed state.

        Raises:
            Refusal: GROUP_ID_NOT_FOUND; ``absent`` is the message if no group of any kind has that id.
        """
        group = self.find(group_id)
        if group is not None:
            return group
        known = self.groups.has(group_id, reads=reads)
        text = f"Group {group_id} is not a {self.group_class.type} group." if known else absent.format(group_id)
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, *rule, text)


def report_transition(
    builder: OutcomeBuilder, group: ModernGroup[Any], after: S, epoch: int, reasons: Mapping[S, Reason]
) -> None:
    """Report the group's change of state or epoch to observers, if there is one."""
    before = group.state
    if (before, group.epoch) != (after, epoch):
        builder.changed(StateChange(group.group_id, reasons[after], before.value, after.value, group.epoch, epoch))
