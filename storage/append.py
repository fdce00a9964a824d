"""What goes into an append and what comes out of it (Kafka: AppendOrigin, LogAppendInfo)."""

from dataclasses import dataclass
from enum import Enum, auto


class AppendOrigin(Enum):
    """Who asks for an append: decides which rules are checked (transactions D.4)."""

    CLIENT = auto()
    """A Produce request: every rule."""
    COORDINATOR = auto()
    """A coordinator of this broker, or a transaction marker: no duplicates, no sequences, control batches allowed."""
    REPLICATION = auto()
    """A copy of what a leader accepted, or the log itself at recovery: nothing is refused."""


@dataclass(slots=True)
class AppendInfo:
    """Where a batch went.

    `log_append_time_ms` is -1 unless the topic stamps LogAppendTime, or the batch is a duplicate: then it is the
    time of the batch that was appended before (transactions D.4, S1). `duplicate`: nothing was appended, the offsets
    are those of the remembered batch. `producer_epoch_before`: of the batch's producer here until then; -1: none.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    max_timestamp_ms: int = -1
    size: int = 0
    duplicate: bool = False
    producer_epoch_before: int = -1
