"""States of a consumer group, derived from its epochs and its members (groups C.1)."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from broker.coordination.group.modern.consumer.member import Member, MemberState
from broker.coordination.reasons import Reason

_KIP = "KIP-848"


class State(StrEnum):
    """A state of a consumer group, by its name in the protocol (Kafka's ``ConsumerGroupState``)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


NEW_EPOCH = Reason("a new epoch without a target assignment yet", "groups C.4 H9", _KIP)
REASONS: Mapping[State, Reason] = {
    State.EMPTY: Reason("all members have left", "groups C.8", _KIP),
    State.ASSIGNING: NEW_EPOCH,
    State.RECONCILING: Reason("members reconcile with the target assignment", "groups C.5", _KIP),
    State.STABLE: Reason("all members have the target assignment", "groups C.5", _KIP),
}
"""State -> the reason for which a group enters it."""
UPGRADED = Reason("became a consumer group", "groups C.10.1", _KIP)
DOWNGRADED = Reason("became a classic group", "groups C.10.5", _KIP)


def state_of(epoch: int, assignment_epoch: int, members: Collection[Member]) -> State:
    """Return the state of a group with these epochs and members."""
    if not members:
        return State.EMPTY
    if epoch > assignment_epoch:
        return State.ASSIGNING
    settled = all(member.state is MemberState.STABLE and member.epoch == assignment_epoch for member in members)
    return State.STABLE if settled else State.RECONCILING
