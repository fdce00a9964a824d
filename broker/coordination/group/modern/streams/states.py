"""States of a streams group, derived from its topology, its epochs and its members (groups E.6)."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from broker.coordination.group.modern.streams.member import Member, MemberState
from broker.coordination.reasons import Reason

_KIP = "KIP-1071"


class State(StrEnum):
    """A state of a streams group, by its name in the protocol (Kafka's ``StreamsGroupState``)."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"

    @property
    def filter_name(self) -> str:
        """The name in a ListGroups filter. Quirk: "not_ready", where lower case gives "notready" (groups A.13)."""
        return "not_ready" if self is State.NOT_READY else self.value.lower()


REASONS: Mapping[State, Reason] = {
    State.EMPTY: Reason("all members have left", "groups E.2", _KIP),
    State.NOT_READY: Reason("topics do not fit the topology", "groups E.4", _KIP),
    State.ASSIGNING: Reason("a new epoch without a target assignment yet", "groups E.3.8", _KIP),
    State.RECONCILING: Reason("members reconcile with the target assignment", "groups E.6", _KIP),
    State.STABLE: Reason("all members have the target assignment", "groups E.6", _KIP),
}
"""State -> the reason for which a group enters it."""


def state_of(epoch: int, assignment_epoch: int, members: Collection[Member], *, fits: bool) -> State:
    """Return the state of a group with these epochs and members.

    ``fits``: whether the topics fit the topology, by the last validation.
    """
    if not members:
        return State.EMPTY
    if not fits:
        return State.NOT_READY
    if epoch > assignment_epoch:
        return State.ASSIGNING
    settled = all(member.state is MemberState.STABLE and member.epoch == assignment_epoch for member in members)
    return State.STABLE if settled else State.RECONCILING
