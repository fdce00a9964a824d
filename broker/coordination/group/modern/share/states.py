"""The states of a share group, and the reasons for which it enters them."""

from enum import StrEnum

from broker.coordination.reasons import Reason

_KIP = "KIP-932"


class State(StrEnum):
    """A state of a share group, by its name in the protocol (Kafka's ``ShareGroupState``)."""

    EMPTY = "Empty"
    STABLE = "Stable"


REASONS = {
    State.EMPTY: Reason("all members have left", "groups D.1 S1", _KIP),
    State.STABLE: Reason("a new epoch", "groups D.1 S5", _KIP),
}
"""State -> the reason for which a group enters it, or begins an epoch in it."""
