"""States of a classic group and the transitions between them (groups A.2, Kafka's ``ClassicGroupState``)."""

from enum import StrEnum

from broker.coordination.reasons import Reason


class State(StrEnum):
    """A state of a classic group, by its name in the protocol."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


ENTERED_FROM: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
    State.PREPARING_REBALANCE: frozenset({State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE}),
    State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
    State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    State.DEAD: frozenset(State),
}
"""State -> the states from which it is entered."""

REBALANCES_FROM = ENTERED_FROM[State.PREPARING_REBALANCE]
"""The states in which a rebalance may begin."""


_CLASS = "ClassicGroup"
REBALANCE_BEGUN = Reason("a rebalance begins", "groups A.5 R3", _CLASS)
ALL_JOINED = Reason("all members have joined", "groups A.5 R7", _CLASS)
ASSIGNED = Reason("assigned", "groups A.7", _CLASS)
ALL_LEFT = Reason("all members have left", "groups A.5 R7", _CLASS)


def state_diagram() -> str:
    """Return the states and transitions as a Mermaid diagram."""
    steps = [
        f"    {before} --> {after}"
        for after, befores in ENTERED_FROM.items()
        for before in State
        if before in befores and before is not after
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {State.EMPTY}", *steps, f"    {State.DEAD} --> [*]"])
