"""Origin and result of an append (Kafka: AppendOrigin, LogAppendInfo)."""

from enum import Enum, auto
from typing import Final, NamedTuple


class AppendOrigin(Enum):
    """Origin of an append, which determines the rules that are checked (transactions D.4)."""

    CLIENT = auto()
    """A Produce request: every rule."""
    COORDINATOR = auto()
    """A coordinator of this broker, or a transaction marker: no duplicates, no sequences, control batches allowed."""
    REPLICATION = auto()
    """Batches that a leader has accepted, or the log itself at recovery: nothing is rejected."""


class Rule(NamedTuple):
    """Rule of the specification that accepts or rejects a batch, and its KIP; for human readers."""

    rule: str
    source: str


NO_RULE: Final = Rule("", "")


class AppendInfo:
    """Result of an append.

    `log_append_time_ms` is -1 unless the topic stamps LogAppendTime, or the batch is a duplicate: then it is the
    time of the batch that was appended before (transactions D.4 S1). `duplicate`: nothing was appended, the offsets
    are those of the remembered batch. `producer_epoch_before`: the producer's epoch before this append; -1: none.
    `rule` is the one by which a producer's batch was accepted, or recognised as a duplicate.
    """

    __slots__ = (
        "base_offset",
        "duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp_ms",
        "producer_epoch_before",
        "rule",
        "size",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        max_timestamp_ms: int = -1,
        size: int = 0,
        *,
        duplicate: bool = False,
        producer_epoch_before: int = -1,
        rule: Rule = NO_RULE,
    ) -> None:
        self.base_offset, self.last_offset, self.log_append_time_ms = base_offset, last_offset, log_append_time_ms
        self.log_start_offset, self.max_timestamp_ms, self.size = log_start_offset, max_timestamp_ms, size
        self.duplicate, self.producer_epoch_before, self.rule = duplicate, producer_epoch_before, rule
