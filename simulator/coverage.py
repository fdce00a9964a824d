"""Coverage: which transitions of the coordinators' state machines the runs have reached."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import ENTERED_FROM
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.member import MemberState
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.transaction.machine import TransactionMachine
from broker.coordination.transaction.states import VALID_PREVIOUS
from broker.partitions.share_partition.machine.states import InFlightState, RecordState

Transition = tuple[str, str, str]
"""Machine, state before, state after."""


_LEFT = "none"
"""State of a member that has not joined yet, or has left."""
_A, _Q, _K, _R = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
_RECORDS = {
    "acquire": {(_A, _Q)},
    "end": {(_Q, _A), (_Q, _K), (_Q, _R)},
    "roll_back": {(_A, _Q), (_K, _Q), (_R, _Q), (_A, _A), (_K, _A), (_R, _A), (_A, _R), (_K, _R)},
    "archive": {(_A, _R), (_Q, _R), (_K, _R)},
}
"""Event -> states before and after it, for a record of a share group without a dead-letter queue."""
_MEMBERS = {"consumer member": ConsumerGroup, "streams member": StreamsGroup}


def all_transitions() -> set[Transition]:
    """Return the transitions that the state machines' tables allow; for members, from each state to each other one."""
    transitions = {("transaction", old.name, new.name) for new, before in VALID_PREVIOUS.items() for old in before}
    transitions |= {("classic group", old.name, new.name) for new, before in ENTERED_FROM.items() for old in before}
    for event, pairs in _RECORDS.items():
        transitions |= {(f"share record, {event}", old.name, new.name) for old, new in pairs}
    states = [_LEFT, *(each.name for each in MemberState if each is not MemberState.UNKNOWN)]
    transitions |= {(kind, old, new) for kind in _MEMBERS for old in states for new in states if old != new}
    return transitions


@contextmanager
def observed() -> Iterator[Counter[Transition]]:
    """Count transitions within the block, including those when a log is replayed."""
    counts: Counter[Transition] = Counter()
    with ExitStack() as stack:
        stack.enter_context(_watched(TransactionMachine, "replay", _transaction, "transaction", counts))
        stack.enter_context(
            _watched(ClassicGroup, "enter", lambda group, *_: group.state.name, "classic group", counts)
        )
        for event in _RECORDS:
            stack.enter_context(
                _watched(InFlightState, event, lambda one, *_: one.state.name, f"share record, {event}", counts)
            )
        for kind, group in _MEMBERS.items():
            stack.enter_context(_watched(group, "replay", _member, kind, counts))
        yield counts


@contextmanager
def _watched(
    owner: type, method: str, state: Callable[..., str], machine: str, counts: Counter[Transition]
) -> Iterator[None]:
    """Count the changes of an object's ``state`` by calls of a method."""
    original = getattr(owner, method)

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        old = state(self, *arguments)
        result = original(self, *arguments, **named)
        counts[machine, old, state(self, *arguments)] += 1
        return result

    setattr(owner, method, counted)
    try:
        yield
    finally:
        setattr(owner, method, original)


def _transaction(machine: TransactionMachine, record: Any, *_: Any) -> str:
    known = machine.transactions.get(record.transactional_id)
    return "DEAD" if known is None else known.state.name


def _member(group: Any, record: Any, *_: Any) -> str:
    known = group.members.get(record.name)
    return _LEFT if known is None else str(known.state.name)


def table(counts: Counter[Transition]) -> list[str]:
    """Return a line for each transition that the tables allow, with the number of times it was reached."""
    width = max(len(f"{machine}: {old} -> {new}") for machine, old, new in all_transitions())
    return [
        f"{f'{machine}: {old} -> {new}':<{width}}  {counts[machine, old, new] or 'never'}"
        for machine, old, new in sorted(all_transitions())
    ]
