"""Which transitions of the coordinators' state machines the runs have reached, and which never."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import ENTERED_FROM, State
from broker.coordination.transaction.machine import TransactionMachine
from broker.coordination.transaction.states import VALID_PREVIOUS

Transition = tuple[str, str, str]
"""Machine, state before, state after."""


def all_transitions() -> set[Transition]:
    """Those that the tables of the machines allow."""
    transactions = {("transaction", old.name, new.name) for new, before in VALID_PREVIOUS.items() for old in before}
    groups = {("classic group", old.name, new.name) for new, before in ENTERED_FROM.items() for old in before}
    return transactions | groups


@contextmanager
def observed() -> Iterator[Counter[Transition]]:
    """Count transitions within the block; those of a log that is replayed count too."""
    found: Counter[Transition] = Counter()
    replay, enter = TransactionMachine.replay, ClassicGroup.enter

    def counted_replay(self: TransactionMachine, record: Any, *rest: Any) -> Any:
        old = self.transactions.get(record.transactional_id)
        result = replay(self, record, *rest)
        new = self.transactions.get(record.transactional_id)
        if old is not None:
            found["transaction", old.state.name, "DEAD" if new is None else new.state.name] += 1
        return result

    def counted_enter(self: ClassicGroup, state: State, now_ms: int) -> None:
        found["classic group", self.state.name, state.name] += 1
        enter(self, state, now_ms)

    TransactionMachine.replay = counted_replay  # type: ignore[method-assign, assignment]
    ClassicGroup.enter = counted_enter  # type: ignore[method-assign]
    try:
        yield found
    finally:
        TransactionMachine.replay = replay  # type: ignore[method-assign]
        ClassicGroup.enter = enter  # type: ignore[method-assign]


def table(found: Counter[Transition]) -> list[str]:
    """A line for each transition that the tables allow, with how often it was reached."""
    width = max(len(f"{machine}: {old} -> {new}") for machine, old, new in all_transitions())
    return [
        f"{f'{machine}: {old} -> {new}':<{width}}  {found[machine, old, new] or 'never'}"
        for machine, old, new in sorted(all_transitions())
    ]
