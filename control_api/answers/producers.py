"""Producer ids and their timelines."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from control_api.answers.common import Citation, Count, Forgotten, Rule, TimeMs
from control_api.fields import About, Int64, Short


@dataclass(frozen=True, slots=True)
class ProducerPlace:
    """State of a producer id in one partition, such as ``orders-0``."""

    partition: str
    producer_id: Int64 = -1
    producer_epoch: int = -1
    last_sequence: int = -1
    last_timestamp_ms: Int64 = -1
    coordinator_epoch: int = -1
    txn_start_offset: Annotated[int, About("-1: no transaction is open")] = -1


@dataclass(frozen=True, slots=True)
class ProducerEvent:
    """One event of a producer id: its sequences, the producer state of the partition, the rule that decided.

    Consecutive accepted batches are one event, from `at_ms` to `until_ms`. Old successful events are folded into one
    event with a `count`.
    """

    at_ms: TimeMs
    event: str
    until_ms: Annotated[int, About("time of the last one of consecutive accepted batches")] = -1
    count: Count = 1
    partition: Annotated[str, About("such as topic-0; empty: no partition")] = ""
    producer_epoch: Annotated[int, About("in the request; -1: none")] = -1
    epoch_before: Annotated[int, About("epoch in the partition; -1: none")] = -1
    epoch_after: int = -1
    first_sequence: Annotated[int, About("-1: none")] = -1
    last_sequence: int = -1
    known_sequence: Annotated[int, About("last sequence in the partition; -1: none")] = -1
    batches: Annotated[int, About("number of batches of the event")] = 0
    client_id: str | None = None
    connection: int | None = None
    broker: int | None = None
    api: str | None = None
    version: int | None = None
    error: str | None = None
    rule: Rule = ""
    citation: Citation = ""
    detail: str = ""
    fault: Annotated[str | None, About("ids of the faults that applied to the request, separated by commas")] = None


@dataclass(frozen=True, slots=True)
class ProducerLife:
    """A producer id, idempotent or transactional: its state in partitions, and its timeline."""

    producer_id: Int64
    producer_epoch: Annotated[int, About("highest known epoch; -1: none")] = -1
    transactional_id: str | None = None
    client_id: Annotated[str | None, About("client id of the last client that used it")] = None
    partitions: Annotated[tuple[ProducerPlace, ...], About("partitions with state of the producer")] = ()
    timeline: Annotated[tuple[ProducerEvent, ...], About(detail=True)] = ()
    forgotten: Forgotten = 0


class Producers(TypedDict):
    """All producer ids."""

    producers: list[Short[ProducerLife]]
