"""Transactional ids and their timelines."""

from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from control_api.answers.common import Citation, Count, FaultIds, Forgotten, Rule, TimeMs
from control_api.fields import About, Int64, Short
from control_api.transactions import Step


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event of a transactional id: states and epochs before and after, and the rule that decided.

    Old successful events are folded into one event with a `count`, from `at_ms` to `until_ms`.
    """

    at_ms: TimeMs
    event: str
    until_ms: Annotated[int, About("time of the last one of merged events")] = -1
    count: Count = 1
    state_before: str = ""
    state_after: str = ""
    producer_id: Int64 = -1
    epoch_before: int = -1
    epoch_after: int = -1
    client_id: str | None = None
    connection: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: Rule = ""
    citation: Citation = ""
    broker: int | None = None
    wants: Annotated[str, About("commit or abort, for a request that ends the transaction")] = ""
    detail: str = ""
    fault: FaultIds = None
    entry: Annotated[int | None, About("id of the request in the journal; null: no single request caused it")] = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id and its transaction; `deadline_ms` is when the coordinator aborts it, None if none is open."""

    transactional_id: str
    state: str = ""
    producer_id: Int64 = -1
    producer_epoch: int = -1
    last_producer_epoch: int = -1
    timeout_ms: int = -1
    deadline_ms: Annotated[int | None, About("when the coordinator aborts it; null: none is open")] = None
    coordinator: Annotated[int, About("id of the broker")] = -1
    partitions: Annotated[tuple[str, ...], About("such as topic-0")] = ()
    pending_offsets: Annotated[dict[str, dict[str, Int64]], About("group, then partition")] = field(
        default_factory=dict
    )
    held_at: Step | None = None
    timeline: Annotated[tuple[TimelineEvent, ...], About(detail=True)] = ()
    forgotten: Forgotten = 0
    stopped: Annotated[bool, About("whether it has reached the step of the hold")] = False
    client_id: Annotated[str | None, About("client id of the last client that used it")] = None
    connection: Annotated[int | None, About("number of that client's connection, as in the journal")] = None
    client: Annotated[
        str | None, About("address of that client, while the journal has a request of the connection")
    ] = None
    software: Annotated[str | None, About("client library with its version, if the client sends them")] = None


@dataclass(frozen=True, slots=True)
class PastTransaction:
    """One transaction of a transactional id, or several old ones that its timeline has folded."""

    id: Annotated[
        int | None,
        About("journal id of the request that began it, for `diagrams show --transaction`; null: unknown"),
    ] = None
    began_ms: Annotated[int | None, About("null: its beginning was dropped from the timeline")] = None
    ended_ms: Annotated[int | None, About("when all markers were written; null: not yet")] = None
    outcome: Annotated[str, About("committed, aborted, open or ending; for several, their counts")] = ""
    how: Annotated[str, About("event that ended it, such as `commit decided` or `aborted for a new producer`")] = ""
    producer_id: Int64 = -1
    producer_epoch: int = -1
    partitions: Annotated[tuple[str, ...], About("such as topic-0")] = ()
    refusals: Annotated[int, About("number of requests that were refused until it ended")] = 0
    client_id: str | None = None
    count: Count = 1


class TransactionHistory(TypedDict):
    """The transactions of a transactional id, oldest first."""

    transactional_id: str
    transactions: list[PastTransaction]
    forgotten: Annotated[int, About("number of older events that were dropped; -1: unknown")]


class Transactions(TypedDict):
    """All transactional ids."""

    transactions: list[Short[Transaction]]
