"""Rules of the wire, checked after each scenario: each client's requests beside its options and what it was granted.

They are what a journal alone does not show, as it does not hold the options that the application chose, and what
decides who may commit and which records are read. `understudy conformance` has the other invariants of the protocol.
A request is compared only with responses that its client has received: one that may have crossed a response is no
violation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from understudy.exam import witnesses
from understudy.exam.level import Level
from understudy.exam.wire import members, options, producers, sessions
from understudy.exam.wire.problem import Client, Problem
from understudy.results import JournalEntry

__all__ = ["Client", "Problem", "broken_rules", "problems"]

LIMIT: Final = 10_000
"""Requests of a scenario that are looked at: ours, five times what most send. A client with more is in a storm."""
Rule = Callable[[Sequence[JournalEntry]], Iterator[Problem]]
RULES: Final[Sequence[Rule]] = (
    members.classic,
    members.epochs,
    members.disowned,
    sessions.fetch_sessions,
    sessions.share_sessions,
    sessions.load,
)


def problems(clients: Iterable[Client], entries: Sequence[JournalEntry], *, habits: bool = True) -> list[Problem]:
    """Return the broken rules, the most binding first, then in the order of the requests; `habits`: these, too."""
    every_problem: list[Problem] = []
    if len(entries) >= LIMIT:  # what was granted at first may be missing
        return [
            each for client in clients for each in sessions.load([e for e in entries if e.client_id == client.name])
        ]
    granted = members.memberships(entries)
    for client in clients:
        mine = [entry for entry in entries if entry.client_id == client.name]
        every_problem += options.fields(client, mine)
        for rule in RULES:
            every_problem += rule(mine)
        every_problem += options.commits(client, mine)
        if client.kind == "producer":
            every_problem += producers.batches(client, mine)
            every_problem += producers.offsets_in_transactions(mine, granted)
    return sorted(
        (each for each in every_problem if habits or not each.habit),
        key=lambda each: (list(Level).index(each.level), each.entry.id),
    )


def broken_rules(entries: Sequence[JournalEntry]) -> list[Problem]:
    """Return the MUST rules that a process has broken with any options, in the order of its requests.

    Commits without a generation are left out: brokers accept them for groups without members only, and a process may
    commit beside its members. aiokafka sends them while a member joins again.
    """
    of_members = [each for each in entries if each.api != "OffsetCommit" or members.generation_of(each) >= 0]
    broken = [problem for rule in RULES for problem in rule(of_members)]
    sent = list(witnesses.batches(entries))
    for batch, text in [*witnesses.broken_sequences(sent), *witnesses.wrong_epochs(sent)]:
        broken.append(Problem(batch.entry, text))
    broken += producers.producer_ids(entries, sent)
    return sorted((each for each in broken if each.level is Level.MUST), key=lambda each: each.entry.id)
